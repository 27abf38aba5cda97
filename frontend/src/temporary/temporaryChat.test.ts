import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TemporaryChat } from "./temporaryChat";

/** Answers requests with streams that the test writes to. */
class FakeServer {
  bodies: { messages: { role: string; content: string; interrupted: boolean }[] }[] = [];
  signals: AbortSignal[] = [];
  #writers: ReadableStreamDefaultController<Uint8Array>[] = [];
  response: Response | null = null; // an error, instead of a stream

  fetch = (_url: string, options: RequestInit): Promise<Response> => {
    this.bodies.push(JSON.parse(options.body as string) as FakeServer["bodies"][number]);
    const { signal } = options;
    if (signal == null) throw new Error("the request can't be stopped");
    this.signals.push(signal);
    if (this.response !== null) return Promise.resolve(this.response);
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#writers.push(controller);
        signal.addEventListener("abort", () => controller.error(new DOMException("aborted", "AbortError")));
      },
    });
    return Promise.resolve(new Response(stream, { status: 200 }));
  };

  write(name: string, data: unknown): void {
    this.#writers.at(-1)?.enqueue(new TextEncoder().encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`));
  }

  end(): void {
    this.#writers.at(-1)?.close();
  }
}

let server: FakeServer;
let chat: TemporaryChat;

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  server = new FakeServer();
  vi.stubGlobal("fetch", server.fetch);
  chat = new TemporaryChat();
});

afterEach(() => vi.unstubAllGlobals());

const settle = () => new Promise((resolve) => setTimeout(resolve, 5));
const getAnswer = () => chat.state.value.messages.at(-1);
const done = { state: "done", error: null, facts: {} };

async function answerWith(text: string): Promise<void> {
  await settle();
  server.write("text", { text });
  server.write("end", done);
  server.end();
  await settle();
}

it("streams an answer, and sends the whole conversation with the next question", async () => {
  chat.send("I live in Lisbon");
  expect(chat.state.value.isAnswering).toBe(true);
  await settle();
  server.write("reasoning", { text: "Hm." });
  server.write("text", { text: "Nice " });
  await settle();
  expect(getAnswer()).toMatchObject({ role: "assistant", reasoning: "Hm.", text: "Nice " });
  await answerWith("place.");
  expect(chat.state.value.isAnswering).toBe(false);
  chat.send("Where do I live?");
  await answerWith("In Lisbon.");
  expect(server.bodies[1]?.messages.map(({ content }) => content)).toEqual(["I live in Lisbon", "Nice place.", "Where do I live?"]);
});

it("stores nothing in the browser", async () => {
  chat.send("a secret");
  await answerWith("kept");
  expect(localStorage.length + sessionStorage.length).toBe(0);
});

it("sends nothing while an answer is running", async () => {
  chat.send("one");
  chat.send("two");
  await settle();
  expect(server.bodies).toHaveLength(1);
  expect(chat.state.value.messages.map(({ text }) => text)).toEqual(["one", ""]);
});

it("keeps what has arrived when the person stops the answer, which ends the request", async () => {
  chat.send("a long story");
  await settle();
  server.write("text", { text: "Once upon" });
  await settle();
  chat.stop();
  await settle();
  expect(server.signals[0]?.aborted).toBe(true);
  expect(getAnswer()).toMatchObject({ text: "Once upon", isInterrupted: true, failure: null });
  expect(chat.state.value.isAnswering).toBe(false);
});

it("asks again instead of the last answer", async () => {
  chat.send("one");
  await answerWith("first");
  chat.retry();
  await answerWith("second");
  expect(chat.state.value.messages.map(({ text }) => text)).toEqual(["one", "second"]);
  expect(server.bodies[1]?.messages).toEqual([{ role: "user", content: "one", interrupted: false }]);
});

it("says why an answer failed", async () => {
  chat.send("one");
  await settle();
  server.write("notice", { text: "in English", code: "omitted", facts: {} });
  server.write("end", { state: "failed", error: "No.", facts: { code: "content_filtered", provider_title: "Workshop" } });
  server.end();
  await settle();
  expect(getAnswer()?.failure).toContain("The content filter of Workshop blocked the answer.");
  expect(getAnswer()?.notices[0]).toContain("no longer sees its oldest messages");
});

it("says when the server refuses the question, or the connection is lost", async () => {
  const error = { error: { code: "command_unavailable", message: "No.", facts: {} } };
  server.response = new Response(JSON.stringify(error), { status: 422 });
  chat.send("/new");
  await settle();
  expect(getAnswer()?.failure).toBe("Commands don’t work in a temporary conversation.");
  server.response = null;
  chat.retry();
  await settle();
  server.write("text", { text: "Half" });
  server.end();
  await settle();
  expect(getAnswer()).toMatchObject({ text: "Half", isInterrupted: true });
  expect(getAnswer()?.failure).toContain("connection was lost");
});

it("forgets everything when it is deleted, also what arrives later", async () => {
  chat.send("one");
  await settle();
  chat.clear();
  expect(server.signals[0]?.aborted).toBe(true);
  await settle();
  expect(chat.state.value).toEqual({ messages: [], isAnswering: false });
});

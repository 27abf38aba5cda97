import { afterEach, describe, expect, it, vi } from "vitest";
import { findHighlightedCode, highlightCode, type HighlightReply, type HighlightRequest } from "./highlight";
import { highlightNow } from "./languages";

it("highlights code in a known language, by its name or an alias", async () => {
  const code = "int main(void) { return 0; }\n";
  expect(await highlightNow(code, "c")).toContain("hljs-type");
  expect(await highlightNow(code, "h")).toBe(await highlightNow(code, "c"));
});

it("leaves unknown languages alone", async () => {
  expect(await highlightNow("x", "klingon")).toBeNull();
  expect(await highlightNow("x", "constructor")).toBeNull();
});

it("escapes markup in code", async () => {
  expect(await highlightNow("a = '<img src=x onerror=alert(1)>'", "python")).not.toContain("<img");
});

it("leaves code alone that is very long or has no language", () => {
  expect(findHighlightedCode("int a;\n".repeat(10_000), "c")).toBeNull();
  expect(findHighlightedCode("int a;", "")).toBeNull();
  expect(findHighlightedCode("int a;", "c")).toBeUndefined();
});

/** A worker whose replies the test sends. */
class FakeWorker extends EventTarget {
  static all: FakeWorker[] = [];
  requests: HighlightRequest[] = [];
  isTerminated = false;

  constructor() {
    super();
    FakeWorker.all.push(this);
  }

  postMessage(request: HighlightRequest): void {
    this.requests.push(request);
  }

  terminate(): void {
    this.isTerminated = true;
  }

  reply(message: HighlightReply): void {
    this.dispatchEvent(new MessageEvent("message", { data: message }));
  }
}

describe("code that takes long", () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  /** Starts to highlight code; returns its request and the worker that got it. */
  async function start(code: string) {
    const highlighted = highlightCode(code, "python", () => true);
    await vi.advanceTimersByTimeAsync(0);
    const worker = FakeWorker.all.at(-1);
    const request = worker?.requests.at(-1);
    if (worker === undefined || request === undefined) throw new Error("no worker was asked");
    return { highlighted, worker, id: request.id };
  }

  it("waits for a slow connection, and leaves code plain that takes too long to highlight", async () => {
    vi.useFakeTimers();
    vi.stubGlobal("Worker", FakeWorker);
    const slow = await start("x = 1");
    await vi.advanceTimersByTimeAsync(20_000);
    slow.worker.reply({ id: slow.id, isLoaded: true });
    slow.worker.reply({ id: slow.id, result: { html: "<b>x = 1</b>", isFinal: true } });
    expect(await slow.highlighted).toBe("<b>x = 1</b>");
    expect(findHighlightedCode("x = 1", "python")).toBe("<b>x = 1</b>");

    const endless = await start("x = 2");
    endless.worker.reply({ id: endless.id, isLoaded: true });
    await vi.advanceTimersByTimeAsync(5000);
    expect(await endless.highlighted).toBeNull();
    expect([endless.worker.isTerminated, findHighlightedCode("x = 2", "python")]).toEqual([true, null]);

    const lost = await start("x = 3"); // the server never answers
    expect(lost.worker).not.toBe(endless.worker);
    await vi.advanceTimersByTimeAsync(100_000);
    expect(await lost.highlighted).toBeNull();
    expect([lost.worker.isTerminated, findHighlightedCode("x = 3", "python")]).toEqual([true, undefined]); // tried again later
  });
});

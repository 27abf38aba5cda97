import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { OutboxEntry } from "./entries";
import { Outbox } from "./outbox";

interface RecordedRequest {
  path: string;
  body: Record<string, unknown>;
}

let requests: RecordedRequest[];
let answers: (() => Response)[];

const json = (status: number, body: unknown) => () =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
const receipt = (seq: number) =>
  json(202, { outcome: "accepted", session_id: "s", turn_id: "t", seq, ahead: 0, reply: null, facts: {} });
const dropConnection = () => {
  throw new TypeError("no connection");
};

function entry(key: string, more: Partial<OutboxEntry> = {}): OutboxEntry {
  return {
    key,
    session: "s",
    newSession: {},
    text: key,
    attachments: [],
    at: "",
    afterSeq: 0,
    seq: null,
    rejection: null,
    ...more,
  };
}

beforeEach(() => {
  localStorage.clear();
  vi.useFakeTimers();
  requests = [];
  answers = [];
  vi.stubGlobal("fetch", (url: string, options: RequestInit) => {
    requests.push({ path: new URL(url).pathname, body: JSON.parse(options.body as string) as Record<string, unknown> });
    const next = answers.shift();
    return next === undefined ? Promise.reject(new TypeError("no answer is left")) : Promise.resolve().then(next);
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const waitForRequests = () => vi.advanceTimersByTimeAsync(0);

it("sends in order and stores the sequence numbers", async () => {
  answers = [receipt(1), receipt(2)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  outbox.add(entry("b"));
  await waitForRequests();
  expect(requests.map(({ body }) => body.key)).toEqual(["a", "b"]);
  expect(outbox.entries.value.map(({ seq }) => seq)).toEqual([1, 2]);
});

it("sends again with the same key after the connection was lost", async () => {
  answers = [dropConnection, receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  await waitForRequests();
  expect(outbox.entries.value[0]?.seq).toBeNull();
  await vi.advanceTimersByTimeAsync(3000);
  expect(requests.map(({ body }) => body.key)).toEqual(["a", "a"]);
  expect(outbox.entries.value[0]?.seq).toBe(1);
});

it("sends entries from before a reload after it", async () => {
  answers = [dropConnection];
  new Outbox("p", () => undefined).add(entry("a"));
  await waitForRequests();
  answers = [receipt(1)];
  const reloaded = new Outbox("p", () => undefined);
  await reloaded.flush();
  expect(reloaded.entries.value[0]?.seq).toBe(1);
});

it("shows the entries of one person to no other person in the same browser", () => {
  answers = [];
  new Outbox("p", () => undefined).add(entry("a"));
  expect(new Outbox("q", () => undefined).entries.value).toEqual([]);
});

it("creates a conversation once, however often the message is tried", async () => {
  answers = [dropConnection, json(201, { id: "created" }), dropConnection, receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a", { session: null }));
  await waitForRequests();
  await vi.advanceTimersByTimeAsync(6000);
  const [create, send] = ["/api/sessions", "/api/sessions/created/messages"];
  expect(requests.map(({ path }) => path)).toEqual([create, create, send, send]);
  expect(requests.map(({ body }) => body.key)).toEqual(["a", "a", "a", "a"]); // so that a lost answer does not lead to a second conversation
});

it("creates a conversation in its project, without a title", async () => {
  answers = [json(201, { id: "created" }), receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a", { session: null, newSession: { project: "x" } }));
  await waitForRequests();
  expect(requests[0]?.body).toEqual({ key: "a", project: "x" });
  expect(outbox.entries.value).toMatchObject([{ session: "created", seq: 1, rejection: null }]);
});

it("keeps the entries of other tabs", async () => {
  const [one, other] = [new Outbox("p", () => undefined), new Outbox("p", () => undefined)];
  answers = [dropConnection, dropConnection, receipt(2)];
  one.add(entry("a"));
  other.add(entry("b"));
  await waitForRequests();
  const keys = () => new Outbox("p", () => undefined).entries.value.map(({ key }) => key);
  expect(keys()).toEqual(["a", "b"]);
  await other.flush();
  expect(keys()).toEqual(["a"]);
});

it("stores nothing that has a receipt, because it is in the log", async () => {
  answers = [receipt(1)];
  new Outbox("p", () => undefined).add(entry("a"));
  await waitForRequests();
  expect(localStorage.length).toBe(0);
});

it("sends nothing after its person has signed out, and keeps it for them", async () => {
  const outbox = new Outbox("p", () => undefined);
  const stop = outbox.start();
  answers = [json(401, { error: { code: "not_signed_in", message: "", facts: {} } })];
  outbox.add(entry("a", { session: null }));
  await waitForRequests();
  stop();
  answers = [json(201, { id: "theirs" }), receipt(1)]; // these would be for the next person who signs in
  await vi.advanceTimersByTimeAsync(10_000);
  await outbox.flush();
  expect(requests).toHaveLength(1);
  expect(new Outbox("p", () => undefined).entries.value).toHaveLength(1);
});

it("tells why an entry was rejected, and continues with the next one", async () => {
  answers = [json(422, { error: { code: "invalid_input", message: "too long", facts: {} } }), receipt(2)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  outbox.add(entry("b"));
  await waitForRequests();
  expect(outbox.entries.value).toMatchObject([{ rejection: "too long" }, { seq: 2 }]);
});

it("retries a rejected entry under another key, because the server remembers that it rejected the first", async () => {
  const rejected = { outcome: "rejected", session_id: "s", turn_id: null, seq: null, ahead: 0, reply: "busy", facts: {} };
  answers = [json(202, rejected), receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  await waitForRequests();
  expect(outbox.entries.value[0]?.rejection).toBe("busy");
  outbox.retry("a");
  await waitForRequests();
  expect(requests[1]?.body.content).toBe("a");
  expect(requests[1]?.body.key).not.toBe("a");
  expect(outbox.entries.value[0]?.seq).toBe(1);
});

it("continues in other conversations while the server fails in one, and keeps the order there", async () => {
  const failed = json(500, { error: { code: "internal", message: "a bug", facts: {} } });
  answers = [json(201, { id: "created" }), failed, receipt(1), receipt(2), receipt(3)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a", { session: null }));
  outbox.add(entry("b", { session: "other" }));
  await waitForRequests();
  outbox.add(entry("c", { session: "created" }));
  await vi.advanceTimersByTimeAsync(3000);
  expect(requests.map(({ body }) => body.key)).toEqual(["a", "a", "b", "a", "c"]);
  expect(outbox.entries.value.map(({ seq }) => seq)).toEqual([2, 1, 3]);
});

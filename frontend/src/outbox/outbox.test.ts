import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Outbox } from "./outbox";
import type { Entry } from "./entries";

interface Asked {
  path: string;
  body: Record<string, unknown>;
}

let asked: Asked[];
let answers: (() => Response)[];

const json = (status: number, body: unknown) => () =>
  new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
const receipt = (seq: number) => json(202, { outcome: "accepted", session_id: "s", turn_id: "t", seq, ahead: 0, reply: null, facts: {} });
const cut = () => {
  throw new TypeError("no connection");
};

function entry(key: string, more: Partial<Entry> = {}): Entry {
  return { key, session: "s", begin: {}, text: key, attachments: [], at: "", after: 0, seq: null, refused: null, ...more };
}

beforeEach(() => {
  localStorage.clear();
  vi.useFakeTimers();
  asked = [];
  answers = [];
  vi.stubGlobal("fetch", (url: string, options: RequestInit) => {
    asked.push({ path: new URL(url).pathname, body: JSON.parse(options.body as string) as Record<string, unknown> });
    const next = answers.shift();
    return next === undefined ? Promise.reject(new TypeError("nothing answers")) : Promise.resolve().then(next);
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

it("sends in order and remembers the numbers", async () => {
  answers = [receipt(1), receipt(2)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  outbox.add(entry("b"));
  await settle();
  expect(asked.map(({ body }) => body.key)).toEqual(["a", "b"]);
  expect(outbox.entries.value.map(({ seq }) => seq)).toEqual([1, 2]);
});

it("tries again with the same key when the connection was cut", async () => {
  answers = [cut, receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  await settle();
  expect(outbox.entries.value[0]?.seq).toBeNull();
  await vi.advanceTimersByTimeAsync(3000);
  expect(asked.map(({ body }) => body.key)).toEqual(["a", "a"]);
  expect(outbox.entries.value[0]?.seq).toBe(1);
});

it("sends after a reload what was kept before it", async () => {
  answers = [cut];
  new Outbox("p", () => undefined).add(entry("a"));
  await settle();
  answers = [receipt(1)];
  const afterwards = new Outbox("p", () => undefined);
  await afterwards.flush();
  expect(afterwards.entries.value[0]?.seq).toBe(1);
});

it("shows nobody what somebody else has kept in the same browser", () => {
  answers = [];
  new Outbox("p", () => undefined).add(entry("a"));
  expect(new Outbox("q", () => undefined).entries.value).toEqual([]);
});

it("begins a conversation once, however often the message is tried", async () => {
  answers = [cut, json(201, { id: "fresh" }), cut, receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a", { session: null }));
  await settle();
  await vi.advanceTimersByTimeAsync(6000);
  const [begin, say] = ["/api/sessions", "/api/sessions/fresh/messages"];
  expect(asked.map(({ path }) => path)).toEqual([begin, begin, say, say]);
  expect(asked.map(({ body }) => body.key)).toEqual(["a", "a", "a", "a"]); // so that a begin that was not heard of is no second
});

it("begins a conversation under another title, and at last without one, where its own is taken", async () => {
  const taken = json(422, { error: { code: "title_taken", message: "taken", facts: {} } });
  answers = [taken, taken, json(201, { id: "fresh" }), receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a", { session: null, begin: { title: "hi", project: "x" }, at: "2026-11-15T08:12:00Z" }));
  await settle();
  expect(asked.slice(0, 3).map(({ body }) => body.title)).toEqual(["hi", expect.stringMatching(/^hi · .*2026/), undefined]);
  expect(asked[2]?.body).toEqual({ key: "a", project: "x" });
  expect(outbox.entries.value).toMatchObject([{ session: "fresh", seq: 1, refused: null }]);
});

it("keeps what other tabs have kept", async () => {
  const [one, other] = [new Outbox("p", () => undefined), new Outbox("p", () => undefined)];
  answers = [cut, cut, receipt(2)];
  one.add(entry("a"));
  other.add(entry("b"));
  await settle();
  const keys = () => new Outbox("p", () => undefined).entries.value.map(({ key }) => key);
  expect(keys()).toEqual(["a", "b"]);
  await other.flush();
  expect(keys()).toEqual(["a"]);
});

it("keeps nothing that has a receipt: the log has it", async () => {
  answers = [receipt(1)];
  new Outbox("p", () => undefined).add(entry("a"));
  await settle();
  expect(localStorage.length).toBe(0);
});

it("sends nothing more once its person is gone, and keeps it for them", async () => {
  const outbox = new Outbox("p", () => undefined);
  const stop = outbox.start();
  answers = [json(401, { error: { code: "not_signed_in", message: "", facts: {} } })];
  outbox.add(entry("a", { session: null }));
  await settle();
  stop();
  answers = [json(201, { id: "theirs" }), receipt(1)]; // whoever signs in next would be taken for them
  await vi.advanceTimersByTimeAsync(10_000);
  await outbox.flush();
  expect(asked).toHaveLength(1);
  expect(new Outbox("p", () => undefined).entries.value).toHaveLength(1);
});

it("says why something was refused, and goes on with the next", async () => {
  answers = [json(422, { error: { code: "invalid_input", message: "too long", facts: {} } }), receipt(2)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  outbox.add(entry("b"));
  await settle();
  expect(outbox.entries.value).toMatchObject([{ refused: "too long" }, { seq: 2 }]);
});

it("sends what was refused under another key, because the server has refused the first for good", async () => {
  const refused = { outcome: "refused", session_id: "s", turn_id: null, seq: null, ahead: 0, reply: "busy", facts: {} };
  answers = [json(202, refused), receipt(1)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a"));
  await settle();
  expect(outbox.entries.value[0]?.refused).toBe("busy");
  outbox.again("a");
  await settle();
  expect(asked[1]?.body.content).toBe("a");
  expect(asked[1]?.body.key).not.toBe("a");
  expect(outbox.entries.value[0]?.seq).toBe(1);
});

it("goes on in other conversations while the server fails in one, and keeps the order there", async () => {
  const failed = json(500, { error: { code: "internal", message: "a mistake", facts: {} } });
  answers = [json(201, { id: "fresh" }), failed, receipt(1), receipt(2), receipt(3)];
  const outbox = new Outbox("p", () => undefined);
  outbox.add(entry("a", { session: null }));
  outbox.add(entry("b", { session: "other" }));
  await settle();
  outbox.add(entry("c", { session: "fresh" }));
  await vi.advanceTimersByTimeAsync(3000);
  expect(asked.map(({ body }) => body.key)).toEqual(["a", "a", "b", "a", "c"]);
  expect(outbox.entries.value.map(({ seq }) => seq)).toEqual([2, 1, 3]);
});

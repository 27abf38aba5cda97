import { describe, expect, it } from "vitest";
import type { Conversation } from "../live/state";
import { answer, event, message, turn } from "../lib/samples";
import { liveRows, partsOf, rowOf, storedRows } from "./rows";

const dayOf = (at: string) => at.slice(0, 10);
const kinds = (events: Parameters<typeof storedRows>[0]) => storedRows(events, dayOf).map((row) => row.kind);

function conversation(more: Partial<Conversation>): Conversation {
  return { events: [], moreBefore: false, moreAfter: false, turns: [], drafts: {}, deliveries: {}, notice: null, stale: false, ...more };
}

describe("the rows of a log", () => {
  it("begin each day with its name", () => {
    expect(kinds([message(1, "a", "2026-11-14T10:00:00Z"), message(2, "b", "2026-11-15T10:00:00Z")])).toEqual([
      "day",
      "said",
      "day",
      "said",
    ]);
  });

  it("put what the agent said and did in one turn together", () => {
    const call = { id: "c1", function: { name: "look", arguments: '{"at":"sea"}' } };
    const looked = { role: "tool", content: "blue", tool_call_id: "c1", answers: 1, duration_ms: 40 } as const;
    const result = { ...event(4, "message"), message: looked };
    const rows = storedRows(
      [message(1, "a"), answer(2, null, 1, { tool_calls: [call], reasoning: "hm" }), result, answer(5, "It is blue.", 1, { duration_ms: 1200 })],
      dayOf,
    );
    expect(rows.at(-1)).toMatchObject({
      kind: "answer",
      key: "answer-1",
      seqs: [2, 4, 5],
      took: 1200,
      parts: [
        { kind: "reasoning", text: "hm" },
        { kind: "tool", name: "look", result: "blue", failed: false, took: 40 },
        { kind: "text", text: "It is blue." },
      ],
    });
  });

  it("keep two answers apart that follow each other", () => {
    expect(kinds([message(1, "a"), message(2, "b"), answer(3, "A", 1), answer(4, "B", 2)])).toEqual([
      "day",
      "said",
      "said",
      "answer",
      "answer",
    ]);
  });

  it("leave out an undo that was brought back, and what interests nobody", () => {
    expect(kinds([message(1, "a"), event(2, "undone"), event(3, "redone", { undone: 2 }), event(4, "pinned")])).toEqual([
      "day",
      "said",
    ]);
  });

  it("offer to bring back only what was undone last", () => {
    const rows = storedRows([event(1, "undone"), message(2, "a"), event(3, "undone")], dayOf);
    expect(rows.filter((row) => row.kind === "quiet").map((row) => row.latest)).toEqual([false, true]);
  });

  it("offer to take back only the last change of each setting", () => {
    const changed = (seq: number, setting: string) => event(seq, "changed", { setting });
    const rows = storedRows([changed(1, "busy"), changed(2, "model"), changed(3, "busy")], dayOf);
    expect(rows.filter((row) => row.kind === "quiet").map((row) => row.latest)).toEqual([false, true, true]);
  });

  it("never have the same key twice", () => {
    const rows = storedRows([answer(1, "a", 9), message(2, "b"), answer(3, "c", 9)], dayOf);
    expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
  });

  it("are found by the number of any message in them, or the next", () => {
    const rows = storedRows([message(1, "a"), answer(3, "b", 1), answer(4, "c", 1)], dayOf);
    expect([1, 4, 2, 99].map((seq) => rowOf(rows, seq))).toEqual([1, 2, 2, -1]);
  });
});

describe("what comes after the log", () => {
  it("is a draft with the key that the answer will have", () => {
    const known = conversation({ turns: [turn("t", 1, "running")], drafts: { t: [{ kind: "text", text: "He" }] } });
    expect(liveRows(known, [], [])).toMatchObject([{ kind: "answer", key: "answer-1", running: true }]);
    const stored = storedRows([message(1, "a"), answer(2, "Hello", 1)], dayOf);
    expect(liveRows(known, [], stored)).toEqual([]);
  });

  it("says how many are ahead of what waits", () => {
    const known = conversation({ turns: [turn("t", 1, "running"), turn("u", 2, "queued"), turn("v", 3, "queued")] });
    expect(liveRows(known, [], []).slice(1)).toMatchObject([{ ahead: 1 }, { ahead: 2 }]);
  });

  it("is not shown in the middle of a conversation", () => {
    expect(liveRows(conversation({ moreAfter: true, turns: [turn("t", 1, "running")] }), [], [])).toEqual([]);
  });

  it("gives a result to the call it belongs to, and stands alone without one", () => {
    const parts = partsOf([
      { kind: "call", call_id: "1", name: "a", began_at: "2026-11-15T08:12:00Z" },
      { kind: "call", call_id: "2", name: "b" },
      { kind: "result", call_id: "2", text: "B", failed: true, duration_ms: 0 },
      { kind: "result", call_id: "9", name: "c", text: "C" },
    ]);
    expect(parts).toMatchObject([
      { name: "a", result: null, beganAt: "2026-11-15T08:12:00Z", took: null },
      { name: "b", result: "B", failed: true, took: 0 },
      { name: "c", result: "C" },
    ]);
  });
});

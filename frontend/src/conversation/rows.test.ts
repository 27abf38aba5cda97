import { describe, expect, it } from "vitest";
import type { Conversation } from "../live/state";
import { answer, event, message, turn } from "../testing/samples";
import { addLiveRows, buildParts, buildStoredRows, findRow } from "./rows";

const getDay = (at: string) => at.slice(0, 10);
const listKinds = (events: Parameters<typeof buildStoredRows>[0]) => buildStoredRows(events, getDay).map((row) => row.kind);
const listKeys = (rows: ReturnType<typeof addLiveRows>) => rows.filter((row) => row.kind !== "day").map((row) => row.key);

function buildConversation(more: Partial<Conversation>): Conversation {
  return {
    events: [],
    moreBefore: false,
    moreAfter: false,
    turns: [],
    drafts: {},
    deliveries: {},
    notice: null,
    endNotices: [],
    staleSeq: null,
    ...more,
  };
}

describe("the rows of a log", () => {
  it("start each day with a divider", () => {
    expect(listKinds([message(1, "a", "2026-11-14T10:00:00Z"), message(2, "b", "2026-11-15T10:00:00Z")])).toEqual([
      "day",
      "message",
      "day",
      "message",
    ]);
  });

  it("show an entry that cannot be read, and everything around it", () => {
    const unreadable = event(2, "unreadable");
    expect(listKinds([message(1, "a"), unreadable, message(3, "b")])).toEqual(["day", "message", "event", "message"]);
    expect(listKinds([message(1, "a"), { ...unreadable, hidden: true }])).toEqual(["day", "message"]);
  });

  it("shows that a message was erased, but not what an undo had hidden, and not other erased entries", () => {
    const listErased = (facts: Record<string, unknown>) => listKinds([message(1, "a"), { ...event(2, "erased"), facts }]);
    expect(listErased({ stored_kind: "message" })).toEqual(["day", "message", "event"]);
    expect(listErased({ stored_kind: "message", was_hidden: true })).toEqual(["day", "message"]);
    expect(listErased({ stored_kind: "reaction" })).toEqual(["day", "message"]);
    expect(listErased({})).toEqual(["day", "message"]);
  });

  it("show that the reset policy ended the conversation, but not that its chat moved on", () => {
    const list = (reason: string) => listKinds([message(1, "a"), event(2, "ended", { reason })]);
    expect(list("idle")).toEqual(["day", "message", "event"]);
    expect(list("daily")).toEqual(["day", "message", "event"]);
    expect(list("manual")).toEqual(["day", "message"]);
  });

  it("keep a proposed job open until it is decided or proposed again", () => {
    const proposed = (seq: number) => event(seq, "job_proposed", { job_id: "j_1" });
    const listOpen = (events: Parameters<typeof buildStoredRows>[0]) =>
      buildStoredRows(events, getDay).flatMap((row) => (row.kind === "event" && row.isLatest ? [row.event.seq] : []));
    expect(listOpen([message(1, "a"), proposed(2), answer(3, "b", 1), message(4, "c")])).toEqual([2]);
    expect(listOpen([proposed(2), proposed(5), event(6, "job_proposed", { job_id: "j_2" })])).toEqual([5, 6]);
    expect(listOpen([proposed(2), message(3, "c"), event(4, "job_confirmed", { job_id: "j_1" })])).toEqual([4]);
  });

  it("show a proposed job below its answer, while that grows and after it", () => {
    const events = [message(1, "a"), message(2, "b"), event(3, "job_proposed", { job_id: "j_1", input_seq: 1 })];
    const live = buildConversation({ events, turns: [turn("t_1", 1, "running"), turn("t_2", 2, "queued")] });
    expect(listKeys(addLiveRows(buildStoredRows(events, getDay), live, [])).slice(0, 4)).toEqual([
      "message-1",
      "answer-1",
      "event-3",
      "message-2",
    ]);
    expect(listKeys(buildStoredRows([...events, answer(4, "c", 1), answer(5, "d", 2)], getDay))).toEqual([
      "message-1",
      "answer-1",
      "event-3",
      "message-2",
      "answer-2",
    ]);
  });

  it("combine the text and tool calls of one turn", () => {
    const call = { id: "c1", function: { name: "look", arguments: '{"at":"sea"}' } };
    const toolMessage = { role: "tool", content: "blue", tool_call_id: "c1", answers: 1, duration_ms: 40 } as const;
    const result = { ...event(4, "message"), message: toolMessage };
    const rows = buildStoredRows(
      [
        message(1, "a"),
        answer(2, null, 1, { tool_calls: [call], reasoning: "hm" }),
        result,
        answer(5, "It is blue.", 1, { duration_ms: 1200 }),
      ],
      getDay,
    );
    expect(rows.at(-1)).toMatchObject({
      kind: "answer",
      key: "answer-1",
      seqs: [2, 4, 5],
      durationMs: 1200,
      parts: [
        { kind: "reasoning", text: "hm" },
        { kind: "tool", name: "look", result: "blue", failed: false, durationMs: 40 },
        { kind: "text", text: "It is blue." },
      ],
    });
  });

  it("have each answer under its question, also if other messages arrived during the answer", () => {
    const events = [message(1, "a"), message(2, "b"), message(3, "c"), answer(4, "A", 1), answer(5, "more A", 1), answer(6, "B", 2)];
    const expected = ["message-1", "answer-1", "message-2", "answer-2", "message-3"];
    expect(listKeys(buildStoredRows(events, getDay))).toEqual(expected);
    expect(listKeys(buildStoredRows(events.slice(1), getDay))).toEqual(expected.slice(1)); // its question is not loaded yet
  });

  it("have the end of an answer under it, without an offer to retry another message", () => {
    const interrupted = event(4, "turn_interrupted", { turn: "t", input_seq: 1 });
    const rows = buildStoredRows([message(1, "a"), message(2, "b"), answer(3, "A", 1), interrupted], getDay);
    expect(listKeys(rows)).toEqual(["message-1", "answer-1", "event-4", "message-2"]);
    expect(rows.find((row) => row.kind === "event")).toMatchObject({ isLatest: false });
    const failed = event(5, "turn_failed", { turn: "u", input_seq: 3 });
    expect(buildStoredRows([message(1, "a"), answer(2, "A", 1), message(3, "b"), failed], getDay).at(-1)).toMatchObject({
      key: "event-5",
      isLatest: true,
    });
  });

  it("keep other events where they happened", () => {
    const compacted = event(3, "compacted");
    const rows = buildStoredRows([message(1, "a"), answer(2, "A", 1), compacted, message(4, "b"), answer(5, "B", 4)], getDay);
    expect(listKeys(rows)).toEqual(["message-1", "answer-1", "event-3", "message-4", "answer-4"]);
  });

  it("start no day between a question and an answer that was moved up to it", () => {
    const [monday, tuesday] = ["2026-11-16T23:59:00Z", "2026-11-17T00:01:00Z"];
    const late = { ...answer(3, "A", 1), at: tuesday };
    expect(listKinds([message(1, "a", monday), message(2, "b", monday), late, message(4, "c", tuesday)])).toEqual([
      ...["day", "message", "answer", "message"],
      ...["day", "message"],
    ]);
  });

  it("leave out an undo that was redone, and events that are not shown", () => {
    expect(listKinds([message(1, "a"), event(2, "undone"), event(3, "redone", { undo_seq: 2 }), event(4, "pinned")])).toEqual([
      "day",
      "message",
    ]);
  });

  it("show several undos in a row as one", () => {
    const undone = (seq: number, turns: number) => event(seq, "undone", { turns });
    const listUndos = (events: Parameters<typeof buildStoredRows>[0]) =>
      buildStoredRows(events, getDay).flatMap((row) => (row.kind === "event" ? [[row.event.seq, row.event.facts.turns]] : []));
    const three = [message(1, "a"), undone(5, 1), undone(6, 2), event(7, "renamed"), undone(8, 1)];
    expect(listUndos(three)).toEqual([[8, 4]]);
    expect(listUndos([...three, event(9, "redone", { undo_seq: 8 })])).toEqual([[6, 3]]);
    expect(listUndos([...three, message(9, "b"), undone(10, 1)])).toEqual([
      [8, 4],
      [10, 1],
    ]);
  });

  it("offer a redo only after the last undo", () => {
    const rows = buildStoredRows([event(1, "undone"), message(2, "a"), event(3, "undone")], getDay);
    expect(rows.filter((row) => row.kind === "event").map((row) => row.isLatest)).toEqual([false, true]);
  });

  it("offer to revert only the last change of each setting", () => {
    const changed = (seq: number, setting: string) => event(seq, "setting_changed", { setting });
    const rows = buildStoredRows([changed(1, "busy"), changed(2, "model"), changed(3, "busy")], getDay);
    expect(rows.filter((row) => row.kind === "event").map((row) => row.isLatest)).toEqual([false, true, true]);
  });

  it("never have the same key twice", () => {
    const rows = buildStoredRows([answer(1, "a", 9), message(2, "b"), answer(3, "c", 9)], getDay);
    expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
  });

  it("are found by the sequence number of any of their messages, or of the next one", () => {
    const rows = buildStoredRows([message(1, "a"), answer(3, "b", 1), answer(4, "c", 1)], getDay);
    expect([1, 4, 2, 99].map((seq) => findRow(rows, seq))).toEqual([1, 2, 2, -1]);
  });
});

describe("the rows of what is not stored yet", () => {
  it("are a draft with the key that the answer will have", () => {
    const conversation = buildConversation({ turns: [turn("t", 1, "running")], drafts: { t: [{ kind: "text", text: "He" }] } });
    expect(addLiveRows([], conversation, [])).toMatchObject([{ kind: "answer", key: "answer-1", running: true }]);
    const stored = buildStoredRows([message(1, "a"), answer(2, "Hello", 1)], getDay);
    expect(addLiveRows(stored, conversation, [])).toEqual(stored);
  });

  it("tell how many turns are ahead of a queued one", () => {
    const conversation = buildConversation({ turns: [turn("t", 1, "running"), turn("u", 2, "queued"), turn("v", 3, "queued")] });
    expect(addLiveRows([], conversation, []).slice(1)).toMatchObject([{ ahead: 1 }, { ahead: 2 }]);
  });

  it("have a running answer above a message that is queued behind it", () => {
    const stored = buildStoredRows([message(1, "a"), message(2, "b"), message(3, "c")], getDay);
    const conversation = buildConversation({ turns: [turn("t", 1, "running"), turn("u", 2, "queued"), turn("v", 3, "queued")] });
    expect(listKeys(addLiveRows(stored, conversation, []))).toEqual([
      ...["message-1", "answer-1"],
      ...["message-2", "waiting-u"],
      ...["message-3", "waiting-v"],
    ]);
  });

  it("are not shown in the middle of a conversation", () => {
    expect(addLiveRows([], buildConversation({ moreAfter: true, turns: [turn("t", 1, "running")] }), [])).toEqual([]);
  });

  it("add a result to its tool call, or show it alone if there is none", () => {
    const parts = buildParts([
      { kind: "call", call_id: "1", name: "a", started_at: "2026-11-15T08:12:00Z" },
      { kind: "call", call_id: "2", name: "b" },
      { kind: "result", call_id: "2", text: "B", failed: true, duration_ms: 0 },
      { kind: "result", call_id: "9", name: "c", text: "C" },
    ]);
    expect(parts).toMatchObject([
      { name: "a", result: null, startedAt: "2026-11-15T08:12:00Z", durationMs: null },
      { name: "b", result: "B", failed: true, durationMs: 0 },
      { name: "c", result: "C" },
    ]);
  });
});

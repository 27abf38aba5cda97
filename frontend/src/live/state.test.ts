import { describe, expect, it } from "vitest";
import type { LiveItem } from "../api/types";
import { answer, event, message, session, turn } from "../lib/samples";
import { extended, grown, holds, isAnswering, knowing, NOTHING, opened, told, unfollowed, without, type State } from "./state";

const ID = "20261115_081200_1a2b3c4d";

function open(...events: Parameters<typeof opened>[2]["events"]): State {
  return opened(NOTHING, ID, { events, more_before: false, more_after: false });
}

const seqs = (state: State) => state.conversations[ID]?.events.map((each) => each.seq);
const happens = (state: State, what: ReturnType<typeof event>) =>
  told(state, { name: "event", data: { session_id: ID, event: what } });

describe("events of a conversation", () => {
  it("come in order, each once, however often they are told", () => {
    let state = open(message(1, "one"));
    for (const each of [answer(2, "two", 1), answer(2, "two", 1), message(1, "one"), message(3, "three")]) {
      state = happens(state, each);
    }
    expect(seqs(state)).toEqual([1, 2, 3]);
  });

  it("are left alone when nobody has opened the conversation", () => {
    expect(happens(NOTHING, message(1, "one"))).toBe(NOTHING);
  });

  it("are not added behind a part from the middle of a log", () => {
    const middle = opened(NOTHING, ID, { events: [message(5, "five")], more_before: true, more_after: true });
    expect(seqs(happens(middle, message(9, "nine")))).toEqual([5]);
  });

  it("go with an undo, and what was not said stays", () => {
    const state = open(message(1, "one"), answer(2, "two", 1), event(3, "changed"), message(4, "four"));
    expect(seqs(happens(state, event(5, "undone", { first: 2 })))).toEqual([1, 3, 5]);
  });

  it("are fetched again after a redo, because what comes back is not among them", () => {
    const state = happens(open(message(1, "one")), event(3, "redone", { undone: 2 }));
    expect(state.conversations[ID]?.stale).toBe(true);
  });

  it("that were told while others were fetched stay, and do what they do", () => {
    const page = { events: [message(1, "one"), message(2, "two")], more_before: false, more_after: false };
    const later = opened(open(message(1, "one"), message(2, "two"), message(3, "three")), ID, page);
    expect(seqs(later)).toEqual([1, 2, 3]);
    expect(seqs(opened(open(message(1, "one"), event(3, "undone", { first: 2 })), ID, page))).toEqual([1, 3]);
    const redone = opened(open(message(1, "one"), event(4, "redone", { undone: 3 })), ID, page);
    expect(redone.conversations[ID]?.stale).toBe(true);
    expect(seqs(opened(later, ID, { ...page, events: [message(1, "one")], more_after: true }))).toEqual([1]);
  });

  it("are put before and after what is known without repeating any", () => {
    const middle = opened(NOTHING, ID, { events: [message(5, "five")], more_before: true, more_after: true });
    const page = { events: [message(4, "four"), message(5, "five"), message(6, "six")], more_before: false, more_after: false };
    const wider = extended(extended(middle, ID, page, "before"), ID, page, "after");
    expect(seqs(wider)).toEqual([4, 5, 6]);
    expect(wider.conversations[ID]).toMatchObject({ moreBefore: false, moreAfter: false });
  });
});

it("remembers the conversations that were fetched last, and not all that ever were", () => {
  const page = { events: [message(1, "one")], more_before: false, more_after: false };
  let state = open(message(1, "one"));
  for (let number = 0; number < 28; number += 1) state = opened(state, `other ${number}`, page);
  state = opened(opened(opened(state, ID, page), "other 28", page), "other 29", page);
  expect(Object.keys(state.conversations)).toHaveLength(30);
  expect(Object.keys(state.conversations)).toContain(ID);
  expect(Object.keys(state.conversations)).not.toContain("other 0");
});

it("knows whether a message is in the part that was fetched", () => {
  const middle = opened(NOTHING, ID, { events: [message(5, "five"), message(8, "eight")], more_before: true, more_after: true });
  const known = middle.conversations[ID];
  if (known === undefined) throw new Error("it was opened");
  expect([4, 5, 6, 8, 9].map((seq) => holds(known, seq))).toEqual([false, true, true, true, false]);
  expect(holds({ ...known, moreBefore: false }, 1)).toBe(true);
  expect(holds({ ...known, moreAfter: false }, 99)).toBe(true);
});

describe("an answer that is being given", () => {
  const running = told(open(message(1, "one")), { name: "turn", data: { session_id: ID, turn: turn("t_1", 1, "running") } });
  const draft = (afresh: boolean, text: string): LiveItem => ({
    name: "draft",
    data: { session_id: ID, turn_id: "t_1", afresh, pieces: [{ kind: "text", text }] },
  });

  it("grows, and begins again where it is told afresh", () => {
    const once = told(told(running, draft(true, "Hel")), draft(false, "lo"));
    expect(once.conversations[ID]?.drafts.t_1).toEqual([{ kind: "text", text: "Hello" }]);
    const again = told(once, draft(true, "Hello, you"));
    expect(again.conversations[ID]?.drafts.t_1).toEqual([{ kind: "text", text: "Hello, you" }]);
  });

  it("gives way to the stored answer as soon as that is told", () => {
    const state = happens(told(running, draft(true, "Hello")), answer(2, "Hello", 1));
    expect(state.conversations[ID]?.drafts).toEqual({});
  });

  it("is over with its turn", () => {
    const ended = { name: "turn", data: { session_id: ID, turn: turn("t_1", 1, "done") } } as const;
    const state = told(told(running, draft(true, "Hello")), ended);
    expect(state.conversations[ID]).toMatchObject({ turns: [], drafts: {} });
  });

  it("is known by its turn or by its session, whichever is told first", () => {
    const listed = knowing(open(message(1, "one")), [session(ID, { running: true })]);
    expect([isAnswering(running, ID), isAnswering(listed, ID)]).toEqual([true, true]);
    expect(isAnswering(open(message(1, "one")), ID)).toBe(false);
  });

  it("is forgotten when nobody follows it any more", () => {
    expect(unfollowed(running, ID).conversations[ID]?.turns).toEqual([]);
  });

  it("keeps words of one kind together and tools apart", () => {
    const pieces = grown([{ kind: "reasoning", text: "a" }], [
      { kind: "reasoning", text: "b" },
      { kind: "call", call_id: "1", name: "look" },
      { kind: "call", call_id: "2", name: "look" },
      { kind: "text", text: "c" },
    ]);
    expect(pieces.map((piece) => piece.kind)).toEqual(["reasoning", "call", "call", "text"]);
    expect(pieces[0]?.text).toBe("ab");
  });
});

describe("sessions", () => {
  it("change nothing when they are as they were", () => {
    const state = knowing(NOTHING, [session(ID)]);
    expect(knowing(state, [session(ID)])).toBe(state);
  });

  it("go with their conversations", () => {
    const state = without(knowing(open(message(1, "one")), [session(ID)]), [ID]);
    expect(state.sessions.size).toBe(0);
    expect(state.conversations).toEqual({});
  });
});

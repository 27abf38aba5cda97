import { describe, expect, it } from "vitest";
import type { LiveItem } from "../api/types";
import { answer, event, message, session, turn } from "../testing/samples";
import {
  addNewerSessions,
  appendPieces,
  applyLiveItem,
  clearLiveData,
  describeEnd,
  EMPTY_STATE,
  extendTranscript,
  includesSeq,
  isAnswering,
  removeSessions,
  replaceTranscript,
  upsertSessions,
  type State,
} from "./state";

const ID = "20261115_081200_1a2b3c4d";

function openConversation(...events: Parameters<typeof replaceTranscript>[2]["events"]): State {
  return replaceTranscript(EMPTY_STATE, ID, { events, has_more_before: false, has_more_after: false });
}

const getSeqs = (state: State) => state.conversations[ID]?.events.map((each) => each.seq);
const receive = (state: State, received: ReturnType<typeof event>) =>
  applyLiveItem(state, { name: "event", data: { session_id: ID, event: received } });

describe("notices about the end of an answer", () => {
  const notice = (code: string) => ({
    name: "notice" as const,
    data: { session_id: ID, turn_id: "t_1", text: code, code, facts: {} },
  });
  const changeTurn = (id: string, state: "running" | "done") => ({
    name: "turn" as const,
    data: { session_id: ID, turn: turn(id, 1, state) },
  });
  const describeAfter = (...items: LiveItem[]) => {
    const state = items.reduce(applyLiveItem, openConversation(message(1, "one")));
    const conversation = state.conversations[ID];
    return conversation && describeEnd(conversation);
  };

  it("stay until the next answer starts", () => {
    const [start, end] = [changeTurn("t_1", "running"), changeTurn("t_1", "done")];
    expect(describeAfter(start, notice("cut_off"), end)).toContain("cut off");
    expect(describeAfter(start, notice("cut_off"), end, changeTurn("t_2", "running"))).toBe("");
    expect(describeAfter(start, notice("summarizing"), end)).toBe("");
  });

  it("name the budget only if the answer was cut off", () => {
    expect(describeAfter(notice("answer_limited"))).toBe("");
    expect(describeAfter(notice("answer_limited"), notice("cut_off"))).toContain("Little of the budget is left");
  });
});

describe("events of a conversation", () => {
  it("are in order, each once, however often they arrive", () => {
    let state = openConversation(message(1, "one"));
    for (const each of [answer(2, "two", 1), answer(2, "two", 1), message(1, "one"), message(3, "three")]) {
      state = receive(state, each);
    }
    expect(getSeqs(state)).toEqual([1, 2, 3]);
  });

  it("are ignored when the conversation is not open", () => {
    expect(receive(EMPTY_STATE, message(1, "one"))).toBe(EMPTY_STATE);
  });

  it("are not added after a page from the middle of a log", () => {
    const middle = replaceTranscript(EMPTY_STATE, ID, {
      events: [message(5, "five")],
      has_more_before: true,
      has_more_after: true,
    });
    expect(getSeqs(receive(middle, message(9, "nine")))).toEqual([5]);
  });

  it("are removed by an undo if they are messages, and stay otherwise", () => {
    const state = openConversation(message(1, "one"), answer(2, "two", 1), event(3, "setting_changed"), message(4, "four"));
    expect(getSeqs(receive(state, event(5, "undone", { first_seq: 2 })))).toEqual([1, 3, 5]);
    const queued = openConversation(message(1, "one"), message(2, "two"), answer(3, "1", 1), answer(4, "2", 2));
    expect(getSeqs(receive(queued, event(5, "undone", { first_seq: 2, answers_kept_before: 4 })))).toEqual([1, 3, 5]);
    const sentBy = { kind: "job", name: "News", job_id: "j_1", run_id: "r_1", session_id: null } as const;
    const posted = openConversation(message(1, "one"), answer(2, "two", 1), answer(3, "Sunny", null, { sent_by: sentBy }));
    expect(getSeqs(receive(posted, event(4, "undone", { first_seq: 1, posts_kept_before: 4 })))).toEqual([3, 4]);
  });

  it("are changed and removed as people edit and delete them on the platform", () => {
    const state = openConversation(message(1, "one"), answer(2, "two", 1));
    const edited = receive(state, event(3, "message_edited", { seq: 1, text: "uno", previous_text: "one" }));
    const [first] = edited.conversations[ID]?.events ?? [];
    expect([first?.message?.content, first?.message?.edited]).toEqual(["uno", true]);
    expect(getSeqs(receive(edited, event(4, "message_deleted", { seq: 1 })))).toEqual([2, 3, 4]);
    expect(getSeqs(receive(state, event(3, "message_edited", { seq: 9 })))).toEqual([1, 2, 3]);
  });

  it("are loaded again after a redo, because the restored messages are not among them", () => {
    const state = receive(openConversation(message(1, "one")), event(3, "redone", { undo_seq: 2 }));
    expect(state.conversations[ID]?.staleSeq).toBe(3);
  });

  it("that arrive while a page is loading stay, and have their effect", () => {
    const page = { events: [message(1, "one"), message(2, "two")], has_more_before: false, has_more_after: false };
    const later = replaceTranscript(openConversation(message(1, "one"), message(2, "two"), message(3, "three")), ID, page);
    expect(getSeqs(later)).toEqual([1, 2, 3]);
    expect(
      getSeqs(replaceTranscript(openConversation(message(1, "one"), event(3, "undone", { first_seq: 2 })), ID, page)),
    ).toEqual([1, 3]);
    const redone = replaceTranscript(openConversation(message(1, "one"), event(4, "redone", { undo_seq: 3 })), ID, page);
    expect(redone.conversations[ID]?.staleSeq).toBe(4);
    expect(getSeqs(replaceTranscript(later, ID, { ...page, events: [message(1, "one")], has_more_after: true }))).toEqual([1]);
  });

  it("of an older part are loaded again when a version in it is chosen, and stay when one after it is", () => {
    const older = replaceTranscript(EMPTY_STATE, ID, { events: [message(5, "five"), message(7, "seven")], has_more_before: true, has_more_after: true });
    const chosen = receive(older, event(90, "version_chosen", { group: 5, first_seq: 40, version: 2, versions: 2 }));
    expect(chosen.conversations[ID]?.staleSeq).toBe(90);
    expect(getSeqs(chosen)).toEqual([5, 7]);
    expect(receive(older, event(90, "version_chosen", { group: 8, first_seq: 8 }))).toBe(older);
    expect(receive(older, event(90, "undone", { first_seq: 7 })).conversations[ID]?.staleSeq).toBe(90);
    expect(receive(older, event(90, "undone", { first_seq: 60 }))).toBe(older);
    expect(receive(older, message(91, "later"))).toBe(older);
    expect(getSeqs(receive(older, event(92, "message_deleted", { seq: 5 })))).toEqual([7]);
  });

  it("are added before and after the conversation ones without repeating any", () => {
    const middle = replaceTranscript(EMPTY_STATE, ID, {
      events: [message(5, "five")],
      has_more_before: true,
      has_more_after: true,
    });
    const page = {
      events: [message(4, "four"), message(5, "five"), message(6, "six")],
      has_more_before: false,
      has_more_after: false,
    };
    const wider = extendTranscript(extendTranscript(middle, ID, page, "before"), ID, page, "after");
    expect(getSeqs(wider)).toEqual([4, 5, 6]);
    expect(wider.conversations[ID]).toMatchObject({ moreBefore: false, moreAfter: false });
  });
});

it("keeps the messages of the conversations that were loaded last, and not of all", () => {
  const page = { events: [message(1, "one")], has_more_before: false, has_more_after: false };
  let state = openConversation(message(1, "one"));
  for (let number = 0; number < 28; number += 1) state = replaceTranscript(state, `other ${number}`, page);
  state = replaceTranscript(replaceTranscript(replaceTranscript(state, ID, page), "other 28", page), "other 29", page);
  expect(Object.keys(state.conversations)).toHaveLength(30);
  expect(Object.keys(state.conversations)).toContain(ID);
  expect(Object.keys(state.conversations)).not.toContain("other 0");
});

it("knows whether a message is in the loaded part", () => {
  const middle = replaceTranscript(EMPTY_STATE, ID, {
    events: [message(5, "five"), message(8, "eight")],
    has_more_before: true,
    has_more_after: true,
  });
  const conversation = middle.conversations[ID];
  if (conversation === undefined) throw new Error("the conversation was not opened");
  expect([4, 5, 6, 8, 9].map((seq) => includesSeq(conversation, seq))).toEqual([false, true, true, true, false]);
  expect(includesSeq({ ...conversation, moreBefore: false }, 1)).toBe(true);
  expect(includesSeq({ ...conversation, moreAfter: false }, 99)).toBe(true);
});

describe("a running answer", () => {
  const running = applyLiveItem(openConversation(message(1, "one")), {
    name: "turn",
    data: { session_id: ID, turn: turn("t_1", 1, "running") },
  });
  const draft = (replacesDraft: boolean, text: string): LiveItem => ({
    name: "draft",
    data: { session_id: ID, turn_id: "t_1", replaces_draft: replacesDraft, pieces: [{ kind: "text", text }] },
  });

  it("grows, and is replaced when the server starts it over", () => {
    const grown = applyLiveItem(applyLiveItem(running, draft(true, "Hel")), draft(false, "lo"));
    expect(grown.conversations[ID]?.drafts.t_1).toEqual([{ kind: "text", text: "Hello" }]);
    const replaced = applyLiveItem(grown, draft(true, "Hello, you"));
    expect(replaced.conversations[ID]?.drafts.t_1).toEqual([{ kind: "text", text: "Hello, you" }]);
  });

  it("is replaced by the stored answer as soon as that arrives", () => {
    const state = receive(applyLiveItem(running, draft(true, "Hello")), answer(2, "Hello", 1));
    expect(state.conversations[ID]?.drafts).toEqual({});
  });

  it("ends with its turn", () => {
    const ended = { name: "turn", data: { session_id: ID, turn: turn("t_1", 1, "done") } } as const;
    const state = applyLiveItem(applyLiveItem(running, draft(true, "Hello")), ended);
    expect(state.conversations[ID]).toMatchObject({ turns: [], drafts: {} });
  });

  it("is conversation from its turn or from its session, whichever arrives first", () => {
    const listed = upsertSessions(openConversation(message(1, "one")), [session(ID, { running: true })]);
    expect([isAnswering(running, ID), isAnswering(listed, ID)]).toEqual([true, true]);
    expect(isAnswering(openConversation(message(1, "one")), ID)).toBe(false);
  });

  it("is forgotten when its conversation is no longer followed", () => {
    expect(clearLiveData(running, ID).conversations[ID]?.turns).toEqual([]);
  });

  it("joins text of one kind and keeps tool calls apart", () => {
    const pieces = appendPieces(
      [{ kind: "reasoning", text: "a" }],
      [
        { kind: "reasoning", text: "b" },
        { kind: "call", call_id: "1", name: "look" },
        { kind: "call", call_id: "2", name: "look" },
        { kind: "text", text: "c" },
      ],
    );
    expect(pieces.map((piece) => piece.kind)).toEqual(["reasoning", "call", "call", "text"]);
    expect(pieces[0]?.text).toBe("ab");
  });
});

describe("sessions", () => {
  it("are not replaced by an older state that a request brings late", () => {
    const ended = upsertSessions(EMPTY_STATE, [session(ID, { running: false, last_seq: 3 })]);
    expect(addNewerSessions(ended, [session(ID, { running: true, last_seq: 2 })])).toBe(ended);
    const renamed = addNewerSessions(ended, [session(ID, { running: false, last_seq: 3, title: "Renamed" })]);
    expect(renamed.sessions.get(ID)?.title).toBe("Renamed");
  });

  it("change nothing when they are the same as before", () => {
    const state = upsertSessions(EMPTY_STATE, [session(ID)]);
    expect(upsertSessions(state, [session(ID)])).toBe(state);
  });

  it("are removed together with their conversations", () => {
    const state = removeSessions(upsertSessions(openConversation(message(1, "one")), [session(ID)]), [ID]);
    expect(state.sessions.size).toBe(0);
    expect(state.conversations).toEqual({});
  });
});

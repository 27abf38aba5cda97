import { expect, it } from "vitest";
import type { SentBy } from "../api/types";
import { replaceTranscript, applyLiveItem, EMPTY_STATE } from "../live/state";
import { answer, delivery, message } from "../testing/samples";
import { listAnswerDeliveries } from "./deliveries";
import { buildStoredRows, type AnswerRow } from "./rows";
import { describeSender, findSenderConversation } from "./senders";

const ID = "20261115_081200_1a2b3c4d";
const NEWS: SentBy = { kind: "job", name: "Morning news", job_id: "j_1", run_id: "r_1", session_id: ID };
const EVENTS = [message(1, "one"), answer(2, "two", 1), answer(3, "Sunny", null, { sent_by: NEWS }), answer(4, "old", null)];

const listAnswers = () => buildStoredRows(EVENTS, () => "a day").filter((row): row is AnswerRow => row.kind === "answer");

it("shows what a job sent as a row of its own", () => {
  expect(listAnswers().map((row) => [row.seqs, row.sentBy?.name ?? null])).toEqual([
    [[2], null],
    [[3], "Morning news"],
    [[4], null],
  ]);
});

it("says who sent it, and links to the run only where the reader may see it", () => {
  expect(describeSender(NEWS)).toBe("Sent by the job “Morning news”");
  expect(describeSender({ ...NEWS, kind: "agent", name: "Ada" })).toBe("Sent by the agent for Ada");
  expect(describeSender({ ...NEWS, kind: "agent", name: "" })).toBe("Sent by the agent from another conversation");
  expect(findSenderConversation(NEWS, false)).toBe(ID);
  expect(findSenderConversation(NEWS, true)).toBeNull();
  expect(findSenderConversation({ ...NEWS, kind: "agent" }, false)).toBeNull();
});

it("finds the delivery of what was sent by its own number", () => {
  const page = { events: EVENTS, has_more_before: false, has_more_after: false };
  const sent = delivery("d_1", 1, { turn_id: null, input_seq: null, message_seq: 3 });
  const item = { name: "delivery", data: { session_id: ID, delivery: sent } } as const;
  const conversation = applyLiveItem(replaceTranscript(EMPTY_STATE, ID, page), item).conversations[ID];
  if (conversation === undefined) throw new Error("there is no conversation");
  expect(listAnswers().map((row) => listAnswerDeliveries(conversation.deliveries, row).map(({ id }) => id))).toEqual([[], ["d_1"], []]);
});

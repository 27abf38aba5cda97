import { expect, it } from "vitest";
import { applyLiveItem, EMPTY_STATE, replaceTranscript, type Conversation } from "../live/state";
import { answer, delivery, event, message, turn } from "../testing/samples";
import { findEndDelivery, findMessageTarget, listAnswerDeliveries } from "./deliveries";
import { buildStoredRows, type AnswerRow } from "./rows";

const ID = "20261115_081200_1a2b3c4d";

function buildConversation(...items: Parameters<typeof applyLiveItem>[1][]): Conversation {
  const page = { events: [message(1, "one"), answer(2, "two", 1)], has_more_before: false, has_more_after: false };
  const state = items.reduce(applyLiveItem, replaceTranscript(EMPTY_STATE, ID, page));
  const conversation = state.conversations[ID];
  if (conversation === undefined) throw new Error("there is no conversation");
  return conversation;
}

const deliveryItem = (item: ReturnType<typeof delivery>) =>
  ({ name: "delivery", data: { session_id: ID, delivery: item } }) as const;

function findAnswerRow(conversation: Conversation): AnswerRow {
  const row = buildStoredRows(conversation.events, () => "a day").find((each) => each.kind === "answer");
  if (row === undefined) throw new Error("there is no answer");
  return row;
}

it("finds the delivery of an answer in its current state", () => {
  const sent = buildConversation(deliveryItem(delivery("d_1", 1)), deliveryItem(delivery("d_1", 1, { state: "sent" })));
  expect(listAnswerDeliveries(sent.deliveries, findAnswerRow(sent)).map(({ state }) => state)).toEqual(["sent"]);
});

it("finds all deliveries of a job's answer", () => {
  const items = [delivery("d_1", 1), delivery("d_2", 1, { platform: "local" })].map(deliveryItem);
  const sent = buildConversation(...items);
  expect(listAnswerDeliveries(sent.deliveries, findAnswerRow(sent)).map(({ id }) => id)).toEqual(["d_1", "d_2"]);
});

it("does not mistake the delivery of an earlier answer to the same message for this one", () => {
  const retried = buildConversation(deliveryItem(delivery("d_1", 1, { created_at: "2026-11-15T08:00:00Z" })));
  expect(listAnswerDeliveries(retried.deliveries, findAnswerRow(retried))).toEqual([]);
});

it("finds the delivery of a turn without an answer at its end, and of a turn with an answer only there", () => {
  const failed = event(3, "turn_failed", { turn: "t_1", reason: "no credit" });
  const unanswered = buildConversation(deliveryItem(delivery("d_1", 9)));
  expect(findEndDelivery(unanswered, failed)?.id).toBe("d_1");
  expect(findEndDelivery(unanswered, event(3, "turn_failed", { turn: "t_2" }))).toBeUndefined();
  expect(findEndDelivery(unanswered, event(3, "setting_changed"))).toBeUndefined();
  expect(findEndDelivery(buildConversation(deliveryItem(delivery("d_1", 1))), failed)).toBeUndefined();
});

it("knows the platform of a message while it waits, runs and is delivered", () => {
  const waiting = turn("t_1", 1, "queued", { delivers_to: "telegram", quoted_seqs: [1] });
  const queued = buildConversation({ name: "turn", data: { session_id: ID, turn: waiting } });
  expect(findMessageTarget(queued, 1)).toBe("telegram");
  expect(findMessageTarget(buildConversation(deliveryItem(delivery("d_1", 1, { quoted_seqs: [1] }))), 1)).toBe("telegram");
  expect(findMessageTarget(buildConversation(deliveryItem(delivery("d_1", 1))), 1)).toBeNull();
});

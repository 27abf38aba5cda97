/** Finds the deliveries that belong to answers and messages. Pure. */
import type { Delivery, LogEvent } from "../api/types";
import type { Conversation } from "../live/state";
import type { AnswerRow } from "./rows";

/**
 * The deliveries of an answer, or of a message that was sent here; the answer of a job's run may have several. An answer and its
 * deliveries are stored at the same time, so those of an earlier attempt do not match.
 */
export function listAnswerDeliveries(deliveries: Conversation["deliveries"], row: AnswerRow): Delivery[] {
  if (row.sentBy !== null) {
    return Object.values(deliveries).filter((each) => each.message_seq !== null && row.seqs.includes(each.message_seq));
  }
  return Object.values(deliveries).filter(
    (each) => each.input_seq !== null && each.input_seq === row.answers && each.created_at === row.at,
  );
}

/** The delivery of the notice that a turn ended without an answer. A delivery with an answer is shown there instead. */
export function findEndDelivery(conversation: Conversation, { facts }: LogEvent): Delivery | undefined {
  const delivery = Object.values(conversation.deliveries).find((each) => each.turn_id === facts.turn);
  if (delivery === undefined) return undefined;
  const hasAnswer = conversation.events.some(
    ({ at, message }) => message?.answers_seq === delivery.input_seq && at === delivery.created_at,
  );
  return hasAnswer ? undefined : delivery;
}

/** The platform that a message is sent to together with its answer; null: none. */
export function findMessageTarget(conversation: Conversation, seq: number): string | null {
  const turn = conversation.turns.find((each) => each.quoted_seqs.includes(seq));
  if (turn !== undefined) return turn.delivers_to;
  return Object.values(conversation.deliveries).find((each) => each.quoted_seqs.includes(seq))?.platform ?? null;
}

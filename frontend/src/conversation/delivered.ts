/** Which answers were sent somewhere, and which messages went along. Pure. */
import type { Delivery, LogEvent } from "../api/types";
import type { Conversation } from "../live/state";
import type { AnswerRow } from "./rows";

/** The delivery of an answer. The two were stored together, so one of an earlier try at the same message is another. */
export function deliveryOf(known: Conversation, row: AnswerRow): Delivery | undefined {
  return Object.values(known.deliveries).find((each) => each.input_seq === row.answers && each.created_at === row.at);
}

/** The delivery of a turn that came to its end without an answer, and says so elsewhere; with one it is told there. */
export function deliveryOfEnd(known: Conversation, { facts }: LogEvent): Delivery | undefined {
  const found = Object.values(known.deliveries).find((each) => each.turn_id === facts.turn);
  if (found === undefined) return undefined;
  const isTold = known.events.some(({ at, message }) => message?.answers === found.input_seq && at === found.created_at);
  return isTold ? undefined : found;
}

/** Where a message that was written here goes along with its answer; null: nowhere. */
export function goesAlongTo(known: Conversation, seq: number): string | null {
  const turn = known.turns.find((each) => each.quotes.includes(seq));
  if (turn !== undefined) return turn.goes_to;
  return Object.values(known.deliveries).find((each) => each.quotes.includes(seq))?.platform ?? null;
}

import { expect, it } from "vitest";
import { answer, delivery, event, message, turn } from "../lib/samples";
import { NOTHING, opened, told, type Conversation } from "../live/state";
import { deliveryOf, deliveryOfEnd, goesAlongTo } from "./delivered";
import { storedRows, type AnswerRow } from "./rows";

const ID = "20261115_081200_1a2b3c4d";

function known(...told_: Parameters<typeof told>[1][]): Conversation {
  const page = { events: [message(1, "one"), answer(2, "two", 1)], more_before: false, more_after: false };
  const state = told_.reduce(told, opened(NOTHING, ID, page));
  const found = state.conversations[ID];
  if (found === undefined) throw new Error("there is no conversation");
  return found;
}

const telling = (what: ReturnType<typeof delivery>) =>
  ({ name: "delivery", data: { session_id: ID, delivery: what } }) as const;

function answered(conversation: Conversation): AnswerRow {
  const row = storedRows(conversation.events, () => "a day").find((each) => each.kind === "answer");
  if (row === undefined) throw new Error("there is no answer");
  return row;
}

it("shows the delivery of an answer as it stands now", () => {
  const sent = known(telling(delivery("d_1", 1)), telling(delivery("d_1", 1, { state: "sent" })));
  expect(deliveryOf(sent, answered(sent))?.state).toBe("sent");
});

it("does not take the delivery of an earlier answer to the same message for that of this one", () => {
  const retried = known(telling(delivery("d_1", 1, { created_at: "2026-11-15T08:00:00Z" })));
  expect(deliveryOf(retried, answered(retried))).toBeUndefined();
});

it("shows the delivery of a turn without an answer with its end, and of one with an answer only there", () => {
  const failed = event(3, "failed", { turn: "t_1", reason: "no credit" });
  const without = known(telling(delivery("d_1", 9)));
  expect(deliveryOfEnd(without, failed)?.id).toBe("d_1");
  expect(deliveryOfEnd(without, event(3, "failed", { turn: "t_2" }))).toBeUndefined();
  expect(deliveryOfEnd(without, event(3, "changed"))).toBeUndefined();
  expect(deliveryOfEnd(known(telling(delivery("d_1", 1))), failed)).toBeUndefined();
});

it("knows where a message goes along while it waits, runs and is sent", () => {
  const waiting = turn("t_1", 1, "queued", { goes_to: "telegram", quotes: [1] });
  const asked = known({ name: "turn", data: { session_id: ID, turn: waiting } });
  expect(goesAlongTo(asked, 1)).toBe("telegram");
  expect(goesAlongTo(known(telling(delivery("d_1", 1, { quotes: [1] }))), 1)).toBe("telegram");
  expect(goesAlongTo(known(telling(delivery("d_1", 1))), 1)).toBeNull();
});

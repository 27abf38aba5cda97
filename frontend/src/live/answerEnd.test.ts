import { describe, expect, it } from "vitest";
import type { Session } from "../api/types";
import { session } from "../testing/samples";
import { hasAnswerEnded } from "./answerEnd";

const OPENED_AT = "2026-11-15T08:00:00Z";
const hasEnded = (before: Session | undefined, after: Session) => hasAnswerEnded(before, after, OPENED_AT);
const sessionWith = (last_seq: number, more = {}) => session("a", { last_seq, message_count: last_seq, ...more });

describe("an answer has ended", () => {
  it("when nothing runs or waits any more, and there is a new message", () => {
    expect(hasEnded(sessionWith(1, { running: true }), sessionWith(2))).toBe(true);
    expect(hasEnded(sessionWith(1, { queued: 1 }), sessionWith(2))).toBe(true);
  });

  it("when it was too quick to be reported as running", () => {
    expect(hasEnded(sessionWith(1), sessionWith(3))).toBe(true);
  });

  it("in a conversation that was created and answered before the page knew it", () => {
    const created = { created_at: "2026-11-15T08:01:00Z" };
    expect(hasEnded(undefined, sessionWith(3, created))).toBe(true);
    expect(hasEnded(undefined, sessionWith(3, { ...created, running: true }))).toBe(false);
    expect(hasEnded(undefined, sessionWith(1, created))).toBe(false);
  });

  it("not while another turn waits, not with one new message, and not in a conversation that is seen for the first time", () => {
    expect(hasEnded(sessionWith(1, { running: true }), sessionWith(2, { queued: 1 }))).toBe(false);
    expect(hasEnded(sessionWith(1), sessionWith(2))).toBe(false);
    expect(hasEnded(sessionWith(1, { running: true }), sessionWith(1))).toBe(false);
    expect(hasEnded(undefined, sessionWith(3, { created_at: "2026-11-15T07:59:00Z" }))).toBe(false);
  });
});

import { describe, expect, it } from "vitest";
import type { Session } from "../api/types";
import { session } from "../lib/samples";
import { isAnswered as hasEnded, unreadCount } from "./answered";

const HERE = "2026-11-15T08:00:00Z";
const isAnswered = (before: Session | undefined, after: Session) => hasEnded(before, after, HERE);
const at = (last_seq: number, more = {}) => session("a", { last_seq, message_count: last_seq, ...more });

describe("an answer has ended", () => {
  it("when what ran or waited does so no more, and something was said", () => {
    expect(isAnswered(at(1, { running: true }), at(2))).toBe(true);
    expect(isAnswered(at(1, { queued: 1 }), at(2))).toBe(true);
  });

  it("also when it was too quick to be seen running", () => {
    expect(isAnswered(at(1), at(3))).toBe(true);
  });

  it("also in a conversation that was begun and answered before we heard of it", () => {
    const begun = { created_at: "2026-11-15T08:01:00Z" };
    expect(isAnswered(undefined, at(3, begun))).toBe(true);
    expect(isAnswered(undefined, at(3, { ...begun, running: true }))).toBe(false);
    expect(isAnswered(undefined, at(1, begun))).toBe(false);
  });

  it("not while another waits, not by a message alone, and not in what is seen for the first time", () => {
    expect(isAnswered(at(1, { running: true }), at(2, { queued: 1 }))).toBe(false);
    expect(isAnswered(at(1), at(2))).toBe(false);
    expect(isAnswered(at(1, { running: true }), at(1))).toBe(false);
    expect(isAnswered(undefined, at(3, { created_at: "2026-11-15T07:59:00Z" }))).toBe(false);
  });
});

it("counts what waits to be read, but not what somebody looks at or has put away", () => {
  const unread = { last_seq: 4, read_seq: 2 };
  const all = [session("a", unread), session("b", unread), session("c", { ...unread, archived: true }), session("d")];
  expect(unreadCount(all, "2026-11-15T00:00:00Z", null)).toBe(2);
  expect(unreadCount(all, "2026-11-15T00:00:00Z", "b")).toBe(1);
});

import { expect, it } from "vitest";
import { session } from "../testing/samples";
import { countUnread, isUnread } from "./unread";

const at = (day: number) => `2026-11-${String(day).padStart(2, "0")}T08:00:00Z`;

it("a session is unread if it has messages after the last read one, or after the first visit", () => {
  const firstVisitAt = at(5);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 3 }), firstVisitAt)).toBe(false);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 2, active_at: at(1) }), firstVisitAt)).toBe(true);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 0, active_at: at(1) }), firstVisitAt)).toBe(false);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 0, active_at: at(6) }), firstVisitAt)).toBe(true);
});

it("counts unread sessions, but neither the open one nor archived ones", () => {
  const unread = { last_seq: 4, read_seq: 2 };
  const all = [session("a", unread), session("b", unread), session("c", { ...unread, archived: true }), session("d")];
  expect(countUnread(all, "2026-11-15T00:00:00Z", null)).toBe(2);
  expect(countUnread(all, "2026-11-15T00:00:00Z", "b")).toBe(1);
});

import { describe, expect, it } from "vitest";
import { session } from "../lib/samples";
import { grouped, isUnread, listed, UNFETCHED, type View } from "./arrange";
import { marked } from "./marking";
import { plain, titleFrom } from "./naming";

const CURRENT: View = { shelf: "current", project: null };
const DONE = { ...UNFETCHED, complete: true };
const at = (day: number) => `2026-11-${String(day).padStart(2, "0")}T08:00:00Z`;
const ids = (found: { id: string }[]) => found.map(({ id }) => id);

describe("a list", () => {
  const sessions = [
    session("a", { active_at: at(1) }),
    session("b", { active_at: at(3) }),
    session("c", { active_at: at(2), archived: true }),
    session("d", { active_at: null }),
    session("e", { active_at: at(2), project_id: "p" }),
  ];

  it("is newest first, without what is archived or empty", () => {
    expect(ids(listed(sessions, CURRENT, DONE))).toEqual(["b", "e", "a"]);
    expect(ids(listed(sessions, { shelf: "archived", project: null }, DONE))).toEqual(["c"]);
    expect(ids(listed(sessions, { shelf: "current", project: "p" }, DONE))).toEqual(["e"]);
  });

  it("shows nothing older than what was fetched, because others may stand between", () => {
    expect(ids(listed(sessions, CURRENT, { ...UNFETCHED, frontier: at(2) }))).toEqual(["b", "e"]);
    expect(listed(sessions, CURRENT, UNFETCHED)).toEqual([]);
  });

  it("has what is pinned on top, and each heading once", () => {
    const pinned = [...sessions, session("f", { active_at: at(1), pinned: true })];
    const rows = grouped(listed(pinned, CURRENT, DONE), "Pinned", () => "Some day");
    expect(rows.map((row) => (row.kind === "heading" ? row.text : row.session.id))).toEqual([
      "Pinned",
      "f",
      "Some day",
      "b",
      "e",
      "a",
    ]);
  });
});

it("looks at few of very many to tell where a day ends", () => {
  const many = Array.from({ length: 10_000 }, (_, place) => session(`s${place}`, { active_at: at(15 - Math.floor(place / 1000)) }));
  const asked: string[] = [];
  const rows = grouped(many, "Pinned", (each) => {
    asked.push(each);
    return each.slice(0, 10);
  });
  expect(rows.filter((row) => row.kind === "heading")).toHaveLength(10);
  expect(rows[1001]).toMatchObject({ kind: "heading", text: "2026-11-14" });
  expect(rows).toHaveLength(10_010);
  expect(asked.length).toBeLessThan(200);
});

it("counts as unread only what came after the first visit or after what was read", () => {
  const since = at(5);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 3 }), since)).toBe(false);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 2, active_at: at(1) }), since)).toBe(true);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 0, active_at: at(1) }), since)).toBe(false);
  expect(isUnread(session("a", { last_seq: 3, read_seq: 0, active_at: at(6) }), since)).toBe(true);
});

it("marks whole signs, also those that take two places", () => {
  expect(marked("😀 cat!", [[2, 5]])).toEqual([
    { text: "😀 ", isMarked: false },
    { text: "cat", isMarked: true },
    { text: "!", isMarked: false },
  ]);
});

it("makes titles of what was said", () => {
  expect(titleFrom("  Plan a *trip*\nto Lisbon ")).toBe("Plan a trip to Lisbon");
  expect(titleFrom("/help undo")).toBeUndefined();
  expect(titleFrom(" \n ")).toBeUndefined();
  const long = titleFrom("word ".repeat(40)) ?? "";
  expect(long.length).toBeLessThanOrEqual(61);
  expect(long.endsWith("word…")).toBe(true);
});

it("takes the signs of Markdown from a line", () => {
  expect(plain("## A **bold** `word` and [a link](https://example.org)")).toBe("A bold word and a link");
  expect(plain("2 * 3 * 4")).toBe("2 * 3 * 4");
});

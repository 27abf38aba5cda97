import { describe, expect, it } from "vitest";
import { ACTIVE_VIEW, ARCHIVE_VIEW, NOT_LOADED } from "../live/listViews";
import { session } from "../testing/samples";
import { buildRows, filterSessions } from "./listRows";

const COMPLETE = { ...NOT_LOADED, complete: true };
const at = (day: number) => `2026-11-${String(day).padStart(2, "0")}T08:00:00Z`;
const getIds = (sessions: { id: string }[]) => sessions.map(({ id }) => id);

describe("a list", () => {
  const sessions = [
    session("a", { active_at: at(1) }),
    session("b", { active_at: at(3) }),
    session("c", { active_at: at(2), archived: true }),
    session("d", { active_at: null }),
    session("e", { active_at: at(2), project_id: "p" }),
  ];

  it("is newest first, without archived and empty conversations", () => {
    expect(getIds(filterSessions(sessions, ACTIVE_VIEW, COMPLETE))).toEqual(["b", "e", "a"]);
    expect(getIds(filterSessions(sessions, ARCHIVE_VIEW, COMPLETE))).toEqual(["c"]);
    expect(getIds(filterSessions(sessions, { ...ACTIVE_VIEW, project: "p" }, COMPLETE))).toEqual(["e"]);
  });

  it("shows nothing older than the loaded part, because others may belong in between", () => {
    expect(getIds(filterSessions(sessions, ACTIVE_VIEW, { ...NOT_LOADED, frontier: at(2) }))).toEqual(["b", "e"]);
    expect(filterSessions(sessions, ACTIVE_VIEW, NOT_LOADED)).toEqual([]);
  });

  it("has the pinned conversations first, and each heading once", () => {
    const pinned = [...sessions, session("f", { active_at: at(1), pinned: true })];
    const rows = buildRows(filterSessions(pinned, ACTIVE_VIEW, COMPLETE), "Pinned", () => "Some day");
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

it("checks few of very many conversations to find where a day ends", () => {
  const many = Array.from({ length: 10_000 }, (_, index) => session(`s${index}`, { active_at: at(15 - Math.floor(index / 1000)) }));
  const checked: string[] = [];
  const rows = buildRows(many, "Pinned", (time) => {
    checked.push(time);
    return time.slice(0, 10);
  });
  expect(rows.filter((row) => row.kind === "heading")).toHaveLength(10);
  expect(rows[1001]).toMatchObject({ kind: "heading", text: "2026-11-14" });
  expect(rows).toHaveLength(10_010);
  expect(checked.length).toBeLessThan(200);
});

import { expect, it } from "vitest";
import type { LogPage } from "../shared/calls";
import { addLogPage, formatRecord } from "./logLines";

const record = (no: number) => ({ no, at: "2026-01-31T10:00:00Z", level: "info", logger: "palaver", event: `event_${no}`, fields: { count: "1" } });
const makePage = (numbers: number[], isContinued: boolean, id = "a"): LogPage => ({
  process: { id, host: "host", pid: 1, started_at: "2026-01-31T09:00:00Z" },
  records: numbers.map(record),
  cursor: `${id}.${numbers.at(-1) ?? 0}`,
  is_continued: isContinued,
});

it("adds what follows, and starts again with another process", () => {
  const first = addLogPage(undefined, makePage([1, 2], false));
  const second = addLogPage(first, makePage([3], true));
  expect(second.records.map(({ no }) => no)).toEqual([1, 2, 3]);
  const other = addLogPage(second, makePage([7], false, "b"));
  expect([other.process.id, other.records.map(({ no }) => no)]).toEqual(["b", [7]]);
});

it("keeps no more lines than the server", () => {
  const numbers = Array.from({ length: 2500 }, (_, index) => index);
  expect(addLogPage(undefined, makePage(numbers, false)).records).toHaveLength(2000);
});

it("writes a line as text", () => {
  expect(formatRecord(record(1))).toBe("2026-01-31T10:00:00Z INFO palaver event_1 count=1");
});

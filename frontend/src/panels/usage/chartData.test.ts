import { expect, test } from "vitest";
import { getLastDays } from "../../format/days";
import type { UsageRow } from "../shared/calls";
import { buildPeriods, buildScale, getAmount, getColumnParts, isValidRange } from "./chartData";

const NO_USAGE: UsageRow = {
  group: null,
  label: "",
  turns: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cost_usd: null,
  estimated_cost_usd: null,
  unpriced_turns: 0,
};

const buildRow = (group: string, fields: Partial<UsageRow>): UsageRow => ({ ...NO_USAGE, group, label: group, ...fields });

test("the last days end with today, in UTC", () => {
  expect(getLastDays(7, Date.parse("2026-11-15T23:59:59Z"))).toEqual({ first: "2026-11-09", last: "2026-11-15" });
});

test("a range is valid if it has two days in order, at most ten years apart", () => {
  expect(isValidRange({ first: "2026-11-15", last: "2026-11-15" })).toBe(true);
  expect(isValidRange({ first: "2026-11-16", last: "2026-11-15" })).toBe(false);
  expect(isValidRange({ first: "", last: "2026-11-15" })).toBe(false);
  expect(isValidRange({ first: "2001-01-01", last: "2026-11-15" })).toBe(false);
});

test("days without usage are included, and have no cost", () => {
  const rows = [buildRow("2026-11-14", { turns: 2, cost_usd: "0.10", input_tokens: 30, output_tokens: 5 })];
  const periods = buildPeriods({ first: "2026-11-13", last: "2026-11-15" }, rows);
  expect(periods.map(({ first, cost, answers }) => [first, cost, answers])).toEqual([
    ["2026-11-13", null, 0],
    ["2026-11-14", 0.1, 2],
    ["2026-11-15", null, 0],
  ]);
});

test("many days become weeks, very many days become months, and no usage is lost", () => {
  const rows = [buildRow("2026-01-31", { turns: 1 }), buildRow("2026-02-01", { turns: 2 }), buildRow("2026-12-31", { turns: 4 })];
  const weeks = buildPeriods({ first: "2026-01-01", last: "2026-12-31" }, rows);
  expect(weeks.length).toBe(53);
  expect(weeks.reduce((sum, week) => sum + week.answers, 0)).toBe(7);
  const months = buildPeriods({ first: "2025-01-15", last: "2026-12-31" }, rows);
  expect(months[0]).toMatchObject({ first: "2025-01-15", last: "2025-01-31" });
  expect(months[12]).toMatchObject({ first: "2026-01-01", last: "2026-01-31", answers: 1 });
  expect(months.at(-1)).toMatchObject({ first: "2026-12-01", last: "2026-12-31", answers: 4 });
});

test("a column of tokens has the output below the input", () => {
  const period = { first: "", last: "", cost: null, input: 30, output: 5, answers: 1 };
  expect(getColumnParts(period, "tokens")).toEqual([5, 30]);
  expect(getColumnParts(period, "cost")).toEqual([0]);
  expect(getAmount(buildRow("m", { input_tokens: 30, output_tokens: 5 }), "tokens")).toBe(35);
});

test.each([
  [0, true, [0]],
  [1, true, [0, 1]],
  [7, true, [0, 2, 4, 6, 8]],
  [10, true, [0, 5, 10]],
  [870_000, true, [0, 250_000, 500_000, 750_000, 1_000_000]],
  [0.3, false, [0, 0.1, 0.2, 0.3]],
  [0.65, false, [0, 0.2, 0.4, 0.6, 0.8]],
])("a scale up to %d has round steps", (highest, isInteger, scale) => {
  expect(buildScale(highest, isInteger)).toEqual(scale);
});

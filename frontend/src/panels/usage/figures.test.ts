import { expect, test } from "vitest";
import type { Spent } from "../calls";
import { amountOf, isWhole, lastDays, partsOf, periodsOf, scaleFor } from "./figures";

const NOTHING: Spent = {
  group: null,
  label: "",
  turns: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cost_usd: null,
  unpriced_turns: 0,
};

const spent = (group: string, fields: Partial<Spent>): Spent => ({ ...NOTHING, group, label: group, ...fields });

test("the last days end with today, in UTC", () => {
  expect(lastDays(7, Date.parse("2026-11-15T23:59:59Z"))).toEqual({ first: "2026-11-09", last: "2026-11-15" });
});

test("a span is whole when it has two days in their order, ten years apart at most", () => {
  expect(isWhole({ first: "2026-11-15", last: "2026-11-15" })).toBe(true);
  expect(isWhole({ first: "2026-11-16", last: "2026-11-15" })).toBe(false);
  expect(isWhole({ first: "", last: "2026-11-15" })).toBe(false);
  expect(isWhole({ first: "2001-01-01", last: "2026-11-15" })).toBe(false);
});

test("days without use are there too, and have no cost", () => {
  const rows = [spent("2026-11-14", { turns: 2, cost_usd: "0.10", input_tokens: 30, output_tokens: 5 })];
  const periods = periodsOf({ first: "2026-11-13", last: "2026-11-15" }, rows);
  expect(periods.map(({ first, cost, answers }) => [first, cost, answers])).toEqual([
    ["2026-11-13", null, 0],
    ["2026-11-14", 0.1, 2],
    ["2026-11-15", null, 0],
  ]);
});

test("many days become weeks, and very many months, and nothing is lost between them", () => {
  const rows = [spent("2026-01-31", { turns: 1 }), spent("2026-02-01", { turns: 2 }), spent("2026-12-31", { turns: 4 })];
  const weeks = periodsOf({ first: "2026-01-01", last: "2026-12-31" }, rows);
  expect(weeks.length).toBe(53);
  expect(weeks.reduce((sum, week) => sum + week.answers, 0)).toBe(7);
  const months = periodsOf({ first: "2025-01-15", last: "2026-12-31" }, rows);
  expect(months[0]).toMatchObject({ first: "2025-01-15", last: "2025-01-31" });
  expect(months[12]).toMatchObject({ first: "2026-01-01", last: "2026-01-31", answers: 1 });
  expect(months.at(-1)).toMatchObject({ first: "2026-12-01", last: "2026-12-31", answers: 4 });
});

test("tokens are drawn as what came out below what went in", () => {
  const period = { first: "", last: "", cost: null, input: 30, output: 5, answers: 1 };
  expect(partsOf(period, "tokens")).toEqual([5, 30]);
  expect(partsOf(period, "cost")).toEqual([0]);
  expect(amountOf(spent("m", { input_tokens: 30, output_tokens: 5 }), "tokens")).toBe(35);
});

test.each([
  [0, true, [0]],
  [1, true, [0, 1]],
  [7, true, [0, 2, 4, 6, 8]],
  [10, true, [0, 5, 10]],
  [870_000, true, [0, 250_000, 500_000, 750_000, 1_000_000]],
  [0.3, false, [0, 0.1, 0.2, 0.3]],
  [0.65, false, [0, 0.2, 0.4, 0.6, 0.8]],
])("a scale up to %d has round steps", (highest, isCounted, scale) => {
  expect(scaleFor(highest, isCounted)).toEqual(scale);
});

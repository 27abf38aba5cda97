import { expect, it } from "vitest";
import { buildFilterQuery, countFilters, NO_FILTERS } from "./searchFilters";

it("asks for nothing that is not filtered", () => {
  expect(buildFilterQuery(NO_FILTERS)).toEqual({});
  expect(countFilters(NO_FILTERS)).toBe(0);
});

it("includes the last day, from midnight to midnight on the reader's clock", () => {
  const filters = { ...NO_FILTERS, role: "user", from: "2026-01-31", to: "2026-02-28" };
  expect(buildFilterQuery(filters)).toEqual({
    role: "user",
    after: new Date(2026, 0, 31).toISOString(),
    before: new Date(2026, 2, 1).toISOString(),
  });
  expect(countFilters(filters)).toBe(3);
});

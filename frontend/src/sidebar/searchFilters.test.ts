import { expect, it } from "vitest";
import { buildFilterQuery, countFilters, formatSearch, NO_FILTERS, parseSearch } from "./searchFilters";

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

it("writes a search into an address and reads it again", () => {
  const filters = { ...NO_FILTERS, platform: "telegram", person: "p_0a1b2c", archived: "without", from: "2026-01-31" };
  const search = { text: "two words & \"a phrase\"", filters, everyone: false };
  expect(parseSearch(formatSearch(search))).toEqual(search);
  expect(parseSearch(formatSearch({ ...search, everyone: true }))).toEqual({ ...search, everyone: true });
  expect(formatSearch({ text: " ", filters: NO_FILTERS, everyone: true })).toBe("");
});

it("leaves out what is not valid in an address", () => {
  const query = "q=lisbon&platform=%3Cb%3E&role=boss&from=2026-13-01&to=soon&archived=maybe&other=1&person=";
  expect(parseSearch(query)).toEqual({ text: "lisbon", filters: NO_FILTERS, everyone: false });
  expect(parseSearch("%E0%&q").text).toBe("");
  expect(parseSearch(`q=${"a".repeat(5000)}`).text).toHaveLength(1000);
});

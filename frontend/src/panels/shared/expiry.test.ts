import { expect, it } from "vitest";
import { makeExpiry, resolveExpiry } from "./expiry";

const NOW = new Date(2026, 0, 31, 15, 30);

it("means a number of days from now, or never", () => {
  expect(resolveExpiry({ choice: "7", day: "" }, NOW)).toBe(new Date(NOW.getTime() + 7 * 86_400_000).toISOString());
  expect(resolveExpiry({ choice: "never", day: "2026-02-01" }, NOW)).toBeNull();
});

it("includes the chosen day on the reader's clock", () => {
  expect(resolveExpiry({ choice: "date", day: "2026-02-28" }, NOW)).toBe(new Date(2026, 2, 1).toISOString());
  expect(resolveExpiry({ choice: "date", day: "2026-01-31" }, NOW)).toBe(new Date(2026, 1, 1).toISOString());
});

it("is nothing without a day, or with one that has passed", () => {
  expect(resolveExpiry({ choice: "date", day: "" }, NOW)).toBeUndefined();
  expect(resolveExpiry({ choice: "date", day: "2026-01-30" }, NOW)).toBeUndefined();
});

it("offers the default of the server", () => {
  expect(makeExpiry(null, NOW)).toEqual({ choice: "never", day: "" });
  expect(makeExpiry(30, NOW)).toEqual({ choice: "30", day: "" });
  expect(makeExpiry(10, NOW)).toEqual({ choice: "date", day: "2026-02-10" });
});

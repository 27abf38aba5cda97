import { describe, expect, it } from "vitest";
import { ago, dayGroup, dayKey, dayName, lasted } from "./time";

const NOW = new Date(2026, 10, 15, 9, 0).getTime();
const at = (month: number, day: number, hour = 12, year = 2026) => new Date(year, month - 1, day, hour).toISOString();

describe("how long something took", () => {
  it("is told as finely as it matters", () => {
    const told = [0, 42, 400, 9949, 9960, 59_400, 59_600, 125_000].map((each) => lasted(each).replaceAll("\u00a0", " "));
    expect(told).toEqual(["< 0.1 s", "< 0.1 s", "0.4 s", "9.9 s", "10 s", "59 s", "1 min 0 s", "2 min 5 s"]);
  });
});

describe("days are told by the calendar, not by hours", () => {
  it("yesterday evening is yesterday in the morning", () => {
    expect(dayName(at(11, 14, 23), NOW)).toBe("Yesterday");
    expect(dayGroup(at(11, 14, 23), NOW)).toBe("Yesterday");
  });

  it("today is today", () => {
    expect(dayGroup(at(11, 15, 0), NOW)).toBe("Today");
    expect(ago(at(11, 15, 8), NOW)).toMatch(/8/);
  });

  it("groups become wider the older they are", () => {
    const groups = [at(11, 10), at(10, 25), at(3, 2), at(3, 2, 12, 2024)].map((each) => dayGroup(each, NOW));
    expect(groups).toEqual(["This week", "This month", "March", "March 2024"]);
  });

  it("another year is named", () => {
    expect(dayName(at(11, 15, 12, 2024), NOW)).toContain("2024");
    expect(dayName(at(3, 2), NOW)).not.toContain("2026");
  });

  it("two moments of a day have one key", () => {
    expect(dayKey(at(11, 15, 1))).toBe(dayKey(at(11, 15, 23)));
    expect(dayKey(at(11, 15, 1))).not.toBe(dayKey(at(11, 14, 23)));
  });
});

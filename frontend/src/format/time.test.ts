import { describe, expect, it } from "vitest";
import { formatDay, formatDuration, formatRecent, getDayGroup, getDayKey } from "./time";

const NOW = new Date(2026, 10, 15, 9, 0).getTime();
const at = (month: number, day: number, hour = 12, year = 2026) => new Date(year, month - 1, day, hour).toISOString();

describe("a duration", () => {
  it("has more digits the shorter it is", () => {
    const formatted = [0, 42, 400, 9949, 9960, 59_400, 59_600, 125_000].map((milliseconds) =>
      formatDuration(milliseconds).replaceAll("\u00a0", " "),
    );
    expect(formatted).toEqual(["< 0.1 s", "< 0.1 s", "0.4 s", "9.9 s", "10 s", "59 s", "1 min 0 s", "2 min 5 s"]);
  });
});

describe("days go by the calendar, not by hours", () => {
  it("in the morning, the last evening is yesterday", () => {
    expect(formatDay(at(11, 14, 23), NOW)).toBe("Yesterday");
    expect(getDayGroup(at(11, 14, 23), NOW)).toBe("Yesterday");
  });

  it("a time of the same day is today", () => {
    expect(getDayGroup(at(11, 15, 0), NOW)).toBe("Today");
    expect(formatRecent(at(11, 15, 8), NOW)).toMatch(/8/);
  });

  it("groups cover more days the older they are", () => {
    const wednesday = new Date(2026, 10, 18, 9).getTime();
    const times = [at(11, 16), at(11, 14), at(11, 1), at(10, 31), at(3, 2), at(3, 2, 12, 2024)];
    const groups = times.map((time) => getDayGroup(time, wednesday));
    expect(groups).toEqual(["This week", "This month", "This month", "October", "March", "March 2024"]);
  });

  it("a month ends with the calendar's month, and a week may begin in the month before", () => {
    const second = new Date(2026, 11, 2, 9).getTime(); // a Wednesday
    const groups = [at(12, 1), at(11, 30), at(11, 28), at(11, 3)].map((time) => getDayGroup(time, second));
    expect(groups).toEqual(["Yesterday", "This week", "November", "November"]);
    expect(getDayGroup(at(12, 31, 12, 2025), new Date(2026, 0, 10, 9).getTime())).toBe("December 2025");
  });

  it("a day of another year is shown with its year", () => {
    expect(formatDay(at(11, 15, 12, 2024), NOW)).toContain("2024");
    expect(formatDay(at(3, 2), NOW)).not.toContain("2026");
  });

  it("all times of a day have the same key", () => {
    expect(getDayKey(at(11, 15, 1))).toBe(getDayKey(at(11, 15, 23)));
    expect(getDayKey(at(11, 15, 1))).not.toBe(getDayKey(at(11, 14, 23)));
  });
});

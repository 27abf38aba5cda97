import { afterEach, describe, expect, it, vi } from "vitest";
import { loadWords } from "../words";
import { describeSchedule, formatSlot } from "./schedules";

const ZONE = "Europe/Vienna";

async function useLanguage(language: string): Promise<void> {
  vi.spyOn(navigator, "languages", "get").mockReturnValue([language]);
  await loadWords();
}

afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await loadWords();
});

describe("a schedule in words", () => {
  it("is what the server says, in English", () => {
    expect(describeSchedule("0 7 * * *", "every day at 07:00 (Europe/Vienna)", ZONE)).toBe("every day at 07:00 (Europe/Vienna)");
  });

  it.each([
    ["every 1h", "jede Stunde"],
    ["every 2h", "alle 2 Stunden"],
    ["every 30m", "alle 30 Minuten"],
    ["every 1d", "alle 24 Stunden"],
    ["0 7 * * *", "jeden Tag um 07:00"],
    ["30 18 * * MON-FRI", "Montag bis Freitag um 18:30"],
    ["0 9 * * 0,6", "Sonntag und Samstag um 09:00"],
    ["0 7 1 * *", "nach Cron-Ausdruck 0 7 1 * *"],
    ["0 7 * * FRI#2", "nach Cron-Ausdruck 0 7 * * FRI#2"],
    ["0 7 * * FRI-MON", "nach Cron-Ausdruck 0 7 * * FRI-MON"],
  ])("is said in German: %s", async (schedule, text) => {
    await useLanguage("de");
    expect(describeSchedule(schedule, "", ZONE)).toBe(`${text} (${ZONE})`);
  });

  it("says a time by the clock of the job", async () => {
    await useLanguage("de");
    vi.setSystemTime("2026-11-16T12:00:00Z");
    expect(formatSlot("2026-12-24T17:00:00Z", ZONE)).toBe("Do., 24. Dez., 18:00");
    expect(describeSchedule("2026-12-24T17:00:00Z", "", ZONE)).toBe(`einmal, am Do., 24. Dez., 18:00 (${ZONE})`);
    expect(formatSlot("2027-01-04T17:00:00Z", ZONE)).toBe("Mo., 4. Jan. 2027, 18:00");
  });
});

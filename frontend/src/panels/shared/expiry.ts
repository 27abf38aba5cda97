/** When a shared link expires: the choices, and the moment that a choice means. Pure. */

export const EXPIRY_DAYS = [1, 7, 30] as const;
const DAY_MS = 86_400_000;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

export interface Expiry {
  choice: string; // "never", "date" or a number of days
  day: string; // the last day on which the link works, for "date"
}

/** The choice that fits a default number of days; null stands for never. */
export function makeExpiry(days: number | null, now = new Date()): Expiry {
  if (days === null) return { choice: "never", day: "" };
  if (EXPIRY_DAYS.some((each) => each === days)) return { choice: String(days), day: "" };
  return { choice: "date", day: formatDayInput(new Date(now.getTime() + days * DAY_MS)) };
}

/** The moment that is meant, null for never, undefined if it is not chosen yet or has passed. Days end at the reader's midnight. */
export function resolveExpiry({ choice, day }: Expiry, now = new Date()): string | null | undefined {
  if (choice === "never") return null;
  if (choice !== "date") return new Date(now.getTime() + Number(choice) * DAY_MS).toISOString();
  if (!DAY.test(day)) return undefined;
  const [year = 1970, month = 1, date = 1] = day.split("-").map(Number);
  const end = new Date(year, month - 1, date + 1);
  return end > now ? end.toISOString() : undefined;
}

/** A day as a date field has it. */
export function formatDayInput(at: Date): string {
  const pad = (value: number) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

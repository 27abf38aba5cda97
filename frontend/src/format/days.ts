/** Calendar days as UTC dates (`2026-11-15`). Pure, except for the language. */
import { getLocale } from "../words";

const DAY_MS = 86_400_000;

/** A range of days; both ends belong to it. */
export interface DayRange {
  first: string;
  last: string;
}

export function getUtcDay(timestamp: number): string {
  return new Date(timestamp).toISOString().slice(0, 10);
}

export function addDays(day: string, days: number): string {
  return getUtcDay(Date.parse(day) + days * DAY_MS);
}

/** Counts the days from `first` to `last`, both included. */
export function countDays(first: string, last: string): number {
  return Math.round((Date.parse(last) - Date.parse(first)) / DAY_MS) + 1;
}

/** The last `days` days, today included. */
export function getLastDays(days: number, now: number): DayRange {
  const last = getUtcDay(now);
  return { first: addDays(last, 1 - days), last };
}

export function formatUtcDay(day: string, options: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" }): string {
  return new Intl.DateTimeFormat(getLocale(), { ...options, timeZone: "UTC" }).format(new Date(day));
}

/** Formats the day of a time in the reader's time zone. */
export function formatDate(at: string): string {
  return new Intl.DateTimeFormat(getLocale(), { dateStyle: "medium" }).format(new Date(at));
}

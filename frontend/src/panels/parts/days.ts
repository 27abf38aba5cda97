/** Days of the calendar, by their dates in UTC (`2026-11-15`). Pure but for the language. */
import { locale } from "../../words";

const DAY = 86_400_000;

/** The day that it is at a moment. */
export function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10);
}

/** So many days later, or earlier. */
export function later(day: string, days: number): string {
  return dayOf(Date.parse(day) + days * DAY);
}

/** How many days there are from one to another, both counted. */
export function daysIn(first: string, last: string): number {
  return Math.round((Date.parse(last) - Date.parse(first)) / DAY) + 1;
}

/** A day as people call it. */
export function nameOfDay(day: string, options: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" }): string {
  return new Intl.DateTimeFormat(locale(), { ...options, timeZone: "UTC" }).format(new Date(day));
}

/** The day of a moment, where the reader is. */
export function onDay(at: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium" }).format(new Date(at));
}

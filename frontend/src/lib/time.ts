/** Times as people read them, in their language and where they are. Pure but for the language and the zone. */
import { locale, words } from "../words";

const DAY = 86_400_000;
const made = new Map<string, Intl.DateTimeFormat>();

/** Formats are costly to make, and there are few of them. */
function format(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = locale() + JSON.stringify(options);
  let found = made.get(name);
  if (found === undefined) made.set(name, (found = new Intl.DateTimeFormat(locale(), options)));
  return found;
}

/** The hour and minute. */
export function clock(at: string): string {
  return format({ hour: "2-digit", minute: "2-digit" }).format(new Date(at));
}

/** Everything about a moment. */
export function moment(at: string): string {
  return format({ dateStyle: "full", timeStyle: "short" }).format(new Date(at));
}

/** How long something took: 0.4 s, 12 s, 2 min 5 s. The units are written alike in every language. */
export function lasted(milliseconds: number, digits = milliseconds < 9950 ? 1 : 0): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds >= 60) return `${Math.floor(seconds / 60)}\u00a0min ${seconds % 60}\u00a0s`;
  const shown = new Intl.NumberFormat(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return milliseconds < 50 ? `<\u00a0${shown.format(0.1)}\u00a0s` : `${shown.format(milliseconds / 1000)}\u00a0s`;
}

/** A day's own name, the same for every moment of it: to tell days apart. */
export function dayKey(at: string | number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`;
}

/** A day as a divider calls it. */
export function dayName(at: string, now = Date.now()): string {
  const away = daysAgo(at, now);
  if (away === 0) return words.today;
  if (away === 1) return words.yesterday;
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  const year = sameYear ? {} : ({ year: "numeric" } as const);
  return format({ weekday: "long", day: "numeric", month: "long", ...year }).format(new Date(at));
}

/** The part of a list that something of that day belongs to. */
export function dayGroup(at: string, now = Date.now()): string {
  const away = daysAgo(at, now);
  if (away <= 0) return words.today;
  if (away === 1) return words.yesterday;
  if (away < 7) return words.thisWeek;
  if (away < 30) return words.thisMonth;
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return format(sameYear ? { month: "long" } : { month: "long", year: "numeric" }).format(new Date(at));
}

/** How long ago, as shortly as it can be said. */
export function ago(at: string, now = Date.now()): string {
  const away = daysAgo(at, now);
  if (away <= 0) return clock(at);
  if (away < 7) return format({ weekday: "short" }).format(new Date(at));
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return format({ day: "numeric", month: "short", ...(!sameYear && { year: "numeric" }) }).format(new Date(at));
}

/** Days between two moments by the calendar, not by hours; summer time makes days of 23 and 25 of them. */
function daysAgo(at: string, now: number): number {
  const then = new Date(at);
  const today = new Date(now);
  const noon = (date: Date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return Math.round((noon(today) - noon(then)) / DAY);
}

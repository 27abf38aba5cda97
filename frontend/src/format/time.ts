/** Times in the reader's language and time zone. Pure, except for those two. */
import { getLocale, words } from "../words";

const DAY_MS = 86_400_000;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Formats are slow to create, and the page needs few of them, so they are cached. */
function getFormat(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = getLocale() + JSON.stringify(options);
  let format = formats.get(key);
  if (format === undefined) formats.set(key, (format = new Intl.DateTimeFormat(getLocale(), options)));
  return format;
}

export function formatTime(at: string): string {
  return getFormat({ hour: "2-digit", minute: "2-digit" }).format(new Date(at));
}

export function formatDateTime(at: string): string {
  return getFormat({ dateStyle: "full", timeStyle: "short" }).format(new Date(at));
}

/** Formats a duration: 0.4 s, 12 s, 2 min 5 s. The units are the same in every language. */
export function formatDuration(milliseconds: number, digits = milliseconds < 9950 ? 1 : 0): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds >= 60) return `${Math.floor(seconds / 60)}\u00a0min ${seconds % 60}\u00a0s`;
  const number = new Intl.NumberFormat(getLocale(), { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return milliseconds < 50 ? `<\u00a0${number.format(0.1)}\u00a0s` : `${number.format(milliseconds / 1000)}\u00a0s`;
}

/** A key that all times of one day share. */
export function getDayKey(at: string | number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${date.getMonth()}-${date.getDate()}`;
}

/** Names a day for the divider between two days of messages. */
export function formatDay(at: string, now = Date.now()): string {
  const days = countDaysAgo(at, now);
  if (days === 0) return words.today;
  if (days === 1) return words.yesterday;
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  const year = sameYear ? {} : ({ year: "numeric" } as const);
  return getFormat({ weekday: "long", day: "numeric", month: "long", ...year }).format(new Date(at));
}

/** The heading of a list under which something from that day belongs. Weeks and months are those of the calendar. */
export function getDayGroup(at: string, now = Date.now()): string {
  const days = countDaysAgo(at, now);
  if (days <= 0) return words.today;
  if (days === 1) return words.yesterday;
  const [then, today] = [new Date(at), new Date(now)];
  if (days <= countDaysSinceWeekStart(today)) return words.thisWeek;
  const sameYear = then.getFullYear() === today.getFullYear();
  if (sameYear && then.getMonth() === today.getMonth()) return words.thisMonth;
  return getFormat(sameYear ? { month: "long" } : { month: "long", year: "numeric" }).format(then);
}

/** Weeks begin on the day that is usual in the reader's language; on Monday where the browser does not know it. */
function countDaysSinceWeekStart(today: Date): number {
  const locale: Intl.Locale & { getWeekInfo?: () => { firstDay: number } } = new Intl.Locale(getLocale());
  const firstDay = locale.getWeekInfo?.().firstDay ?? 1; // 1 is Monday, 7 is Sunday
  return (today.getDay() - firstDay + 7) % 7;
}

/** Formats a time as briefly as possible: the time of today, the weekday of this week, or the date. */
export function formatRecent(at: string, now = Date.now()): string {
  const days = countDaysAgo(at, now);
  if (days <= 0) return formatTime(at);
  if (days < 7) return getFormat({ weekday: "short" }).format(new Date(at));
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return getFormat({ day: "numeric", month: "short", ...(!sameYear && { year: "numeric" }) }).format(new Date(at));
}

/** Counts days by the calendar, not by hours: with daylight saving time some days have 23 or 25 hours. */
function countDaysAgo(at: string, now: number): number {
  const then = new Date(at);
  const today = new Date(now);
  const startOfDay = (date: Date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return Math.round((startOfDay(today) - startOfDay(then)) / DAY_MS);
}

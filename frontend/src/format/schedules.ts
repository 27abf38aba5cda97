/** Schedules of jobs in the reader's language. The server says them in English; what has no short name here is shown as it is stored. */
import { getLanguage, getLocale, words } from "../words";

const INTERVAL = /^every (\d+)([mhd])$/;
const ONCE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const AT_A_TIME = /^(\d{1,2}) (\d{1,2}) \* \* (\*|[A-Za-z0-9,-]+)$/;
const DAY_NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const SUNDAY = Date.UTC(2026, 10, 15);

/** Says when a job runs, with its time zone. `serverWords` is what the server says in English. */
export function describeSchedule(schedule: string, serverWords: string, timezone: string): string {
  if (getLanguage() === "en") return serverWords;
  return `${describe(schedule, timezone)} (${timezone})`;
}

function describe(schedule: string, timezone: string): string {
  const interval = INTERVAL.exec(schedule);
  if (interval !== null) return describeInterval(Number(interval[1]), interval[2]);
  if (ONCE.test(schedule)) return words.onceAt(formatSlot(schedule, timezone));
  const [, minute, hour, weekdays] = AT_A_TIME.exec(schedule) ?? [];
  if (minute === undefined || hour === undefined || weekdays === undefined) return words.byCron(schedule);
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (weekdays === "*") return words.everyDayAt(time);
  const days = readDays(weekdays);
  return days === null ? words.byCron(schedule) : words.onDaysAt(nameDays(days), time);
}

function describeInterval(count: number, unit: string | undefined): string {
  if (unit === "m") return words.everyMinutes(count);
  return unit === "h" ? words.everyHours(count) : words.everyDays(count);
}

/** The weekdays of a cron field, from 0 for Sunday; null if it has another form. */
function readDays(field: string): number[] | null {
  const days: number[] = [];
  for (const part of field.split(",")) {
    const [first, last] = part.split("-").map(readDay);
    if (first === undefined || first < 0 || (last !== undefined && last < first)) return null;
    for (let day = first; day <= (last ?? first); day += 1) days.push(day);
  }
  return days;
}

function readDay(text: string): number {
  return /^[0-7]$/.test(text) ? Number(text) % 7 : DAY_NAMES.indexOf(text.toUpperCase());
}

function nameDays(days: readonly number[]): string {
  const format = new Intl.DateTimeFormat(getLocale(), { weekday: "long", timeZone: "UTC" });
  const names = days.map((day) => format.format(new Date(SUNDAY + day * 86_400_000)));
  const isRange = days.length > 2 && days.every((day, index) => index === 0 || day === (days[index - 1] ?? 0) + 1);
  if (isRange) return words.dayRange(names[0] ?? "", names.at(-1) ?? "");
  return new Intl.ListFormat(getLocale()).format(names);
}

/** Formats the time of a run by the clock of the job's time zone, with the year unless it is this one. */
export function formatSlot(at: string, timezone: string): string {
  const isThisYear = new Date(at).getFullYear() === new Date().getFullYear();
  return new Intl.DateTimeFormat(getLocale(), {
    weekday: "short",
    day: "numeric",
    month: "short",
    ...(!isThisYear && { year: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
    timeZone: timezone,
  }).format(new Date(at));
}

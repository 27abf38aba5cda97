/** Describes when conversations restart automatically. Pure, except for the language. */
import { getLocale, words } from "../../words";
import type { ResetRule } from "../shared/calls";

const MINUTES_PER_DAY = 1440;

/** Formats minutes in the largest unit that divides them. One day is 24 hours, as people say for a waiting time. */
export function formatMinutes(minutes: number): string {
  const [count, unit] =
    minutes % MINUTES_PER_DAY === 0 && minutes > MINUTES_PER_DAY
      ? ([minutes / MINUTES_PER_DAY, "day"] as const)
      : minutes % 60 === 0
        ? ([minutes / 60, "hour"] as const)
        : ([minutes, "minute"] as const);
  return new Intl.NumberFormat(getLocale(), { style: "unit", unit, unitDisplay: "long" }).format(count);
}

export function describeReset({ mode, idle_minutes, at_hour, timezone, notify }: Omit<ResetRule, "chat_types" | "setting_key" | "is_default">): string {
  const idle = words.policyResetIdle(formatMinutes(idle_minutes));
  const daily = words.policyResetDaily(`${String(at_hour).padStart(2, "0")}:00`, timezone);
  if (mode === "none") return words.policyResetNever;
  const when = { idle, daily, both: words.policyResetBoth(idle, daily) }[mode];
  return `${when}; ${notify ? words.policyResetNotified : words.policyResetNotNotified}`;
}

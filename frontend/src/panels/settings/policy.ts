/** When conversations start afresh, in words. Pure but for the language. */
import { locale, words } from "../../words";
import type { Afresh } from "../calls";

/** Minutes in the largest unit that divides them; a single day is 24 hours, as people say of waiting. */
export function spanOf(minutes: number): string {
  const [count, unit] =
    minutes % 1440 === 0 && minutes > 1440
      ? ([minutes / 1440, "day"] as const)
      : minutes % 60 === 0
        ? ([minutes / 60, "hour"] as const)
        : ([minutes, "minute"] as const);
  return new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: "long" }).format(count);
}

export function whenAfresh({ mode, idle_minutes, at_hour, timezone, notify }: Afresh): string {
  const idle = words.policyIdle(spanOf(idle_minutes));
  const daily = words.policyDaily(`${String(at_hour).padStart(2, "0")}:00`, timezone);
  if (mode === "none") return words.policyNever;
  const when = { idle, daily, both: words.policyBoth(idle, daily) }[mode];
  return `${when}; ${notify ? words.policyTold : words.policyNotTold}`;
}

/** Usage in words and numbers. */
import { platformName } from "../../sidebar/naming";
import { dollars, short } from "../../lib/numbers";
import { words } from "../../words";
import type { Grouping, Spent } from "../calls";
import { nameOfDay } from "../parts/days";
import type { Measure, Period } from "./figures";

export function amountText(period: Pick<Period, "cost" | "input" | "output" | "answers">, measure: Measure): string {
  if (measure === "cost") return period.cost === null ? words.usageNoPrice : dollars(String(period.cost));
  return short(measure === "answers" ? period.answers : period.input + period.output);
}

export function costText(row: Spent): string {
  return row.cost_usd === null ? words.usageNoPrice : dollars(row.cost_usd);
}

export function nameOfPeriod({ first, last }: Pick<Period, "first" | "last">): string {
  if (first === last) return nameOfDay(first, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
  return `${nameOfDay(first)} – ${nameOfDay(last, { day: "numeric", month: "short", year: "numeric" })}`;
}

/** What a row of a report is called. */
export function labelOf(row: Spent, by: Grouping): string {
  if (row.group === null) return by === "session" ? words.usageDeleted : words.usageUnknown;
  if (by === "platform") return platformName(row.group);
  return by === "day" ? nameOfDay(row.group, { day: "numeric", month: "short", year: "numeric" }) : row.label;
}

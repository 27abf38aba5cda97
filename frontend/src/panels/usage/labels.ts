/** The texts of usage reports. */
import { formatUtcDay } from "../../format/days";
import { formatCount, formatDollars } from "../../format/numbers";
import { getPlatformName } from "../../format/platforms";
import { words } from "../../words";
import type { Grouping, UsageRow } from "../shared/calls";
import type { Measure, Period } from "./chartData";

export function formatAmount(period: Pick<Period, "cost" | "input" | "output" | "answers">, measure: Measure): string {
  if (measure === "cost") return period.cost === null ? words.usagePriceUnknown : formatDollars(String(period.cost));
  return formatCount(measure === "answers" ? period.answers : period.input + period.output);
}

export function formatCost(row: UsageRow): string {
  return row.cost_usd === null ? words.usagePriceUnknown : formatDollars(row.cost_usd);
}

export function formatPeriod({ first, last }: Pick<Period, "first" | "last">): string {
  if (first === last) return formatUtcDay(first, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
  return `${formatUtcDay(first)} – ${formatUtcDay(last, { day: "numeric", month: "short", year: "numeric" })}`;
}

export function getRowLabel(row: UsageRow, by: Grouping): string {
  if (row.group === null) return by === "session" ? words.usageDeletedSessions : words.usageUnknown;
  if (by === "platform") return getPlatformName(row.group);
  return by === "day" ? formatUtcDay(row.group, { day: "numeric", month: "short", year: "numeric" }) : row.label;
}

/** Prepares usage for the chart: periods, sums and scales. Pure. */
import { addDays, countDays, getUtcDay, type DayRange } from "../../format/days";
import type { UsageRow } from "../shared/calls";

/** Which usage a report covers. */
export interface ReportQuery {
  range: DayRange;
  all: boolean; // of everybody, not only of the reader
  isOwner: boolean;
}

export type Measure = "cost" | "tokens" | "answers";

/** A range of days that is one column of the chart. */
export interface Period extends DayRange {
  cost: number | null; // US dollars; null: unknown
  input: number;
  output: number;
  answers: number;
}

const MAX_DAY_COLUMNS = 62;
const MAX_WEEK_COLUMNS = 60;
const MAX_RANGE_DAYS = 3660; // the server's limit

export function isValidRange({ first, last }: DayRange): boolean {
  return !Number.isNaN(Date.parse(first)) && !Number.isNaN(Date.parse(last)) && first <= last && countDays(first, last) <= MAX_RANGE_DAYS;
}

/** Every period of a range, also those without usage: days, or weeks or months if there are many days. */
export function buildPeriods(range: DayRange, rows: readonly UsageRow[]): Period[] {
  const byDay = new Map(rows.map((row) => [row.group, row]));
  const periods: Period[] = [];
  for (let first = range.first; first <= range.last; ) {
    const end = getPeriodEnd(first, countDays(range.first, range.last));
    const last = end < range.last ? end : range.last;
    periods.push(sumPeriod({ first, last }, byDay));
    first = addDays(last, 1);
  }
  return periods;
}

function getPeriodEnd(first: string, days: number): string {
  if (days <= MAX_DAY_COLUMNS) return first;
  if (days <= MAX_WEEK_COLUMNS * 7) return addDays(first, 6);
  const begin = new Date(first);
  return getUtcDay(Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth() + 1, 0));
}

function sumPeriod(range: DayRange, byDay: ReadonlyMap<string | null, UsageRow>): Period {
  const period: Period = { ...range, cost: null, input: 0, output: 0, answers: 0 };
  for (let day = range.first; day <= range.last; day = addDays(day, 1)) {
    const row = byDay.get(day);
    if (row === undefined) continue;
    period.cost = addCost(period.cost, row.cost_usd);
    period.input += row.input_tokens;
    period.output += row.output_tokens;
    period.answers += row.turns;
  }
  return period;
}

function addCost(sum: number | null, cost: string | null): number | null {
  return cost === null ? sum : (sum ?? 0) + Number(cost);
}

/** The amount by which rows are compared. */
export function getAmount(row: UsageRow, measure: Measure): number {
  if (measure === "cost") return Number(row.cost_usd ?? 0);
  return measure === "answers" ? row.turns : row.input_tokens + row.output_tokens;
}

/** The parts of a column, from the bottom up. */
export function getColumnParts(period: Period, measure: Measure): number[] {
  if (measure === "cost") return [period.cost ?? 0];
  return measure === "answers" ? [period.answers] : [period.output, period.input];
}

/** Round numbers from zero to at least the highest value, few enough to label the axis with. */
export function buildScale(highest: number, isInteger: boolean): number[] {
  if (highest <= 0) return [0];
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factors = isInteger && power >= 10 ? [1, 2, 2.5, 5, 10] : [1, 2, 5, 10];
  const factor = factors.find((each) => each * power >= rough) ?? 10;
  const step = isInteger ? Math.max(1, factor * power) : factor * power;
  const steps = Math.ceil(highest / step - 1e-9);
  return Array.from({ length: steps + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

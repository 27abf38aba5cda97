/** What was used, made ready to be drawn: periods, sums and scales. Pure. */
import type { Spent } from "../calls";
import { dayOf, daysIn, later } from "../parts/days";

export interface Span {
  first: string; // days, both counted
  last: string;
}

/** Of what, and by whom, a report is asked for. */
export interface Asked {
  span: Span;
  all: boolean; // not only one's own
  isOwner: boolean;
}

export type Measure = "cost" | "tokens" | "answers";

/** A stretch of days that is drawn as one column. */
export interface Period extends Span {
  cost: number | null; // US dollars; null where no price is known
  input: number;
  output: number;
  answers: number;
}

const MOST_DAYS = 62; // shown one by one
const MOST_WEEKS = 60;

/** The last so many days. */
export function lastDays(days: number, now: number): Span {
  const last = dayOf(now);
  return { first: later(last, 1 - days), last };
}

/** Whether somebody may ask for this. */
export function isWhole({ first, last }: Span): boolean {
  return !Number.isNaN(Date.parse(first)) && !Number.isNaN(Date.parse(last)) && first <= last && daysIn(first, last) <= 3660;
}

/** Every period of a span, also those in which nothing was used: days, or weeks or months where there are many. */
export function periodsOf(span: Span, rows: readonly Spent[]): Period[] {
  const byDay = new Map(rows.map((row) => [row.group, row]));
  const periods: Period[] = [];
  for (let first = span.first; first <= span.last; ) {
    const end = endOfPeriod(first, daysIn(span.first, span.last));
    const last = end < span.last ? end : span.last;
    periods.push(summed({ first, last }, byDay));
    first = later(last, 1);
  }
  return periods;
}

function endOfPeriod(first: string, days: number): string {
  if (days <= MOST_DAYS) return first;
  if (days <= MOST_WEEKS * 7) return later(first, 6);
  const begin = new Date(first);
  return dayOf(Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth() + 1, 0));
}

function summed(span: Span, byDay: ReadonlyMap<string | null, Spent>): Period {
  const period: Period = { ...span, cost: null, input: 0, output: 0, answers: 0 };
  for (let day = span.first; day <= span.last; day = later(day, 1)) {
    const row = byDay.get(day);
    if (row === undefined) continue;
    period.cost = added(period.cost, row.cost_usd);
    period.input += row.input_tokens;
    period.output += row.output_tokens;
    period.answers += row.turns;
  }
  return period;
}

function added(sum: number | null, cost: string | null): number | null {
  return cost === null ? sum : (sum ?? 0) + Number(cost);
}

/** How much of a measure a row has, to compare rows by. */
export function amountOf(row: Spent, measure: Measure): number {
  if (measure === "cost") return Number(row.cost_usd ?? 0);
  return measure === "answers" ? row.turns : row.input_tokens + row.output_tokens;
}

/** The parts that a column is made of, from below. */
export function partsOf(period: Period, measure: Measure): number[] {
  if (measure === "cost") return [period.cost ?? 0];
  return measure === "answers" ? [period.answers] : [period.output, period.input];
}

/** Round numbers from nothing to at least the highest value, few enough to be written beside a chart. */
export function scaleFor(highest: number, isCounted: boolean): number[] {
  if (highest <= 0) return [0];
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factors = isCounted && power >= 10 ? [1, 2, 2.5, 5, 10] : [1, 2, 5, 10];
  const fitting = factors.find((factor) => factor * power >= rough) ?? 10;
  const step = isCounted ? Math.max(1, fitting * power) : fitting * power;
  const steps = Math.ceil(highest / step - 1e-9);
  return Array.from({ length: steps + 1 }, (_, place) => Number((place * step).toPrecision(12)));
}

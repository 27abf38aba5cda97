/** Numbers in the reader's language. */
import { getLocale } from "../words";

/** Shortens a count: 12.3K. */
export function formatCount(count: number): string {
  return new Intl.NumberFormat(getLocale(), { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

/** Formats a share from 0 to 1: 42%. */
export function formatPercent(share: number): string {
  return new Intl.NumberFormat(getLocale(), { style: "percent", maximumFractionDigits: 0 }).format(share);
}

/** Formats an amount of US dollars, which the API sends as decimal text. */
export function formatDollars(amount: string): string {
  const value = Number(amount);
  const digits = value !== 0 && value < 0.1 ? 4 : 2;
  return new Intl.NumberFormat(getLocale(), {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(value);
}

export function formatBytes(size: number): string {
  const units = ["byte", "kilobyte", "megabyte"] as const;
  const power = size < 1000 ? 0 : size < 1_000_000 ? 1 : 2;
  return new Intl.NumberFormat(getLocale(), {
    style: "unit",
    unit: units[power],
    unitDisplay: "short",
    maximumFractionDigits: power === 2 ? 1 : 0,
  }).format(size / 1000 ** power);
}

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

/** Formats the size of a file: 11 bytes, 12 kB, 1.5 MB. */
export function formatBytes(size: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;
  const limits = [1000, 999_500, 999_950_000]; // from here on, the number would be rounded to 1000
  const power = limits.filter((limit) => size >= limit).length;
  return new Intl.NumberFormat(getLocale(), {
    style: "unit",
    unit: units[power],
    unitDisplay: power === 0 ? "long" : "short", // the short form of bytes has no plural
    maximumFractionDigits: power < 2 ? 0 : 1,
  }).format(size / 1000 ** power);
}

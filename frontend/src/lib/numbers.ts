/** Numbers as people read them. */
import { locale } from "../words";

/** A count, shortened: 12.3K. */
export function short(count: number): string {
  return new Intl.NumberFormat(locale(), { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

/** A share of a whole: 42%. */
export function percent(share: number): string {
  return new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 0 }).format(share);
}

/** An amount of US dollars that came as decimal text. */
export function dollars(amount: string): string {
  const value = Number(amount);
  const digits = value !== 0 && value < 0.1 ? 4 : 2;
  return new Intl.NumberFormat(locale(), {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(value);
}

/** A size in bytes. */
export function bytes(size: number): string {
  const steps = ["byte", "kilobyte", "megabyte"] as const;
  const step = size < 1000 ? 0 : size < 1_000_000 ? 1 : 2;
  return new Intl.NumberFormat(locale(), {
    style: "unit",
    unit: steps[step],
    unitDisplay: "short",
    maximumFractionDigits: step === 2 ? 1 : 0,
  }).format(size / 1000 ** step);
}

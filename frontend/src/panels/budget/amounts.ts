/** Limits as people type them. Pure. */
import type { Limits } from "../../api/budgets";

const MAX_TOKENS = 1e12; // the server's limit
const FACTORS: Record<string, number> = { "": 1, k: 1e3, m: 1e6 };

/** Reads dollars as decimal text: `5`, `0.25`, `0,25`. Null for an empty text, which means no limit; undefined if it is none. */
export function parseDollars(text: string): string | null | undefined {
  const trimmed = text.trim().replace(/^\$\s*/, "").replace(",", ".");
  if (trimmed === "") return null;
  return /^\d{1,7}(\.\d{1,6})?$/.test(trimmed) && Number(trimmed) <= 1_000_000 ? trimmed : undefined;
}

/** Reads tokens: `200000`, `200k`, `1.5M`. Null for an empty text, which means no limit; undefined if it is none. */
export function parseTokens(text: string): number | null | undefined {
  const trimmed = text.trim().toLowerCase();
  if (trimmed === "") return null;
  const match = /^(\d{1,13})(?:[.,](\d{1,6}))?\s*(k|m)?$/.exec(trimmed);
  if (match === null) return undefined;
  const tokens = Math.round(Number(`${match[1]}.${match[2] ?? "0"}`) * (FACTORS[match[3] ?? ""] ?? 1) * 1e6) / 1e6;
  return Number.isInteger(tokens) && tokens <= MAX_TOKENS ? tokens : undefined;
}

/** The limits that differ from the current ones; the others stay what they are. Undefined if a text is no amount. */
export function findChanges(
  typed: { dollars: string; tokens: string },
  current: { limit_usd: string | null; limit_tokens: number | null },
): Limits | undefined {
  const dollars = parseDollars(typed.dollars);
  const tokens = parseTokens(typed.tokens);
  if (dollars === undefined || tokens === undefined) return undefined;
  const isSameAmount = dollars === null || current.limit_usd === null ? dollars === current.limit_usd : Number(dollars) === Number(current.limit_usd);
  return { ...(!isSameAmount && { usd: dollars }), ...(tokens !== current.limit_tokens && { tokens }) };
}

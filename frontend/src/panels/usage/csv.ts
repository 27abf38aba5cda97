/** Usage as a CSV file for spreadsheets. Pure, except for the download. */
import type { Grouping, UsageRow } from "../shared/calls";

const COLUMNS = [
  "turns",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
  "cost_usd",
  "estimated_cost_usd",
  "unpriced_turns",
] as const;

/** Builds a CSV text with a line of headings and a line for each row. */
export function buildCsv(by: Grouping, rows: readonly UsageRow[]): string {
  const hasIds = by === "person" || by === "session";
  const headings = [by, ...(hasIds ? ["id"] : []), ...COLUMNS];
  const lines = rows.map((row) => [row.label, ...(hasIds ? [row.group ?? ""] : []), ...COLUMNS.map((column) => row[column] ?? "")]);
  return [headings, ...lines].map((line) => line.map(formatCell).join(",") + "\r\n").join("");
}

/** People choose names freely, so a spreadsheet must not take one for a formula. */
function formatCell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const UTF8_BOM = "\ufeff"; // without it some spreadsheets assume another encoding

export function downloadCsv(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([UTF8_BOM, text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000); // by then the browser has started the download
}

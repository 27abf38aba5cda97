/** Usage as a file that spreadsheets open. Pure but for handing the file over. */
import type { Grouping, Spent } from "../calls";

const COLUMNS = [
  "turns",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
  "cost_usd",
  "unpriced_turns",
] as const;

/** The rows of a report, with a line of headings. */
export function csvOf(by: Grouping, rows: readonly Spent[]): string {
  const isNamed = by === "person" || by === "session";
  const headings = [by, ...(isNamed ? ["id"] : []), ...COLUMNS];
  const lines = rows.map((row) => [row.label, ...(isNamed ? [row.group ?? ""] : []), ...COLUMNS.map((column) => row[column] ?? "")]);
  return [headings, ...lines].map((line) => line.map(cell).join(",") + "\r\n").join("");
}

/** Names are chosen by anybody, so none may be taken for a formula. */
function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const IN_UTF_8 = "\ufeff"; // without it some spreadsheets take the letters for others

export function download(name: string, text: string): void {
  const source = URL.createObjectURL(new Blob([IN_UTF_8, text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = source;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(source), 10_000); // by then the browser has begun to keep it
}

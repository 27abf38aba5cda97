/** Tells exports of other programs from files that people want to attach. */

const PEEKED_BYTES = 262_144;
const ZIP_START = "PK\u0003\u0004";
// Keys that only conversations in an export have, as the server knows them.
const MARKS = [
  /^\s*\{[^\n]{0,200}?"format"\s*:\s*"palaver/,
  /(?<!\\)"mapping"\s*:\s*\{/,
  /(?<!\\)"chat_messages"\s*:\s*\[/,
  /(?<!\\)"chat"\s*:\s*\{/,
];

/** Whether the beginning of a file is that of an export. Zip files can't be attached, so each of them may be one. */
export function isExportStart(name: string, start: string): boolean {
  if (/\.zip$/i.test(name)) return start.startsWith(ZIP_START);
  return /\.jsonl?$/i.test(name) && MARKS.some((mark) => mark.test(start));
}

async function isExport(file: File): Promise<boolean> {
  if (!/\.(zip|jsonl?)$/i.test(file.name)) return false;
  try {
    return isExportStart(file.name, await file.slice(0, PEEKED_BYTES).text());
  } catch {
    return false; // a folder, or a file that can't be read
  }
}

/** Splits dropped files into the first export and everything else. */
export async function findExport(files: readonly File[]): Promise<{ found: File | null; others: File[] }> {
  for (const file of files) {
    if (await isExport(file)) return { found: file, others: files.filter((each) => each !== file) };
  }
  return { found: null, others: [...files] };
}

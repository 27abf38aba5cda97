/** The lines of the log that the panel has, and their text. Pure. */
import type { LogPage, LogRecord } from "../shared/calls";

const MAX_LINES = 2000; // as many as the server keeps

export interface LogLines {
  process: LogPage["process"];
  cursor: string;
  records: readonly LogRecord[];
}

/** Adds a page: it follows the lines before, or replaces them if another process has answered. */
export function addLogPage(lines: LogLines | undefined, page: LogPage): LogLines {
  const before = page.is_continued && lines !== undefined ? lines.records : [];
  return { process: page.process, cursor: page.cursor, records: [...before, ...page.records].slice(-MAX_LINES) };
}

export function formatRecord({ at, level, logger, event, fields }: LogRecord): string {
  const details = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
  return [at, level.toUpperCase(), logger, event, ...details].join(" ");
}

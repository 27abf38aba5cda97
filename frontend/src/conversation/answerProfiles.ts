/** Which profile has given which answer. Pure. */
import type { Row } from "./rows";

/**
 * The profile of each answer, by the key of its row. `current` is that of the conversation now: it applies to all answers,
 * unless a change of the profile is among the rows.
 */
export function findAnswerProfiles(rows: readonly Row[], current: string | null): ReadonlyMap<string, string> {
  const changes = rows.flatMap((row) => (isProfileChange(row) ? [row.event.facts] : []));
  let profile = changes[0] === undefined ? current : readName(changes[0].previous);
  const found = new Map<string, string>();
  for (const row of rows) {
    if (isProfileChange(row)) profile = readName(row.event.facts.value);
    else if (row.kind === "answer" && profile !== null && row.sentBy === null) found.set(row.key, profile);
  }
  return found;
}

function isProfileChange(row: Row): row is Extract<Row, { kind: "event" }> {
  return row.kind === "event" && row.event.kind === "setting_changed" && row.event.facts.setting === "profile";
}

function readName(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

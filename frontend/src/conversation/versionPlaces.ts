/** Where the versions of a message are stepped through: below the message if it was edited, otherwise below its answer. Pure. */
import type { LogEvent } from "../api/types";
import type { Row } from "./rows";

export interface VersionPlace {
  seq: number; // of the message that has versions
  version: NonNullable<LogEvent["version"]>;
}

/** Finds the places by the keys of the rows. */
export function findVersionPlaces(rows: readonly Row[]): ReadonlyMap<string, VersionPlace> {
  const places = new Map<string, VersionPlace>();
  const answerKeys = new Map(rows.flatMap((row) => (row.kind === "answer" && row.answers !== null ? [[row.answers, row.key]] : [])));
  for (const row of rows) {
    if (row.kind !== "message" || row.event.version == null) continue;
    const { seq, version } = row.event;
    const answerKey = version.has_edits ? undefined : answerKeys.get(seq);
    places.set(answerKey ?? row.key, { seq, version });
  }
  return places;
}

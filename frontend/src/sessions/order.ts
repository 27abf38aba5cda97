/** The order of conversations in lists. Pure. */
import type { Session } from "../api/types";

/** Sorts the session with the latest activity first. */
export function compareByActivity(a: Session, b: Session): number {
  const [left, right] = [a.active_at ?? "", b.active_at ?? ""];
  if (left !== right) return left < right ? 1 : -1;
  return a.id < b.id ? 1 : -1;
}

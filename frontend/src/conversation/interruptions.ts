/** Why an answer was interrupted, in the reader's language. */
import type { LogEvent } from "../api/types";
import { words } from "../words";

export function describeInterruption({ facts, person }: Pick<LogEvent, "facts" | "person">, readerId: string): string {
  switch (facts.reason) {
    case "stopped":
      return person === null || person.id === readerId ? words.stoppedByYou : words.stoppedBy(person.name);
    case "interrupted_by_message":
      return words.interruptedByMessage;
    case "timed_out":
      return words.interruptedByTimeout(Number(facts.minutes ?? 0));
    case "server_stopped":
      return words.interruptedByShutdown;
    case "server_restarted":
      return words.interruptedByRestart;
    case "access_ended":
      return words.interruptedByLostAccess;
    default:
      return words.answerInterrupted;
  }
}

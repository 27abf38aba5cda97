/** The answer to a question of a temporary conversation, as it arrives. */
import { openEventStream } from "../api/http";
import { SseParser } from "../live/sseParser";
import type { OutgoingTemporaryMessage } from "./messages";

export type AnswerEvent =
  | { name: "text" | "reasoning"; data: { text: string } }
  | { name: "notice"; data: { text: string; code: string; facts: Record<string, unknown> } }
  | { name: "end"; data: { state: "done" | "failed" | "interrupted"; error: string | null; facts: Record<string, unknown> } };

const MAX_SILENCE_MS = 40_000; // after it the connection counts as lost; heartbeats come every 15 s

/** Yields the events of an answer. Aborting `signal` stops the answer on the server, too. */
export async function* streamAnswer(messages: readonly OutgoingTemporaryMessage[], signal: AbortSignal): AsyncGenerator<AnswerEvent> {
  const connection = new AbortController();
  const abort = () => connection.abort();
  signal.addEventListener("abort", abort);
  let watchdog = setTimeout(abort, MAX_SILENCE_MS);
  try {
    const reader = await openEventStream("POST", "/api/temporary/answers", { body: { messages: [...messages] }, signal: connection.signal });
    const parser = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(abort, MAX_SILENCE_MS);
      for (const { name, data } of parser.read(value)) yield { name, data: JSON.parse(data) as unknown } as AnswerEvent;
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", abort);
    connection.abort();
  }
}

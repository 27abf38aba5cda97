/**
 * The temporary conversation of this tab. It is in the memory of the page and nowhere else.
 *
 * Always true: nothing of it is stored, neither in the browser nor on the server. It is gone when the tab is closed or
 * reloaded, when the person deletes it, and when they sign out.
 */
import { ApiError, describeError } from "../api/errors";
import { describeFailure, describeNotice } from "../format/errors";
import { whenPersonLeaves } from "../lib/personal";
import { Store } from "../lib/store";
import { words } from "../words";
import { streamAnswer, type AnswerEvent } from "./answerStream";
import { buildQuestion, createMessage, type TemporaryMessage } from "./messages";

export interface TemporaryState {
  messages: readonly TemporaryMessage[];
  isAnswering: boolean;
}

const EMPTY: TemporaryState = { messages: [], isAnswering: false };

export class TemporaryChat {
  readonly state = new Store<TemporaryState>(EMPTY);
  #lastId = 0;
  #running: AbortController | null = null;

  /** Sends a message. Nothing happens while an answer is running. */
  send(text: string): void {
    if (this.state.value.isAnswering || text.trim() === "") return;
    this.#addMessages(createMessage(++this.#lastId, "user", text));
    void this.#answer();
  }

  /** Asks the last question again, instead of its answer. */
  retry(): void {
    if (this.state.value.isAnswering) return;
    const question = this.state.value.messages.findLastIndex((message) => message.role === "user");
    if (question === -1) return;
    this.state.update((state) => ({ ...state, messages: state.messages.slice(0, question + 1) }));
    void this.#answer();
  }

  /** Stops the running answer. What has arrived stays. */
  stop(): void {
    this.#running?.abort();
  }

  clear(): void {
    this.stop();
    this.#running = null;
    this.state.update(() => EMPTY);
  }

  async #answer(): Promise<void> {
    const { messages, leftOutCount } = buildQuestion(this.state.value.messages);
    const running = new AbortController();
    this.#running = running;
    const answer = createMessage(++this.#lastId, "assistant", "");
    if (leftOutCount > 0) answer.notices = [words.temporaryOldestLeftOut(leftOutCount)];
    this.#addMessages(answer);
    this.state.update((state) => ({ ...state, isAnswering: true }));
    const change = (update: (message: TemporaryMessage) => TemporaryMessage) => {
      if (this.#running === running) this.#changeMessage(answer.id, update);
    };
    try {
      let hasEnded = false;
      for await (const event of streamAnswer(messages, running.signal)) {
        change((message) => applyEvent(message, event));
        hasEnded ||= event.name === "end";
      }
      if (!hasEnded) change((message) => ({ ...message, isInterrupted: true, failure: words.temporaryCutOff }));
    } catch (error) {
      change((message) => endEarly(message, error, running.signal.aborted));
    }
    if (this.#running !== running) return; // it was deleted meanwhile
    this.#running = null;
    this.state.update((state) => ({ ...state, isAnswering: false }));
  }

  #addMessages(...added: TemporaryMessage[]): void {
    this.state.update((state) => ({ ...state, messages: [...state.messages, ...added] }));
  }

  #changeMessage(id: number, update: (message: TemporaryMessage) => TemporaryMessage): void {
    this.state.update((state) => ({
      ...state,
      messages: state.messages.map((message) => (message.id === id ? update(message) : message)),
    }));
  }
}

/** The answer after another event of its stream. */
export function applyEvent(message: TemporaryMessage, event: AnswerEvent): TemporaryMessage {
  switch (event.name) {
    case "text":
      return { ...message, text: message.text + event.data.text };
    case "reasoning":
      return { ...message, reasoning: message.reasoning + event.data.text };
    case "notice":
      return { ...message, notices: [...message.notices, describeNotice(event.data)] };
    case "end":
      if (event.data.state === "done") return message;
      return { ...message, isInterrupted: true, failure: describeEnd(event.data.facts, event.data.error) };
  }
}

function describeEnd(facts: Record<string, unknown>, error: string | null): string {
  if (facts.reason === "timed_out") return words.interruptedByTimeout(Number(facts.minutes));
  if (facts.reason === "server_stopped") return words.temporaryInterruptedByShutdown;
  const why = describeFailure({ ...facts, reason: error ?? "" });
  return why === null || why === "" ? words.answerFailed : words.answerFailedBecause(why);
}

/** The answer whose stream broke off: the person stopped it, the server refused the question, or the connection was lost. */
function endEarly(message: TemporaryMessage, error: unknown, isStopped: boolean): TemporaryMessage {
  if (isStopped) return { ...message, isInterrupted: true };
  if (error instanceof ApiError) return { ...message, failure: describeError(error) };
  return { ...message, isInterrupted: true, failure: message.text === "" ? words.unreachable : words.temporaryCutOff };
}

/** The one of this tab. */
export const temporaryChat = new TemporaryChat();
whenPersonLeaves(() => temporaryChat.clear());

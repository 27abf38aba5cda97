/** The messages of a temporary conversation, and what is sent of them with a question. Pure. */

export interface TemporaryMessage {
  id: number;
  role: "user" | "assistant";
  text: string;
  reasoning: string;
  notices: readonly string[]; // about this answer
  isInterrupted: boolean; // it was stopped before it was complete
  failure: string | null; // why it was not completed
}

export interface OutgoingTemporaryMessage {
  role: "user" | "assistant";
  content: string;
  interrupted: boolean;
}

export const MAX_MESSAGES = 1000; // that the server accepts with one question
export const MAX_CONVERSATION_CHARS = 900_000; // a little less than the server accepts

export function createMessage(id: number, role: TemporaryMessage["role"], text: string): TemporaryMessage {
  return { id, role, text, reasoning: "", notices: [], isInterrupted: false, failure: null };
}

/** What is sent with the last question. Answers without text are left out, and the oldest messages if there are too many. */
export function buildQuestion(messages: readonly TemporaryMessage[]): { messages: OutgoingTemporaryMessage[]; leftOutCount: number } {
  const sendable = messages.filter((message) => message.text.trim() !== "");
  let chars = 0;
  const isTooMuch = (message: TemporaryMessage, index: number) => {
    chars += message.text.length;
    return index > 0 && (index >= MAX_MESSAGES || chars > MAX_CONVERSATION_CHARS);
  };
  const tooMany = sendable.toReversed().findIndex(isTooMuch);
  const kept = tooMany === -1 ? sendable : sendable.slice(sendable.length - tooMany);
  return {
    messages: kept.map(({ role, text, isInterrupted }) => ({ role, content: text, interrupted: role === "assistant" && isInterrupted })),
    leftOutCount: sendable.length - kept.length,
  };
}

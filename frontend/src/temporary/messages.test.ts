import { expect, it } from "vitest";
import { buildQuestion, createMessage, MAX_CONVERSATION_CHARS, MAX_MESSAGES } from "./messages";

it("sends all messages that have a text, and says which answers were stopped", () => {
  const stopped = { ...createMessage(2, "assistant", "Once upon"), isInterrupted: true };
  const failed = { ...createMessage(4, "assistant", ""), failure: "No connection" };
  const messages = [createMessage(1, "user", "a story"), stopped, createMessage(3, "user", "again"), failed, createMessage(5, "user", "please")];
  expect(buildQuestion(messages)).toEqual({
    messages: [
      { role: "user", content: "a story", interrupted: false },
      { role: "assistant", content: "Once upon", interrupted: true },
      { role: "user", content: "again", interrupted: false },
      { role: "user", content: "please", interrupted: false },
    ],
    leftOutCount: 0,
  });
});

it("leaves out the oldest messages when there are too many", () => {
  const messages = Array.from({ length: MAX_MESSAGES + 3 }, (_, index) => createMessage(index, "user", `text ${index}`));
  const question = buildQuestion(messages);
  expect(question.leftOutCount).toBe(3);
  expect(question.messages[0]?.content).toBe("text 3");
  expect(question.messages).toHaveLength(MAX_MESSAGES);
});

it("leaves out the oldest messages when they are too long together, and never the question", () => {
  const long = "x".repeat(MAX_CONVERSATION_CHARS - 10);
  const messages = [createMessage(1, "user", "first"), createMessage(2, "assistant", long), createMessage(3, "user", "last one, that is")];
  expect(buildQuestion(messages)).toMatchObject({ messages: [{ content: "last one, that is" }], leftOutCount: 2 });
  expect(buildQuestion([createMessage(1, "user", `${long}${long}`)]).messages).toHaveLength(1);
});

import { expect, it } from "vitest";
import { findExport, isExportStart } from "./exportFiles";

it.each([
  ["export.zip", "PK\u0003\u0004…", true],
  ["export.zip", "not a zip file", false],
  ["conversations.json", '[{"title": "x", "mapping": {"a": {}}}]', true],
  ["conversations.json", '[{"uuid": "1", "chat_messages": []}]', true],
  ["chat-export.json", '[{"id": "1", "chat": {"history": {}}}]', true],
  ["palaver.jsonl", '{"type":"header","format":"palaver/1"}\n', true],
  ["data.json", '{"text": "a \\"mapping\\": {"}', false],
  ["package.json", '{"name": "palaver"}', false],
  ["notes.txt", '"mapping": {', false],
])("knows whether %s is an export", (name, start, expected) => {
  expect(isExportStart(name, start)).toBe(expected);
});

it("finds the export among dropped files", async () => {
  const photo = new File(["x"], "photo.png");
  const found = new File(['[{"mapping": {}}]'], "conversations.json");
  expect(await findExport([photo, found])).toEqual({ found, others: [photo] });
  expect(await findExport([photo])).toEqual({ found: null, others: [photo] });
});

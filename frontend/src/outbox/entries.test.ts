import { expect, it } from "vitest";
import { message } from "../testing/samples";
import { findPendingEntries, parseEntries, type OutboxEntry } from "./entries";

function entry(key: string, text: string, more: Partial<OutboxEntry> = {}): OutboxEntry {
  return { key, session: "s", newSession: {}, text, attachments: [], at: "", afterSeq: 0, seq: null, rejection: null, ...more };
}

const findPendingKeys = (entries: OutboxEntry[], ...events: ReturnType<typeof message>[]) =>
  findPendingEntries(entries, events, "p_1").map(({ key }) => key);

it("shows an entry until its message is shown", () => {
  expect(findPendingKeys([entry("a", "hi")])).toEqual(["a"]);
  expect(findPendingKeys([entry("a", "hi")], message(1, "hi"))).toEqual([]);
});

it("does not mistake another person's message with the same text for the entry", () => {
  expect(findPendingEntries([entry("a", "hi")], [message(1, "hi")], "p_2")).toHaveLength(1);
});

it("does not mistake an earlier message with the same text for the entry", () => {
  expect(findPendingKeys([entry("a", "hi", { afterSeq: 1 })], message(1, "hi"))).toEqual(["a"]);
});

it("treats two equal messages as two", () => {
  expect(findPendingKeys([entry("a", "hi"), entry("b", "hi")], message(1, "hi"))).toEqual(["b"]);
});

it("goes by the sequence number once there is a receipt", () => {
  expect(findPendingKeys([entry("a", "hi", { seq: 2 })], message(1, "hi"))).toEqual(["a"]);
  expect(findPendingKeys([entry("a", "/steer hi", { seq: 2 })], message(1, "x"), message(2, "hi"))).toEqual([]);
});

it("keeps showing a rejected entry", () => {
  expect(findPendingKeys([entry("a", "hi", { rejection: "no" })], message(1, "hi"))).toEqual(["a"]);
});

it("reads stored entries and ignores everything else", () => {
  expect(parseEntries([entry("a", "hi"), 3, null, {}])).toHaveLength(1);
  expect(parseEntries({ key: "a" })).toEqual([]);
});

import { expect, it } from "vitest";
import { message } from "../lib/samples";
import { readEntries, stillPending, type Entry } from "./entries";

function entry(key: string, text: string, more: Partial<Entry> = {}): Entry {
  return { key, session: "s", begin: {}, text, attachments: [], at: "", after: 0, seq: null, refused: null, ...more };
}

const pending = (entries: Entry[], ...events: ReturnType<typeof message>[]) =>
  stillPending(entries, events, "p_1").map((each) => each.key);

it("shows what was said until its message is shown", () => {
  expect(pending([entry("a", "hi")])).toEqual(["a"]);
  expect(pending([entry("a", "hi")], message(1, "hi"))).toEqual([]);
});

it("does not take the same words of somebody else for ours", () => {
  expect(stillPending([entry("a", "hi")], [message(1, "hi")], "p_2")).toHaveLength(1);
});

it("does not take the same words from before for what was just said", () => {
  expect(pending([entry("a", "hi", { after: 1 })], message(1, "hi"))).toEqual(["a"]);
});

it("takes two equal messages for two", () => {
  expect(pending([entry("a", "hi"), entry("b", "hi")], message(1, "hi"))).toEqual(["b"]);
});

it("goes by the number once there is a receipt", () => {
  expect(pending([entry("a", "hi", { seq: 2 })], message(1, "hi"))).toEqual(["a"]);
  expect(pending([entry("a", "/steer hi", { seq: 2 })], message(1, "x"), message(2, "hi"))).toEqual([]);
});

it("keeps showing what was refused", () => {
  expect(pending([entry("a", "hi", { refused: "no" })], message(1, "hi"))).toEqual(["a"]);
});

it("reads what was kept, and nothing else", () => {
  expect(readEntries([entry("a", "hi"), 3, null, {}])).toHaveLength(1);
  expect(readEntries({ key: "a" })).toEqual([]);
});

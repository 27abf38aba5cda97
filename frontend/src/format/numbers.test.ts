import { afterAll, expect, test } from "vitest";
import { storage } from "../lib/storage";
import { loadWords } from "../words";
import { formatBytes } from "./numbers";

afterAll(() => storage.set("language", null));

test.each([
  [0, "0 bytes"],
  [1, "1 byte"],
  [11, "11 bytes"],
  [999, "999 bytes"],
  [1000, "1 kB"],
  [999_499, "999 kB"],
  [999_999, "1 MB"],
  [1_540_000, "1.5 MB"],
  [2_100_000_000, "2.1 GB"],
])("%d bytes are written as %s", (size, text) => {
  expect(formatBytes(size)).toBe(text);
});

test("sizes in German", async () => {
  storage.set("language", "de");
  await loadWords();
  expect([1, 11, 1_540_000].map((size) => formatBytes(size).replace("\u00a0", " "))).toEqual(["1 Byte", "11 Byte", "1,5 MB"]);
});

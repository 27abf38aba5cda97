import { expect, it } from "vitest";
import { splitHighlights } from "./highlights";

it("highlights whole characters, even those that JavaScript counts as two", () => {
  expect(splitHighlights("😀 cat!", [[2, 5]])).toEqual([
    { text: "😀 ", isHighlighted: false },
    { text: "cat", isHighlighted: true },
    { text: "!", isHighlighted: false },
  ]);
});

import { expect, it } from "vitest";
import { stripMarkdown } from "./text";

it("removes Markdown's markup from a line", () => {
  expect(stripMarkdown("## A **bold** `word` and [a link](https://example.org)")).toBe("A bold word and a link");
  expect(stripMarkdown("2 * 3 * 4")).toBe("2 * 3 * 4");
});

import { expect, it } from "vitest";
import { findHighlightedCode } from "./highlight";
import { highlightNow } from "./languages";

it("highlights code in a known language, by its name or an alias", async () => {
  const code = "int main(void) { return 0; }\n";
  expect(await highlightNow(code, "c")).toContain("hljs-type");
  expect(await highlightNow(code, "h")).toBe(await highlightNow(code, "c"));
});

it("leaves unknown languages alone", async () => {
  expect(await highlightNow("x", "klingon")).toBeNull();
  expect(await highlightNow("x", "constructor")).toBeNull();
});

it("escapes markup in code", async () => {
  expect(await highlightNow("a = '<img src=x onerror=alert(1)>'", "python")).not.toContain("<img");
});

it("leaves code alone that is very long or has no language", () => {
  expect(findHighlightedCode("int a;\n".repeat(10_000), "c")).toBeNull();
  expect(findHighlightedCode("int a;", "")).toBeNull();
  expect(findHighlightedCode("int a;", "c")).toBeUndefined();
});

import { expect, it } from "vitest";
import { suggestTitle } from "./titleSuggestion";

it("suggests a title from the first message", () => {
  expect(suggestTitle("  Plan a *trip*\nto Lisbon ")).toBe("Plan a trip to Lisbon");
  expect(suggestTitle("/help undo")).toBeUndefined();
  expect(suggestTitle(" \n ")).toBeUndefined();
  const long = suggestTitle("word ".repeat(40)) ?? "";
  expect(long.length).toBeLessThanOrEqual(61);
  expect(long.endsWith("word…")).toBe(true);
});

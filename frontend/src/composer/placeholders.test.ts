import { expect, test } from "vitest";
import { fillPlaceholders, listPlaceholders } from "./placeholders";

test("placeholders are listed once each, in order", () => {
  expect(listPlaceholders("Explain {{topic}} to {{ audience }}, {{topic}} only. {{}} {{a\nb}} {x}")).toEqual(["topic", "audience"]);
});

test("values are put in as they are, and never read as placeholders again", () => {
  const values = new Map([
    ["topic", "{{audience}} $& $1"],
    ["audience", "children"],
  ]);
  expect(fillPlaceholders("{{topic}} for {{ audience }}; {{other}}", values)).toBe("{{audience}} $& $1 for children; {{other}}");
});

test("a long text without an end is read in linear time", () => {
  expect(listPlaceholders("{{".repeat(100_000) + " ".repeat(100_000))).toEqual([]);
});

import { expect, test } from "vitest";
import { findTranslation, makeTextTable } from "./textPatterns";

const table = makeTextTable({
  "It works.": "Es funktioniert.",
  "{value} is not allowed ({allowed})": "{value} ist nicht erlaubt ({allowed})",
  "{host} can't be reached at port {port}.": "{host} ist an Port {port} nicht erreichbar.",
  "The recording {file} is read.": "Die Aufnahme {file} wird gelesen.",
});
const translate = (text: string) => findTranslation(table, text, (name, value) => (name === "allowed" && value === "text" ? "Text" : value));

test("a text is found as it is, or with what is in its gaps", () => {
  expect(translate("It works.")).toBe("Es funktioniert.");
  expect(translate("mail.example.org can't be reached at port 993.")).toBe("mail.example.org ist an Port 993 nicht erreichbar.");
  expect(translate("5 is not allowed (text)")).toBe("5 ist nicht erlaubt (Text)");
  expect(translate("The recording {file} is read.")).toBe("Die Aufnahme {file} wird gelesen.");
});

test("a text that only begins like a known one is not translated", () => {
  expect(translate("It works. Or not.")).toBeNull();
  expect(translate("mail.example.org can't be reached at port 993. Check it!")).toBeNull();
  expect(findTranslation(table, "a can't be reached at port b. c.", (_, value) => (value.includes(". ") ? null : value))).toBeNull();
  expect(translate("constructor")).toBeNull();
  expect(translate("")).toBeNull();
});

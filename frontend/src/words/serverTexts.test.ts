/**
 * Whether readers of German see no English of the server: `testing/serverTexts.json` has everything that a server offers. It is
 * written by tests/web/test_server_texts.py.
 */
import { beforeAll, expect, test } from "vitest";
import { listGaps } from "../lib/textPatterns";
import { storage } from "../lib/storage";
import server from "../testing/serverTexts.json";

let texts: typeof import("./settings");
let words: import("./index").Words;
let german: typeof import("./serverTexts.de");
let rare: typeof import("./rareErrors.de");

beforeAll(async () => {
  storage.set("language", "de");
  const index = await import("./index");
  await index.loadWords();
  words = index.words;
  texts = await import("./settings");
  german = await import("./serverTexts.de");
  rare = await import("./rareErrors.de");
});

const findMissing = (all: readonly (string | null)[]) => [...new Set(all)].filter((text) => text !== null && text !== "" && texts.translateKnown(text) === null);

test("every setting has a name, an explanation and its values in German", () => {
  const parts = server.settings.flatMap(({ key }) => key.split(".")).filter((part) => part !== "<name>");
  expect([...new Set(parts)].filter((part) => texts.translateKeyPart(part) === undefined)).toEqual([]);
  expect(findMissing(server.settings.flatMap(({ help, unstorable_reason }) => [help, unstorable_reason]))).toEqual([]);
  expect([...new Set(server.settings.map(({ allowed }) => allowed))].filter((allowed) => !isAllowedTranslated(allowed))).toEqual([]);
  const choices = server.settings.flatMap(({ key, choices: values }) => values.map((value) => [key.split(".").at(-1) ?? "", value] as const));
  expect(choices.filter(([part, value]) => german.settingChoicesDe[part]?.[value] === undefined)).toEqual([]);
});

/** Names of platforms and models are the same in both languages; everything else has other words. */
const isAllowedTranslated = (allowed: string) => texts.translateAllowedValues(allowed) !== allowed || /^[a-z-]+(, [a-z-]+)+$/.test(allowed);

test("every platform has its summary, steps and fields in German", () => {
  const platforms = Object.values(server.platforms);
  expect(findMissing(platforms.flatMap(({ summary, steps }) => [summary, ...steps]))).toEqual([]);
  const fields = platforms.flatMap((platform) => platform.fields);
  expect(findMissing(fields.flatMap(({ help, where }) => [help, where]))).toEqual([]);
  expect(findMissing(fields.map(({ help, where }) => [help, where].filter(Boolean).join(" ")))).toEqual([]);
  expect([...new Set(fields.map(({ name }) => name))].filter((name) => german.platformFieldNamesDe[name] === undefined)).toEqual([]);
  const choices = fields.flatMap(({ name, choices: values }) => values.map((value) => [name, value] as const));
  expect(choices.filter(([name, value]) => german.settingChoicesDe[name]?.[value] === undefined)).toEqual([]);
});

test("every sentence about accounts is in German", () => {
  expect(findMissing(server.accounts)).toEqual([]);
});

test("every kind of problem with a setting is in German", () => {
  const withoutKey = server.problems.map(({ key, message }) => (message.startsWith(`${key}: `) ? message.slice(key.length + 2) : message));
  expect(findMissing(withoutKey)).toEqual([]);
  const translated = withoutKey.map(texts.translateText).join("\n");
  expect(translated.match(/.*\b(is not|should|Set it|Open|required)\b.*/g)).toBeNull();
});

test("every error code and every failure has a German text", () => {
  const facts = { server_message: "English", limit: "5", what: "jobs", method: "link" };
  const errors = { ...words.errors, ...rare.rareErrorsDe };
  expect(Object.keys(errors).sort()).toEqual(server.errors);
  expect(Object.entries(errors).filter(([, text]) => text(facts) === null).map(([code]) => code)).toEqual([]);
  expect(server.failures.filter((code) => (words.failures as Record<string, unknown>)[code] === undefined)).toEqual([]);
});

test("every finding has a German text with the same facts", () => {
  expect(Object.keys(german.findingsDe).sort()).toEqual(Object.keys(server.findings).sort());
  for (const [code, { text, fix }] of Object.entries(server.findings)) {
    const { text: textDe, fix: fixDe = "" } = german.findingsDe[code] ?? { text: "" };
    expect([code, listGaps(textDe).sort()]).toEqual([code, listGaps(text).sort()]);
    expect([code, listGaps(fixDe).sort()]).toEqual([code, listGaps(fix).sort()]);
  }
  expect(server.subjects.filter((subject) => german.findingSubjectsDe[subject] === undefined)).toEqual([]);
});

test("a finding is filled with its facts, and their sentences are in German, too", () => {
  const finding = {
    code: "account_failed",
    subject: "Telegram",
    text: "needs attention: The platform did not answer in time.",
    fix: "palaver platforms test",
    facts: { subject: "Telegram", state: "needs attention", problem: "The platform did not answer in time.", command: "palaver platforms test" },
  };
  expect(texts.translateFinding(finding)).toEqual({
    subject: "Telegram",
    text: "Aktion erforderlich: Die Plattform hat nicht rechtzeitig geantwortet.",
    fix: "palaver platforms test",
  });
  expect(texts.translateFinding({ ...finding, code: "of_a_newer_server" }).text).toBe(finding.text);
});

test("what other packages say is shown as it is", () => {
  expect(texts.translateHelp("A pigeon carries the message.")).toEqual({ text: "A pigeon carries the message.", lang: "en" });
});

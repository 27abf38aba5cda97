import { afterEach, expect, test } from "vitest";
import { storage } from "../lib/storage";
import { loadWords } from "../words";
import { describeFailure, describeNotice } from "./errors";

afterEach(async () => {
  storage.set("language", null);
  await loadWords();
});

const RATE_LIMITED = { reason: "Rate limit reached at Acme. Try again in 20 seconds.", code: "rate_limited", provider_title: "Acme", seconds: 20 };
const FALLBACK = {
  text: `${RATE_LIMITED.reason} Using acme:small instead of acme:big.`,
  code: "fallback_used",
  facts: { model: "acme:small", instead_of: "acme:big", reason: RATE_LIMITED.reason, failure: RATE_LIMITED },
};

test("a failure and a notice are worded in the reader's language", async () => {
  expect(describeFailure(RATE_LIMITED)).toBe("Rate limit reached at Acme. Try again in 20 seconds.");
  expect(describeNotice(FALLBACK)).toBe(FALLBACK.text);
  storage.set("language", "de");
  await loadWords();
  const german = "Das Anfragelimit bei Acme ist erreicht. Versuche es in 20 Sekunden erneut.";
  expect(describeFailure(RATE_LIMITED)).toBe(german);
  expect(describeNotice(FALLBACK)).toBe(`${german} Es antwortet acme:small statt acme:big.`);
  expect(describeNotice({ text: "Summarizing older messages…", code: "summarizing", facts: {} })).toBe("Ältere Nachrichten werden zusammengefasst …");
  expect(describeFailure({ reason: "Too short.", code: "nothing_to_compact", limit: 6 })).toContain("6 Nachrichten");
});

test("without a known code, the server's own text is shown", () => {
  expect(describeFailure({ reason: "The plugin is tired.", code: "tired" })).toBe("The plugin is tired.");
  expect(describeFailure({ reason: "The plugin is tired.", code: "toString" })).toBe("The plugin is tired.");
  expect(describeFailure({})).toBeNull();
  expect(describeNotice({ text: "Half way.", code: "", facts: {} })).toBe("Half way.");
});

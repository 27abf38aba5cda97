import { expect, it } from "vitest";
import { ApiError } from "../api/client";
import type { Receipt } from "../api/types";
import { refusalsDe } from "./refusals.de";
import { refusalsEn } from "./refusals.en";
import { whyNot, whyRefused } from "./refusals";

const refused = (code: string, facts: Record<string, unknown> = {}) => new ApiError(422, code, "in the server's words", facts);
const receipt = (facts: Record<string, unknown>): Receipt => ({
  outcome: "refused",
  session_id: null,
  turn_id: null,
  seq: null,
  ahead: 0,
  reply: "in the server's words",
  facts,
});

it.each([
  ["name_taken", { name: "Ada" }, "Somebody who can sign in is called “Ada” already. Choose another name."],
  ["too_many_attempts", { retry_after: 12 }, "Too many attempts. Try again in 12 seconds."],
  ["limit_reached", { what: "tokens", limit: 1000 }, "You have 1,000 tokens already. Revoke one first."],
  ["attachment_too_large", { most: 25_000_000 }, "This file is too large: 25 MB is the most that is taken."],
  ["invalid_request", { where: "body.content", limit: 9 }, "There may be at most 9 here: content."],
  ["refused", { error: "nothing_to_undo" }, "There is no turn left to undo."],
])("what is known as %s is told in the page's words, with what it names", (code, facts, told) => {
  expect(whyNot(refused(code, facts))).toBe(told);
});

it.each([
  ["something_new", {}],
  ["limit_reached", { what: "something new", limit: 3 }],
  ["invalid_request", { where: "body.name" }],
  ["refused", {}],
  ["constructor", {}],
])("%s %o, which the page has no words for, is told in the server's", (code, facts) => {
  expect(whyNot(refused(code, facts))).toBe("in the server's words");
});

it("a message that was not taken says why", () => {
  expect(whyRefused(receipt({ error: "too_long", limit: 100 }))).toContain("100 characters");
  expect(whyRefused(receipt({}))).toBe("in the server's words");
});

it("another language says everything in other words", () => {
  const facts = { way: "link", limit: "3", least: "2", most: "5", what: "tokens", name: "x", title: "x", free: "y", where: "z", platform: "w", retry_after: "1" };
  const same = Object.entries(refusalsEn).filter(([code, tell]) => tell(facts) === refusalsDe[code as keyof typeof refusalsEn](facts));
  expect(same).toEqual([]);
});

import { expect, it } from "vitest";
import { errorsDe } from "../words/errors.de";
import { errorsEn } from "../words/errors.en";
import { ApiError, describeError, describeRejection, UnreachableError } from "./errors";
import type { Receipt } from "./types";

const apiError = (code: string, facts: Record<string, unknown> = {}) => new ApiError(422, code, "the server's message", facts);
const receipt = (facts: Record<string, unknown>): Receipt => ({
  outcome: "rejected",
  session_id: null,
  turn_id: null,
  seq: null,
  turns_ahead: 0,
  reply: "the server's message",
  facts,
});

it.each([
  ["name_taken", { name: "Ada" }, "The name “Ada” is taken. Choose another one."],
  ["too_many_attempts", { retry_after: 12 }, "Too many attempts. Try again in 12 seconds."],
  ["limit_reached", { what: "tokens", limit: 1000 }, "You’ve reached the limit of 1,000 tokens. Revoke one first."],
  ["attachment_too_large", { limit_bytes: 25_000_000 }, "This file is too large. The limit is 25 MB."],
  ["invalid_request", { field: "body.content", limit: 9 }, "The limit for content is 9."],
  ["request_rejected", { error: "nothing_to_undo" }, "Nothing to undo."],
])("the error %s has a text of its own, with its facts in it", (code, facts, text) => {
  expect(describeError(apiError(code, facts))).toBe(text);
});

it.each([
  ["something_new", {}],
  ["limit_reached", { what: "something new", limit: 3 }],
  ["invalid_request", { field: "body.name" }],
  ["request_rejected", {}],
  ["constructor", {}],
])("the error %s %o, for which the page has no text, keeps the server's message", (code, facts) => {
  expect(describeError(apiError(code, facts))).toBe("the server's message");
});

it("explains why a message was rejected", () => {
  expect(describeRejection(receipt({ error: "too_long", limit: 100 }))).toContain("100 characters");
  expect(describeRejection(receipt({}))).toBe("the server's message");
});

it("every error text is translated", () => {
  const facts = {
    method: "link",
    limit: "3",
    minimum: "2",
    limit_bytes: "5",
    what: "tokens",
    name: "x",
    title: "x",
    available_title: "y",
    field: "z",
    platform: "w",
    retry_after: "1",
    schedule: "s",
  };
  const untranslated = Object.entries(errorsEn).filter(
    ([code, describe]) => describe(facts) === errorsDe[code as keyof typeof errorsEn](facts),
  );
  expect(untranslated).toEqual([]);
});

it("an error of the browser is not taken for a server that can't be reached", () => {
  expect(describeError(new DOMException("push service not available", "AbortError"))).toBe("Your browser reports: push service not available");
  expect(describeError(new UnreachableError("the server cannot be reached"))).toBe("Can’t reach the server.");
});

import { expect, it } from "vitest";
import { ALL_FOLDED, choose, estimateTextHeight, isLongAnswer, isLongMessage, isOpen, openRows } from "./folding";
import type { AnswerRow } from "./rows";

const GROWING: AnswerRow = {
  kind: "answer",
  key: "answer-3",
  seqs: [],
  answers: 3,
  at: null,
  parts: [],
  running: true,
  interrupted: false,
  durationMs: null,
  sentBy: null,
};

it("folds messages with many lines or with very long ones, and answers only if they are much longer", () => {
  expect(isLongMessage("a line\n".repeat(40))).toBe(false);
  expect(isLongMessage("a line\n".repeat(41))).toBe(true);
  expect(isLongMessage("word ".repeat(700))).toBe(true);
  expect(isLongMessage("a\n\n\n\n\n".repeat(20))).toBe(false);
  expect(isLongAnswer("a line\n".repeat(200))).toBe(false);
  expect(isLongAnswer("a line\n".repeat(201))).toBe(true);
});

it("keeps what the reader chose for each text", () => {
  const state = choose(choose(ALL_FOLDED, "message-1", 0, true), "answer-1", 2, true);
  expect([isOpen(state, "message-1", 0), isOpen(state, "answer-1", 2), isOpen(state, "answer-1", 0)]).toEqual([true, true, false]);
  expect(isOpen(choose(state, "message-1", 0, false), "message-1", 0)).toBe(false);
});

it("keeps an answer open that has grown before the reader's eyes", () => {
  const growing = openRows(ALL_FOLDED, [GROWING], null);
  expect(isOpen(growing, "answer-3", 0)).toBe(true);
  expect(openRows(growing, [GROWING], null)).toBe(growing);
  expect(openRows(growing, [{ ...GROWING, running: false }], null)).toBe(growing);
  expect(openRows(ALL_FOLDED, [{ ...GROWING, running: false }], null)).toBe(ALL_FOLDED);
});

it("opens a row that a link leads to, even if it was folded before", () => {
  const found = openRows(ALL_FOLDED, [], "message-1");
  expect(isOpen(found, "message-1", 0)).toBe(true);
  const folded = choose(choose(found, "message-1", 0, false), "message-12", 0, false);
  expect(openRows(folded, [], "message-1")).toBe(folded); // the reader has folded it after following the link
  const other = openRows(folded, [], "message-5");
  expect(isOpen(other, "message-1", 0)).toBe(false);
  const again = openRows(other, [], "message-1");
  expect(isOpen(again, "message-1", 0)).toBe(true);
  expect(isOpen(again, "message-12", 0)).toBe(false);
});

it("estimates the height of a folded text by what is visible of it", () => {
  const text = "word ".repeat(10_000);
  expect(estimateTextHeight(text, true)).toBeLessThan(600);
  expect(estimateTextHeight(text, false)).toBeGreaterThan(10_000);
});

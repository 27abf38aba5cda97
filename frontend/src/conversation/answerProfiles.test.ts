import { expect, test } from "vitest";
import type { LogEvent } from "../api/types";
import { findAnswerProfiles } from "./answerProfiles";
import type { AnswerRow, Row } from "./rows";

const answer = (key: string, sentBy: AnswerRow["sentBy"] = null): Row => ({
  kind: "answer", key, seqs: [1], answers: null, at: null, parts: [], running: false, interrupted: false, durationMs: null, sentBy,
});
const change = (previous: string | null, value: string | null): Row => ({
  kind: "event", key: `${previous}-${value}`, isLatest: false, event: { kind: "setting_changed", facts: { setting: "profile", previous, value } } as unknown as LogEvent,
});

test("without a change, all answers have the profile of the conversation", () => {
  expect([...findAnswerProfiles([answer("a"), answer("b")], "work")]).toEqual([["a", "work"], ["b", "work"]]);
  expect(findAnswerProfiles([answer("a")], null).size).toBe(0);
});

test("an answer keeps the profile that it was given with", () => {
  const rows = [answer("a"), change("diary", "work"), answer("b"), change("work", null), answer("c")];
  expect([...findAnswerProfiles(rows, null)]).toEqual([["a", "diary"], ["b", "work"]]);
});

test("what a job has sent is no answer of the profile", () => {
  const sentBy = { kind: "job" } as unknown as AnswerRow["sentBy"];
  expect(findAnswerProfiles([answer("a", sentBy)], "work").size).toBe(0);
});

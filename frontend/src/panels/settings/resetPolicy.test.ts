import { describe, expect, it } from "vitest";
import type { ResetRule } from "../shared/calls";
import { describeReset, formatMinutes } from "./resetPolicy";

const RESET_RULE: ResetRule = {
  chat_types: ["dm"],
  mode: "none",
  idle_minutes: 1440,
  at_hour: 4,
  timezone: "Europe/Berlin",
  notify: true,
  setting_key: "session_reset",
  is_default: true,
};

it.each([
  [1, "1 minute"],
  [90, "90 minutes"],
  [60, "1 hour"],
  [1440, "24 hours"],
  [2880, "2 days"],
  [1500, "25 hours"],
])("%i minutes are %s", (minutes, text) => {
  expect(formatMinutes(minutes)).toBe(text);
});

describe("automatic restarts of conversations", () => {
  it.each([
    [{}, "Never"],
    [{ mode: "idle" }, "After 24 hours of inactivity; with a notice"],
    [{ mode: "daily", notify: false }, "Every day at 04:00 (Europe/Berlin); without a notice"],
    [{ mode: "both" }, "After 24 hours of inactivity, or every day at 04:00 (Europe/Berlin); with a notice"],
  ] as const)("%o", (fields, text) => {
    expect(describeReset({ ...RESET_RULE, ...fields })).toBe(text);
  });
});

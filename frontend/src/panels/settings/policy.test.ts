import { describe, expect, it } from "vitest";
import type { Afresh } from "../calls";
import { spanOf, whenAfresh } from "./policy";

const AFRESH: Afresh = {
  chat_types: ["dm"],
  mode: "none",
  idle_minutes: 1440,
  at_hour: 4,
  timezone: "Europe/Berlin",
  notify: true,
  key: "session_reset",
  is_default: true,
};

it.each([
  [1, "1 minute"],
  [90, "90 minutes"],
  [60, "1 hour"],
  [1440, "24 hours"],
  [2880, "2 days"],
  [1500, "25 hours"],
])("%i minutes are %s", (minutes, told) => {
  expect(spanOf(minutes)).toBe(told);
});

describe("when conversations start afresh", () => {
  it.each([
    [{}, "Never by itself"],
    [{ mode: "idle" }, "After 24 hours without a message; you are told"],
    [{ mode: "daily", notify: false }, "Every day at 04:00 (Europe/Berlin); nobody is told"],
    [{ mode: "both" }, "After 24 hours without a message, or every day at 04:00 (Europe/Berlin); you are told"],
  ] as const)("%o", (fields, told) => {
    expect(whenAfresh({ ...AFRESH, ...fields })).toBe(told);
  });
});

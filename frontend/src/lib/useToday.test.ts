import { act, createElement } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { drawn } from "./drawn";
import { dayGroup } from "./time";
import { useToday } from "./useToday";

const SAID = new Date(2026, 10, 15, 12).toISOString();
const Group = () => dayGroup(SAID, useToday());

afterEach(() => vi.useRealTimers());

it("today becomes yesterday in a page that stays open over midnight", () => {
  vi.useFakeTimers({ now: new Date(2026, 10, 15, 23, 59) });
  const page = drawn(createElement(Group));
  expect(page.textContent).toBe("Today");
  act(() => void vi.advanceTimersByTime(120_000));
  expect(page.textContent).toBe("Yesterday");
});

it("and in one that slept over it, as soon as somebody looks", () => {
  vi.useFakeTimers({ now: new Date(2026, 10, 15, 23, 59) });
  const page = drawn(createElement(Group));
  vi.setSystemTime(new Date(2026, 10, 16, 8));
  act(() => void document.dispatchEvent(new Event("visibilitychange")));
  expect(page.textContent).toBe("Yesterday");
});

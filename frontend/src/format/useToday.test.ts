import { act, createElement } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { renderForTest } from "../testing/renderForTest";
import { getDayGroup } from "./time";
import { useToday } from "./useToday";

const NOON = new Date(2026, 10, 15, 12).toISOString();
const Group = () => getDayGroup(NOON, useToday());

afterEach(() => vi.useRealTimers());

it("today becomes yesterday on a page that stays open past midnight", () => {
  vi.useFakeTimers({ now: new Date(2026, 10, 15, 23, 59) });
  const page = renderForTest(createElement(Group));
  expect(page.textContent).toBe("Today");
  act(() => void vi.advanceTimersByTime(120_000));
  expect(page.textContent).toBe("Yesterday");
});

it("today becomes yesterday on a page that slept past midnight, as soon as the reader returns to it", () => {
  vi.useFakeTimers({ now: new Date(2026, 10, 15, 23, 59) });
  const page = renderForTest(createElement(Group));
  vi.setSystemTime(new Date(2026, 10, 16, 8));
  act(() => void document.dispatchEvent(new Event("visibilitychange")));
  expect(page.textContent).toBe("Yesterday");
});

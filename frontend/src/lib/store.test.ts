import { afterEach, expect, it, vi } from "vitest";
import { Store } from "./store";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function recordValues(store: Store<number>): number[] {
  const values: number[] = [];
  store.subscribe(() => values.push(store.value));
  return values;
}

it("notifies its listeners even when the page is hidden before its next frame", () => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", () => 0); // a hidden page draws no frames
  const store = new Store(0);
  const values = recordValues(store);
  store.update(() => 1);
  store.update(() => 2);
  vi.advanceTimersByTime(1000);
  store.update(() => 3);
  vi.advanceTimersByTime(1000);
  expect(values).toEqual([2, 3]);
});

it("notifies its listeners once for all changes within a frame", async () => {
  const store = new Store(0);
  const values = recordValues(store);
  for (const next of [1, 2, 3]) store.update(() => next);
  await vi.waitFor(() => expect(values).toEqual([3]));
});

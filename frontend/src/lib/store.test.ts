import { afterEach, expect, it, vi } from "vitest";
import { Store } from "./store";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("tells whoever looks, also when the page was hidden before its next frame", () => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", () => 0); // a hidden page draws no frames
  const store = new Store(0);
  const heard: number[] = [];
  store.subscribe(() => heard.push(store.value));
  store.update(() => 1);
  store.update(() => 2);
  vi.advanceTimersByTime(1000);
  store.update(() => 3);
  vi.advanceTimersByTime(1000);
  expect(heard).toEqual([2, 3]);
});

it("tells once of all that happened within a frame", async () => {
  const store = new Store(0);
  const heard: number[] = [];
  store.subscribe(() => heard.push(store.value));
  for (const next of [1, 2, 3]) store.update(() => next);
  await vi.waitFor(() => expect(heard).toEqual([3]));
});

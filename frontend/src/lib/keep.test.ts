import { afterEach, expect, it, vi } from "vitest";
import { keep, recall } from "./keep";

afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

it("recalls what was kept last, also where storage is full and still has something older", () => {
  keep("draft", "half");
  const full = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  vi.stubGlobal("localStorage", { getItem: () => "half", setItem: full, removeItem: () => undefined });
  keep("draft", "half a thought");
  expect(recall("draft")).toBe("half a thought");
  vi.unstubAllGlobals();
  keep("draft", "a thought");
  expect(recall("draft")).toBe("a thought");
});

import { afterEach, expect, it, vi } from "vitest";
import { storage } from "./storage";

afterEach(() => {
  vi.unstubAllGlobals();
  localStorage.clear();
});

it("returns the newest value, even when storage is full and still holds an older one", () => {
  storage.set("draft", "half");
  const failBecauseFull = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  vi.stubGlobal("localStorage", { getItem: () => "half", setItem: failBecauseFull, removeItem: () => undefined });
  storage.set("draft", "half a thought");
  expect(storage.get("draft")).toBe("half a thought");
  vi.unstubAllGlobals();
  storage.set("draft", "a thought");
  expect(storage.get("draft")).toBe("a thought");
});

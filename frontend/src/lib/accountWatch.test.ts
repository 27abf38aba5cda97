import { beforeEach, expect, it, vi } from "vitest";
import { watchAccount } from "./accountWatch";

beforeEach(() => localStorage.clear());

const storeFromOtherTab = (name: string, value: string) => {
  localStorage.setItem(`palaver.${name}`, value);
  window.dispatchEvent(new StorageEvent("storage"));
};

it("reports when another tab signs in as another person, and only then", () => {
  const onChange = vi.fn();
  const stop = watchAccount("p_1", onChange);
  storeFromOtherTab("draft", "half a sentence");
  storeFromOtherTab("person", "p_1");
  expect(onChange).not.toHaveBeenCalled();
  storeFromOtherTab("person", "p_2");
  expect(onChange).toHaveBeenCalledOnce();
  stop();
  storeFromOtherTab("person", "p_3");
  expect(onChange).toHaveBeenCalledOnce();
});

it("reports a sign-in in another tab to a tab that is not signed in", () => {
  const onChange = vi.fn();
  const stop = watchAccount(null, onChange);
  storeFromOtherTab("person", "p_1");
  expect(onChange).toHaveBeenCalledOnce();
  stop();
});

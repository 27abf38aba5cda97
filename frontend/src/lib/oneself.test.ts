import { beforeEach, expect, it, vi } from "vitest";
import { beNobody, beOneself } from "./oneself";

beforeEach(() => localStorage.clear());

const elsewhere = (change: () => void) => {
  change();
  window.dispatchEvent(new StorageEvent("storage"));
};

it("begins anew when somebody else signs in with another tab, or nobody is signed in", () => {
  const onOther = vi.fn();
  const end = beOneself("p_1", onOther);
  elsewhere(() => localStorage.setItem("palaver.draft.p_1", "half a sentence"));
  expect(onOther).not.toHaveBeenCalled();
  elsewhere(() => localStorage.setItem("palaver.person", "p_2"));
  expect(onOther).toHaveBeenCalledOnce();
  elsewhere(beNobody);
  expect(onOther).toHaveBeenCalledTimes(2);
  end();
  elsewhere(() => localStorage.setItem("palaver.person", "p_3"));
  expect(onOther).toHaveBeenCalledTimes(2);
});

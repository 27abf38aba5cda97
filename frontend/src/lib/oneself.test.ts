import { beforeEach, expect, it, vi } from "vitest";
import { beOneself } from "./oneself";

beforeEach(() => localStorage.clear());

const keptElsewhere = (name: string, value: string) => {
  localStorage.setItem(`palaver.${name}`, value);
  window.dispatchEvent(new StorageEvent("storage"));
};

it("begins anew when somebody else signs in with another tab, and not before", () => {
  const onOther = vi.fn();
  const end = beOneself("p_1", onOther);
  keptElsewhere("draft", "half a sentence");
  keptElsewhere("person", "p_1");
  expect(onOther).not.toHaveBeenCalled();
  keptElsewhere("person", "p_2");
  expect(onOther).toHaveBeenCalledOnce();
  end();
  keptElsewhere("person", "p_3");
  expect(onOther).toHaveBeenCalledOnce();
});

it("goes on where nobody was, once somebody signs in with another tab", () => {
  const onOther = vi.fn();
  const end = beOneself(null, onOther);
  keptElsewhere("person", "p_1");
  expect(onOther).toHaveBeenCalledOnce();
  end();
});

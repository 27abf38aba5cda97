import { act, createElement } from "react";
import { expect, it, vi } from "vitest";
import { renderForTest } from "../../testing/renderForTest";
import { ModelField } from "./ModelField";

it("takes the name of a model from a person if the provider lists none", () => {
  const page = renderForTest(createElement(ModelField, { models: [], model: "llama", onChange: vi.fn() }));
  expect(page.querySelector("select")).toBeNull();
  expect(page.querySelector("input")?.value).toBe("llama");
});

it("offers the list of the provider, and a name that is not in it", () => {
  const onChange = vi.fn();
  const page = renderForTest(createElement(ModelField, { models: ["large", "small"], model: "large", onChange }));
  const select = page.querySelector("select");
  expect([...(select?.options ?? [])].map((option) => option.text)).toEqual(["large", "small", "Another model…"]);
  expect(page.querySelector("input")).toBeNull();
  act(() => {
    if (select !== null) select.value = "";
    select?.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(onChange).toHaveBeenCalledWith("");
  expect(page.querySelector("input")).not.toBeNull();
});

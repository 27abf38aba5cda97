import { act, createElement } from "react";
import { expect, it, vi } from "vitest";
import { renderForTest } from "../testing/renderForTest";
import { Dialog } from "./Dialog";
import { NameDialog } from "./NameDialog";

function expectElement<T extends Element>(element: T | null): T {
  if (element === null) throw new Error("the element was not found");
  return element;
}

function press(from: Element, to: Element): void {
  act(() => {
    from.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    to.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}

it("submits a form once when it is sent twice, and again after the first attempt has ended", async () => {
  let endAttempt: () => void = () => undefined;
  const onDone = vi.fn(() => new Promise<void>((resolve) => (endAttempt = resolve)));
  const page = renderForTest(createElement(NameDialog, { title: "New", label: "Name", name: "Ada", onClose: () => undefined, onDone }));
  const form = expectElement(page.querySelector("form"));
  const send = () => act(() => void form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })));
  send();
  send();
  expect(onDone).toHaveBeenCalledTimes(1);
  await act(async () => {
    endAttempt();
    await Promise.resolve();
  });
  send();
  expect(onDone).toHaveBeenCalledTimes(2);
});

it("closes on a click on the backdrop, but not when a text selection that began inside ends there", () => {
  const onClose = vi.fn();
  const page = renderForTest(createElement(Dialog, { label: "New", onClose, children: createElement("input") }));
  const [dialog, input] = [expectElement(page.querySelector("dialog")), expectElement(page.querySelector("input"))];
  press(input, dialog);
  expect(onClose).not.toHaveBeenCalled();
  press(dialog, dialog);
  expect(onClose).toHaveBeenCalledTimes(1);
});

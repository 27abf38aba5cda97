import { act, createElement } from "react";
import { expect, it, vi } from "vitest";
import { drawn } from "../lib/drawn";
import { Dialog } from "./Dialog";
import { NameDialog } from "./NameDialog";

function must<T extends Element>(found: T | null): T {
  if (found === null) throw new Error("it is not there");
  return found;
}

function press(from: Element, to: Element): void {
  act(() => {
    from.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    to.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}

it("who sends a form twice does it once, and can send it again when it was refused", async () => {
  let refuse: () => void = () => undefined;
  const onDone = vi.fn(() => new Promise<void>((done) => (refuse = done)));
  const page = drawn(createElement(NameDialog, { title: "New", label: "Name", name: "Ada", onClose: () => undefined, onDone }));
  const form = must(page.querySelector("form"));
  const send = () => act(() => void form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })));
  send();
  send();
  expect(onDone).toHaveBeenCalledTimes(1);
  await act(async () => {
    refuse();
    await Promise.resolve();
  });
  send();
  expect(onDone).toHaveBeenCalledTimes(2);
});

it("a dialogue closes by a press beside it, and not where marking a text in it ended beside it", () => {
  const onClose = vi.fn();
  const page = drawn(createElement(Dialog, { label: "New", onClose, children: createElement("input") }));
  const [dialog, input] = [must(page.querySelector("dialog")), must(page.querySelector("input"))];
  press(input, dialog);
  expect(onClose).not.toHaveBeenCalled();
  press(dialog, dialog);
  expect(onClose).toHaveBeenCalledTimes(1);
});

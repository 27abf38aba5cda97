/** Renders components in tests, without a browser. */
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";

/** Renders a node into an element of its own, and returns that element. */
export function renderForTest(node: ReactNode): HTMLElement {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const element = document.createElement("div");
  document.body.replaceChildren(element);
  act(() => createRoot(element).render(node));
  return element;
}

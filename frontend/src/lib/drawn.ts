/** Components in tests: drawn without a browser. */
import { act, type ReactNode } from "react";
import { createRoot } from "react-dom/client";

/** Draws something into a page of its own, and gives the page. */
export function drawn(node: ReactNode): HTMLElement {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const page = document.createElement("div");
  document.body.replaceChildren(page);
  act(() => createRoot(page).render(node));
  return page;
}

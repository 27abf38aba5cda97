import { act, createElement, lazy, Suspense, type ReactNode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { expect, it } from "vitest";
import { ErrorBoundary } from "./ErrorBoundary";

const FailingComponent = lazy<() => ReactNode>(() => Promise.reject(new TypeError("Failed to fetch")));

function buildPage(resetKey: string, part: ReactNode): ReactNode {
  const inside = createElement(Suspense, null, part);
  return createElement("main", null, "beside ", createElement(ErrorBoundary, { resetKey, fallback: "failed", children: inside }));
}

/** Renders a page, and waits until its lazy parts are loaded or have failed. */
async function render(root: Root, page: ReactNode): Promise<void> {
  await act(async () => {
    root.render(page);
    await Promise.resolve();
  });
}

it("shows a fallback for a part that cannot be loaded, keeps the rest, and recovers with another reset key", async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const element = document.createElement("div");
  const root = createRoot(element, { onCaughtError: () => undefined });
  await render(root, buildPage("usage", createElement(FailingComponent)));
  expect(element.textContent).toBe("beside failed");
  await render(root, buildPage("people", "people"));
  expect(element.textContent).toBe("beside people");
  act(() => root.unmount());
});

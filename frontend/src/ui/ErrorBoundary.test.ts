import { createElement, lazy, Suspense, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import { ErrorBoundary } from "./ErrorBoundary";

const FailingComponent = lazy<() => ReactNode>(() => Promise.reject(new TypeError("Failed to fetch")));

function buildPage(resetKey: string, part: ReactNode): ReactNode {
  const inside = createElement(Suspense, null, part);
  return createElement("main", null, "beside ", createElement(ErrorBoundary, { resetKey, fallback: "failed", children: inside }));
}

it("shows a fallback for a part that cannot be loaded, keeps the rest, and recovers with another reset key", async () => {
  const element = document.createElement("div");
  const root = createRoot(element, { onCaughtError: () => undefined });
  root.render(buildPage("usage", createElement(FailingComponent)));
  await vi.waitFor(() => expect(element.textContent).toBe("beside failed"));
  root.render(buildPage("people", "people"));
  await vi.waitFor(() => expect(element.textContent).toBe("beside people"));
  root.unmount();
});

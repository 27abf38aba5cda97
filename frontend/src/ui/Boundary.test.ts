import { createElement, lazy, Suspense, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import { Boundary } from "./Boundary";

const Gone = lazy<() => ReactNode>(() => Promise.reject(new TypeError("Failed to fetch")));

function page(place: string, part: ReactNode): ReactNode {
  const inside = createElement(Suspense, null, part);
  return createElement("main", null, "beside ", createElement(Boundary, { place, instead: "not here", children: inside }));
}

it("shows something else for what cannot be fetched, leaves the rest alone, and begins afresh elsewhere", async () => {
  const element = document.createElement("div");
  const root = createRoot(element, { onCaughtError: () => undefined });
  root.render(page("usage", createElement(Gone)));
  await vi.waitFor(() => expect(element.textContent).toBe("beside not here"));
  root.render(page("people", "people"));
  await vi.waitFor(() => expect(element.textContent).toBe("beside people"));
  root.unmount();
});

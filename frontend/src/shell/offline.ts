/** Lets the page open without a connection: `sw.js` keeps its shell. It also shows notices (`ready/`), and nothing else. */
import { home } from "../api/client";

export function keepShell(): void {
  if (import.meta.env.DEV || !("serviceWorker" in navigator)) return;
  if (document.readyState === "complete") register();
  else window.addEventListener("load", register, { once: true });
}

function register(): void {
  navigator.serviceWorker
    .register(new URL("sw.js", home))
    .then(() => navigator.serviceWorker.ready)
    .then(({ active }) => active?.postMessage({ kind: "loaded", files: loaded() }))
    .catch(() => undefined); // private windows may forbid it, and the page does without
}

function loaded(): string[] {
  return performance.getEntriesByType("resource").map((entry) => entry.name);
}

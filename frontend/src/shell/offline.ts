/** Lets the page open without a connection: `sw.js` keeps its shell. Nothing is asked of it but that. */
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
    .catch(() => undefined); // private windows may forbid it; the page needs it for nothing else
}

function loaded(): string[] {
  return performance.getEntriesByType("resource").map((entry) => entry.name);
}

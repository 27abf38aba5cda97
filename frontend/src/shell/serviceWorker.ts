/**
 * Registers the service worker (`sw.js`). It caches the shell, so that the page opens without a connection, and shows
 * notifications.
 */
import { baseUrl } from "../lib/baseUrl";
import { getLanguage } from "../words";

export function registerServiceWorker(): void {
  if (import.meta.env.DEV || !("serviceWorker" in navigator)) return;
  if (document.readyState === "complete") register();
  else window.addEventListener("load", register, { once: true });
}

function register(): void {
  navigator.serviceWorker
    .register(new URL("sw.js", baseUrl))
    .then(() => navigator.serviceWorker.ready)
    .then(({ active }) => active?.postMessage({ kind: "loaded", files: listLoadedFiles(), language: getLanguage() }))
    .catch(() => undefined); // private windows may forbid it, and the page works without it
}

function listLoadedFiles(): string[] {
  return performance.getEntriesByType("resource").map((entry) => entry.name);
}

/**
 * The current location: one path segment below the base URL, and the part after the #.
 *
 * Always true: an address of the page has one path segment (`/usage`, `/20261115_081200_1a2b3c4d#12`), so the same relative
 * paths lead to the page's files from every address.
 */
import { useSyncExternalStore } from "react";
import { baseUrl } from "./baseUrl";

export interface PageLocation {
  path: string;
  hash: string;
}

const SESSION_ID = /^\d{8}_\d{6}_[0-9a-f]{8}$/;
let current = readLocation();
const listeners = new Set<() => void>();

function readLocation(): PageLocation {
  const path = decode(location.pathname.slice(baseUrl.pathname.length)).replace(/\/$/, "");
  return { path, hash: decode(location.hash.slice(1)) };
}

/** Decodes part of an address. People can type anything there, so an invalid escape sequence is left as it is. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function updateLocation(): void {
  current = readLocation();
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", updateLocation);
window.addEventListener("hashchange", updateLocation);

export function buildHref(path: string, hash = ""): string {
  return baseUrl.pathname + encodeURIComponent(path) + (hash === "" ? "" : `#${hash}`);
}

export function navigate(path: string, { hash = "", replace = false } = {}): void {
  const href = buildHref(path, hash);
  if (href === location.pathname + location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", href);
  updateLocation();
}

export function getLocation(): PageLocation {
  return current;
}

export function useLocation(): PageLocation {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    getLocation,
  );
}

/** The session that an address names, and the message in it; null for the address of another page. */
export function parseSessionLocation({ path, hash }: PageLocation): { id: string; seq: number | null } | null {
  if (!SESSION_ID.test(path)) return null;
  const seq = /^\d{1,15}$/.test(hash) ? Number(hash) : null;
  return { id: path, seq };
}

/**
 * The current location: one path segment below the base URL, the query string, and the part after the #.
 *
 * Always true: an address of the page has one path segment (`/usage`, `/20261115_081200_1a2b3c4d#12`), so the same relative
 * paths lead to the page's files from every address. The query string belongs to the sidebar's search: it stays when another
 * path is opened.
 */
import { useSyncExternalStore } from "react";
import { baseUrl } from "./baseUrl";
import { mayLeave } from "./leaveGuard";

export interface PageLocation {
  path: string;
  query: string; // without the ?
  hash: string;
}

const SESSION_ID = /^\d{8}_\d{6}_[0-9a-f]{8}$/;
let current = readLocation();
const listeners = new Set<() => void>();

function readLocation(): PageLocation {
  const path = decode(location.pathname.slice(baseUrl.pathname.length)).replace(/\/$/, "");
  return { path, query: location.search.slice(1), hash: decode(location.hash.slice(1)) };
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

/** After the browser's own buttons. The address has changed already, so it is put back if the person stays. */
function handlePop(): void {
  if (mayLeave()) updateLocation();
  else history.pushState(null, "", formatHref(current));
}

window.addEventListener("popstate", handlePop);
window.addEventListener("hashchange", updateLocation);

export function buildHref(path: string, hash = ""): string {
  return baseUrl.pathname + encodeURIComponent(path) + (hash === "" ? "" : `#${hash}`);
}

/** Opens a page, unless the person stays because of unsaved changes. */
export function navigate(path: string, { hash = "", replace = false } = {}): void {
  if (formatHref({ path, query: current.query, hash }) === formatHref(current) || !mayLeave()) return;
  open(path, current.query, hash, replace);
}

/** Changes the query string, and nothing else of the address. */
export function setQuery(query: string, { replace = false } = {}): void {
  open(current.path, query, current.hash, replace);
}

function open(path: string, query: string, hash: string, replace: boolean): void {
  const href = formatHref({ path, query, hash });
  if (href === location.pathname + location.search + location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", href);
  updateLocation();
}

function formatHref({ path, query, hash }: PageLocation): string {
  return buildHref(path) + (query === "" ? "" : `?${query}`) + (hash === "" ? "" : `#${hash}`);
}

export function getLocation(): PageLocation {
  return current;
}

export function onLocationChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useLocation(): PageLocation {
  return useSyncExternalStore(onLocationChange, getLocation);
}

/** The session that an address names, and the message in it; null for the address of another page. */
export function parseSessionLocation({ path, hash }: Pick<PageLocation, "path" | "hash">): { id: string; seq: number | null } | null {
  if (!SESSION_ID.test(path)) return null;
  const seq = /^\d{1,15}$/.test(hash) ? Number(hash) : null;
  return { id: path, seq };
}

/**
 * Where we are: one step below the place the page is served from, and what stands behind the #.
 *
 * Always true: an address of this page has one step only (`/usage`, `/20261115_081200_1a2b3c4d#12`), so that the files of
 * the page are found from each of them by the same relative path.
 */
import { useSyncExternalStore } from "react";
import { home } from "../api/client";

export interface Here {
  step: string;
  hash: string;
}

const SESSION = /^\d{8}_\d{6}_[0-9a-f]{8}$/;
let here = read();
const listeners = new Set<() => void>();

function read(): Here {
  const step = decoded(location.pathname.slice(home.pathname.length)).replace(/\/$/, "");
  return { step, hash: decoded(location.hash.slice(1)) };
}

/** Anything can be typed into an address, also what stands for no character. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function moved(): void {
  here = read();
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", moved);
window.addEventListener("hashchange", moved);

/** The address of a step, for links. */
export function addressOf(step: string, hash = ""): string {
  return home.pathname + encodeURIComponent(step) + (hash === "" ? "" : `#${hash}`);
}

/** Go there. */
export function go(step: string, { hash = "", replace = false } = {}): void {
  const target = addressOf(step, hash);
  if (target === location.pathname + location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  moved();
}

export function whereWeAre(): Here {
  return here;
}

export function useHere(): Here {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    whereWeAre,
  );
}

/** The conversation an address names, and the message in it. */
export function sessionAt({ step, hash }: Here): { id: string; seq: number | null } | null {
  if (!SESSION.test(step)) return null;
  const seq = /^\d{1,15}$/.test(hash) ? Number(hash) : null;
  return { id: step, seq };
}

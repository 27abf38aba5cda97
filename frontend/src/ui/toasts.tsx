/** Short messages that come and go, perhaps with a way to take back what was done. */
import { useLayoutEffect, useRef } from "react";
import { ApiError, Unreachable } from "../api/client";
import { Store, useStore } from "../lib/store";
import { whyNot } from "../words/refusals";

interface Toast {
  id: number;
  text: string;
  action: { label: string; act: () => void } | null;
}

const SHOWN = 6000; // milliseconds, and longer as long as somebody points at it
const shown = new Store<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, action: Toast["action"] = null): void {
  const id = ++last;
  const isOther = (each: Toast) => each.text !== text || each.action !== null; // nothing is said twice at once
  shown.update((toasts) => [...toasts.filter(isOther).slice(-2), { id, text, action }]);
  setTimeout(() => fade(id), SHOWN);
}

function fade(id: number): void {
  if (document.querySelector(".toasts:is(:hover, :focus-within)") === null) dismiss(id);
  else setTimeout(() => fade(id), SHOWN);
}

/** Say that something did not work. */
export function tellFailure(error: unknown): void {
  if (error instanceof Unreachable || error instanceof ApiError) toast(whyNot(error));
  else throw error;
}

function dismiss(id: number): void {
  shown.update((toasts) => toasts.filter((each) => each.id !== id));
}

const all = (toasts: readonly Toast[]) => toasts;

export function Toasts() {
  const toasts = useStore(shown, all);
  const element = useRef<HTMLDivElement>(null);
  // It is always there, though empty: a screen reader tells of what changes in a place, and not of a place that appears.
  useLayoutEffect(() => element.current?.showPopover(), []);
  useLayoutEffect(() => {
    if (toasts.length === 0 || document.querySelector("dialog[open]") === null) return;
    element.current?.hidePopover();
    element.current?.showPopover(); // anew, so that it is above the dialogue
  }, [toasts]);
  return (
    <div className="toasts" role="status" aria-live="polite" popover="manual" ref={element}>
      {toasts.map((each) => (
        <div className="toast" key={each.id}>
          <span>{each.text}</span>
          {each.action !== null && (
            <button
              type="button"
              className="text-button"
              onClick={() => {
                each.action?.act();
                dismiss(each.id);
              }}
            >
              {each.action.label}
            </button>
          )}
        </div>
      ))}
    </div>
  );
}

/** Short messages that come and go, perhaps with a way to take back what was done. */
import { useLayoutEffect, useRef } from "react";
import { ApiError, Unreachable } from "../api/client";
import { Store, useStore } from "../lib/store";
import { words } from "../words";

interface Toast {
  id: number;
  text: string;
  action: { label: string; act: () => void } | null;
}

const SHOWN = 6000; // milliseconds
const shown = new Store<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, action: Toast["action"] = null): void {
  const id = ++last;
  shown.update((toasts) => [...toasts.slice(-2), { id, text, action }]);
  setTimeout(() => dismiss(id), SHOWN);
}

/** Say that something did not work. */
export function tellFailure(error: unknown): void {
  if (error instanceof Unreachable) toast(words.unreachable);
  else if (error instanceof ApiError) toast(error.message);
  else throw error;
}

function dismiss(id: number): void {
  shown.update((toasts) => toasts.filter((each) => each.id !== id));
}

const all = (toasts: readonly Toast[]) => toasts;

export function Toasts() {
  const toasts = useStore(shown, all);
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    element.current?.hidePopover();
    if (toasts.length > 0) element.current?.showPopover(); // anew, so that it is above a dialogue that came meanwhile
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

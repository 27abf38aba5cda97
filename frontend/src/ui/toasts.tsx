/** Short messages that disappear after a while, some with a button to undo what was done. */
import { useLayoutEffect, useRef } from "react";
import { PersonalStore } from "../lib/personal";
import { useStore } from "../lib/store";
import "./toasts.css";

interface Toast {
  id: number;
  text: string;
  action: { label: string; act: () => void } | null;
}

const TOAST_MS = 6000; // longer while the pointer or the focus is on the toasts
const currentToasts = new PersonalStore<readonly Toast[]>([]);
let lastId = 0;

export function toast(text: string, action: Toast["action"] = null): void {
  const id = ++lastId;
  const isDifferent = (each: Toast) => each.text !== text || each.action !== null; // the same text is not shown twice at once
  currentToasts.update((toasts) => [...toasts.filter(isDifferent).slice(-2), { id, text, action }]);
  setTimeout(() => dismissUnlessPointedAt(id), TOAST_MS);
}

function dismissUnlessPointedAt(id: number): void {
  if (document.querySelector(".toasts:is(:hover, :focus-within)") === null) dismiss(id);
  else setTimeout(() => dismissUnlessPointedAt(id), TOAST_MS);
}

function dismiss(id: number): void {
  currentToasts.update((toasts) => toasts.filter((each) => each.id !== id));
}

export function Toasts() {
  const toasts = useStore(currentToasts);
  const element = useRef<HTMLDivElement>(null);
  // The element stays even when it is empty: screen readers announce changes in an element, not a new element.
  useLayoutEffect(() => element.current?.showPopover(), []);
  useLayoutEffect(() => {
    if (toasts.length === 0 || document.querySelector("dialog[open]") === null) return;
    element.current?.hidePopover();
    element.current?.showPopover(); // opened again, so that it is above the dialog
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

/** A modal dialog. The browser keeps the focus inside and closes it on Escape. Afterwards the focus is where it was. */
import { useLayoutEffect, useRef, useState, type ReactNode } from "react";
import "./Dialog.css";

/** The buttons of menus that were closed after a dialog was opened from them, by id. */
export const menuButtons = new WeakMap<Element, string>();

interface Props {
  label: string;
  className?: string;
  onClose: () => void;
  children: ReactNode;
}

export function Dialog({ label, className = "dialog", onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const isBackdropPressed = useRef(false);
  const [menuButton] = useState(findMenuButton);
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog === null) return;
    dialog.showModal();
    return () => {
      dialog.close();
      (menuButton ?? document.getElementById(menuButtons.get(dialog) ?? ""))?.focus({ preventScroll: true });
      refocusField();
    };
  }, [menuButton]);
  return (
    <dialog
      ref={element}
      className={className}
      aria-label={label}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => {
        isBackdropPressed.current = event.target === element.current; // the element itself is the backdrop around the body
      }}
      onClick={(event) => {
        // Selecting text from inside the dialog to outside ends on the backdrop too, and must not close it.
        if (isBackdropPressed.current && event.target === element.current) onClose();
      }}
    >
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}

/** The button of the menu from which a dialog is being opened: the browser knows only the item, which is removed with the menu. */
function findMenuButton(): HTMLElement | null {
  const buttonId = document.activeElement?.closest("[role=menu]")?.getAttribute("aria-labelledby");
  return buttonId == null ? null : document.getElementById(buttonId);
}

/** Chromium returns the focus to a field that then accepts no input, until the field gets the focus again. */
function refocusField(): void {
  const field = document.activeElement;
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement)) return;
  field.blur();
  field.focus({ preventScroll: true });
}

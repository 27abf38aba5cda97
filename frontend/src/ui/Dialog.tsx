/** A dialogue above the page. The browser keeps the focus inside, closes it on Escape and gives the focus back. */
import { useLayoutEffect, useRef, type ReactNode } from "react";

interface Props {
  label: string;
  className?: string;
  onClose: () => void;
  children: ReactNode;
}

export function Dialog({ label, className = "dialog", onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const isPressedBeside = useRef(false);
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog === null) return;
    dialog.showModal();
    return () => dialog.close();
  }, []);
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
        isPressedBeside.current = event.target === element.current; // on the shade around it
      }}
      onClick={(event) => {
        // Not where a text was marked from the inside out: that ends on the shade too.
        if (isPressedBeside.current && event.target === element.current) onClose();
      }}
    >
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}

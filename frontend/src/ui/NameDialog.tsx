/** A dialogue that asks for a name, and for whatever else stands in it. */
import { useState, type ReactNode } from "react";
import { words } from "../words";
import { Dialog } from "./Dialog";
import { useOnce } from "./useOnce";

interface Props {
  title: string;
  label: string; // of the name
  name?: string; // as it was
  longest?: number; // characters
  action?: string;
  isReady?: boolean; // apart from the name
  onClose: () => void;
  onDone: (name: string) => unknown;
  children?: ReactNode;
}

export function NameDialog({ title, label, longest = 60, action = words.save, isReady = true, ...props }: Props) {
  const [name, setName] = useState(props.name ?? "");
  const once = useOnce();
  return (
    <Dialog label={title} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void once(() => props.onDone(name.trim()));
        }}
      >
        <h2>{title}</h2>
        <label className="field">
          {label}
          <input value={name} dir="auto" autoFocus required maxLength={longest} onChange={(event) => setName(event.target.value)} />
        </label>
        {props.children}
        <div className="dialog-actions">
          <button type="button" className="button" onClick={props.onClose}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary" disabled={name.trim() === "" || !isReady}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

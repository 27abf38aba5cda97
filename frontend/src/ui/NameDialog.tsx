/** A dialog that asks for a name, with room for more fields. */
import { useState, type ReactNode } from "react";
import { words } from "../words";
import { Dialog } from "./Dialog";
import { useSingleFlight } from "./useSingleFlight";

interface Props {
  title: string;
  label: string; // of the name field
  name?: string; // the current one
  maxLength?: number;
  action?: string;
  isReady?: boolean; // whether the other fields are filled in
  onClose: () => void;
  onDone: (name: string) => unknown;
  children?: ReactNode;
}

export function NameDialog({ title, label, maxLength = 60, action = words.save, isReady = true, ...props }: Props) {
  const [name, setName] = useState(props.name ?? "");
  const runOnce = useSingleFlight();
  return (
    <Dialog label={title} onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void runOnce(() => props.onDone(name.trim()));
        }}
      >
        <h2>{title}</h2>
        <label className="field">
          {label}
          <input value={name} dir="auto" autoFocus required maxLength={maxLength} onChange={(event) => setName(event.target.value)} />
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

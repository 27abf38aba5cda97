/** Asks for the placeholders of a saved prompt, then puts its text into the composer. */
import { useState } from "react";
import type { SavedPrompt } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { words } from "../words";
import { fillPlaceholders, listPlaceholders } from "./placeholders";

interface Props {
  prompt: SavedPrompt;
  onClose: () => void;
  onDone: (text: string) => void;
}

export default function PromptDialog({ prompt, onClose, onDone }: Props) {
  const names = listPlaceholders(prompt.text);
  const [values, setValues] = useState<ReadonlyMap<string, string>>(new Map());
  return (
    <Dialog label={prompt.name} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onDone(fillPlaceholders(prompt.text, values));
        }}
      >
        <h2 dir="auto">{prompt.name}</h2>
        {names.map((name, index) => (
          <label key={name} className="field">
            {name}
            <input value={values.get(name) ?? ""} dir="auto" required autoFocus={index === 0} onChange={(event) => setValues(new Map(values).set(name, event.target.value))} />
          </label>
        ))}
        <div className="dialog-actions">
          <button type="button" className="button" onClick={onClose}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary">
            {words.insertPrompt}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

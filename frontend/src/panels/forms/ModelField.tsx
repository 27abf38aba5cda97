/** Chooses a model of a provider from its list, or takes the name of one that is not in the list. */
import { useState } from "react";
import { setupWords } from "../../words/setup";

const NOT_LISTED = "";

interface Props {
  models: readonly string[];
  model: string;
  onChange: (model: string) => void;
}

export function ModelField({ models, model, onChange }: Props) {
  const [isTyped, setTyped] = useState(false);
  return (
    <>
      {models.length > 0 && (
        <label className="field">
          {setupWords.chooseModel}
          <select
            value={isTyped ? NOT_LISTED : model}
            onChange={(event) => {
              setTyped(event.target.value === NOT_LISTED);
              onChange(event.target.value);
            }}
          >
            {models.map((each) => (
              <option key={each}>{each}</option>
            ))}
            <option value={NOT_LISTED}>{setupWords.otherModel}</option>
          </select>
        </label>
      )}
      {(isTyped || models.length === 0) && (
        <label className="field">
          {setupWords.modelName}
          <input value={model} maxLength={200} spellCheck={false} autoCapitalize="none" autoComplete="off" onChange={(event) => onChange(event.target.value.trim())} />
          <span className="hint">{setupWords.modelNameHint}</span>
        </label>
      )}
    </>
  );
}

/** A choice between a few options that are all visible. */
import { useId, type ReactNode } from "react";
import "./SegmentedControl.css";

interface Props<T extends string> {
  label: string;
  value: T;
  choices: readonly (readonly [T, ReactNode])[];
  onChange: (value: T) => void;
}

export function SegmentedControl<T extends string>({ label, value, choices, onChange }: Props<T>) {
  const name = useId();
  return (
    <fieldset className="segmented">
      <legend className="visually-hidden">{label}</legend>
      {choices.map(([choice, text]) => (
        <label key={choice}>
          <input type="radio" name={name} checked={choice === value} onChange={() => onChange(choice)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

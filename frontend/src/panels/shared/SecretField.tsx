/** A secret with a copy button. */
import { CopyButton } from "../../ui/CopyButton";
import { words } from "../../words";

interface Props {
  label: string;
  text: string;
  hint?: string;
  takesFocus?: boolean; // it replaces what had the focus
}

export function SecretField({ label, text, hint = words.shownOnce, takesFocus = false }: Props) {
  return (
    <div className="secret">
      <label className="field">
        {label}
        <span className="secret-line">
          <input readOnly autoFocus={takesFocus} value={text} dir="ltr" spellCheck={false} onFocus={(event) => event.target.select()} />
          <CopyButton text={text} />
        </span>
      </label>
      <p className="hint">{hint}</p>
    </div>
  );
}

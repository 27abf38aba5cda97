/** A secret with a copy button. */
import { CopyButton } from "../../ui/CopyButton";
import { words } from "../../words";

export function SecretField({ label, text, hint = words.shownOnce }: { label: string; text: string; hint?: string }) {
  return (
    <div className="secret">
      <label className="field">
        {label}
        <span className="secret-line">
          <input readOnly value={text} dir="ltr" spellCheck={false} onFocus={(event) => event.target.select()} />
          <CopyButton text={text} />
        </span>
      </label>
      <p className="hint">{hint}</p>
    </div>
  );
}

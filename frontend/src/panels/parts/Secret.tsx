/** Something that is shown once, to be copied. */
import { CopyButton } from "../../ui/CopyButton";
import { words } from "../../words";

export function Secret({ label, text }: { label: string; text: string }) {
  return (
    <div className="secret">
      <label className="field">
        {label}
        <span className="secret-line">
          <input readOnly value={text} dir="ltr" spellCheck={false} onFocus={(event) => event.target.select()} />
          <CopyButton text={text} />
        </span>
      </label>
      <p className="hint">{words.shownOnce}</p>
    </div>
  );
}

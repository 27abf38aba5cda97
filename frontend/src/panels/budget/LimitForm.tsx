/** The fields for the limits of a day or a month. */
import { useId, useState, type ReactNode, type SubmitEvent } from "react";
import type { Limits } from "../../api/budgets";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { findChanges, parseDollars, parseTokens } from "./amounts";

interface Props {
  current: { limit_usd: string | null; limit_tokens: number | null };
  children?: ReactNode; // fields before the amounts
  onSave: (limits: Limits) => Promise<boolean>;
  onClear?: (() => Promise<boolean>) | undefined; // removes what was set, so that config.yaml applies
  onDone: () => void;
}

export function LimitForm({ current, children, onSave, onClear, onDone }: Props) {
  const [dollars, setDollars] = useState(current.limit_usd ?? "");
  const [tokens, setTokens] = useState(current.limit_tokens === null ? "" : String(current.limit_tokens));
  const problemId = useId();
  const runOnce = useSingleFlight();
  const problem =
    parseDollars(dollars) === undefined ? words.budgetDollarsInvalid : parseTokens(tokens) === undefined ? words.budgetTokensInvalid : null;
  const finish = (act: () => Promise<boolean>) =>
    void runOnce(async () => {
      if (await act()) onDone();
    });
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    const changes = findChanges({ dollars, tokens }, current);
    if (changes !== undefined) finish(() => onSave(changes));
  };
  return (
    <form
      className="limit-form"
      onSubmit={save}
      onKeyDown={(event) => {
        if (event.key === "Escape") onDone();
      }}
    >
      {children}
      <AmountField label={words.budgetDollars} text={dollars} isInvalid={parseDollars(dollars) === undefined} problemId={problemId} onChange={setDollars} autoFocus />
      <AmountField label={words.budgetTokenLimit} text={tokens} isInvalid={parseTokens(tokens) === undefined} problemId={problemId} onChange={setTokens} />
      <div className="limit-actions">
        <button type="submit" className="button primary" disabled={problem !== null}>
          {words.save}
        </button>
        <button type="button" className="button" onClick={onDone}>
          {words.cancel}
        </button>
        {onClear !== undefined && (
          <button type="button" className="text-button" onClick={() => finish(onClear)}>
            {words.budgetUseConfig}
          </button>
        )}
      </div>
      <p className="field-problem" id={problemId} role="alert">
        {problem}
      </p>
    </form>
  );
}

interface AmountProps {
  label: string;
  text: string;
  isInvalid: boolean;
  problemId: string;
  autoFocus?: boolean;
  onChange: (text: string) => void;
}

function AmountField({ label, text, isInvalid, problemId, autoFocus = false, onChange }: AmountProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <input
        type="text"
        inputMode="decimal"
        autoComplete="off"
        value={text}
        autoFocus={autoFocus}
        placeholder={words.budgetNoLimitHint}
        aria-invalid={isInvalid}
        aria-describedby={isInvalid ? problemId : undefined}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

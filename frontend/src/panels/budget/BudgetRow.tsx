/** A day or a month of a budget: a bar, the amounts, and for owners a form for its limits. */
import { useEffect, useRef, useState } from "react";
import { attempt } from "../../api/attempt";
import { clearLimits, setLimits, type Budget } from "../../api/budgets";
import { describeAmounts, formatResetTime, getBudgetLevel } from "../../format/budgets";
import { formatCount, formatDollars, formatPercent } from "../../format/numbers";
import { EditIcon } from "../../ui/icons";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import { LimitForm } from "./LimitForm";
import "../../ui/meter.css";

interface Props {
  budget: Budget;
  name: string;
  canEdit: boolean;
  onChange: () => Promise<unknown>;
}

export function BudgetRow({ budget, name, canEdit, onChange }: Props) {
  const [isEditing, setEditing] = useState(false);
  const editButton = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    if (wasEditing.current && !isEditing) editButton.current?.focus(); // return the focus
    wasEditing.current = isEditing;
  }, [isEditing]);
  const period = budget.period === "day" ? words.budgetToday : words.budgetThisMonth;
  const isCommon = budget.subject === "" && budget.scope !== "all"; // a limit for each of them, in which nothing is used
  const apply = async (act: () => Promise<unknown>, message: string) => {
    const isDone = await attempt(act);
    if (isDone) toast(message);
    await onChange();
    return isDone;
  };
  return (
    <div className="budget-row" role="group" aria-label={`${name}, ${period}`}>
      <div className="budget-head">
        <b>{isCommon ? (budget.period === "day" ? words.budgetPerDay : words.budgetPerMonth) : period}</b>
        <span className="spacer" />
        {budget.percent !== null && !isCommon && <span className="budget-percent">{formatPercent(budget.percent / 100)}</span>}
        {canEdit && !isEditing && (
          <button
            type="button"
            ref={editButton}
            className="icon-button"
            aria-label={words.budgetEdit(name, period)}
            title={words.budgetEdit(name, period)}
            onClick={() => setEditing(true)}
          >
            <EditIcon />
          </button>
        )}
      </div>
      {budget.percent !== null && !isCommon && <BudgetBar percent={budget.percent} />}
      <small>{isCommon ? describeLimit(budget) : describeBudget(budget)}</small>
      {isEditing && (
        <LimitForm
          current={budget}
          onSave={(limits) => apply(() => setLimits(budget, limits), words.budgetSaved)}
          onClear={budget.is_limit_set ? () => apply(() => clearLimits(budget), words.budgetCleared) : undefined}
          onDone={() => setEditing(false)}
        />
      )}
    </div>
  );
}

function BudgetBar({ percent }: { percent: number }) {
  return (
    <span className="meter-bar budget-bar" data-level={getBudgetLevel(percent)} aria-hidden="true">
      <i style={{ inlineSize: `${Math.min(100, percent)}%` }} />
    </span>
  );
}

function describeBudget(budget: Budget): string {
  const parts = [
    ...describeAmounts(budget),
    ...(budget.percent === null ? [words.budgetNoLimit] : []),
    words.budgetResets(formatResetTime(budget.resets_at, budget.timezone)),
  ];
  return parts.join(" · ");
}

/** The limit for each person, job or profile; what each of them has used is shown with them. */
function describeLimit({ limit_usd, limit_tokens }: Budget): string {
  const limits = [
    ...(limit_usd === null ? [] : [formatDollars(limit_usd)]),
    ...(limit_tokens === null ? [] : [words.budgetTokens(formatCount(limit_tokens))]),
  ];
  return limits.length > 0 ? limits.join(" · ") : words.budgetNoLimit;
}

/** How much of the tightest limit that applies to the reader is used, with details. Nothing if no limit applies. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { BUDGETS_KEY, listOwnBudgets, type Budget, type Budgets } from "../api/budgets";
import type { Session } from "../api/types";
import { describeAmounts, formatResetTime, getBudgetLevel, getUsedPercent } from "../format/budgets";
import { formatPercent } from "../format/numbers";
import { navigate } from "../lib/router";
import { WalletIcon } from "../ui/icons";
import { Menu, MenuItem, MenuNote, MenuSeparator } from "../ui/Menu";
import { words } from "../words";
import "../ui/meter.css";

export function BudgetMeter({ session }: { session: Session }) {
  const budgets = useBudgets(session);
  const share = budgets && findTightest(budgets);
  if (budgets === undefined || share == null) return null;
  const percent = formatPercent(Math.min(100, share.percent) / 100);
  const label = words.budgetShare(percent, share.name);
  return (
    <Menu
      button={
        <button
          type="button"
          className="chip-button context-meter budget-meter"
          data-level={getBudgetLevel(share.percent)}
          title={label}
          aria-label={label}
        >
          <WalletIcon />
          <span className="meter-bar">
            <i style={{ inlineSize: `${Math.min(100, share.percent)}%` }} />
          </span>
          <span>{percent}</span>
        </button>
      }
    >
      {describeBudgets(budgets).map((line) => (
        <MenuNote key={line}>{line}</MenuNote>
      ))}
      <MenuSeparator />
      <MenuItem icon={<WalletIcon />} onSelect={() => navigate("budget")}>
        {words.budgetOpen}
      </MenuItem>
    </Menu>
  );
}

/** The budgets that apply in a conversation. They are read again when something was added to it. */
function useBudgets({ id, running, last_seq: lastSeq }: Session): Budgets | undefined {
  const queryClient = useQueryClient();
  const { data } = useQuery({ queryKey: [BUDGETS_KEY, "session", id], queryFn: () => listOwnBudgets(id) });
  useEffect(() => {
    void queryClient.invalidateQueries({ queryKey: [BUDGETS_KEY] });
  }, [queryClient, running, lastSeq]); // a quick answer is never reported as running; one after another never as ended
  return data;
}

interface TightestLimit {
  percent: number;
  name: string;
}

function findTightest({ budgets, used_up: usedUp }: Budgets): TightestLimit | null {
  const limits = [
    ...usedUp.map(({ scope, period, subject }) => ({ percent: 100, name: words.budgetName(scope, period, subject) })),
    ...budgets.filter(appliesHere).map((budget) => ({ percent: getUsedPercent(budget) ?? 0, name: nameBudget(budget) })),
  ];
  return limits.reduce<TightestLimit | null>((tightest, each) => (tightest === null || each.percent > tightest.percent ? each : tightest), null);
}

/** The budget of a job does not concern what its person writes. */
function appliesHere(budget: Budget): boolean {
  return budget.percent !== null && budget.scope !== "job";
}

function describeBudgets({ budgets, used_up: usedUp }: Budgets): string[] {
  return [
    ...usedUp.map(({ scope, period, subject, resets_at, timezone }) =>
      words.budgetUsedUp(capitalize(words.budgetName(scope, period, subject)), formatResetTime(resets_at, timezone)),
    ),
    ...budgets.filter(appliesHere).flatMap((budget) => [
      `${capitalize(nameBudget(budget))}: ${describeAmounts(budget).join(" · ")}`,
      words.budgetResets(formatResetTime(budget.resets_at, budget.timezone)),
    ]),
  ].filter((line, index, lines) => lines.indexOf(line) === index);
}

function nameBudget({ scope, period, subject_name: name }: Budget): string {
  return words.budgetName(scope, period, name);
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

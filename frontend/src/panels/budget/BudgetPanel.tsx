/** The panel of budgets: owners see everybody's and change limits, others see their own. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { BUDGETS_KEY, listAllBudgets, listOwnBudgets, type Budget, type BudgetScope } from "../../api/budgets";
import type { Schemas } from "../../api/types";
import { formatResetTime } from "../../format/budgets";
import { useMe } from "../../live/context";
import { PlusIcon, WarningIcon } from "../../ui/icons";
import { words } from "../../words";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { PanelPage } from "../shared/PanelPage";
import { QueryResult } from "../shared/QueryResult";
import { BudgetRow } from "./BudgetRow";
import { NewLimit } from "./NewLimit";
import "./budget.css";

const FIRST_PAGE: string | null = null;

export default function BudgetPanel() {
  return useMe().person.role === "owner" ? <OwnerPanel /> : <MemberPanel />;
}

function OwnerPanel() {
  const queryClient = useQueryClient();
  const [isAdding, setAdding] = useState(false);
  const query = useInfiniteQuery({
    queryKey: [BUDGETS_KEY, "all"],
    queryFn: ({ pageParam }) => listAllBudgets(pageParam),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: (page) => page.next_cursor,
  });
  const refresh = () => queryClient.invalidateQueries({ queryKey: [BUDGETS_KEY] });
  const budgets = query.data?.pages.flatMap((page) => page.budgets) ?? [];
  const sections: readonly [BudgetScope, string | null][] = [
    ["all", null],
    ["person", words.budgetPeople],
    ["job", words.budgetJobs],
    ["profile", words.budgetProfiles],
  ];
  return (
    <PanelPage
      title={words.budget}
      actions={
        <button type="button" className="chip-button" aria-expanded={isAdding} onClick={() => setAdding(!isAdding)}>
          <PlusIcon />
          {words.budgetAdd}
        </button>
      }
    >
      <Intro timezone={budgets[0]?.timezone} />
      {isAdding && <NewLimit onChange={refresh} onDone={() => setAdding(false)} />}
      <QueryResult query={query}>
        {() =>
          sections.map(([scope, title]) => (
            <BudgetSection key={scope} title={title} budgets={budgets.filter((budget) => budget.scope === scope)} canEdit onChange={refresh} />
          ))
        }
      </QueryResult>
      <LoadMoreButton query={query} />
    </PanelPage>
  );
}

function MemberPanel() {
  const query = useQuery({ queryKey: [BUDGETS_KEY, "own"], queryFn: () => listOwnBudgets(null) });
  return (
    <PanelPage title={words.budget}>
      <Intro timezone={query.data?.budgets[0]?.timezone} />
      <QueryResult query={query}>
        {({ budgets, used_up: usedUp }) => (
          <>
            {usedUp.map((each) => (
              <UsedUpNotice key={each.scope + each.subject + each.period} budget={each} />
            ))}
            <BudgetSection title={null} budgets={budgets} canEdit={false} onChange={() => query.refetch()} />
          </>
        )}
      </QueryResult>
    </PanelPage>
  );
}

function Intro({ timezone }: { timezone: string | undefined }) {
  return (
    <p className="panel-intro">
      {words.budgetIntro} {timezone !== undefined && words.budgetZone(timezone)}
    </p>
  );
}

/** Says that a budget of several people is used up; what others have spent is not shown. */
function UsedUpNotice({ budget: { scope, subject, period, resets_at, timezone } }: { budget: Schemas["UsedUpBudgetJson"] }) {
  const name = words.budgetName(scope, period, subject);
  return (
    <p className="panel-notice" role="note">
      <WarningIcon />
      <span>{words.budgetUsedUp(name.charAt(0).toUpperCase() + name.slice(1), formatResetTime(resets_at, timezone))}</span>
    </p>
  );
}

interface SectionProps {
  title: string | null;
  budgets: readonly Budget[];
  canEdit: boolean;
  onChange: () => Promise<unknown>;
}

function BudgetSection({ title, budgets, canEdit, onChange }: SectionProps) {
  const me = useMe();
  const subjects = [...new Set(budgets.map((budget) => budget.subject))].sort((a, b) => Number(a !== "") - Number(b !== ""));
  if (subjects.length === 0) return null;
  return (
    <section className="budget-section" aria-label={title ?? words.budget}>
      {title !== null && <h2>{title}</h2>}
      {subjects.map((subject) => {
        const windows = budgets.filter((budget) => budget.subject === subject);
        const name = windows[0] === undefined ? "" : getSubjectName(windows[0], me.person.id);
        return (
          <section key={subject} className="card budget-card" aria-label={name}>
            <h3 dir="auto">{name}</h3>
            {windows.map((budget) => (
              <BudgetRow key={budget.period} budget={budget} name={name} canEdit={canEdit} onChange={onChange} />
            ))}
          </section>
        );
      })}
    </section>
  );
}

function getSubjectName({ scope, subject, subject_name: name }: Budget, readerId: string): string {
  if (scope === "person" && subject === readerId) return words.budgetYours;
  if (subject !== "") return name;
  const names = { all: words.budgetAll, person: words.budgetEachPerson, job: words.budgetEachJob, profile: words.budgetEachProfile };
  return names[scope];
}

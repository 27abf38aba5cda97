/** The form that sets a limit for a person, a job or a profile that is not in the list yet. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useProfiles } from "../../agent/profiles";
import { attempt } from "../../api/attempt";
import { setLimits, type BudgetPeriod, type BudgetScope, type Limits } from "../../api/budgets";
import { toast } from "../../ui/toasts";
import { words } from "../../words";
import { listPeople } from "../shared/calls";
import { LimitForm } from "./LimitForm";

const NO_LIMITS = { limit_usd: null, limit_tokens: null };

export function NewLimit({ onChange, onDone }: { onChange: () => Promise<unknown>; onDone: () => void }) {
  const [target, setTarget] = useState("person:");
  const [period, setPeriod] = useState<BudgetPeriod>("day");
  const people = useQuery({ queryKey: ["people", "budget"], queryFn: () => listPeople(null) }).data?.people ?? [];
  const profiles = useProfiles()?.profiles ?? [];
  const save = async (limits: Limits) => {
    const [scope, subject = ""] = target.split(/:(.*)/s);
    const isDone = await attempt(() => setLimits({ scope: scope as BudgetScope, subject, period }, limits));
    if (isDone) toast(words.budgetSaved);
    await onChange();
    return isDone;
  };
  return (
    <section className="card">
      <h2>{words.budgetAdd}</h2>
      <LimitForm current={NO_LIMITS} onSave={save} onDone={onDone}>
        <label className="field">
          <span>{words.budgetFor}</span>
          <select value={target} onChange={(event) => setTarget(event.target.value)}>
            <option value="all:">{words.budgetAll}</option>
            <option value="person:">{words.budgetEachPerson}</option>
            <option value="job:">{words.budgetEachJob}</option>
            {people.map(({ id, name }) => (
              <option key={id} value={`person:${id}`}>
                {name}
              </option>
            ))}
            {profiles.map(({ name }) => (
              <option key={name} value={`profile:${name}`}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label className="field">
          <span>{words.budgetPeriod}</span>
          <select value={period} onChange={(event) => setPeriod(event.target.value === "day" ? "day" : "month")}>
            <option value="day">{words.budgetPerDay}</option>
            <option value="month">{words.budgetPerMonth}</option>
          </select>
        </label>
      </LimitForm>
    </section>
  );
}

/** A job, or a change of one, that the agent proposes. Its person confirms or rejects it. */
import { useState } from "react";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import type { LogEvent } from "../api/types";
import { formatDollars } from "../format/numbers";
import { describeSchedule, formatSlot } from "../format/schedules";
import { formatDateTime } from "../format/time";
import { useToday } from "../format/useToday";
import { useMe } from "../live/context";
import { words } from "../words";
import { getToolsetName } from "./toolsets";
import "./JobProposal.css";

const PROPOSAL_LIFETIME_MS = 7 * 86_400_000; // after which the server removes it

interface Props {
  event: LogEvent;
  isOpen: boolean; // nothing was decided or proposed for this job since
}

export function JobProposal({ event, isOpen }: Props) {
  const me = useMe();
  const { facts } = event;
  const getText = (key: string) => (typeof facts[key] === "string" ? facts[key] : "");
  const timezone = getText("timezone");
  const name = getText("name");
  const isChange = facts.is_change === true;
  const isExpired = useToday() - Date.parse(event.at) > PROPOSAL_LIFETIME_MS;
  return (
    <section className="job-proposal" aria-label={words.jobProposal} title={formatDateTime(event.at)}>
      <h3 dir="auto">{isChange ? words.changeJobQuestion(name) : words.createJobQuestion(name)}</h3>
      <dl>
        <dt>{words.jobSchedule}</dt>
        <dd>
          {describeSchedule(getText("schedule"), getText("words"), timezone)}
          {typeof facts.runs_left === "number" && `, ${words.jobRepeat(facts.runs_left)}`}
        </dd>
        <dt>{words.jobNextTimes}</dt>
        <dd className="slots">
          {readTexts(facts.next_slots).map((slot) => (
            <time key={slot} dateTime={slot}>
              {formatSlot(slot, timezone)}
            </time>
          ))}
        </dd>
        <dt>{words.jobPrompt}</dt>
        <dd className="prompt" dir="auto">
          {getText("prompt")}
        </dd>
        <dt>{words.jobTargets}</dt>
        <dd dir="auto">
          {readTexts(facts.targets)
            .map((target, index) => describeTarget(target, isChange, readTexts(facts.target_words)[index]))
            .join(", ")}
        </dd>
        <dt>{words.jobToolsets}</dt>
        <dd>{readTexts(facts.toolsets).map(getToolsetName).join(", ") || words.jobNoToolsets}</dd>
        <dt>{words.jobCost}</dt>
        <dd>{describeCost(facts.cost_per_day)}</dd>
      </dl>
      {isOpen && !isExpired && event.person?.id === me.person.id && <Decision jobId={getText("job_id")} askedAt={event.at} />}
      {isOpen && !isExpired && event.person?.id !== me.person.id && <p>{words.jobWaits(event.person?.name ?? "")}</p>}
      {isOpen && isExpired && <p>{words.jobProposalExpired}</p>}
    </section>
  );
}

function Decision({ jobId, askedAt }: { jobId: string; askedAt: string }) {
  const [isBusy, setBusy] = useState(false);
  const decide = (act: (id: string, askedAt: string) => Promise<unknown>) => {
    setBusy(true);
    void attempt(() => act(jobId, askedAt)).finally(() => setBusy(false));
  };
  return (
    <div className="decision">
      <button type="button" className="button primary" disabled={isBusy} onClick={() => decide(calls.confirmJob)}>
        {words.confirmJob}
      </button>
      <button type="button" className="button" disabled={isBusy} onClick={() => decide(calls.rejectJob)}>
        {words.rejectJob}
      </button>
    </div>
  );
}

function readTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function describeTarget(target: string, isChange: boolean, place: string | undefined): string {
  if (target === "origin") return isChange ? words.jobTargetOldOrigin : words.jobTargetOrigin;
  if (target === "local") return words.jobTargetLocal;
  return place === undefined ? target : `${place} (${target})`;
}

function describeCost(dollars: unknown): string {
  if (typeof dollars !== "string") return words.jobCostUnknown;
  return Number(dollars) === 0 ? words.jobCostFree : words.jobCostPerDay(formatDollars(dollars));
}

/** The history of a job: for each run how it ended, what came out of it, and what reached each target. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { formatDateTime, formatDuration, formatRecent } from "../../format/time";
import { Link } from "../../ui/Link";
import { words } from "../../words";
import { LoadMoreButton } from "../shared/LoadMoreButton";
import { QueryResult } from "../shared/QueryResult";
import type { Job, JobRun } from "./jobCalls";
import * as calls from "./jobCalls";
import { describeDelivered, describeOption } from "./targets";

const FIRST_PAGE: string | null = null;
const REFRESH_INTERVAL_MS = 5_000; // while an answer is not delivered yet

export function JobRuns({ job, all }: { job: Job; all: boolean }) {
  const run = job.last_run;
  const query = useInfiniteQuery({
    queryKey: ["jobs", "runs", job.id, run?.id, run?.state, all],
    queryFn: ({ pageParam }) => calls.listJobRuns(job.id, all, pageParam),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: ({ runs }) => (runs.length < calls.RUNS_PER_PAGE ? null : (runs.at(-1)?.slot ?? null)),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.runs.some(isBeingDelivered)) ? REFRESH_INTERVAL_MS : false),
  });
  return (
    <section className="job-history" aria-label={words.jobsHistory}>
      <h3>{words.jobsHistory}</h3>
      <QueryResult query={query}>
        {({ pages }) => {
          const runs = pages.flatMap((page) => page.runs);
          if (runs.length === 0) return <p>{words.jobsNoRuns}</p>;
          return (
            <ul>
              {runs.map((each) => (
                <RunRow key={each.id} job={job} run={each} />
              ))}
            </ul>
          );
        }}
      </QueryResult>
      <LoadMoreButton query={query} />
    </section>
  );
}

const isBeingDelivered = ({ deliveries }: JobRun) => deliveries.some(({ state }) => state === "pending" || state === "sending");

function RunRow({ job, run }: { job: Job; run: JobRun }) {
  return (
    <li className="job-run" data-state={run.state}>
      <p className="job-run-head">
        <b>{describeRunState(run)}</b>
        <time dateTime={run.slot} title={formatDateTime(run.slot)}>
          {formatRecent(run.slot)}
        </time>
        {run.slot_count > 1 && <span>{words.jobsRunSlots(run.slot_count)}</span>}
        {run.kind === "manual" && <span>{words.jobsRunManual}</span>}
        {run.started_at !== null && run.ended_at !== null && <span>{formatDuration(Date.parse(run.ended_at) - Date.parse(run.started_at))}</span>}
        {run.session_id !== null && <Link to={run.session_id}>{words.jobsRunConversation}</Link>}
      </p>
      {run.reason !== null && <p dir="auto">{run.reason}</p>}
      {run.refused_tools.length > 0 && <p>{words.jobsRefusedTools(run.refused_tools.join(", "))}</p>}
      {run.deliveries.map((delivery) => (
        <p key={delivery.id} data-delivery={delivery.state} dir="auto">
          {describeDelivered(delivery)}: {describeDelivery(delivery.state)}
          {delivery.error !== null && ` (${delivery.error})`}
        </p>
      ))}
      {run.target_errors.map(({ target, error }) => (
        <p key={target} data-delivery="failed" dir="auto">
          {describeOption({ name: target, words: target }, job)}: {words.jobsDeliveryFailed} ({error})
        </p>
      ))}
    </li>
  );
}

export function describeRunState({ state, result }: Pick<JobRun, "state" | "result">): string {
  if (state === "done" && result === "silent") return words.jobsRunSilent;
  return {
    queued: words.jobsRunQueued,
    running: words.jobsRunRunning,
    done: words.jobsRunDone,
    failed: words.jobsRunFailed,
    missed: words.jobsRunMissed,
    skipped: words.jobsRunSkipped,
  }[state];
}

function describeDelivery(state: JobRun["deliveries"][number]["state"]): string {
  return {
    pending: words.jobsDeliveryPending,
    sending: words.jobsDeliveryPending,
    sent: words.jobsDeliverySent,
    failed: words.jobsDeliveryFailed,
    uncertain: words.jobsDeliveryUncertain,
  }[state];
}

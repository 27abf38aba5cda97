/** What a job does in detail: its prompt, its next times, its cost, its targets and tools, and its history. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { formatDollars } from "../../format/numbers";
import { describeSchedule, formatSlot } from "../../format/schedules";
import { words } from "../../words";
import { QueryResult } from "../shared/QueryResult";
import type { Job, JobPreview } from "./jobCalls";
import * as calls from "./jobCalls";
import { JobRuns } from "./JobRuns";
import { describeTarget } from "./targets";

export function JobDetails({ job, all }: { job: Job; all: boolean }) {
  const query = useQuery({
    queryKey: ["jobs", "details", job.id, job.updated_at, job.next_slot, all],
    queryFn: () => calls.getJob(job.id, all),
    placeholderData: keepPreviousData,
  });
  return (
    <div className="job-details">
      <QueryResult query={query}>
        {(details) => (
          <>
            {details.state === "proposed" && <p>{words.jobsProposedText}</p>}
            <PreviewFacts job={job} preview={details.preview} showsNext={details.state === "active" || details.state === "proposed"} />
            {details.proposed_change !== null && (
              <div className="job-change">
                <p>{words.jobsChangeProposedText}</p>
                <PreviewFacts job={job} preview={details.proposed_change} showsNext />
              </div>
            )}
          </>
        )}
      </QueryResult>
      {job.state !== "proposed" && <JobRuns job={job} all={all} />}
    </div>
  );
}

/** Everything that a person confirms about a job. */
function PreviewFacts({ job, preview, showsNext }: { job: Job; preview: JobPreview; showsNext: boolean }) {
  return (
    <>
      <p className="job-prompt" dir="auto">
        {preview.prompt}
      </p>
      <ScheduleFacts preview={showsNext ? preview : { ...preview, next_slots: [] }} />
      {preview.targets.length > 0 && (
        <p dir="auto">
          {words.jobsSendsTo}: {preview.targets.map((target) => describeTarget(target, job)).join(" · ")}
        </p>
      )}
      {preview.toolsets.length > 0 && (
        <p>
          {words.jobsToolsets}: {preview.toolsets.map(({ name }) => words.toolsetNames[name] ?? name).join(", ")}
        </p>
      )}
    </>
  );
}

/** When a job runs, its next times, and what that may cost. */
export function ScheduleFacts({ preview }: { preview: JobPreview }) {
  return (
    <>
      <p>
        <b>{describeSchedule(preview.schedule, preview.words, preview.timezone)}</b>
        {" · "}
        {describeCost(preview)}
      </p>
      {preview.next_slots.length > 0 && (
        <p>
          {words.jobsNextRuns}: {preview.next_slots.map((slot) => formatSlot(slot, preview.timezone)).join(" · ")}
        </p>
      )}
    </>
  );
}

function describeCost({ cost_per_day_usd: cost, runs_per_day: runs }: JobPreview): string {
  if (cost === null) return words.jobsCostUnknown;
  if (Number(cost) === 0) return words.jobsCostFree;
  return runs === null ? words.jobsCostOnce(formatDollars(cost)) : words.jobsCostPerDay(formatDollars(cost));
}

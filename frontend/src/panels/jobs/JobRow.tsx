/** One job: when it runs, how it is doing, what can be done with it, and on request its details and history. */
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { describeSchedule, formatSlot } from "../../format/schedules";
import { formatRecent } from "../../format/time";
import { confirm } from "../../ui/ConfirmDialog";
import { ChevronIcon, DotsIcon, EditIcon, PauseIcon, PlayIcon, RetryIcon, TrashIcon } from "../../ui/icons";
import { Menu, MenuItem, MenuSeparator } from "../../ui/Menu";
import { toast } from "../../ui/toasts";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import type { Job } from "./jobCalls";
import * as calls from "./jobCalls";
import { JobDetails } from "./JobDetails";
import { describeRunState } from "./JobRuns";

interface Props {
  job: Job;
  isMine: boolean;
  all: boolean; // the reader looks at everyone's jobs
  onChange: () => Promise<unknown>;
  onEdit: () => void;
}

export function JobRow({ job, isMine, all, onChange, onEdit }: Props) {
  const isWaiting = job.state === "proposed" || job.has_proposed_change;
  const [chosen, setOpen] = useState<boolean | null>(null); // null: what waits for the reader is open
  const isOpen = chosen ?? isWaiting;
  return (
    <li className="job">
      <div className="card-row">
        <button
          type="button"
          className="icon-button job-toggle"
          aria-expanded={isOpen}
          aria-label={words.jobsDetailsFor(job.name)}
          onClick={() => setOpen(!isOpen)}
        >
          <ChevronIcon />
        </button>
        <div className="card-row-text">
          <b dir="auto">
            {job.name}
            <StateTag job={job} />
          </b>
          <small>
            {describeSchedule(job.schedule, job.words, job.timezone)}
            {!isMine && ` · ${words.jobsOf(job.person_name)}`}
          </small>
          <small>{describeProgress(job)}</small>
        </div>
        {isWaiting && <ProposalButtons job={job} all={all} onChange={onChange} />}
        <JobMenu job={job} all={all} onChange={onChange} onEdit={onEdit} onRemove={() => setOpen(false)} />
      </div>
      {isOpen && <JobDetails job={job} all={all} />}
    </li>
  );
}

function StateTag({ job }: { job: Job }) {
  if (job.state === "proposed") return <span className="tag is-waiting">{words.jobsProposed}</span>;
  if (job.has_proposed_change) return <span className="tag is-waiting">{words.jobsChangeProposed}</span>;
  if (job.state === "paused") return <span className="tag">{words.jobsPaused}</span>;
  return job.state === "ended" ? <span className="tag">{words.jobsEnded}</span> : null;
}

/** Says when it runs next, or why it does not, and how its last run went. */
function describeProgress(job: Job): string {
  const parts = [];
  if (job.next_slot !== null) parts.push(words.jobsNextRun(formatSlot(job.next_slot, job.timezone)));
  if (job.runs_left !== null && job.state === "active") parts.push(words.jobsRunsLeft(job.runs_left));
  if (job.state_reason !== null && job.state !== "ended") parts.push(job.state_reason);
  const { last_run: run } = job;
  if (run !== null) parts.push(words.jobsLastRun(describeRunState(run), formatRecent(run.ended_at ?? run.slot)));
  return parts.join(" · ");
}

function ProposalButtons({ job, all, onChange }: Pick<Props, "job" | "all" | "onChange">) {
  const runOnce = useSingleFlight();
  const answer = (act: () => Promise<unknown>, done: string) =>
    void runOnce(async () => {
      if (await attempt(act)) toast(done);
      await onChange();
    });
  return (
    <span className="job-decision">
      <button type="button" className="button" onClick={() => answer(() => calls.changeJob(job.id, "reject", all), words.jobsRejected(job.name))}>
        {words.jobsReject}
      </button>
      <button type="button" className="button primary" onClick={() => answer(() => calls.confirmJob(job, all), words.jobsConfirmed(job.name))}>
        {words.jobsConfirm}
      </button>
    </span>
  );
}

function JobMenu({ job, all, onChange, onEdit, onRemove }: Omit<Props, "isMine"> & { onRemove: () => void }) {
  const change = async (action: "pause" | "resume" | "run", done?: string) => {
    if ((await attempt(() => calls.changeJob(job.id, action, all))) && done !== undefined) toast(done);
    await onChange();
  };
  const remove = async () => {
    if (!(await confirm({ title: words.jobsRemoveTitle(job.name), text: words.jobsRemoveText, action: words.jobsRemove }))) return;
    onRemove(); // its details would be asked for once more, and no longer exist
    if (await attempt(() => calls.deleteJob(job.id, all))) toast(words.jobsRemoved(job.name));
    await onChange();
  };
  return (
    <Menu
      button={
        <button type="button" className="icon-button" title={words.more} aria-label={words.jobsActionsFor(job.name)}>
          <DotsIcon />
        </button>
      }
    >
      {job.state !== "proposed" && (
        <>
          <MenuItem icon={<RetryIcon />} onSelect={() => void change("run", words.jobsStarted(job.name))}>
            {words.jobsRunNow}
          </MenuItem>
          {job.state === "active" && (
            <MenuItem icon={<PauseIcon />} onSelect={() => void change("pause")}>
              {words.jobsPause}
            </MenuItem>
          )}
          {job.state === "paused" && (
            <MenuItem icon={<PlayIcon />} onSelect={() => void change("resume")}>
              {words.jobsResume}
            </MenuItem>
          )}
          <MenuItem icon={<EditIcon />} onSelect={onEdit}>
            {words.jobsEdit}
          </MenuItem>
          <MenuSeparator />
        </>
      )}
      <MenuItem icon={<TrashIcon />} danger onSelect={() => void remove()}>
        {words.jobsRemove}
      </MenuItem>
    </Menu>
  );
}

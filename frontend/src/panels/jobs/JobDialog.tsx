/** Creates or edits a job. What it means (times, cost, targets) is shown while the person types. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { attempt } from "../../api/attempt";
import { describeError } from "../../api/errors";
import { useDebounced } from "../../lib/useDebounced";
import { Dialog } from "../../ui/Dialog";
import { CloseIcon } from "../../ui/icons";
import { useSingleFlight } from "../../ui/useSingleFlight";
import { words } from "../../words";
import { QueryResult } from "../shared/QueryResult";
import { TimezoneInput } from "../shared/TimezoneInput";
import type { Job, JobFields, JobOptions } from "./jobCalls";
import * as calls from "./jobCalls";
import { ScheduleFacts } from "./JobDetails";
import { describeOption } from "./targets";

const MAX_NAME_CHARS = 60; // the server's limits
const MAX_PROMPT_CHARS = 8000;

interface Props {
  job: Job | null; // null: a new one
  all: boolean;
  onClose: () => void;
  onDone: () => void;
}

export function JobDialog(props: Props) {
  const options = useQuery({ queryKey: ["jobs", "options"], queryFn: calls.getJobOptions });
  const title = props.job === null ? words.jobsNew : words.jobsEdit;
  return (
    <Dialog label={title} className="dialog job-dialog" onClose={props.onClose}>
      <h2>{title}</h2>
      <QueryResult query={options}>{(data) => <JobForm {...props} options={data} />}</QueryResult>
    </Dialog>
  );
}

function JobForm({ job, all, options, onClose, onDone }: Props & { options: JobOptions }) {
  const [fields, setFields] = useState<JobFields>(() => getInitialFields(job, options));
  const runOnce = useSingleFlight();
  const set = <Key extends keyof JobFields>(key: Key, value: JobFields[Key]) => setFields((previous) => ({ ...previous, [key]: value }));
  const isFilledIn = fields.prompt.trim() !== "" && fields.schedule.trim() !== "" && fields.targets.length > 0;
  const save = async () => {
    if (await attempt(() => (job === null ? calls.createJob(fields) : calls.updateJob(job.id, getChanges(job, fields), all)))) onDone();
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void runOnce(save);
      }}
    >
      <label className="field">
        {words.jobsPrompt}
        <textarea
          rows={3}
          dir="auto"
          autoFocus
          required
          maxLength={MAX_PROMPT_CHARS}
          placeholder={words.jobsPromptExample}
          value={fields.prompt}
          onChange={(event) => set("prompt", event.target.value)}
        />
      </label>
      <div className="job-fields">
        <label className="field">
          {words.jobsSchedule}
          <input required value={fields.schedule} placeholder="0 7 * * 1-5" spellCheck={false} onChange={(event) => set("schedule", event.target.value)} />
        </label>
        <label className="field">
          {words.jobsTimezone}
          <TimezoneInput required value={fields.timezone} onChange={(timezone) => set("timezone", timezone)} />
        </label>
      </div>
      <p className="hint">{words.jobsScheduleHint}</p>
      <Preview fields={fields} isFilledIn={isFilledIn} job={job} all={all} />
      <div className="job-fields">
        <label className="field">
          {words.jobsName}
          <input dir="auto" maxLength={MAX_NAME_CHARS} value={fields.name} onChange={(event) => set("name", event.target.value)} />
        </label>
        <label className="field">
          {words.jobsRepeat}
          <span className="job-repeat">
            <input
              type="number"
              min={1}
              value={fields.repeat ?? ""}
              placeholder="∞"
              aria-label={`${words.jobsRepeat} … ${words.jobsRepeatUnit}`}
              title={words.jobsRepeatHint}
              onChange={(event) => set("repeat", event.target.value === "" ? null : event.target.valueAsNumber)}
            />
            {words.jobsRepeatUnit}
          </span>
        </label>
      </div>
      <div className="job-fields">
        {options.fields.map(({ name, label, help, max_chars: maxChars }) => (
          <label key={name} className="field" title={help}>
            {label}
            <input
              dir="auto"
              maxLength={maxChars}
              value={fields.others[name] ?? ""}
              onChange={(event) => set("others", { ...fields.others, [name]: event.target.value })}
            />
          </label>
        ))}
      </div>
      <TargetsField job={job} chosen={fields.targets} options={options} onChange={(targets) => set("targets", targets)} />
      <ToolsetsField chosen={fields.toolsets} options={options} onChange={(toolsets) => set("toolsets", toolsets)} />
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onClose}>
          {words.cancel}
        </button>
        <button type="submit" className="button primary" disabled={!isFilledIn}>
          {job === null ? words.jobsCreate : words.save}
        </button>
      </div>
    </form>
  );
}

interface ChoiceProps {
  chosen: readonly string[];
  options: JobOptions;
  onChange: (chosen: string[]) => void;
}

const toggle = (names: readonly string[], name: string) => (names.includes(name) ? names.filter((each) => each !== name) : [...names, name]);

function TargetsField({ job, chosen, options, onChange }: ChoiceProps & { job: Job | null }) {
  const [other, setOther] = useState("");
  const known = new Set(options.targets.map((target) => target.name));
  const add = () => {
    const target = other.trim();
    if (target !== "" && !chosen.includes(target)) onChange([...chosen, target]);
    setOther("");
  };
  return (
    <fieldset className="options">
      <legend>{words.jobsTargets}</legend>
      {options.targets.map((target) => (
        <label key={target.name} className="option">
          <input type="checkbox" checked={chosen.includes(target.name)} onChange={() => onChange(toggle(chosen, target.name))} />
          <span dir="auto">
            {describeOption(target, job)}
            <small>{target.name}</small>
          </span>
        </label>
      ))}
      {chosen
        .filter((target) => !known.has(target))
        .map((target) => (
          <p key={target} className="job-target">
            <code>{target}</code>
            <button type="button" className="icon-button" aria-label={words.jobsTargetRemove(target)} onClick={() => onChange(toggle(chosen, target))}>
              <CloseIcon />
            </button>
          </p>
        ))}
      <span className="job-other-target">
        <input
          value={other}
          placeholder={words.jobsTargetExample}
          aria-label={words.jobsTargetOther}
          spellCheck={false}
          onChange={(event) => setOther(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || other.trim() === "") return;
            event.preventDefault(); // adds the place instead of saving the job
            add();
          }}
        />
        <button type="button" className="button" disabled={other.trim() === ""} onClick={add}>
          {words.jobsTargetAdd}
        </button>
      </span>
      <p className="hint">{words.jobsTargetsHint}</p>
    </fieldset>
  );
}

function ToolsetsField({ chosen, options, onChange }: ChoiceProps) {
  if (options.toolsets.length === 0) return null;
  return (
    <fieldset className="options">
      <legend>{words.jobsToolsets}</legend>
      {options.toolsets.map((toolset) => (
        <label key={toolset.name} className="option">
          <input type="checkbox" checked={chosen.includes(toolset.name)} onChange={() => onChange(toggle(chosen, toolset.name))} />
          <span>
            {words.toolsetNames[toolset.name] ?? toolset.name}
            <small>{words.toolsetHints[toolset.name] ?? toolset.words}</small>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

/** Shows the job in words, or what is wrong with it. */
function Preview({ fields, isFilledIn, job, all }: { fields: JobFields; isFilledIn: boolean; job: Job | null; all: boolean }) {
  const text = useDebounced(JSON.stringify(job === null ? fields : getChanges(job, fields)));
  const query = useQuery({
    queryKey: ["jobs", "preview", job?.id, text],
    queryFn: ({ signal }) => calls.previewJob(JSON.parse(text) as Partial<JobFields>, job?.id ?? null, all, signal),
    enabled: isFilledIn,
    placeholderData: keepPreviousData,
    retry: false,
  });
  if (!isFilledIn) return null;
  return (
    <div className="job-preview" role="status">
      {query.isError ? <p className="field-error">{describeError(query.error)}</p> : query.data !== undefined && <ScheduleFacts preview={query.data} />}
    </div>
  );
}

function getInitialFields(job: Job | null, options: JobOptions): JobFields {
  if (job !== null) {
    const { name, prompt, schedule, timezone, targets, toolsets, runs_left: repeat } = job;
    return { name, prompt, schedule, timezone, targets, toolsets, repeat, others: getOthers(job, options) };
  }
  const { timezone, default_toolsets: toolsets } = options;
  return { name: "", prompt: "", schedule: "", timezone, targets: ["origin"], toolsets, repeat: null, others: getOthers(null, options) };
}

function getOthers(job: Job | null, options: JobOptions): Record<string, string> {
  const values: Readonly<Record<string, unknown>> = { ...job };
  return Object.fromEntries(options.fields.map(({ name }) => [name, typeof values[name] === "string" ? values[name] : ""]));
}

/** Returns the fields that were changed: the server computes the next time again only if the schedule is among them. */
function getChanges(job: Job, fields: JobFields): Partial<JobFields> {
  const before: Readonly<Record<string, unknown>> = { ...job, repeat: job.runs_left };
  const { others, ...known } = fields;
  const changed = (values: Readonly<Record<string, unknown>>, empty?: string) =>
    Object.fromEntries(Object.entries(values).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key] ?? empty ?? before[key])));
  return { ...changed(known), others: changed(others, "") as Record<string, string> };
}

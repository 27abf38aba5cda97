/** The requests of the jobs panel. */
import { request } from "../../api/http";
import type { components } from "../../api/schema";

type Schemas = components["schemas"];

export type Job = Schemas["JobJson"];
export type JobDetails = Schemas["JobDetailsJson"];
export type JobPreview = Schemas["JobPreviewJson"];
export type JobOptions = Schemas["JobOptionsJson"];
export type JobRun = Schemas["JobRunJson"];
export type Jobs = Schemas["JobsJson"];

/** What a person has filled in for a job. */
export interface JobFields {
  name: string;
  prompt: string;
  schedule: string;
  timezone: string;
  targets: readonly string[];
  toolsets: readonly string[];
  repeat: number | null;
  others: Readonly<Record<string, string>>; // what the server lists in the options as further fields
}

type JobAction = "pause" | "resume" | "run" | "reject";

const jobPath = (id: string, rest = "") => `/jobs/${encodeURIComponent(id)}${rest}`;

export const listJobs = (all: boolean, cursor: string | null) => request<Jobs>("GET", "/jobs", { query: { all, cursor } });
export const getJob = (id: string, all: boolean) => request<JobDetails>("GET", jobPath(id), { query: { all } });
export const getJobOptions = () => request<JobOptions>("GET", "/jobs/options");
export const previewJob = (fields: Partial<JobFields>, jobId: string | null, all: boolean, signal?: AbortSignal) =>
  request<JobPreview>("POST", "/jobs/preview", { body: { ...withoutEmpty(fields), job_id: jobId }, query: { all }, ...(signal && { signal }) });
export const createJob = (fields: JobFields) => request<JobDetails>("POST", "/jobs", { body: withoutEmpty(fields) });
export const updateJob = (id: string, fields: Partial<JobFields>, all: boolean) =>
  request<JobDetails>("PATCH", jobPath(id), { body: withoutEmpty(fields), query: { all } });
export const deleteJob = (id: string, all: boolean) => request<undefined>("DELETE", jobPath(id), { query: { all } });
export const changeJob = (id: string, action: JobAction, all: boolean) => request<unknown>("POST", jobPath(id, `/${action}`), { query: { all } });
export const confirmJob = ({ id, asked_at }: Job, all: boolean) => request<unknown>("POST", jobPath(id, "/confirm"), { query: { all, asked_at } });
export const listJobRuns = (id: string, all: boolean, before: string | null) =>
  request<Schemas["JobRunsJson"]>("GET", jobPath(id, "/runs"), { query: { all, before, limit: RUNS_PER_PAGE } });

export const RUNS_PER_PAGE = 20;

/** Without a name, the server makes one or keeps the old one. */
function withoutEmpty({ others, ...fields }: Partial<JobFields>): Record<string, unknown> {
  const { name, ...rest } = fields;
  return { ...(name?.trim() === "" ? rest : fields), ...others };
}

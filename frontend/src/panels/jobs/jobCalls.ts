/** The requests of the jobs panel. */
import { request } from "../../api/http";
import type { Schemas } from "../../api/types";

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
  targets: string[];
  toolsets: string[];
  repeat: number | null;
  others: Readonly<Record<string, string>>; // what the server lists in the options as further fields
}

type JobAction = "pause" | "resume" | "run" | "reject";

const inPath = (id: string) => ({ path: { job_id: id } });

export const listJobs = (all: boolean, cursor: string | null) => request("GET", "/api/jobs", { query: { all, cursor } });
export const getJob = (id: string, all: boolean) => request("GET", "/api/jobs/{job_id}", { ...inPath(id), query: { all } });
export const getJobOptions = () => request("GET", "/api/jobs/options");
export const previewJob = (fields: Partial<JobFields>, jobId: string | null, all: boolean, signal?: AbortSignal) =>
  request("POST", "/api/jobs/preview", { body: { ...withoutEmpty(fields), job_id: jobId }, query: { all }, signal });
export const createJob = (fields: JobFields) => request("POST", "/api/jobs", { body: withoutEmpty(fields) });
export const updateJob = (id: string, fields: Partial<JobFields>, all: boolean) =>
  request("PATCH", "/api/jobs/{job_id}", { ...inPath(id), body: withoutEmpty(fields), query: { all } });
export const deleteJob = (id: string, all: boolean) => request("DELETE", "/api/jobs/{job_id}", { ...inPath(id), query: { all } });
export const changeJob = (id: string, action: JobAction, all: boolean) => request("POST", `/api/jobs/{job_id}/${action}`, { ...inPath(id), query: { all } });
export const confirmJob = ({ id, asked_at }: Job, all: boolean) => request("POST", "/api/jobs/{job_id}/confirm", { ...inPath(id), query: { all, asked_at } });
export const listJobRuns = (id: string, all: boolean, before: string | null) =>
  request("GET", "/api/jobs/{job_id}/runs", { ...inPath(id), query: { all, before, limit: RUNS_PER_PAGE } });

export const RUNS_PER_PAGE = 20;

/** Without a name, the server makes one or keeps the old one. */
function withoutEmpty({ others, ...fields }: Partial<JobFields>): Schemas["JobIn"] {
  const { name, ...rest } = fields;
  return { ...(name?.trim() === "" ? rest : fields), ...others };
}

/** The requests of the page, except those that are loaded later: `accountCalls.ts`, and those of panels (`panels/shared/calls.ts`). */
import { buildUrl, openResponse, request, type UrlQuery } from "./http";
import type { Schemas, SessionPatch } from "./types";

export type SessionListQuery = UrlQuery<"GET", "/api/sessions">;
export type SearchFilterQuery = Omit<UrlQuery<"GET", "/api/search">, "query">;
export type TranscriptRange = Omit<UrlQuery<"GET", "/api/sessions/{session_id}/messages">, "all">;

const withNewKey = () => ({ key: createKey() });
const inPath = (id: string) => ({ path: { session_id: id } });

/** Creates an idempotency key: the server does once what it is asked for twice with the same key. */
export function createKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// -- the account that is signed in

export const getMe = () => request("GET", "/api/me");
export const signOut = () => request("POST", "/api/sign-out");

// -- conversations

export const listSessions = (view: SessionListQuery, cursor: string | null, limit = 50) =>
  request("GET", "/api/sessions", { query: { ...view, cursor, limit } });
export const getSession = (id: string, all: boolean) => request("GET", "/api/sessions/{session_id}", { ...inPath(id), query: { all } });
export const createSession = (options: Schemas["NewSessionIn"]) => request("POST", "/api/sessions", { body: options });
export const updateSession = (id: string, changes: SessionPatch, all: boolean) =>
  request("PATCH", "/api/sessions/{session_id}", { ...inPath(id), body: changes, query: { all } });
export const deleteSession = (id: string, all: boolean) => request("DELETE", "/api/sessions/{session_id}", { ...inPath(id), query: { all } });
export const confirmJob = (id: string, askedAt: string) =>
  request("POST", "/api/jobs/{job_id}/confirm", { path: { job_id: id }, query: { asked_at: askedAt } });
export const rejectJob = (id: string) => request("POST", "/api/jobs/{job_id}/reject", { path: { job_id: id } });

export const markRead = (id: string, seq: number) => request("PUT", "/api/sessions/{session_id}/read", { ...inPath(id), body: { seq } });

export const listMessages = (id: string, range: TranscriptRange, all: boolean) =>
  request("GET", "/api/sessions/{session_id}/messages", { ...inPath(id), query: { ...range, all } });

// -- messages and turns

export const sendMessage = (id: string, message: Schemas["MessageIn"]) => request("POST", "/api/sessions/{session_id}/messages", { ...inPath(id), body: message });
export const resendDelivery = (id: string, deliveryId: string) =>
  request("POST", "/api/sessions/{session_id}/deliveries/{delivery_id}/retry", { path: { session_id: id, delivery_id: deliveryId } });
export const stopTurn = (id: string, clearQueue = false) =>
  request("POST", "/api/sessions/{session_id}/stop", { ...inPath(id), body: { clear_queue: clearQueue, ...withNewKey() } });
export const undoTurn = (id: string) => request("POST", "/api/sessions/{session_id}/undo", { ...inPath(id), body: { turns: 1, ...withNewKey() } });
export const redoTurn = (id: string) => request("POST", "/api/sessions/{session_id}/redo", { ...inPath(id), body: withNewKey() });
export const retryTurn = (id: string, seq: number | null) =>
  request("POST", "/api/sessions/{session_id}/retry", { ...inPath(id), body: { seq, ...withNewKey() } });
export const chooseVersion = (id: string, seq: number, version: number) =>
  request("POST", "/api/sessions/{session_id}/version", { ...inPath(id), body: { seq, version, ...withNewKey() } });
export const restoreSession = (id: string) => request("POST", "/api/sessions/{session_id}/restore", { ...inPath(id), body: withNewKey() });
export const compactSession = (id: string) => request("POST", "/api/sessions/{session_id}/compact", { ...inPath(id), body: withNewKey() });
export const forkSession = (id: string, upToSeq: number | null) =>
  request("POST", "/api/sessions/{session_id}/fork", { ...inPath(id), body: { up_to_seq: upToSeq } });
export const editMessage = (id: string, seq: number, content: string, attachmentIds: string[], branch: boolean) =>
  request("POST", "/api/sessions/{session_id}/edit", {
    ...inPath(id),
    body: { seq, content, attachment_ids: attachmentIds, branch, ...withNewKey() },
  });
export const buildExportUrl = (id: string, format: "markdown" | "html" | "jsonl") =>
  buildUrl("GET", "/api/sessions/{session_id}/export", { ...inPath(id), query: { format } });

// -- everything else

/** Also finds words that begin with the last one, which may not be complete yet. */
export const searchMessages = (query: string, filters: SearchFilterQuery, all: boolean, signal: AbortSignal) =>
  request("GET", "/api/search", { query: { query, typing: true, ...filters, limit: 20, all }, signal });
export const listSearchPeople = (all: boolean) => request("GET", "/api/search/people", { query: { all } });
export const listProjects = () => request("GET", "/api/projects");
export const createProject = (name: string, color: string) => request("POST", "/api/projects", { body: { name, color } });
export const updateProject = (id: string, changes: Schemas["ProjectChangesIn"]) =>
  request("PATCH", "/api/projects/{project_id}", { path: { project_id: id }, body: changes });
export const deleteProject = (id: string) => request("DELETE", "/api/projects/{project_id}", { path: { project_id: id } });
export const listPrompts = () => request("GET", "/api/prompts");
export const setStepSkipped = (step: "model" | "platform", skipped: boolean) => request("PUT", "/api/me/steps", { body: { step, skipped } });
export const listModels = (include: string | null) => request("GET", "/api/models", { query: { include } });
export const listOfferedModels = () => request("GET", "/api/models/offered");
export const listProfiles = () => request("GET", "/api/profiles");
export const listToolsets = (id: string) => request("GET", "/api/sessions/{session_id}/toolsets", inPath(id));
export const getPolicies = () => request("GET", "/api/policies");
export const listCommands = () => request("GET", "/api/commands");

export function uploadFile(file: File) {
  const form = new FormData();
  form.append("file", file);
  return request("POST", "/api/attachments", { body: form });
}

export const buildFileUrl = (id: string, all = false) => buildUrl("GET", "/api/attachments/{attachment_id}", { path: { attachment_id: id }, query: { all } });

// -- speech

export const getSpeech = () => request("GET", "/api/speech");
export const transcribe = (attachmentId: string) =>
  request("POST", "/api/attachments/{attachment_id}/transcript", { path: { attachment_id: attachmentId } });

/** Returns one piece of an answer as audio, and how many pieces there are. */
export async function speakAnswer(id: string, seq: number, piece: number, signal: AbortSignal): Promise<{ audio: Blob; pieces: number }> {
  const response = await openResponse("POST", "/api/sessions/{session_id}/messages/{seq}/speech", {
    path: { session_id: id, seq },
    query: { piece },
    signal,
  });
  return { audio: await response.blob(), pieces: Number(response.headers.get("Palaver-Pieces") ?? 1) };
}

// -- notifications

export const getPushStatus = () => request("GET", "/api/me/push-subscriptions");
export const subscribeToPush = (subscription: Schemas["PushSubscriptionIn"]) => request("POST", "/api/me/push-subscriptions", { body: subscription });
export const unsubscribeFromPush = () => request("DELETE", "/api/me/push-subscriptions");

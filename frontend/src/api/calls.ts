/** The requests of the page, except those that only panels make (`panels/shared/calls.ts`). */
import { buildUrl, fetchResponse, readError, request } from "./http";
import type { components } from "./schema";
import type {
  Attachment,
  BusyPolicy,
  Command,
  Delivery,
  Me,
  Models,
  OfferedModels,
  Policies,
  Profiles,
  Project,
  Receipt,
  SavedPrompt,
  SavedPrompts,
  Storage,
  ReplyTo,
  MessageSearchResults,
  Session,
  SessionPatch,
  SignInMethods,
  Toolsets,
  TranscriptPage,
} from "./types";

interface SessionListQuery {
  state: "active" | "archived" | "pinned";
  project?: string | null;
  platform?: string;
  after?: string;
  before?: string;
  title?: string;
  person_id?: string;
  query?: string;
  all: boolean;
}

export interface SearchFilterQuery {
  platform?: string;
  role?: string;
  project?: string;
  after?: string;
  before?: string;
  person?: string;
  archived?: string;
}

/** How to create a conversation. */
export interface NewSession {
  project?: string;
  profile?: string;
  personality?: string;
  workspace?: string;
  model?: string;
}

export interface OutgoingMessage {
  content: string | unknown[];
  key: string;
  busy_policy?: BusyPolicy | undefined;
  attachment_ids: string[];
  reply_to?: ReplyTo | undefined;
}

const sessionPath = (id: string, rest = "") => `/sessions/${encodeURIComponent(id)}${rest}`;
const withNewKey = () => ({ key: createKey() });

/** Creates an idempotency key: the server does once what it is asked for twice with the same key. */
export function createKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// -- signing in

export const getSignInMethods = () => request<SignInMethods>("GET", "/sign-in");
export const signInByLink = (token: string) => request<unknown>("POST", "/sign-in/link", { body: { token } });
export const signInByPassword = (name: string, password: string) =>
  request<unknown>("POST", "/sign-in/password", { body: { name, password } });
export const getPasskeyOptions = () => request<Record<string, unknown>>("POST", "/sign-in/passkey/options");
export const signInByPasskey = (credential: unknown) => request<unknown>("POST", "/sign-in/passkey", { body: { credential } });
export const signOut = () => request<undefined>("POST", "/sign-out");

// -- the account that is signed in

export const getMe = () => request<Me>("GET", "/me");
export const getStorage = () => request<Storage>("GET", "/me/storage");
export const renameMe = (name: string) => request<unknown>("PATCH", "/me", { body: { name } });
export const setTimezone = (timezone: string | null) => request<unknown>("PATCH", "/me", { body: { timezone } });
export const setPassword = (current: string | null, next: string) =>
  request<undefined>("PUT", "/me/password", { body: { current_password: current, new_password: next } });
export const getNewPasskeyOptions = () => request<Record<string, unknown>>("POST", "/me/passkeys/options");
export const addPasskey = (name: string, credential: unknown) => request<unknown>("POST", "/me/passkeys", { body: { name, credential } });
export const finishWelcome = () => request<undefined>("POST", "/me/welcome");

// -- conversations

export const listSessions = (view: SessionListQuery, cursor: string | null, limit = 50) =>
  request<{ sessions: Session[]; next_cursor: string | null }>("GET", "/sessions", { query: { ...view, cursor, limit } });
export const getSession = (id: string, all: boolean) => request<Session>("GET", sessionPath(id), { query: { all } });
export const createSession = (options: NewSession & { key: string }) =>
  request<Session>("POST", "/sessions", { body: options });
export const updateSession = (id: string, changes: SessionPatch, all: boolean) =>
  request<Session>("PATCH", sessionPath(id), { body: changes, query: { all } });
export const deleteSession = (id: string, all: boolean) => request<undefined>("DELETE", sessionPath(id), { query: { all } });
const jobPath = (id: string, rest = "") => `/jobs/${encodeURIComponent(id)}${rest}`;
export const confirmJob = (id: string, askedAt: string) => request<unknown>("POST", jobPath(id, "/confirm"), { query: { asked_at: askedAt } });
export const rejectJob = (id: string) => request<unknown>("POST", jobPath(id, "/reject"));

export const markRead = (id: string, seq: number) => request<unknown>("PUT", sessionPath(id, "/read"), { body: { seq } });

export interface TranscriptRange {
  before?: number;
  after?: number;
  around?: number;
  limit?: number;
}

export const listMessages = (id: string, range: TranscriptRange, all: boolean) =>
  request<TranscriptPage>("GET", sessionPath(id, "/messages"), { query: { ...range, all } });

// -- messages and turns

export const sendMessage = (id: string, message: OutgoingMessage) =>
  request<Receipt>("POST", sessionPath(id, "/messages"), {
    body: { ...message, busy_policy: message.busy_policy ?? null },
  });
export const resendDelivery = (id: string, deliveryId: string) =>
  request<Delivery>("POST", sessionPath(id, `/deliveries/${encodeURIComponent(deliveryId)}/retry`));
export const stopTurn = (id: string, clearQueue = false) =>
  request<Receipt>("POST", sessionPath(id, "/stop"), { body: { clear_queue: clearQueue, ...withNewKey() } });
export const undoTurn = (id: string) =>
  request<Receipt>("POST", sessionPath(id, "/undo"), { body: { turns: 1, ...withNewKey() } });
export const redoTurn = (id: string) => request<Receipt>("POST", sessionPath(id, "/redo"), { body: withNewKey() });
export const retryTurn = (id: string, seq: number | null) =>
  request<Receipt>("POST", sessionPath(id, "/retry"), { body: { seq, ...withNewKey() } });
export const chooseVersion = (id: string, seq: number, version: number) =>
  request<Receipt>("POST", sessionPath(id, "/version"), { body: { seq, version, ...withNewKey() } });
export const restoreSession = (id: string) => request<Receipt>("POST", sessionPath(id, "/restore"), { body: withNewKey() });
export const compactSession = (id: string) => request<Receipt>("POST", sessionPath(id, "/compact"), { body: withNewKey() });
export const forkSession = (id: string, upToSeq: number | null) =>
  request<Session>("POST", sessionPath(id, "/fork"), { body: { up_to_seq: upToSeq } });
export const editMessage = (id: string, seq: number, content: string, attachmentIds: string[], branch: boolean) =>
  request<{ session: Session; receipt: Receipt }>("POST", sessionPath(id, "/edit"), {
    body: { seq, content, attachment_ids: attachmentIds, branch, ...withNewKey() },
  });
export const buildExportPath = (id: string, format: "markdown" | "html" | "jsonl") => `api${sessionPath(id, "/export")}?format=${format}`;

// -- everything else

/** Also finds words that begin with the last one, which may not be complete yet. */
export const searchMessages = (query: string, filters: SearchFilterQuery, all: boolean, signal: AbortSignal) =>
  request<MessageSearchResults>("GET", "/search", { query: { query, typing: true, ...filters, limit: 20, all }, signal });
export const listSearchPeople = (all: boolean) =>
  request<{ people: { id: string; name: string }[] }>("GET", "/search/people", { query: { all } });
export const listProjects = () => request<{ projects: Project[] }>("GET", "/projects");
export const createProject = (name: string, color: string) => request<Project>("POST", "/projects", { body: { name, color } });
export const updateProject = (id: string, changes: { name?: string; color?: string; instructions?: string }) =>
  request<Project>("PATCH", `/projects/${encodeURIComponent(id)}`, { body: changes });
export const deleteProject = (id: string) => request<undefined>("DELETE", `/projects/${encodeURIComponent(id)}`);
export const listPrompts = () => request<SavedPrompts>("GET", "/prompts");
export const createPrompt = (fields: Record<string, string>) => request<SavedPrompt>("POST", "/prompts", { body: fields });
export const updatePrompt = (id: string, changes: Record<string, string>) =>
  request<SavedPrompt>("PATCH", `/prompts/${encodeURIComponent(id)}`, { body: changes });
export const deletePrompt = (id: string) => request<undefined>("DELETE", `/prompts/${encodeURIComponent(id)}`);
export const setStepSkipped = (step: "model" | "platform", skipped: boolean) =>
  request<undefined>("PUT", "/me/steps", { body: { step, skipped } });
export const listModels = (include: string | null) => request<Models>("GET", "/models", { query: { include } });
export const listOfferedModels = () => request<{ providers: OfferedModels[] }>("GET", "/models/offered");
export const listProfiles = () => request<Profiles>("GET", "/profiles");
export const listToolsets = (id: string) => request<Toolsets>("GET", sessionPath(id, "/toolsets"));
export const getPolicies = () => request<Policies>("GET", "/policies");
export const listCommands = () => request<{ commands: Command[] }>("GET", "/commands");

export function uploadFile(file: File): Promise<Attachment> {
  const form = new FormData();
  form.append("file", file);
  return request<Attachment>("POST", "/attachments", { body: form });
}

// ---- speech ----------------------------------------------------------------------------------------------

type Schemas = components["schemas"];

export function getSpeech(): Promise<Schemas["SpeechJson"]> {
  return request("GET", "/speech");
}

export function transcribe(attachmentId: string): Promise<Schemas["TranscriptJson"]> {
  return request("POST", `/attachments/${attachmentId}/transcript`);
}

/** Returns one piece of an answer as audio, and how many pieces there are. */
export async function speakAnswer(
  session: string,
  seq: number,
  piece: number,
  signal: AbortSignal,
): Promise<{ audio: Blob; pieces: number }> {
  const url = buildUrl(`api/sessions/${session}/messages/${seq}/speech`, { piece });
  const response = await fetchResponse(url, { method: "POST", signal });
  if (!response.ok) throw await readError(response);
  return { audio: await response.blob(), pieces: Number(response.headers.get("Palaver-Pieces") ?? 1) };
}

// ---- notifications ---------------------------------------------------------------------------------------

export function getPushStatus(): Promise<Schemas["PushStatusJson"]> {
  return request("GET", "/me/push-subscriptions");
}

export function subscribeToPush(body: Schemas["PushSubscriptionIn"]): Promise<void> {
  return request("POST", "/me/push-subscriptions", { body });
}

export function unsubscribeFromPush(): Promise<void> {
  return request("DELETE", "/me/push-subscriptions");
}

export function sendTestPush(): Promise<void> {
  return request("POST", "/me/push-subscriptions/test");
}

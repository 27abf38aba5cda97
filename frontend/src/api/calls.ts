/** Every request the page makes, by name. */
import { ask } from "./client";
import type {
  Attachment,
  BusyPolicy,
  Command,
  Delivery,
  Events,
  Hits,
  Me,
  Models,
  Policies,
  Project,
  Receipt,
  ReplyTo,
  Session,
  SessionPatch,
  Toolsets,
  WaysIn,
} from "./types";

interface ListView {
  shelf: "current" | "archived" | "pinned";
  project?: string | null;
  platform?: string;
  text?: string;
  all: boolean;
}

export interface Sending {
  content: string;
  key: string;
  busy?: BusyPolicy | undefined;
  attachments: string[];
  reply?: ReplyTo | undefined;
}

const session = (id: string, rest = "") => `/sessions/${encodeURIComponent(id)}${rest}`;
const newKey = () => ({ key: makeKey() });

/** A fresh name for something that must be done once. */
export function makeKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// -- signing in

export const waysIn = () => ask<WaysIn>("GET", "/sign-in");
export const signInByLink = (token: string) => ask<unknown>("POST", "/sign-in/link", { body: { token } });
export const signInByPassword = (name: string, password: string) =>
  ask<unknown>("POST", "/sign-in/password", { body: { name, password } });
export const passkeyOptions = () => ask<Record<string, unknown>>("POST", "/sign-in/passkey/options");
export const signInByPasskey = (credential: unknown) =>
  ask<unknown>("POST", "/sign-in/passkey", { body: { credential } });
export const signOut = () => ask<undefined>("POST", "/sign-out");
export const me = () => ask<Me>("GET", "/me");

// -- conversations

export const listSessions = (view: ListView, cursor: string | null, limit = 50) =>
  ask<{ sessions: Session[]; cursor: string | null }>("GET", "/sessions", { query: { ...view, cursor, limit } });
export const getSession = (id: string, all: boolean) => ask<Session>("GET", session(id), { query: { all } });
export const createSession = (wanted: { title?: string; project?: string; key: string }) =>
  ask<Session>("POST", "/sessions", { body: wanted });
export const changeSession = (id: string, changes: SessionPatch, all: boolean) =>
  ask<Session>("PATCH", session(id), { body: changes, query: { all } });
export const deleteSession = (id: string, all: boolean) => ask<undefined>("DELETE", session(id), { query: { all } });
export const markRead = (id: string, seq: number) => ask<unknown>("PUT", session(id, "/read"), { body: { seq } });

export interface Place {
  before?: number;
  after?: number;
  around?: number;
  limit?: number;
}

export const readMessages = (id: string, place: Place, all: boolean) =>
  ask<Events>("GET", session(id, "/messages"), { query: { ...place, all } });

// -- saying and taking back

export const sendMessage = (id: string, sending: Sending) =>
  ask<Receipt>("POST", session(id, "/messages"), {
    body: { ...sending, busy: sending.busy ?? null },
  });
export const sendAgain = (id: string, delivery: string) =>
  ask<Delivery>("POST", session(id, `/deliveries/${encodeURIComponent(delivery)}/again`));
export const stop = (id: string, queued = false) =>
  ask<Receipt>("POST", session(id, "/stop"), { body: { queued, ...newKey() } });
export const undo = (id: string) => ask<Receipt>("POST", session(id, "/undo"), { body: { turns: 1, ...newKey() } });
export const redo = (id: string) => ask<Receipt>("POST", session(id, "/redo"), { body: newKey() });
export const retry = (id: string) => ask<Receipt>("POST", session(id, "/retry"), { body: newKey() });
export const restore = (id: string) => ask<Receipt>("POST", session(id, "/restore"), { body: newKey() });
export const compress = (id: string) => ask<Receipt>("POST", session(id, "/compress"), { body: newKey() });
export const fork = (id: string, at: number | null) => ask<Session>("POST", session(id, "/fork"), { body: { at } });
export const edit = (id: string, at: number, content: string, attachments: string[]) =>
  ask<{ session: Session; receipt: Receipt }>("POST", session(id, "/edit"), { body: { at, content, attachments, ...newKey() } });
export const exportPath = (id: string, format: "json" | "markdown") => `api${session(id, "/export")}?format=${format}`;

// -- the rest

export const search = (text: string, all: boolean, signal: AbortSignal) =>
  ask<Hits>("GET", "/search", { query: { text, limit: 20, all }, signal });
export const projects = () => ask<{ projects: Project[] }>("GET", "/projects");
export const createProject = (name: string, colour: string) =>
  ask<Project>("POST", "/projects", { body: { name, colour } });
export const changeProject = (id: string, changes: { name?: string; colour?: string }) =>
  ask<Project>("PATCH", `/projects/${encodeURIComponent(id)}`, { body: changes });
export const deleteProject = (id: string) => ask<undefined>("DELETE", `/projects/${encodeURIComponent(id)}`);
export const models = (also: string | null) => ask<Models>("GET", "/models", { query: { also } });
export const toolsets = (id: string) => ask<Toolsets>("GET", session(id, "/toolsets"));
export const policies = () => ask<Policies>("GET", "/policies");
export const commands = () => ask<{ commands: Command[] }>("GET", "/commands");

export function upload(file: File): Promise<Attachment> {
  const form = new FormData();
  form.append("file", file);
  return ask<Attachment>("POST", "/attachments", { body: form });
}

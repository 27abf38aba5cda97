/** The requests that only panels make. */
import { createKey } from "../../api/calls";
import { request, type UrlQuery } from "../../api/http";
import type { Schemas } from "../../api/types";

export type UsageReport = Schemas["UsageReportJson"];
export type UsageRow = Schemas["UsageRowJson"];
export type Grouping = Schemas["UsageGrouping"];
export type Member = Schemas["MemberJson"];
export type Invitation = Schemas["InvitationJson"];
export type Role = Schemas["Role"];
export type ChatAccount = Schemas["ChatAccountJson"];
export type AccessRequest = Schemas["PairingRequestJson"];
export type Grant = Schemas["Grant"];
export type Device = Schemas["DeviceJson"];
export type LinkResult = Schemas["LinkJson"];
export type PendingLink = Schemas["PendingLinkJson"];
export type Passkey = Schemas["PasskeyJson"];
export type Token = Schemas["TokenJson"];
export type Scope = Schemas["Scope"];
export type NewToken = Schemas["NewTokenJson"];
export type Share = Schemas["ShareJson"];
export type PlatformAccount = Schemas["PlatformAccountJson"];
export type Resolution = Schemas["Resolution"];
export type Memory = Schemas["MemoryJson"];
export type Memories = Schemas["MemoriesJson"];
export type MemoryOrigin = Memory["origin"];
export type LogLevel = NonNullable<UrlQuery<"GET", "/api/logs">["level"]>;
export type LogPage = Schemas["LogsJson"];
export type LogRecord = Schemas["LogRecordJson"];
export type HealthReport = Schemas["HealthDetailsJson"];
export type Finding = Schemas["FindingJson"];
export type ResetRule = Schemas["ResetRuleJson"];
export type PruneReport = Schemas["PruneJson"];

export const getUsage = (groupBy: Grouping, first: string, last: string, all: boolean) =>
  request("GET", "/api/usage", { query: { group_by: groupBy, from: first, to: last, all } });

export const listMemories = (query: string, origin: MemoryOrigin | null, cursor: string | null) =>
  request("GET", "/api/memories", { query: { query, origin, cursor } });
export const createMemory = (text: string) => request("POST", "/api/memories", { body: { text } });
export const updateMemory = (id: string, text: string) => request("PATCH", "/api/memories/{memory_id}", { path: { memory_id: id }, body: { text } });
export const deleteMemory = (id: string) => request("DELETE", "/api/memories/{memory_id}", { path: { memory_id: id } });

export const getRetention = () => request("GET", "/api/retention");
export const pruneSessions = (body: Schemas["PruneIn"]) => request("POST", "/api/retention/prune", { body });
export const rewriteDatabaseFile = () => request("POST", "/api/retention/rewrite-file");

export const listPlatforms = () => request("GET", "/api/platforms");
export const listUndelivered = (all: boolean, cursor: string | null) => request("GET", "/api/deliveries", { query: { all, cursor } });
export const resolveUndelivered = (ids: string[], action: Resolution, all: boolean) =>
  request("POST", "/api/deliveries/resolve", { query: { all }, body: { ids, action } });
export const testConnection = (platform: string, account: string) =>
  request("POST", "/api/platforms/{platform}/test", { path: { platform }, query: { account } });

const personInPath = (id: string) => ({ path: { person_id: id } });
const requestInPath = (id: string) => ({ path: { request_id: id } });

export const listPeople = (cursor: string | null) => request("GET", "/api/people", { query: { cursor } });
export const invitePerson = (name: string, role: Role) => request("POST", "/api/people", { body: { name, role } });
export const updatePerson = (id: string, changes: Schemas["PersonChangesIn"]) =>
  request("PATCH", "/api/people/{person_id}", { ...personInPath(id), body: changes });
export const removePerson = (id: string) => request("DELETE", "/api/people/{person_id}", personInPath(id));
export const previewErasure = (id: string) => request("GET", "/api/people/{person_id}/erasure", personInPath(id));
export const erasePerson = (id: string, name: string) => request("POST", "/api/people/{person_id}/erase", { ...personInPath(id), body: { name } });
export const unlinkAccount = (id: string, { platform, account }: ChatAccount) =>
  request("POST", "/api/people/{person_id}/unlink", { ...personInPath(id), body: { platform, account } });
export const createSignInLink = (id: string) => request("POST", "/api/people/{person_id}/link", personInPath(id));
export const listAccessRequests = () => request("GET", "/api/people/requests");
export const approveAccessRequest = (id: string, grant: Grant) =>
  request("POST", "/api/people/requests/{request_id}/approve", { ...requestInPath(id), body: { grant } });
export const denyAccessRequest = (id: string) => request("POST", "/api/people/requests/{request_id}/deny", requestInPath(id));
/** Whose code it is: `facts.id` is the id of the request. */
export const checkPairingCode = (code: string) => request("POST", "/api/commands", { body: { text: `/pair ${code}`, key: createKey() } });

export const listPasskeys = () => request("GET", "/api/me/passkeys");
export const removePasskey = (id: string) => request("DELETE", "/api/me/passkeys/{passkey_id}", { path: { passkey_id: id } });

export const listLinks = () => request("GET", "/api/me/links");
export const createLinkCode = () => request("POST", "/api/me/links/code");
export const sendLinkCode = (code: string) => request("POST", "/api/me/links", { body: { code } });
export const answerLink = (answer: "confirm" | "cancel") => request("POST", "/api/me/links/answer", { body: { answer } });
export const unlinkMyAccount = ({ platform, account }: ChatAccount) => request("POST", "/api/me/links/unlink", { body: { platform, account } });

export const listDevices = () => request("GET", "/api/me/devices");
export const signOutDevice = (id: string) => request("DELETE", "/api/me/devices/{device_id}", { path: { device_id: id } });
export const signOutEverywhere = () => request("POST", "/api/sign-out/everywhere");

export const listTokens = () => request("GET", "/api/me/tokens");
export const createToken = (name: string, scopes: Scope[], days: number | null) =>
  request("POST", "/api/me/tokens", { body: { name, scopes, expires_in_days: days } });
export const revokeToken = (id: string) => request("DELETE", "/api/me/tokens/{token_id}", { path: { token_id: id } });

export const listShares = (all: boolean, cursor: string | null) => request("GET", "/api/shares", { query: { all, cursor } });
export const createShare = (session: string, all: boolean, expiresAt: string | null) =>
  request("POST", "/api/sessions/{session_id}/shares", { path: { session_id: session }, query: { all }, body: { expires_at: expiresAt } });
export const setShareExpiry = (id: string, expiresAt: string | null, all: boolean) =>
  request("PATCH", "/api/shares/{share_id}", { path: { share_id: id }, query: { all }, body: { expires_at: expiresAt } });
export const deleteShare = (id: string, all: boolean) => request("DELETE", "/api/shares/{share_id}", { path: { share_id: id }, query: { all } });
export const getSharedCopy = (secret: string) => request("GET", "/api/shared/{secret}", { path: { secret } });

export const listLogs = (level: LogLevel, text: string, cursor: string | null) => request("GET", "/api/logs", { query: { level, text, cursor, limit: 500 } });
export const getHealth = (asksModel: boolean) => request("GET", "/api/health/details", { query: { asks_model: asksModel } });
export const getUpdateNotes = () => request("GET", "/api/update-notes");
export const sendTestPush = () => request("POST", "/api/me/push-subscriptions/test");

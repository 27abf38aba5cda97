/** The requests that only panels make. */
import { createKey } from "../../api/calls";
import { request } from "../../api/http";
import type { components } from "../../api/schema";

type Schemas = components["schemas"];

export type UsageReport = Schemas["UsageReportJson"];
export type UsageRow = Schemas["UsageRowJson"];
export type Grouping = Schemas["UsageGrouping"];
export type Member = Schemas["MemberJson"];
export type Invitation = Schemas["InvitationJson"];
export type Role = Schemas["Role"];
export type ChatAccount = Schemas["ChatAccountJson"];
export type AccessRequest = Schemas["PairingRequestJson"];
export type Grant = Schemas["Grant"];
type ErasurePreview = Schemas["ErasurePreviewJson"];
type ErasureReport = Schemas["ErasureJson"];
export type Device = Schemas["DeviceJson"];
export type LinkResult = Schemas["LinkJson"];
export type PendingLink = Schemas["PendingLinkJson"];
export type Passkey = Schemas["PasskeyJson"];
export type Token = Schemas["TokenJson"];
export type Scope = Schemas["Scope"];
export type NewToken = Schemas["NewTokenJson"];
export type Share = Schemas["ShareJson"];
export type PlatformAccount = Schemas["PlatformAccountJson"];
export type Linking = Schemas["LinkingJson"];
export type SharedCopy = Schemas["SharedConversationJson"];
export type Memory = Schemas["MemoryJson"];
export type Memories = Schemas["MemoriesJson"];
export type MemoryOrigin = Memory["origin"];
export type LogPage = Schemas["LogsJson"];
export type LogRecord = Schemas["LogRecordJson"];
export type HealthReport = Schemas["HealthDetailsJson"];
export type Finding = Schemas["FindingJson"];
export type Policy = Schemas["PolicyJson"];
export type ResetRule = Schemas["ResetRuleJson"];
type Retention = Schemas["RetentionJson"];
export type PruneReport = Schemas["PruneJson"];

const itemPath = (noun: string, id: string, rest = "") => `/${noun}/${encodeURIComponent(id)}${rest}`;

export const getUsage = (groupBy: Grouping, first: string, last: string, all: boolean) =>
  request<UsageReport>("GET", "/usage", { query: { group_by: groupBy, from: first, to: last, all } });

export const listMemories = (query: string, origin: MemoryOrigin | null, cursor: string | null) =>
  request<Memories>("GET", "/memories", { query: { query, origin, cursor } });
export const createMemory = (text: string) => request<Memory>("POST", "/memories", { body: { text } });
export const updateMemory = (id: string, text: string) => request<Memory>("PATCH", itemPath("memories", id), { body: { text } });
export const deleteMemory = (id: string) => request<undefined>("DELETE", itemPath("memories", id));

export const getRetention = () => request<Retention>("GET", "/retention");
export const pruneSessions = (body: Schemas["PruneIn"]) => request<PruneReport>("POST", "/retention/prune", { body });
export const rewriteDatabaseFile = () => request<Schemas["RewrittenFileJson"]>("POST", "/retention/rewrite-file");

export const listPlatforms = () => request<{ accounts: PlatformAccount[] }>("GET", "/platforms");
export const testConnection = (platform: string, account: string) =>
  request<PlatformAccount>("POST", itemPath("platforms", platform, "/test"), { query: { account } });

export const listPeople = (cursor: string | null) =>
  request<{ people: Member[]; next_cursor: string | null }>("GET", "/people", { query: { cursor } });
export const invitePerson = (name: string, role: Role) => request<Invitation>("POST", "/people", { body: { name, role } });
export const updatePerson = (id: string, changes: { name?: string; role?: Role }) =>
  request<Member>("PATCH", itemPath("people", id), { body: changes });
export const removePerson = (id: string) => request<undefined>("DELETE", itemPath("people", id));
export const previewErasure = (id: string) => request<ErasurePreview>("GET", itemPath("people", id, "/erasure"));
export const erasePerson = (id: string, name: string) => request<ErasureReport>("POST", itemPath("people", id, "/erase"), { body: { name } });
export const unlinkAccount = (id: string, { platform, account }: ChatAccount) =>
  request<Member>("POST", itemPath("people", id, "/unlink"), { body: { platform, account } });
export const listAccessRequests = () => request<{ requests: AccessRequest[] }>("GET", "/people/requests");
export const approveAccessRequest = (id: string, grant: Grant) =>
  request<Member>("POST", itemPath("people/requests", id, "/approve"), { body: { grant } });
/** Whose code it is: `facts.id` is the id of the request. */
export const checkPairingCode = (code: string) => request<Schemas["ReceiptJson"]>("POST", "/commands", { body: { text: `/pair ${code}`, key: createKey() } });
export const denyAccessRequest = (id: string) => request<undefined>("POST", itemPath("people/requests", id, "/deny"));
export const createSignInLink = (id: string) => request<Invitation>("POST", itemPath("people", id, "/link"));

export const listPasskeys = () => request<{ passkeys: Passkey[] }>("GET", "/me/passkeys");
export const removePasskey = (id: string) => request<undefined>("DELETE", itemPath("me/passkeys", id));

export const listLinks = () => request<Schemas["LinksJson"]>("GET", "/me/links");
export const createLinkCode = () => request<Schemas["LinkCodeJson"]>("POST", "/me/links/code");
export const sendLinkCode = (code: string) => request<LinkResult>("POST", "/me/links", { body: { code } });
export const answerLink = (answer: "confirm" | "cancel") => request<LinkResult>("POST", "/me/links/answer", { body: { answer } });
export const unlinkMyAccount = ({ platform, account }: ChatAccount) => request<undefined>("POST", "/me/links/unlink", { body: { platform, account } });

export const listDevices = () => request<{ devices: Device[] }>("GET", "/me/devices");
export const signOutDevice = (id: string) => request<undefined>("DELETE", itemPath("me/devices", id));
export const signOutEverywhere = () => request<undefined>("POST", "/sign-out/everywhere");

export const listTokens = () => request<{ tokens: Token[] }>("GET", "/me/tokens");
export const createToken = (name: string, scopes: Scope[], days: number | null) =>
  request<NewToken>("POST", "/me/tokens", { body: { name, scopes, expires_in_days: days } });
export const revokeToken = (id: string) => request<undefined>("DELETE", itemPath("me/tokens", id));

export const listShares = (all: boolean, cursor: string | null) => request<Schemas["SharesJson"]>("GET", "/shares", { query: { all, cursor } });
export const createShare = (session: string, all: boolean, expiresAt: string | null) =>
  request<Share>("POST", itemPath("sessions", session, "/shares"), { query: { all }, body: { expires_at: expiresAt } });
export const setShareExpiry = (id: string, expiresAt: string | null, all: boolean) =>
  request<Share>("PATCH", itemPath("shares", id), { query: { all }, body: { expires_at: expiresAt } });
export const deleteShare = (id: string, all: boolean) => request<undefined>("DELETE", itemPath("shares", id), { query: { all } });
export const getSharedCopy = (secret: string) => request<SharedCopy>("GET", itemPath("shared", secret));

export const listLogs = (level: string, text: string, cursor: string | null) =>
  request<LogPage>("GET", "/logs", { query: { level, text, cursor, limit: 500 } });
export const getHealth = (asksModel: boolean) => request<HealthReport>("GET", "/health/details", { query: { asks_model: asksModel } });
export const getUpdateNotes = () => request<Schemas["UpdateNotesJson"]>("GET", "/update-notes");

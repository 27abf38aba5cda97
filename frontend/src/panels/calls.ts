/** What the panels ask the server for. */
import { ask } from "../api/client";
import type { components } from "../api/schema";

type Shapes = components["schemas"];

export type UsageReport = Shapes["UsageReportOut"];
export type Spent = Shapes["SpentOut"];
export type Grouping = Shapes["Grouping"];
export type Member = Shapes["MemberOut"];
export type Invited = Shapes["InvitedOut"];
export type Role = Shapes["Role"];
export type Device = Shapes["DeviceOut"];
export type Passkey = Shapes["PasskeyOut"];
export type Token = Shapes["TokenOut"];
export type Scope = Shapes["Scope"];
export type NewToken = Shapes["NewTokenOut"];
export type Share = Shapes["ShareOut"];
export type NewShare = Shapes["NewShareOut"];
export type PlatformHealth = Shapes["PlatformOut"];
export type Shared = Shapes["SharedOut"];
export type Memory = Shapes["MemoryOut"];
export type Memories = Shapes["MemoriesOut"];
export type Policy = Shapes["PolicyOut"];
export type Afresh = Shapes["AfreshOut"];

const one = (noun: string, id: string, rest = "") => `/${noun}/${encodeURIComponent(id)}${rest}`;

export const usage = (by: Grouping, first: string, last: string, all: boolean) =>
  ask<UsageReport>("GET", "/usage", { query: { by, from: first, to: last, all } });

export const memories = (query: string, cursor: string | null) =>
  ask<Memories>("GET", "/memories", { query: { query, cursor } });
export const remember = (text: string) => ask<Memory>("POST", "/memories", { body: { text } });
export const changeMemory = (id: string, text: string) => ask<Memory>("PATCH", one("memories", id), { body: { text } });
export const forgetMemory = (id: string) => ask<undefined>("DELETE", one("memories", id));


export const platforms = () => ask<{ platforms: PlatformHealth[] }>("GET", "/platforms");

export const people = (cursor: string | null) =>
  ask<{ people: Member[]; cursor: string | null }>("GET", "/people", { query: { cursor } });
export const invite = (name: string, role: Role) => ask<Invited>("POST", "/people", { body: { name, role } });
export const changePerson = (id: string, changes: { name?: string; role?: Role }) =>
  ask<Member>("PATCH", one("people", id), { body: changes });
export const removePerson = (id: string) => ask<undefined>("DELETE", one("people", id));
export const linkFor = (id: string) => ask<Invited>("POST", one("people", id, "/link"));

export const rename = (name: string) => ask<unknown>("PATCH", "/me", { body: { name } });
export const setPassword = (current: string | null, fresh: string) =>
  ask<undefined>("PUT", "/me/password", { body: { current, new: fresh } });

export const passkeys = () => ask<{ passkeys: Passkey[] }>("GET", "/me/passkeys");
export const newPasskeyOptions = () => ask<Record<string, unknown>>("POST", "/me/passkeys/options");
export const addPasskey = (name: string, credential: unknown) =>
  ask<Passkey>("POST", "/me/passkeys", { body: { name, credential } });
export const removePasskey = (id: string) => ask<undefined>("DELETE", one("me/passkeys", id));

export const devices = () => ask<{ devices: Device[] }>("GET", "/me/devices");
export const signOutDevice = (id: string) => ask<undefined>("DELETE", one("me/devices", id));
export const signOutEverywhere = () => ask<undefined>("POST", "/sign-out/everywhere");

export const tokens = () => ask<{ tokens: Token[] }>("GET", "/me/tokens");
export const createToken = (name: string, scopes: Scope[], days: number | null) =>
  ask<NewToken>("POST", "/me/tokens", { body: { name, scopes, expires_in_days: days } });
export const revokeToken = (id: string) => ask<undefined>("DELETE", one("me/tokens", id));

export const shares = () => ask<{ shares: Share[] }>("GET", "/shares");
export const makeShare = (session: string, all: boolean) =>
  ask<NewShare>("POST", one("sessions", session, "/shares"), { query: { all } });
export const revokeShare = (id: string) => ask<undefined>("DELETE", one("shares", id));
export const readShared = (secret: string) => ask<Shared>("GET", one("shared", secret));

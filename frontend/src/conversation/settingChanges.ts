/** Changes of a conversation's settings: their description, and how to revert them. Pure. */
import type { BusyPolicy, SessionPatch } from "../api/types";
import { words } from "../words";
import { buildToolsetRevert, getToolsetName } from "./toolsets";

type Facts = Record<string, unknown>;

export function describeChange({ setting, value }: Facts): string {
  if (setting === "toolsets") return describeToolsets(readStrings(value));
  if (setting === "model") return words.modelChanged(readString(value) ?? words.defaultModel);
  if (setting === "profile") return words.profileChanged(readString(value) ?? words.defaultProfileName);
  if (setting === "personality") return describeOptional(value, words.personalityChanged, words.personalityRemoved);
  if (setting === "workspace") return describeOptional(value, words.workspaceChanged, words.workspaceRemoved);
  const policy = readPolicy(value);
  return policy === null ? words.busyPolicyReset : words.busyPolicyChanged(getPolicyName(policy));
}

/** The patch that restores the previous value; null if there is none. */
export function buildRevert({ setting, value, previous }: Facts): SessionPatch | null {
  if (setting === "model") return { model: readString(previous) };
  if (setting === "profile") return { profile: readString(previous) };
  if (setting === "personality") return { personality: readString(previous) };
  if (setting === "workspace") return { workspace: readString(previous) };
  if (setting === "busy_policy") return { busy_policy: readPolicy(previous) };
  if (setting === "toolsets") return { toolsets: buildToolsetRevert(readStrings(value), readStrings(previous)) };
  return null;
}

function getPolicyName(policy: BusyPolicy): string {
  return { queue: words.busyQueue, steer: words.busySteer, interrupt: words.busyInterrupt, reject: words.busyReject }[policy];
}

function readPolicy(value: unknown): BusyPolicy | null {
  return value === "queue" || value === "steer" || value === "interrupt" || value === "reject" ? value : null;
}

function describeToolsets(off: string[]): string {
  return off.length === 0 ? words.allToolsEnabled : words.toolsDisabled(off.map(getToolsetName).join(", "));
}

function describeOptional(value: unknown, describe: (text: string) => string, removed: string): string {
  const text = readString(value);
  return text === null ? removed : describe(text);
}

function readString(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function readStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

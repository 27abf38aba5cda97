/** Changed settings of a conversation: what is said of them, and what leads back. Pure. */
import type { BusyPolicy, SessionPatch } from "../api/types";
import { words } from "../words";
import { switchesBack, toolsetName } from "./toolsets";

type Facts = Record<string, unknown>;

/** What was changed. */
export function changeText({ setting, value }: Facts): string {
  if (setting === "toolsets") return toolsText(namesIn(value));
  if (setting === "model") return words.changedModel(textIn(value) ?? words.defaultModel);
  const policy = policyIn(value);
  return policy === null ? words.changedBusyBack : words.changedBusy(policyName(policy));
}

/** The change that leads back to what held before; null: there is none. */
export function changeBack({ setting, value, was }: Facts): SessionPatch | null {
  if (setting === "model") return { model: textIn(was) };
  if (setting === "busy") return { busy: policyIn(was) };
  if (setting === "toolsets") return { toolsets: switchesBack(namesIn(value), namesIn(was)) };
  return null;
}

function policyName(policy: BusyPolicy): string {
  return { queue: words.busyQueue, steer: words.busySteer, interrupt: words.busyInterrupt, reject: words.busyReject }[policy];
}

function policyIn(value: unknown): BusyPolicy | null {
  return value === "queue" || value === "steer" || value === "interrupt" || value === "reject" ? value : null;
}

function toolsText(off: string[]): string {
  return off.length === 0 ? words.changedToolsAll : words.changedTools(off.map(toolsetName).join(", "));
}

function textIn(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function namesIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

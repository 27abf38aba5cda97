/** Describes the agent: in the reader's language for the built-in models, otherwise with the server's own description. */
import type { Me } from "../api/types";
import { words } from "../words";

export function describeAgent({ agent }: Me): string {
  if (agent.model === "demo") return words.aboutDemo;
  if (agent.model === "local") return words.aboutLocal;
  const sentence = agent.description.charAt(0).toUpperCase() + agent.description.slice(1);
  return words.aboutModel(agent.model, /[.!?]$/.test(sentence) ? sentence : `${sentence}.`);
}

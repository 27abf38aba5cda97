/** Who answers: in the reader's language where the page knows the agent, and in the server's words otherwise. */
import type { Me } from "../api/types";
import { words } from "../words";

export function whoAnswers({ agent }: Me): string {
  if (agent.model === "demo") return words.aboutDemo;
  if (agent.model === "local") return words.aboutLocal;
  const begun = agent.description.charAt(0).toUpperCase() + agent.description.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

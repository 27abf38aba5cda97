/** Explains how to set up a real model, as long as the agent has none. Only an owner can do that. */
import type { Me } from "../api/types";
import { words } from "../words";

const PLACEHOLDER_MODELS = new Set(["demo", "local"]);

export function ModelSetupHint({ me }: { me: Me }) {
  if (!PLACEHOLDER_MODELS.has(me.agent.model)) return null;
  if (me.person.role !== "owner") return <p>{words.aboutModelOwner}</p>;
  return (
    <>
      <p>{words.aboutModel}</p>
      <pre dir="ltr">PALAVER_MODEL=auto ANTHROPIC_API_KEY=… palaver serve</pre>
    </>
  );
}

/** How to connect a real model, as long as a placeholder answers. Only an owner can do that. */
import type { Me } from "../api/types";
import { words } from "../words";

const PLACEHOLDER_MODELS = new Set(["demo", "local"]);

export function ModelSetupHint({ me }: { me: Me }) {
  if (!PLACEHOLDER_MODELS.has(me.agent.model)) return null;
  if (me.person.role !== "owner") return <p>{words.placeholderModelForMembers}</p>;
  return (
    <div className="model-setup">
      <h3>{words.connectModel}</h3>
      <p>{words.connectModelStep}</p>
      <pre dir="ltr">ANTHROPIC_API_KEY=… {me.command} serve</pre>
      <p>
        {words.connectModelOthers} {words.placeholderModel}
      </p>
    </div>
  );
}

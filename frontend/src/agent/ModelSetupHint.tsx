/** Says that a placeholder answers, and leads an owner to where a real model is connected. */
import type { Me } from "../api/types";
import { Link } from "../ui/Link";
import { words } from "../words";

const PLACEHOLDER_MODELS = new Set(["demo", "local"]);

export function ModelSetupHint({ me }: { me: Me }) {
  if (!PLACEHOLDER_MODELS.has(me.agent.model)) return null;
  if (me.person.role !== "owner") return <p>{words.placeholderModelForMembers}</p>;
  return (
    <div className="model-setup">
      <h3>{words.connectModel}</h3>
      <p>
        {words.placeholderModel} <Link to="server" section="models" className="button">{words.connectModelLink}</Link>
      </p>
    </div>
  );
}

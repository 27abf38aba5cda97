/** The version of the server and its agent. */
import { describeAgent } from "../../agent/description";
import { ModelSetupHint } from "../../agent/ModelSetupHint";
import type { Me } from "../../api/types";
import { words } from "../../words";
import { UpdateNotes } from "./UpdateNotes";

export function About({ me }: { me: Me }) {
  return (
    <>
      <dl className="facts">
        <dt>{words.aboutVersion}</dt>
        <dd>{me.version}</dd>
        <dt>{words.model}</dt>
        <dd>{me.agent.model}</dd>
        <dt>{words.aboutAgentDescription}</dt>
        <dd dir="auto">{describeAgent(me)}</dd>
      </dl>
      <div className="model-hint">
        <ModelSetupHint me={me} />
      </div>
      <UpdateNotes />
    </>
  );
}

/** How to give the agent a real model, where it has none; to whom that is theirs to do. */
import type { Me } from "../api/types";
import { words } from "../words";

const NOT_REAL = new Set(["demo", "local"]);

export function ModelAdvice({ me }: { me: Me }) {
  if (!NOT_REAL.has(me.agent.model)) return null;
  if (me.person.role !== "owner") return <p>{words.aboutModelOwner}</p>;
  return (
    <>
      <p>{words.aboutModel}</p>
      <pre dir="ltr">PALAVER_MODEL=auto ANTHROPIC_API_KEY=… palaver serve</pre>
    </>
  );
}

/** How to give the agent a real model, where it has none. */
import { words } from "../words";

const WITHOUT_A_MODEL = new Set(["demo"]);

export function ModelAdvice({ model }: { model: string }) {
  if (!WITHOUT_A_MODEL.has(model)) return null;
  return (
    <>
      <p>{words.aboutModel}</p>
      <pre dir="ltr">ANTHROPIC_API_KEY=… palaver serve</pre>
    </>
  );
}

/** A diagram in a text. What shows it is fetched when the first one is seen; until then it is code. */
import { Suspense } from "react";
import { lazily } from "../lib/lazily";
import { CodeBlock } from "./CodeBlock";
import { DIAGRAM } from "./diagrams";

const Diagram = lazily(() => import("./Diagram"));

export function DiagramBlock({ code }: { code: string }) {
  return (
    <Suspense fallback={<CodeBlock code={code} language={DIAGRAM} />}>
      <Diagram code={code} />
    </Suspense>
  );
}

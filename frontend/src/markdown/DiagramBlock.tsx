/** A diagram in a text. What shows it is fetched when the first one is seen; until then, and without it, it is code. */
import { Suspense } from "react";
import { lazily } from "../lib/lazily";
import { Boundary } from "../ui/Boundary";
import { CodeBlock } from "./CodeBlock";
import { DIAGRAM } from "./diagrams";

const Diagram = lazily(() => import("./Diagram"));

export function DiagramBlock({ code }: { code: string }) {
  const asCode = <CodeBlock code={code} language={DIAGRAM} />;
  return (
    <Boundary instead={asCode}>
      <Suspense fallback={asCode}>
        <Diagram code={code} />
      </Suspense>
    </Boundary>
  );
}

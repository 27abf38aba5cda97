/** A diagram in a text. Its component is loaded when the first diagram is shown; until then, or if that fails, it is code. */
import { Suspense } from "react";
import { lazyWithPreload } from "../lib/lazyWithPreload";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { CodeBlock } from "./CodeBlock";
import { DIAGRAM_LANGUAGE } from "./language";

const Diagram = lazyWithPreload(() => import("./Diagram"));

export function DiagramBlock({ code }: { code: string }) {
  const asCode = <CodeBlock code={code} language={DIAGRAM_LANGUAGE} />;
  return (
    <ErrorBoundary fallback={asCode}>
      <Suspense fallback={asCode}>
        <Diagram code={code} />
      </Suspense>
    </ErrorBoundary>
  );
}

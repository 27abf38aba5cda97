/** What a person wrote: as they wrote it, but for diagrams. */
import { memo, useMemo } from "react";
import { DiagramBlock } from "./DiagramBlock";
import { withDiagrams } from "./diagrams";

export const Written = memo(function Written({ text }: { text: string }) {
  const parts = useMemo(() => withDiagrams(text), [text]);
  return (
    <div className="bubble" dir="auto">
      {parts.map((part, place) => (part.isDiagram ? <DiagramBlock key={place} code={part.text} /> : part.text))}
    </div>
  );
});

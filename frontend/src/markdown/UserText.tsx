/** The text of a person's message, as they typed it, except that diagrams are rendered. */
import { memo, useMemo } from "react";
import { DiagramBlock } from "./DiagramBlock";
import { splitDiagrams } from "./diagrams";

export const UserText = memo(function UserText({ text }: { text: string }) {
  const parts = useMemo(() => splitDiagrams(text), [text]);
  return (
    <div className="bubble" dir="auto">
      {parts.map((part, index) => (part.isDiagram ? <DiagramBlock key={index} code={part.text} /> : part.text))}
    </div>
  );
});

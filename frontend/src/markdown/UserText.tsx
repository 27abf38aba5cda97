/** The text of a person's message, as they typed it, except that fenced code and diagrams are rendered and addresses are links. */
import { Fragment, memo, useMemo } from "react";
import { CodeBlock } from "./CodeBlock";
import { DiagramBlock } from "./DiagramBlock";
import { DIAGRAM_LANGUAGE } from "./language";
import { splitLinks, splitUserText } from "./messageParts";
import "./UserText.css";

const UserText = memo(function UserText({ text }: { text: string }) {
  const parts = useMemo(() => splitUserText(text), [text]);
  return (
    <div className="bubble" dir="auto">
      {parts.map((part, index) => {
        if (part.kind === "text") return <LinkedText key={index} text={part.text} />;
        if (part.language === DIAGRAM_LANGUAGE) return <DiagramBlock key={index} code={part.text} />;
        return <CodeBlock key={index} code={part.text} language={part.language} />;
      })}
    </div>
  );
});

export default UserText;

function LinkedText({ text }: { text: string }) {
  return splitLinks(text).map((part, index) =>
    part.href === null ? (
      <Fragment key={index}>{part.text}</Fragment>
    ) : (
      <a key={index} href={part.href} target="_blank" rel="noopener noreferrer">
        {part.text}
      </a>
    ),
  );
}

/** A block of code with syntax highlighting, its language and a copy button. */
import { memo, useCallback, useDeferredValue, useEffect, useState } from "react";
import { CopyButton } from "../ui/CopyButton";
import { watchScroller } from "../ui/scrollFocus";
import { words } from "../words";
import { findHighlightedCode, highlightCode } from "./highlight";
import "./CodeBlock.css";

interface Props {
  code: string;
  language: string;
}

export const CodeBlock = memo(function CodeBlock({ code, language }: Props) {
  return (
    <figure className="code">
      <figcaption>
        <span>{language}</span>
        <CopyButton text={code} />
      </figcaption>
      <Code code={code} language={language} />
    </figure>
  );
});

export function Code({ code, language }: Props) {
  const deferredCode = useDeferredValue(code);
  const { html, rest } = useHighlightedCode(deferredCode, language);
  const watch = useCallback((element: HTMLPreElement | null) => watchScroller(element, words.code(language)), [language]);
  return (
    <pre dir="ltr" ref={watch}>
      {html === null ? <code>{rest}</code> : (
        <code>
          <span dangerouslySetInnerHTML={{ __html: html }} />
          {rest}
        </code>
      )}
    </pre>
  );
}

/** Highlighted code as HTML, and the rest of it that is not highlighted yet, as code that grows has. */
function useHighlightedCode(code: string, language: string): { html: string | null; rest: string } {
  const [latest, setLatest] = useState<{ code: string; html: string }>();
  const known = findHighlightedCode(code, language);
  useEffect(() => {
    if (known !== undefined) return;
    let isNeeded = true;
    void highlightCode(code, language, () => isNeeded).then((html) => {
      if (html !== null) setLatest({ code, html });
    });
    return () => {
      isNeeded = false;
    };
  }, [code, known, language]);
  if (typeof known === "string") return { html: known, rest: "" };
  if (latest === undefined || known === null || !code.startsWith(latest.code)) return { html: null, rest: code };
  return { html: latest.html, rest: code.slice(latest.code.length) };
}

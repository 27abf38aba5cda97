/** A block of code with syntax highlighting, its language and a copy button. */
import { memo, useDeferredValue, useEffect, useMemo, useState } from "react";
import { CopyButton } from "../ui/CopyButton";
import { highlightCode, loadLanguage } from "./highlight";

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
  const isLoaded = useLanguage(language);
  const html = useMemo(() => (isLoaded ? highlightCode(deferredCode, language) : null), [isLoaded, deferredCode, language]);
  return (
    <pre dir="ltr">
      {html === null ? <code>{deferredCode}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />}
    </pre>
  );
}

/** Loads a language, and returns whether it is loaded. */
function useLanguage(language: string): boolean {
  const [loaded, setLoaded] = useState("");
  useEffect(() => {
    let isMounted = true;
    void loadLanguage(language).then((isFound) => {
      if (isFound && isMounted) setLoaded(language);
    });
    return () => {
      isMounted = false;
    };
  }, [language]);
  return loaded === language && language !== "";
}

/** A block of code: its language, its colours, and a way to copy it. */
import { memo, useDeferredValue, useEffect, useMemo, useState } from "react";
import { CopyButton } from "../ui/CopyButton";
import { coloured, loadLanguage } from "./highlight";

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

/** The code alone. */
export function Code({ code, language }: Props) {
  const shown = useDeferredValue(code);
  const isThere = useLanguage(language);
  const html = useMemo(() => (isThere ? coloured(shown, language) : null), [isThere, shown, language]);
  return (
    <pre dir="ltr">
      {html === null ? <code>{shown}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />}
    </pre>
  );
}

function useLanguage(language: string): boolean {
  const [loaded, setLoaded] = useState("");
  useEffect(() => {
    let isMounted = true;
    void loadLanguage(language).then((found) => {
      if (found && isMounted) setLoaded(language);
    });
    return () => {
      isMounted = false;
    };
  }, [language]);
  return loaded === language && language !== "";
}

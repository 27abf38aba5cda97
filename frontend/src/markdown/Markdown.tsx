/** Markdown on the page, block by block; a block that has not changed is not drawn again. */
import type { Token, Tokens } from "marked";
import { memo, useEffect, useRef, useState } from "react";
import { blocksOf, type Blocks } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { DiagramBlock } from "./DiagramBlock";
import { diagramIn } from "./diagrams";
import { coloured, loadLanguage } from "./highlight";
import { htmlOf, languageOf } from "./html";
import { typeset } from "./math";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const { tokens } = useBlocks(text);
  return (
    <div className="markdown" dir="auto">
      {tokens.map((token, place) =>
        token.type === "space" || token.type === "def" ? null : <Block key={place} token={token} />,
      )}
    </div>
  );
});

/** The blocks of a text that may grow; those of the last time help to find them. */
function useBlocks(text: string): Blocks {
  const [blocks, setBlocks] = useState(() => blocksOf(text));
  const fresh = blocksOf(text, blocks);
  if (fresh !== blocks) setBlocks(fresh);
  return fresh;
}

const Block = memo(function Block({ token }: { token: Token }) {
  const diagram = diagramIn(token);
  if (diagram !== null) return <DiagramBlock code={diagram} />;
  if (token.type === "code") {
    const { text, lang } = token as Tokens.Code;
    return <CodeBlock code={text} language={languageOf(lang)} />;
  }
  return <Html html={htmlOf(token)} />;
}, sameBlock);

/** Blocks that were read again but are as they were. */
function sameBlock(before: { token: Token }, after: { token: Token }): boolean {
  return before.token === after.token || (before.token.type === after.token.type && before.token.raw === after.token.raw);
}

function Html({ html }: { html: string }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (element.current === null) return;
    void typeset(element.current);
    void colourWithin(element.current);
  }, [html]);
  return <div className="block" ref={element} dangerouslySetInnerHTML={{ __html: html }} />;
}

/** Colours for code that stands inside of something else. */
async function colourWithin(element: HTMLElement): Promise<void> {
  for (const code of element.querySelectorAll<HTMLElement>("pre > code[class*=language-]")) {
    const language = code.className.replace("language-", "");
    if (!(await loadLanguage(language))) continue;
    const html = coloured(code.textContent, language);
    if (html !== null) code.innerHTML = html;
  }
}

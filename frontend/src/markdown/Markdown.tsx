/** Markdown on the page, block by block; a block that has not changed is not drawn again. */
import type { Token, Tokens } from "marked";
import { memo, useEffect, useRef, useState, type ReactElement } from "react";
import { blocksOf, groupsOf, holdsCode, insidesOf, type Blocks } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { DiagramBlock } from "./DiagramBlock";
import { diagramIn } from "./diagrams";
import { htmlOf, languageOf } from "./html";
import { typeset } from "./math";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const { tokens, definitions } = useBlocks(text);
  return (
    <div className="markdown" dir="auto">
      {tokens.map((token, place) =>
        token.type === "space" || token.type === "def" ? null : <Block key={place} token={token} definitions={definitions} />,
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

interface BlockProps {
  token: Token;
  definitions: number;
}

const Block = memo(function Block({ token, definitions }: BlockProps) {
  const diagram = diagramIn(token);
  if (diagram !== null) return <DiagramBlock code={diagram} />;
  if (token.type === "code") {
    const { text, lang } = token as Tokens.Code;
    return <CodeBlock code={text} language={languageOf(lang)} />;
  }
  return holdsCode(token) ? <Around token={token} definitions={definitions} /> : <Html html={htmlOf(token)} />;
}, sameBlock);

/** Blocks that were read again but are as they were. */
function sameBlock(before: BlockProps, after: BlockProps): boolean {
  const isSame = before.token.type === after.token.type && before.token.raw === after.token.raw;
  return before.token === after.token || (isSame && before.definitions === after.definitions);
}

/** A list or a quote with code in it, which is drawn as it is elsewhere. */
function Around({ token, definitions }: BlockProps) {
  const insides = insidesOf(token).map((tokens, place) => <Inside key={place} tokens={tokens} definitions={definitions} />);
  return <div className="block">{token.type === "list" ? listOf(token as Tokens.List, insides) : <blockquote>{insides}</blockquote>}</div>;
}

function listOf({ ordered, start }: Tokens.List, insides: readonly ReactElement[]): ReactElement {
  const items = insides.map((inside) => <li key={inside.key}>{inside}</li>);
  return ordered ? <ol start={Number(start)}>{items}</ol> : <ul>{items}</ul>;
}

function Inside({ tokens, definitions }: { tokens: readonly Token[]; definitions: number }) {
  return groupsOf(tokens).map((group, place) => {
    const [first] = group;
    if (first === undefined || !holdsCode(first)) return <Html key={place} html={htmlOf(...group)} />;
    return <Block key={place} token={first} definitions={definitions} />;
  });
}

const Html = memo(function Html({ html }: { html: string }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (element.current !== null) void typeset(element.current);
  }, [html]);
  return <div className="block" ref={element} dangerouslySetInnerHTML={{ __html: html }} />;
});

/** Renders Markdown block by block. A block that has not changed is not rendered again. */
import type { Token, Tokens } from "marked";
import { memo, useEffect, useRef, useState, type ReactElement } from "react";
import { getChildren, groupBlocks, hasCode, splitBlocks, type Blocks } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { DiagramBlock } from "./DiagramBlock";
import { readDiagram } from "./diagrams";
import { readLanguage, renderHtml } from "./html";
import { typesetFormulas } from "./math";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const { text: source, tokens, definitions, isPlain } = useBlocks(text);
  if (isPlain) return <div className="markdown plain" dir="auto">{source}</div>;
  return (
    <div className="markdown" dir="auto">
      {tokens.map((token, index) =>
        token.type === "space" || token.type === "def" ? null : <Block key={index} token={token} definitions={definitions} />,
      )}
    </div>
  );
});

/** The blocks of a text that may grow. The blocks of the previous text are reused. */
function useBlocks(text: string): Blocks {
  const [blocks, setBlocks] = useState(() => splitBlocks(text));
  const next = splitBlocks(text, blocks);
  if (next !== blocks) setBlocks(next);
  return next;
}

interface BlockProps {
  token: Token;
  definitions: number;
}

const Block = memo(function Block({ token, definitions }: BlockProps) {
  const diagram = readDiagram(token);
  if (diagram !== null) return <DiagramBlock code={diagram} />;
  if (token.type === "code") {
    const { text, lang } = token as Tokens.Code;
    return <CodeBlock code={text} language={readLanguage(lang)} />;
  }
  return hasCode(token) ? <ContainerBlock token={token} definitions={definitions} /> : <HtmlBlock html={renderHtml(token)} />;
}, isSameBlock);

function isSameBlock(before: BlockProps, after: BlockProps): boolean {
  const isSame = before.token.type === after.token.type && before.token.raw === after.token.raw;
  return before.token === after.token || (isSame && before.definitions === after.definitions);
}

/** A list or a quote with code in it. The code gets a copy button and highlighting, as it does elsewhere. */
function ContainerBlock({ token, definitions }: BlockProps) {
  const children = getChildren(token).map((tokens, index) => (
    <ChildBlocks key={index} tokens={tokens} definitions={definitions} />
  ));
  return (
    <div className="block">
      {token.type === "list" ? renderList(token as Tokens.List, children) : <blockquote>{children}</blockquote>}
    </div>
  );
}

function renderList({ ordered, start }: Tokens.List, children: readonly ReactElement[]): ReactElement {
  const items = children.map((child) => <li key={child.key}>{child}</li>);
  return ordered ? <ol start={Number(start)}>{items}</ol> : <ul>{items}</ul>;
}

function ChildBlocks({ tokens, definitions }: { tokens: readonly Token[]; definitions: number }) {
  return groupBlocks(tokens).map((group, index) => {
    const [first] = group;
    if (first === undefined || !hasCode(first)) return <HtmlBlock key={index} html={renderHtml(...group)} />;
    return <Block key={index} token={first} definitions={definitions} />;
  });
}

const HtmlBlock = memo(function HtmlBlock({ html }: { html: string }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (element.current !== null) void typesetFormulas(element.current);
  }, [html]);
  return <div className="block" ref={element} dangerouslySetInnerHTML={{ __html: html }} />;
});

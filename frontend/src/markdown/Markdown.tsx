/** Renders Markdown block by block. A block that has not changed is not rendered again. */
import type { Token, Tokens } from "marked";
import { memo, useEffect, useId, useLayoutEffect, useMemo, useRef, useState, type MouseEvent, type ReactElement } from "react";
import { watchScroller } from "../ui/scrollFocus";
import { words } from "../words";
import { findFootnotes, getChildren, groupBlocks, isComponent, splitBlocks, type Blocks } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { DiagramBlock } from "./DiagramBlock";
import { readDiagram } from "./diagrams";
import { getFootnoteId, numberFootnotes, type Footnote, type FootnoteNumbers } from "./footnotes";
import { renderHtml, renderInlineHtml } from "./html";
import type { Details } from "./htmlTags";
import { readLanguage } from "./language";
import { typesetFormulas } from "./math";
import { loadClickedImage, restoreRemoteImages } from "./remoteImages";
import "./markdown.css";

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const { text: source, tokens, definitions, isPlain } = useBlocks(text);
  const notes = useMemo(() => findFootnotes(tokens), [tokens]);
  const footnotes = useFootnoteNumbers(notes);
  if (isPlain) return <div className="markdown plain" dir="auto">{source}</div>;
  return (
    <div className="markdown" dir="auto" onClick={handleClick}>
      {tokens.map((token, index) =>
        isInvisible(token) ? null : <Block key={index} token={token} definitions={definitions} footnotes={footnotes} />,
      )}
      {notes.length > 0 && <Footnotes notes={notes} definitions={definitions} footnotes={footnotes} />}
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

/** The numbers of the notes. They stay the same object while a note grows. */
function useFootnoteNumbers(notes: readonly Footnote[]): FootnoteNumbers {
  const prefix = useId();
  const labels = notes.map((note) => note.label).join("\n");
  return useMemo(() => numberFootnotes(labels === "" ? [] : labels.split("\n"), prefix), [labels, prefix]);
}

function isInvisible(token: Token): boolean {
  return token.type === "space" || token.type === "def" || token.type === "footnote";
}

/** Links to footnotes would otherwise change the address, which names a message. */
function handleClick(event: MouseEvent<HTMLElement>): void {
  const target = event.target as Element;
  loadClickedImage(target);
  const href = target.closest(".footnote-link")?.getAttribute("href");
  if (href == null) return;
  event.preventDefault();
  showElement(document.getElementById(href.slice(1)));
}

function showElement(element: HTMLElement | null): void {
  element?.focus({ preventScroll: true });
  element?.scrollIntoView({ block: "center" });
}

interface BlockContext {
  definitions: number;
  footnotes: FootnoteNumbers;
}

interface BlockProps extends BlockContext {
  token: Token;
}

const Block = memo(function Block({ token, ...context }: BlockProps) {
  const diagram = readDiagram(token);
  if (diagram !== null) return <DiagramBlock code={diagram} />;
  if (token.type === "code") {
    const { text, lang } = token as Tokens.Code;
    return <CodeBlock code={text} language={readLanguage(lang)} />;
  }
  return isComponent(token) ? (
    <ContainerBlock token={token} {...context} />
  ) : (
    <HtmlBlock html={renderHtml([token], context.footnotes)} />
  );
}, isSameBlock);

function isSameBlock(before: BlockProps, after: BlockProps): boolean {
  if (before.footnotes !== after.footnotes && after.token.raw.includes("[^")) return false;
  const isSame = before.token.type === after.token.type && before.token.raw === after.token.raw;
  return before.token === after.token || (isSame && before.definitions === after.definitions);
}

/** A list, a quote or `<details>` with components in it. Code gets a copy button and highlighting, as it does elsewhere. */
function ContainerBlock({ token, ...context }: BlockProps) {
  const children = getChildren(token).map((tokens, index) => <ChildBlocks key={index} tokens={tokens} {...context} />);
  if (token.type === "details") return <DetailsBlock details={token as Details} footnotes={context.footnotes} content={children} />;
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

function DetailsBlock({ details, footnotes, content }: { details: Details; footnotes: FootnoteNumbers; content: readonly ReactElement[] }) {
  const [isOpenAtFirst] = useState(details.isOpen); // only the reader opens and closes it afterwards
  const summary = renderInlineHtml(details.summary, footnotes);
  return (
    <details className="block" open={isOpenAtFirst}>
      {summary === "" ? <summary>{words.details}</summary> : <summary dangerouslySetInnerHTML={{ __html: summary }} />}
      <div className="details-content">{content}</div>
    </details>
  );
}

function ChildBlocks({ tokens, ...context }: BlockContext & { tokens: readonly Token[] }) {
  return groupBlocks(tokens).map((group, index) => {
    const [first] = group;
    if (first === undefined || !isComponent(first)) return <HtmlBlock key={index} html={renderHtml(group, context.footnotes)} />;
    return <Block key={index} token={first} {...context} />;
  });
}

function Footnotes({ notes, ...context }: BlockContext & { notes: readonly Footnote[] }) {
  const section = useRef<HTMLElement>(null);
  const showReference = (id: string) => {
    const links = section.current?.closest(".markdown")?.querySelectorAll<HTMLElement>(".footnote-link") ?? [];
    showElement([...links].find((link) => link.getAttribute("href") === `#${id}`) ?? null);
  };
  return (
    <section className="footnotes" aria-label={words.footnotes} ref={section}>
      <ol>
        {notes.map((note, index) => {
          const id = getFootnoteId(context.footnotes.prefix, index + 1);
          return (
            <li key={index} id={id} tabIndex={-1}>
              <ChildBlocks tokens={note.tokens} {...context} />
              <button type="button" className="footnote-back" aria-label={words.footnoteBack(index + 1)} onClick={() => showReference(id)}>
                ↩
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

const HtmlBlock = memo(function HtmlBlock({ html }: { html: string }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (element.current !== null) restoreRemoteImages(element.current);
  }, [html]);
  useEffect(() => {
    if (element.current === null) return;
    void typesetFormulas(element.current);
    const watch = (selector: string, label: string) =>
      [...(element.current?.querySelectorAll<HTMLElement>(selector) ?? [])].map((each) => watchScroller(each, label));
    const unwatch = [...watch(".table", words.table), ...watch(".math-display", words.formula)];
    return () => unwatch.forEach((stop) => stop());
  }, [html]);
  return <div className="block" ref={element} dangerouslySetInnerHTML={{ __html: html }} />;
});

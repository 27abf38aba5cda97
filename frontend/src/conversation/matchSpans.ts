/** Finds the parts of a rendered message that a search has matched. Pure, except for `findMatchRanges`. */

const MAX_MATCHES = 500;
const LETTER = "[\\p{L}\\p{N}\\p{M}]";

/**
 * Finds where texts occur in another text: start and end of each place. Letter case is ignored, and so is what stands between
 * two words, because a rendered text has other marks and spaces than the message.
 */
export function findMatchSpans(text: string, searched: readonly string[]): [start: number, end: number][] {
  const patterns = [...new Set(searched.map(buildPattern))].filter((pattern) => pattern !== "");
  if (patterns.length === 0) return [];
  const any = `(?:${patterns.sort((a, b) => b.length - a.length).join("|")})`;
  const inWords = findAll(text, new RegExp(`(?<!${LETTER})${any}(?!${LETTER})`, "giu"));
  return inWords.length > 0 ? inWords : findAll(text, new RegExp(any, "giu")); // some scripts have no spaces between words
}

function buildPattern(searched: string): string {
  return (searched.match(new RegExp(`${LETTER}+`, "gu")) ?? []).join("[^\\p{L}\\p{N}\\p{M}]{1,20}");
}

function findAll(text: string, pattern: RegExp): [number, number][] {
  const spans: [number, number][] = [];
  for (const match of text.matchAll(pattern)) {
    spans.push([match.index, match.index + match[0].length]);
    if (spans.length === MAX_MATCHES) break;
  }
  return spans;
}

/** The same for the text of an element, as ranges of the document. */
export function findMatchRanges(root: Node, searched: readonly string[]): Range[] {
  const nodes: { node: Node; start: number }[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  let text = "";
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    nodes.push({ node, start: text.length });
    text += node.nodeValue ?? "";
  }
  let index = 0;
  const findNode = (offset: number) => {
    while ((nodes[index + 1]?.start ?? Number.POSITIVE_INFINITY) <= offset) index += 1;
    return nodes[index];
  };
  return findMatchSpans(text, searched).flatMap(([start, end]) => {
    const first = findNode(start);
    const last = findNode(end - 1);
    if (first === undefined || last === undefined) return [];
    const range = document.createRange();
    range.setStart(first.node, start - first.start);
    range.setEnd(last.node, end - last.start);
    return range;
  });
}

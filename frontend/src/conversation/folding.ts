/** Decides which texts are so long that they are folded, and which of them are open. Pure. */
import type { Row } from "./rows";

const LINE_CHARS = 80; // of a line on a wide screen; an estimate is enough
const MAX_MESSAGE_LINES = 40; // of a person's message
const MAX_ANSWER_LINES = 200; // of a text in an answer, which is there to be read
const FOLDED_LINES = 20; // that stay visible, as `.folded` says
const LINE_HEIGHT_PX = 26;

export interface FoldState {
  choices: ReadonlyMap<string, boolean>; // of the reader, by the key of a text: whether it is open
  openRows: ReadonlySet<string>; // rows whose texts are open unless the reader folds them
  targetKey: string | null; // the row that a link led to last
}

export const ALL_FOLDED: FoldState = { choices: new Map(), openRows: new Set(), targetKey: null };

export function isLongMessage(text: string): boolean {
  return countLines(text, MAX_MESSAGE_LINES) > MAX_MESSAGE_LINES;
}

export function isLongAnswer(text: string): boolean {
  return countLines(text, MAX_ANSWER_LINES) > MAX_ANSWER_LINES;
}

export function isOpen({ choices, openRows }: FoldState, rowKey: string, part: number): boolean {
  return choices.get(buildKey(rowKey, part)) ?? openRows.has(rowKey);
}

export function choose(state: FoldState, rowKey: string, part: number, isNowOpen: boolean): FoldState {
  return { ...state, choices: new Map([...state.choices, [buildKey(rowKey, part), isNowOpen]]) };
}

/**
 * Opens what must not be folded: a row that a link leads to, even if the reader has folded it before; and an answer that has
 * grown before the reader's eyes. Returns the same object if there is nothing to open.
 */
export function openRows(state: FoldState, rows: readonly Row[], targetKey: string | null): FoldState {
  const growing = rows.filter((row) => row.kind === "answer" && row.running).map((row) => row.key);
  const isNewTarget = targetKey !== null && targetKey !== state.targetKey;
  const added = [...growing, ...(isNewTarget ? [targetKey] : [])].filter((key) => !state.openRows.has(key));
  if (added.length === 0 && !isNewTarget) return state;
  const isOther = (key: string) => !isNewTarget || !key.startsWith(buildKey(targetKey, ""));
  return {
    targetKey: isNewTarget ? targetKey : state.targetKey,
    openRows: new Set([...state.openRows, ...added]),
    choices: new Map([...state.choices].filter(([key]) => isOther(key))),
  };
}

function buildKey(rowKey: string, part: number | ""): string {
  return `${rowKey}/${part}`;
}

/** About how high a text is. */
export function estimateTextHeight(text: string, isFolded: boolean): number {
  return LINE_HEIGHT_PX * (isFolded ? FOLDED_LINES : Math.ceil(text.length / LINE_CHARS));
}

/** About how many lines a text fills, without counting on when there are more than `enough`. */
function countLines(text: string, enough: number): number {
  let count = 0;
  for (let start = 0; start < text.length && count <= enough; ) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    count += Math.ceil((end - start) / LINE_CHARS); // none for an empty line, which only separates paragraphs
    start = end + 1;
  }
  return count;
}

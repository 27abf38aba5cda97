/**
 * Syntax highlighting without waiting for it: a worker does the work, one text after the other.
 *
 * Always true: a text that takes too long costs the page nothing. Its worker is ended, the text stays plain, and the next
 * one gets a new worker.
 */
export interface HighlightRequest {
  id: number;
  code: string;
  language: string;
}

interface HighlightResult {
  html: string | null;
  isFinal: boolean; // highlighting it again would give the same
}

/** The worker has loaded the language and starts to highlight, or it has ended. */
export type HighlightReply = { id: number; isLoaded: true } | { id: number; result: HighlightResult };

const MAX_CODE_CHARS = 50_000;
const MAX_LOAD_MS = 60_000; // for the worker and the language, on a slow connection
const MAX_HIGHLIGHT_MS = 3000; // after that
const MAX_RESULT_CHARS = 2_000_000;

const results = new Map<string, string | null>(); // the newest ones: null is a text that stays plain
let resultChars = 0;
let worker: Worker | null = null;
let lastId = 0;
let queue: Promise<unknown> = Promise.resolve();

/** Code that was highlighted before, as HTML; undefined if it was not, null if it stays plain. */
export function findHighlightedCode(code: string, language: string): string | null | undefined {
  return language === "" || code.length > MAX_CODE_CHARS ? null : results.get(makeKey(code, language));
}

/** Highlights code, unless `isNeeded` says no when its turn has come. */
export async function highlightCode(code: string, language: string, isNeeded: () => boolean): Promise<string | null> {
  const waiting = queue.then(async () => {
    const known = findHighlightedCode(code, language);
    if (known !== undefined) return known;
    if (!isNeeded()) return null;
    const { html, isFinal } = await askWorker(code, language);
    if (isFinal) saveResult(makeKey(code, language), html);
    return html;
  });
  queue = waiting.catch(() => null);
  return waiting;
}

function askWorker(code: string, language: string): Promise<HighlightResult> {
  const current = (worker ??= new Worker(new URL("./highlight.worker.ts", import.meta.url), { type: "module" }));
  const id = ++lastId;
  return new Promise((resolve) => {
    const finish = (result: HighlightResult) => {
      clearTimeout(timer);
      current.removeEventListener("message", onMessage);
      current.removeEventListener("error", onError);
      resolve(result);
    };
    const giveUp = (result: HighlightResult) => {
      current.terminate();
      worker = null;
      finish(result);
    };
    const onMessage = ({ data }: MessageEvent<HighlightReply>) => {
      if (data.id !== id) return;
      if ("result" in data) return finish(data.result);
      clearTimeout(timer);
      timer = setTimeout(() => giveUp({ html: null, isFinal: true }), MAX_HIGHLIGHT_MS);
    };
    const onError = () => giveUp({ html: null, isFinal: false }); // it could not be loaded: the next code tries again
    let timer = setTimeout(onError, MAX_LOAD_MS);
    current.addEventListener("message", onMessage);
    current.addEventListener("error", onError);
    current.postMessage({ id, code, language } satisfies HighlightRequest);
  });
}

function saveResult(key: string, html: string | null): void {
  results.set(key, html);
  resultChars += key.length + (html?.length ?? 0);
  for (const [oldKey, oldHtml] of results) {
    if (resultChars <= MAX_RESULT_CHARS) return;
    results.delete(oldKey);
    resultChars -= oldKey.length + (oldHtml?.length ?? 0);
  }
}

function makeKey(code: string, language: string): string {
  return `${language}\n${code}`;
}

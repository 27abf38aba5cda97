/** Highlights code beside the page. The page ends this worker when a text takes too long. */
import type { HighlightRequest, HighlightResult } from "./highlight";
import { highlightNow } from "./languages";

self.addEventListener("message", (event: MessageEvent<HighlightRequest>) => {
  const { id, code, language } = event.data;
  const reply = (result: Omit<HighlightResult, "id">) => self.postMessage({ id, ...result } satisfies HighlightResult);
  highlightNow(code, language).then(
    (html) => reply({ html, isFinal: true }),
    () => reply({ html: null, isFinal: false }), // the server is away: the next code in this language tries again
  );
});

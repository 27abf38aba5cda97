/** Highlights code beside the page. The page ends this worker when a text takes too long. */
import type { HighlightRequest, HighlightReply } from "./highlight";
import { highlightNow } from "./languages";

self.addEventListener("message", (event: MessageEvent<HighlightRequest>) => {
  const { id, code, language } = event.data;
  const reply = (message: HighlightReply) => self.postMessage(message);
  highlightNow(code, language, () => reply({ id, isLoaded: true })).then(
    (html) => reply({ id, result: { html, isFinal: true } }),
    () => reply({ id, result: { html: null, isFinal: false } }), // the server is away: the next code in this language tries again
  );
});

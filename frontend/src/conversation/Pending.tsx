/** What was said here and has not arrived yet. */
import { useCenter } from "../live/context";
import type { Entry } from "../outbox/entries";
import { WarningIcon } from "../ui/icons";
import { words } from "../words";
import { Files } from "./Attachments";
import { GoesTo } from "./Delivered";

export function Pending({ entry, isOffline, goesTo = null }: { entry: Entry; isOffline: boolean; goesTo?: string | null }) {
  const { outbox } = useCenter();
  return (
    <article className="said pending" aria-label={words.you}>
      <Files files={entry.attachments} all={false} />
      {entry.text !== "" && (
        <div className="bubble" dir="auto">
          {entry.text}
        </div>
      )}
      {entry.refused === null ? (
        <div className="message-foot shown">
          <span>{isOffline ? words.keptForLater : words.sending}</span>
          {goesTo !== null && <GoesTo platform={goesTo} />}
        </div>
      ) : (
        <div className="message-foot shown serious" role="alert">
          <WarningIcon />
          <span>
            {words.refused}: {entry.refused}
          </span>
          <button type="button" className="text-button" onClick={() => outbox.again(entry.key)}>
            {words.again}
          </button>
          <button type="button" className="text-button" onClick={() => outbox.drop(entry.key)}>
            {words.discard}
          </button>
        </div>
      )}
    </article>
  );
}

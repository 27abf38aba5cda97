/** What was said here and has not arrived yet. */
import { useCenter } from "../live/context";
import type { Entry } from "../outbox/entries";
import { WarningIcon } from "../ui/icons";
import { words } from "../words";
import { writeAgain } from "./actions";
import { Files } from "./Attachments";
import { GoesTo } from "./Delivered";

interface Props {
  entry: Entry;
  place: string; // where it can be written again
  isOffline: boolean;
  goesTo?: string | null;
}

export function Pending({ entry, place, isOffline, goesTo = null }: Props) {
  const center = useCenter();
  const { outbox } = center;
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
          <button type="button" className="text-button" onClick={() => writeAgain(center, entry, place)}>
            {words.writeAgain}
          </button>
          <button type="button" className="text-button" onClick={() => outbox.drop(entry.key)}>
            {words.discard}
          </button>
        </div>
      )}
    </article>
  );
}

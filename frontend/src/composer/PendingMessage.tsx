/** A message that was sent on this page and has not arrived yet, or was rejected. */
import { Suspense } from "react";
import { lazyWithPreload } from "../lib/lazyWithPreload";
import { useLiveClient } from "../live/context";
import type { OutboxEntry } from "../outbox/entries";
import { moveToComposer } from "../sessions/actions";
import { WarningIcon } from "../ui/icons";
import { words } from "../words";
import { AlsoSentTo } from "./AlsoSentTo";
import { MessageFiles } from "./Attachments";
import "./message.css";

// Offline it may not be loaded yet, but the text of an unsent message is always shown.
const UserText = lazyWithPreload(() => import("../markdown/UserText").catch(() => ({ default: PlainText })));

interface Props {
  entry: OutboxEntry;
  draftId: string; // of the composer in which it can be edited
  isOffline: boolean;
  alsoSentTo?: string | null; // a platform
}

export function PendingMessage({ entry, draftId, isOffline, alsoSentTo = null }: Props) {
  const client = useLiveClient();
  const { outbox } = client;
  return (
    <article className="user-message pending" aria-label={words.you}>
      <MessageFiles files={entry.attachments} all={false} />
      {entry.text !== "" && (
        <Suspense fallback={<PlainText text={entry.text} />}>
          <UserText text={entry.text} />
        </Suspense>
      )}
      {entry.rejection === null ? (
        <div className="message-foot shown">
          <span>{isOffline ? words.waitingForConnection : words.sending}</span>
          {alsoSentTo !== null && <AlsoSentTo platform={alsoSentTo} />}
        </div>
      ) : (
        <div className="message-foot shown is-error" role="alert">
          <WarningIcon />
          <span>
            {words.notSent}: {entry.rejection}
          </span>
          <button type="button" className="text-button" onClick={() => outbox.retry(entry.key)}>
            {words.tryAgain}
          </button>
          <button type="button" className="text-button" onClick={() => moveToComposer(client, entry, draftId)}>
            {words.editUnsent}
          </button>
          <button type="button" className="text-button" onClick={() => outbox.remove(entry.key)}>
            {words.discard}
          </button>
        </div>
      )}
    </article>
  );
}

function PlainText({ text }: { text: string }) {
  return (
    <div className="bubble" dir="auto">
      {text}
    </div>
  );
}

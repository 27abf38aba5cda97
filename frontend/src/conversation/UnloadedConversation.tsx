/** A conversation that cannot be loaded at the moment: says so, and lets people write what is sent later. */
import { Composer } from "../composer/Composer";
import { PendingMessage } from "../composer/PendingMessage";
import { useStore } from "../lib/store";
import { SidebarButtons } from "../layout/SidebarButtons";
import { useLiveClient, useMe, useSession } from "../live/context";
import { getSessionName } from "../sessions/names";
import { words } from "../words";
import "./conversation.css";

export function UnloadedConversation({ id }: { id: string }) {
  const client = useLiveClient();
  const me = useMe();
  const session = useSession(id);
  const entries = useStore(client.outbox.entries);
  const isMine = useStore(client.showsAll, (all) => !all) || session?.owner_name === me.person.name;
  return (
    <section className="conversation">
      <header className="bar">
        <SidebarButtons />
        {session !== undefined && (
          <h1 className="bar-title" dir="auto">
            {getSessionName(session)}
          </h1>
        )}
      </header>
      <div className="empty-page" role="status">
        <h2>{words.conversationUnreachable}</h2>
        <p>{words.conversationUnreachableHint}</p>
      </div>
      {isMine && (
        <div className="conversation-foot">
          {entries.map((entry) => entry.session === id && <PendingMessage key={entry.key} entry={entry} draftId={id} isOffline />)}
          <Composer
            draftId={id}
            placeholder={words.messagePlaceholder}
            isRunning={false}
            policy={null}
            onSend={(message) => client.sendMessage({ ...message, session: id, newSession: {} })}
          />
        </div>
      )}
    </section>
  );
}

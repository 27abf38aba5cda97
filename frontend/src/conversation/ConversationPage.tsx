/** The page of one conversation. */
import { useCallback, useEffect, useState } from "react";
import { attempt } from "../api/attempt";
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import { Composer } from "../composer/Composer";
import { PendingMessage } from "../composer/PendingMessage";
import { useFileDrop } from "../composer/useFileDrop";
import { getPlatformName } from "../format/platforms";
import { SidebarButtons } from "../layout/SidebarButtons";
import { useDocumentTitle } from "../lib/documentTitle";
import { useStore } from "../lib/store";
import { useLiveClient, useMe, useSession } from "../live/context";
import type { CommandReply } from "../live/liveClient";
import { includesSeq, isAnswering, type State } from "../live/state";
import { Markdown } from "../markdown/Markdown";
import { NEW_DRAFT } from "../outbox/composerDrafts";
import { getSessionName } from "../sessions/names";
import { CloseIcon, GatewayIcon } from "../ui/icons";
import { Link } from "../ui/Link";
import { words } from "../words";
import { ContextWarning } from "./ContextMeter";
import { ConversationHeader } from "./ConversationHeader";
import { Messages } from "./Messages";
import { ReplyChoice, useReplyTarget } from "./ReplyChoice";
import { UnloadedConversation } from "./UnloadedConversation";
import "./conversation.css";

const OWN_SURFACES = new Set(["web", "local", "api"]); // where people see the conversation itself, so that nothing has to be delivered
const MAX_COMMAND_REPLIES = 2;
const NO_REPLIES: readonly CommandReply[] = [];

export default function ConversationPage({ id, seq }: { id: string; seq: number | null }) {
  const client = useLiveClient();
  const session = useSession(id);
  const isMissing = useStore(client.missingSessions, (missing) => missing.has(id));
  const isUnreachable = useStore(client.unreachableSession, (unreachable) => unreachable === id);
  const isLoaded = useStore(client.state, ({ conversations }) => conversations[id] !== undefined);
  const includesTarget = useStore(
    client.state,
    useCallback(
      ({ conversations: { [id]: conversation } }: State) =>
        conversation !== undefined && (seq === null || includesSeq(conversation, seq)),
      [id, seq],
    ),
  );

  // Once shown, it stays: the message may go with its version, or another part may be loaded.
  const address = `${id}#${String(seq)}`;
  const [shownAddress, setShownAddress] = useState("");
  if (includesTarget && shownAddress !== address) setShownAddress(address);
  const isReady = includesTarget || (isLoaded && shownAddress === address);

  useEffect(() => void client.openSession(id, seq), [client, id, seq]);
  useEffect(() => () => client.closeSession(), [client]);
  useDocumentTitle(session === undefined ? "" : getSessionName(session));

  if (isMissing) return <MissingConversation id={id} />;
  if (session !== undefined && isReady) return <OpenConversation key={id} session={session} seq={seq} />;
  return isUnreachable ? <UnloadedConversation key={id} id={id} /> : <LoadingConversation />;
}

/** Only `Messages` renders a growing answer, so that typing in the composer stays fast meanwhile. */
function OpenConversation({ session, seq }: { session: Session; seq: number | null }) {
  const client = useLiveClient();
  const { isDragging, handlers } = useFileDrop((files) => client.composerDrafts.addFiles(session.id, files));
  const [reply, setReply] = useReplyTarget(session);
  const [sentCount, setSentCount] = useState(0);
  const me = useMe();
  const isMine = useStore(client.showsAll, (all) => !all) || session.owner_name === me.person.name;
  const isRunning = useStore(
    client.state,
    useCallback((state: State) => isAnswering(state, session.id), [session.id]),
  );
  return (
    <section className="conversation" {...(isMine && handlers)}>
      <ConversationHeader session={session} canAct={isMine} />
      <Messages session={session} targetSeq={seq} canAct={isMine} sentCount={sentCount} />
      <div className="conversation-foot">
        <CommandReplies sessionId={session.id} />
        {isMine ? (
          <>
            {session.reachable && <ReplyChoice session={session} value={reply} onChange={setReply} />}
            {!session.reachable && !OWN_SURFACES.has(session.platform) && (
              <p className="composer-note">{words.replyOnlyHere(getPlatformName(session.platform))}</p>
            )}
            <ContextWarning session={session} />
            <Composer
              draftId={session.id}
              placeholder={words.messagePlaceholder}
              isRunning={isRunning}
              policy={session.busy_policy}
              onSend={(message) => {
                client.sendMessage({ ...message, reply, session: session.id, newSession: {} });
                setSentCount(sentCount + 1);
              }}
              onStop={() => void attempt(() => calls.stopTurn(session.id))}
            />
          </>
        ) : (
          <p className="composer-note">{words.readOnlyConversation}</p>
        )}
      </div>
      {isDragging && <div className="drop-hint">{words.dropFiles}</div>}
    </section>
  );
}

/** The gateway's replies to commands. They are not part of the conversation, and stay until they are dismissed. */
function CommandReplies({ sessionId }: { sessionId: string }) {
  const client = useLiveClient();
  const replies = useStore(client.commandReplies, (all) => all[sessionId] ?? NO_REPLIES);
  return (
    <div className="replies" role="status">
      {replies.slice(-MAX_COMMAND_REPLIES).map((reply) => (
        <div className="reply" key={reply.id}>
          <GatewayIcon />
          <Markdown text={reply.text} />
          <button
            type="button"
            className="icon-button small"
            aria-label={words.dismiss}
            title={words.dismiss}
            onClick={() => client.dismissCommandReply(sessionId, reply.id)}
          >
            <CloseIcon />
          </button>
        </div>
      ))}
    </div>
  );
}

function LoadingConversation() {
  return (
    <section className="conversation" aria-busy="true" aria-label={words.loading}>
      <header className="bar">
        <SidebarButtons />
      </header>
      <div className="skeleton">
        <i />
        <i />
        <i />
      </div>
    </section>
  );
}

/** Unsent messages to a deleted conversation are still shown, so that no text is lost. */
function MissingConversation({ id }: { id: string }) {
  const client = useLiveClient();
  const entries = useStore(client.outbox.entries);
  const isOffline = useStore(client.connection, (connection) => connection !== "live");
  return (
    <section className="conversation">
      <header className="bar">
        <SidebarButtons />
      </header>
      <div className="empty-page">
        <h1>{words.conversationNotFound}</h1>
        <p>{words.conversationNotFoundHint}</p>
        {entries.map(
          (entry) =>
            entry.session === id && <PendingMessage key={entry.key} entry={entry} draftId={NEW_DRAFT} isOffline={isOffline} />,
        )}
        <Link to="" className="button">
          {words.goHome}
        </Link>
      </div>
    </section>
  );
}

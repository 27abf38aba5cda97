/** One conversation. */
import { useCallback, useEffect, useState } from "react";
import * as calls from "../api/calls";
import type { Session } from "../api/types";
import { useStore } from "../lib/store";
import { useTitle } from "../lib/title";
import type { Reply } from "../live/center";
import { useCenter, useMe, useSession } from "../live/context";
import { holds, isAnswering, type State } from "../live/state";
import { Markdown } from "../markdown/Markdown";
import type { Entry } from "../outbox/entries";
import { MenuButton } from "../shell/MenuButton";
import { nameOf, platformName } from "../sidebar/naming";
import { Link } from "../lib/Link";
import { CloseIcon, GatewayIcon } from "../ui/icons";
import { words } from "../words";
import { attempt } from "./actions";
import { Composer } from "./Composer";
import { NEW } from "./composing";
import { Header } from "./Header";
import { Messages } from "./Messages";
import { NearlyFull } from "./Meters";
import { Pending } from "./Pending";
import { ReplyChoice, useReply } from "./ReplyChoice";
import { useDrop } from "./useDrop";

const OURS = new Set(["web", "local", "api"]); // surfaces on which people read the conversation itself
const NO_REPLIES: readonly Reply[] = [];
const every = (entries: readonly Entry[]) => entries;

export default function ConversationPage({ id, seq }: { id: string; seq: number | null }) {
  const center = useCenter();
  const session = useSession(id);
  const isMissing = useStore(center.missing, (missing) => missing.has(id));
  const isReady = useStore(
    center.state,
    useCallback(
      ({ conversations: { [id]: known } }: State) => known !== undefined && (seq === null || holds(known, seq)),
      [id, seq],
    ),
  );

  useEffect(() => void center.open(id, seq), [center, id, seq]);
  useEffect(() => () => center.leave(), [center]);
  useTitle(session === undefined ? "" : nameOf(session));

  if (isMissing) return <NotThere id={id} />;
  return session === undefined || !isReady ? <Opening /> : <Open key={id} session={session} seq={seq} />;
}

/** What grows is drawn by `Messages` alone, so that writing stays quick meanwhile. */
function Open({ session, seq }: { session: Session; seq: number | null }) {
  const center = useCenter();
  const { isOver, handlers } = useDrop((files) => center.unfinished.add(session.id, files));
  const [reply, setReply] = useReply(session);
  const [said, setSaid] = useState(0);
  const me = useMe();
  const isMine = useStore(center.everybodys, (all) => !all) || session.owner === me.person.name;
  const isRunning = useStore(
    center.state,
    useCallback((state: State) => isAnswering(state, session.id), [session.id]),
  );
  return (
    <section className="conversation" {...(isMine && handlers)}>
      <Header session={session} mayAct={isMine} />
      <Messages session={session} target={seq} mayAct={isMine} said={said} />
      <div className="foot">
        <Replies session={session.id} />
        {isMine ? (
          <>
            {session.reachable && <ReplyChoice session={session} value={reply} onChange={setReply} />}
            {!session.reachable && !OURS.has(session.platform) && (
              <p className="where">{words.replyHere(platformName(session.platform))}</p>
            )}
            <NearlyFull session={session} />
            <Composer
              place={session.id}
              placeholder={words.writeHere}
              running={isRunning}
              policy={session.busy_policy}
              onSend={(what) => {
                center.say({ ...what, reply, session: session.id, begin: {} });
                setSaid(said + 1);
              }}
              onStop={() => void attempt(() => calls.stop(session.id))}
            />
          </>
        ) : (
          <p className="where">{words.notYours}</p>
        )}
      </div>
      {isOver && <div className="drop-sign">{words.dropHere}</div>}
    </section>
  );
}

/** What the gateway answered to commands; it is no part of the conversation, and goes when it is dismissed. */
function Replies({ session }: { session: string }) {
  const center = useCenter();
  const replies = useStore(center.replies, (all) => all[session] ?? NO_REPLIES);
  return (
    <div className="replies" role="status">
      {replies.slice(-2).map((reply) => (
        <div className="reply" key={reply.id}>
          <GatewayIcon />
          <Markdown text={reply.text} />
          <button
            type="button"
            className="icon-button small"
            aria-label={words.dismiss}
            title={words.dismiss}
            onClick={() => center.dismissReply(session, reply.id)}
          >
            <CloseIcon />
          </button>
        </div>
      ))}
    </div>
  );
}

function Opening() {
  return (
    <section className="conversation" aria-busy="true" aria-label={words.loading}>
      <header className="bar">
        <MenuButton />
      </header>
      <div className="opening">
        <i />
        <i />
        <i />
      </div>
    </section>
  );
}

/** What was said and found it gone is still shown, so that nothing anybody wrote is lost. */
function NotThere({ id }: { id: string }) {
  const center = useCenter();
  const entries = useStore(center.outbox.entries, every);
  const isOffline = useStore(center.connection, (connection) => connection !== "live");
  return (
    <section className="conversation">
      <header className="bar">
        <MenuButton />
      </header>
      <div className="empty-page">
        <h1>{words.notThere}</h1>
        <p>{words.notThereText}</p>
        {entries.map((entry) => entry.session === id && <Pending key={entry.key} entry={entry} place={NEW} isOffline={isOffline} />)}
        <Link to="" className="button">
          {words.toStart}
        </Link>
      </div>
    </section>
  );
}

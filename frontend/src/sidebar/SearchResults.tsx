/** What a search finds: conversations by their titles, messages by their words. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import type { Hit, Session } from "../api/types";
import { Link } from "../lib/Link";
import { useStore } from "../lib/store";
import { ago } from "../lib/time";
import { usePaused } from "../lib/usePaused";
import { useCenter, useSession } from "../live/context";
import { giveWay } from "../shell/layout";
import { PlatformBadge } from "../ui/PlatformBadge";
import { words } from "../words";
import { whyNot } from "../words/refusals";
import { marked } from "./marking";
import { nameOf } from "./naming";

export function SearchResults({ text }: { text: string }) {
  const center = useCenter();
  const all = useStore(center.everybodys, (value) => value);
  const wanted = usePaused(text.trim());
  const titles = useQuery({
    queryKey: ["titles", wanted, all],
    queryFn: () => calls.listSessions({ shelf: "current", text: wanted, all }, null, 8),
    enabled: wanted !== "",
    placeholderData: keepPreviousData,
  });
  const hits = useQuery({
    queryKey: ["search", wanted, all],
    queryFn: ({ signal }) => calls.search(wanted, all, signal),
    enabled: wanted !== "",
    placeholderData: keepPreviousData,
  });
  const sessions = titles.data?.sessions ?? [];
  const found = hits.data?.hits ?? [];
  const failure = titles.error ?? hits.error;
  const isDone = hits.isSuccess && titles.isSuccess && !hits.isPlaceholderData && !titles.isPlaceholderData;
  return (
    <div className="session-list results" aria-busy={!isDone && failure === null}>
      <p className="visually-hidden" role="status">
        {isDone ? words.foundCount(sessions.length + found.length) : ""}
      </p>
      {sessions.length > 0 && <h3>{words.titles}</h3>}
      {sessions.map((session) => (
        <TitleFound key={session.id} session={session} />
      ))}
      {found.length > 0 && <h3>{words.messages}</h3>}
      {found.map((hit) => (
        <MessageFound key={`${hit.session_id}-${hit.seq}`} hit={hit} />
      ))}
      {failure !== null && (
        <p className="nothing" role="alert">
          {whyNot(failure)}{" "}
          <button type="button" className="text-button" onClick={() => void Promise.all([titles.refetch(), hits.refetch()])}>
            {words.again}
          </button>
        </p>
      )}
      {isDone && sessions.length === 0 && found.length === 0 && (
        <p className="nothing">
          {words.nothingFound}
          <br />
          {words.nothingFoundHint}
        </p>
      )}
    </div>
  );
}

function TitleFound({ session }: { session: Session }) {
  return (
    <Link to={session.id} className="found" onClick={giveWay}>
      <span className="session-top">
        {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
        <span className="session-name" dir="auto">
          {nameOf(session)}
        </span>
      </span>
    </Link>
  );
}

function MessageFound({ hit }: { hit: Hit }) {
  const session = useSession(hit.session_id);
  return (
    <Link to={hit.session_id} at={hit.seq} className="found" onClick={giveWay}>
      <span className="session-top">
        <span className="session-name" dir="auto">
          {hit.title ?? (session === undefined ? words.untitled : nameOf(session))}
        </span>
        <time dateTime={hit.at}>{ago(hit.at)}</time>
      </span>
      <span className="snippet" dir="auto">
        {marked(hit.snippet, hit.marks).map((part, place) =>
          part.isMarked ? <mark key={place}>{part.text}</mark> : <span key={place}>{part.text}</span>,
        )}
      </span>
    </Link>
  );
}

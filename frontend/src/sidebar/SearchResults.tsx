/** The results of a search: conversations by title, messages by text. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import * as calls from "../api/calls";
import { describeError } from "../api/errors";
import type { SearchHit, Session } from "../api/types";
import { formatRecent } from "../format/time";
import { hideSidebarIfNarrow } from "../layout/sidebarVisibility";
import { useStore } from "../lib/store";
import { useDebounced } from "../lib/useDebounced";
import { useLiveClient, useSession } from "../live/context";
import { getSessionName } from "../sessions/names";
import { Link } from "../ui/Link";
import { PlatformBadge } from "../ui/PlatformBadge";
import { words } from "../words";
import { splitHighlights } from "./highlights";
import { buildFilterQuery, type SearchFilters } from "./searchFilters";

const MAX_SESSION_HITS = 8;

export function SearchResults({ text, filters }: { text: string; filters: SearchFilters }) {
  const client = useLiveClient();
  const all = useStore(client.showsAll);
  const query = useDebounced(text.trim());
  const filterQuery = buildFilterQuery(filters);
  const { role, ...listFilters } = filterQuery;
  const titles = useQuery({
    queryKey: ["titles", query, listFilters, all],
    queryFn: () => calls.listSessions({ state: "active", query, ...listFilters, all }, null, MAX_SESSION_HITS),
    enabled: query !== "",
    placeholderData: keepPreviousData,
  });
  const messages = useQuery({
    queryKey: ["search", query, filterQuery, all],
    queryFn: ({ signal }) => calls.searchMessages(query, filterQuery, all, signal),
    enabled: query !== "",
    placeholderData: keepPreviousData,
  });
  const sessions = role === undefined ? (titles.data?.sessions ?? []) : []; // nobody writes a title
  const hits = messages.data?.hits ?? [];
  const error = titles.error ?? messages.error;
  const isDone = messages.isSuccess && titles.isSuccess && !messages.isPlaceholderData && !titles.isPlaceholderData;
  return (
    <div className="session-list search-results" aria-busy={!isDone && error === null}>
      <p className="visually-hidden" role="status">
        {isDone ? words.resultCount(sessions.length + hits.length) : ""}
      </p>
      {sessions.length > 0 && <h3>{words.titles}</h3>}
      {sessions.map((session) => (
        <SessionHit key={session.id} session={session} />
      ))}
      {hits.length > 0 && <h3>{words.messages}</h3>}
      {hits.map((hit) => (
        <MessageHit key={`${hit.session_id}-${hit.seq}`} hit={hit} />
      ))}
      {error !== null && (
        <p className="empty-note" role="alert">
          {describeError(error)}{" "}
          <button type="button" className="text-button" onClick={() => void Promise.all([titles.refetch(), messages.refetch()])}>
            {words.tryAgain}
          </button>
        </p>
      )}
      {isDone && sessions.length === 0 && hits.length === 0 && (
        <p className="empty-note">
          {words.noResults}
          <br />
          {words.noResultsHint}
        </p>
      )}
    </div>
  );
}

function SessionHit({ session }: { session: Session }) {
  return (
    <Link to={session.id} className="search-hit" onClick={hideSidebarIfNarrow}>
      <span className="session-top">
        {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
        <span className="session-name" dir="auto">
          {getSessionName(session)}
        </span>
      </span>
    </Link>
  );
}

function MessageHit({ hit }: { hit: SearchHit }) {
  const session = useSession(hit.session_id);
  return (
    <Link to={hit.session_id} seq={hit.seq} className="search-hit" onClick={hideSidebarIfNarrow}>
      <span className="session-top">
        <span className="session-name" dir="auto">
          {hit.title ?? (session === undefined ? words.untitled : getSessionName(session))}
        </span>
        <time dateTime={hit.at}>{formatRecent(hit.at)}</time>
      </span>
      <span className="snippet" dir="auto">
        {splitHighlights(hit.snippet, hit.highlights).map((part, index) =>
          part.isHighlighted ? <mark key={index}>{part.text}</mark> : <span key={index}>{part.text}</span>,
        )}
      </span>
    </Link>
  );
}

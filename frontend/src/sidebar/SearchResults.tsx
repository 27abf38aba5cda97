/** The results of a search: conversations by title, messages by text. */
import { type ReactNode } from "react";
import { describeError } from "../api/errors";
import type { SearchHit, Session } from "../api/types";
import { formatRecent } from "../format/time";
import { setSearchJump } from "../layout/searchJump";
import { hideSidebarIfNarrow } from "../layout/sidebarVisibility";
import { useLiveClient, useSession } from "../live/context";
import { getSessionName } from "../sessions/names";
import { ArchiveIcon } from "../ui/icons";
import { Link } from "../ui/Link";
import { PlatformBadge } from "../ui/PlatformBadge";
import { words } from "../words";
import { splitHighlights } from "./highlights";
import { SessionOwner } from "./SessionRow";
import type { useSearchResults } from "./useSearchResults";
import "./SearchResults.css";
import "./SessionList.css";

export const RESULTS_ID = "search-results";

/** The id of the element of a result. */
export function buildResultId(index: number): string {
  return `${RESULTS_ID}-${index}`;
}

interface Props {
  results: ReturnType<typeof useSearchResults>;
  highlighted: number; // index among all results
}

export function SearchResults({ results: { sessions, hits, error, isIndexing, isDone, retry }, highlighted }: Props) {
  return (
    <div className="session-list search-results" aria-busy={!isDone && error === null}>
      <p className="visually-hidden" role="status">
        {isDone ? words.resultCount(sessions.length + hits.length) : ""}
      </p>
      <div id={RESULTS_ID} role="listbox" aria-label={words.search}>
        {sessions.length > 0 && (
          <ResultGroup label={words.titles}>
            {sessions.map((session, index) => (
              <SessionHit key={session.id} session={session} id={buildResultId(index)} isHighlighted={index === highlighted} />
            ))}
          </ResultGroup>
        )}
        {hits.length > 0 && (
          <ResultGroup label={words.messages}>
            {hits.map((hit, index) => (
              <MessageHit
                key={`${hit.session_id}-${hit.seq}`}
                hit={hit}
                id={buildResultId(sessions.length + index)}
                isHighlighted={sessions.length + index === highlighted}
              />
            ))}
          </ResultGroup>
        )}
      </div>
      {error !== null && (
        <p className="empty-note" role="alert">
          {describeError(error)}{" "}
          <button type="button" className="text-button" onClick={retry}>
            {words.tryAgain}
          </button>
        </p>
      )}
      {isIndexing && (
        <p className="empty-note" role="status">
          {words.searchIndexing}
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

function ResultGroup({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div role="group" aria-label={label}>
      <h3 aria-hidden="true">{label}</h3>
      {children}
    </div>
  );
}

interface ResultProps {
  id: string;
  isHighlighted: boolean;
}

function SessionHit({ session, ...result }: ResultProps & { session: Session }) {
  return (
    <ResultLink {...result} to={session.id} onOpen={() => setSearchJump(null)}>
      <span className="session-top">
        {session.platform !== "web" && <PlatformBadge platform={session.platform} />}
        <span className="session-name" dir="auto">
          {getSessionName(session)}
        </span>
        {session.archived && <ArchivedMark />}
      </span>
      <ResultOwner owner={session} />
    </ResultLink>
  );
}

function MessageHit({ hit, ...result }: ResultProps & { hit: SearchHit }) {
  const session = useSession(hit.session_id);
  const parts = splitHighlights(hit.snippet, hit.highlights);
  const texts = parts.filter((part) => part.isHighlighted).map((part) => part.text);
  return (
    <ResultLink
      {...result}
      to={hit.session_id}
      seq={hit.seq}
      onOpen={() => setSearchJump({ sessionId: hit.session_id, seq: hit.seq, texts })}
    >
      <span className="session-top">
        <span className="session-name" dir="auto">
          {hit.title ?? (session === undefined ? words.untitled : getSessionName(session))}
        </span>
        {hit.archived && <ArchivedMark />}
        <time dateTime={hit.at}>{formatRecent(hit.at)}</time>
      </span>
      <ResultOwner owner={hit} />
      <span className="snippet" dir="auto">
        {parts.map((part, index) =>
          part.isHighlighted ? <mark key={index}>{part.text}</mark> : <span key={index}>{part.text}</span>,
        )}
      </span>
    </ResultLink>
  );
}

interface LinkProps extends ResultProps {
  to: string;
  seq?: number;
  onOpen: () => void;
  children: ReactNode;
}

function ResultLink({ id, isHighlighted, to, seq, onOpen, children }: LinkProps) {
  return (
    <Link
      to={to}
      seq={seq}
      id={id}
      role="option"
      aria-selected={isHighlighted}
      className="search-hit"
      ref={(element) => {
        if (isHighlighted) element?.scrollIntoView({ block: "nearest" });
      }}
      onClick={() => {
        onOpen();
        hideSidebarIfNarrow();
      }}
    >
      {children}
    </Link>
  );
}

function ArchivedMark() {
  return (
    <span className="archived-mark" role="img" aria-label={words.archived} title={words.archived}>
      <ArchiveIcon />
    </span>
  );
}

function ResultOwner({ owner }: { owner: Pick<Session, "owner_name"> }) {
  const client = useLiveClient();
  return client.showsAll.value ? <SessionOwner session={owner} /> : null;
}

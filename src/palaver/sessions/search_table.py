"""Full-text search of messages.

The index follows the log in batches, outside of turns; `indexed_seq` of each session says how far it has come. A
search first lets it catch up for a moment with what its reader may see, and tells whether something is left.
`indexed_seq` changes in the same transaction as the index, so a crash leaves no hole. Every indexed message carries its
audience, so a search reads nothing that its reader may not see. Newest first; nothing is ranked, nothing is scanned.
Filters are words of the index too.

Merges SQLite's search index a few pages at a time, so that no writer waits for a merge.

Every transaction that indexes messages adds a part to the index, and a search looks into all parts. By itself, FTS5
merges hundreds of pages in the transaction that happens to come then, so that is off (migration 21), and the indexer
calls `merge_parts` instead. FTS5 also keeps the words of a deleted message until the part that has them is merged:
`merge_piece` does that.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.core.clock import from_micros, to_micros
from palaver.core.columns import Columns
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Row, Transaction, build_placeholders, fetch_value, list_columns
from palaver.people.table import AUDIENCE_OWNER_NAME
from palaver.sessions import deletion_table as session_deletion
from palaver.sessions.events import EventKind
from palaver.sessions.message import MESSAGE_ROLES, Message
from palaver.sessions.message_table import UnreadableRow, decode_message, find_facts
from palaver.sessions.model import SearchHit
from palaver.sessions.search_text import (
    FIRST_YEAR,
    LAST_YEAR,
    NO_FILTER,
    ArchivedFilter,
    Query,
    SearchFilter,
    Snippet,
    Term,
    build_snippet,
    list_pairs,
    split_index_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from palaver.people.model import Author


MAX_LISTED_SESSIONS = 100  # that are looked up one by one
_ARCHIVED_NUMBERS = {ArchivedFilter.BOTH: 0, ArchivedFilter.ONLY: 1, ArchivedFilter.WITHOUT: 2}
_NEVER, _FOREVER = -(2**62), 2**62
_MAX_MICROS = 200 * 366 * 86_400 * 1_000_000  # after the last year, and before the last one that Python knows
NEWEST_MESSAGE_COUNT = 200  # searched first on PostgreSQL
MAX_NEWEST_MESSAGE_COUNT = 4000  # then, for a word that is less common
MIN_REBUILT_EVENTS = 128  # that are indexed again before the next ones: meanwhile their readers' searches wait for them
MAX_REBUILT_SESSIONS = 128
_PAIR_GAP = " · "  # for FTS5 a word, for us never a part of one
MAX_BATCH_CHARS = 100_000  # of the messages in one batch, which has at least one: other writers wait for it
_EVENTS_PER_LOOKUP = 100
_EVENTS_PER_READ = 64
MAX_WORD_BYTES = 500_000  # for the words of one message: PostgreSQL's limit is less than twice that
MERGED_PAGES: Final = 20  # in one transaction
MAX_MERGE_STEPS: Final = 100_000  # one after the other, also of a very large index
MERGED_DELETIONS_PERCENT: Final = 5  # of the messages of a part are deleted: it is merged


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConditions:
    """A filter, with the numbers of what it names; None stands for no condition."""

    search_filter: SearchFilter = NO_FILTER
    session_no: int | None = None
    project_no: int | None = None
    authors: Sequence[Author] | None = None  # one of them wrote it

    @property
    def after(self) -> int | None:
        return None if self.search_filter.after is None else to_micros(self.search_filter.after)

    @property
    def before(self) -> int | None:
        return None if self.search_filter.before is None else to_micros(self.search_filter.before)

    @property
    def exact_params(self) -> tuple[int, int, int, int]:
        """The parameters of `_IS_EXACT`."""
        after = _NEVER if self.after is None else self.after
        before = _FOREVER if self.before is None else self.before
        return after, before, self.project_no or 0, _ARCHIVED_NUMBERS[self.search_filter.archived]


# What the index only narrows down; for `exact_params`.
_IS_EXACT = """e.created_at >= $4 AND e.created_at < $5 AND ($6 = 0 OR s.project_no = $6)
    AND ($7 = 0 OR $7 = CASE WHEN s.archived_at IS NULL THEN 2 ELSE 1 END)"""


def _build_message_scope(
    role: str | None, created_at: int, person_id: str | None, own_audience_no: int | None
) -> tuple[str, ...]:
    """Return the scope words that a message has besides those of its session.

    `own_audience_no` is the audience of a session that is one person's own: there, messages do not name their author.
    """
    moment = from_micros(created_at)
    scope = (f"r{role or ''}", f"y{moment:%Y}", f"m{moment:%Y%m}")
    if person_id is not None:
        return (*scope, _name_person(person_id))
    return (*scope, f"o{own_audience_no}") if role == "user" and own_audience_no is not None else scope


def list_required_scopes(
    tx: Transaction, audiences: Sequence[int] | None, conditions: SearchConditions
) -> list[list[str]]:
    """Return groups of scope words: a message must have one word of each group. An empty group matches nothing."""
    groups, chosen = [], conditions.search_filter
    if audiences is not None:
        groups.append([f"a{no}" for no in audiences])
    if conditions.session_no is not None:
        groups.append([f"s{conditions.session_no}"])
    if chosen.platform is not None:
        groups.append([_name_platform(chosen.platform)])
    if chosen.role is not None:
        groups.append([f"r{chosen.role}"])
    if conditions.authors is not None:
        by_id = [_name_person(author.person_id) for author in conditions.authors]
        groups.append([*by_id, *(f"o{author.audience_no}" for author in conditions.authors)])
    if conditions.after is not None or conditions.before is not None:
        groups.append(list(_iter_periods(conditions.after, conditions.before)))
    if conditions.project_no is not None:
        groups += _list_session_words(tx, "project_no = $1", conditions.project_no)
    if chosen.archived is ArchivedFilter.ONLY:
        is_archived = "active_at IS NOT NULL AND archived_at IS NOT NULL"
        if audiences is None:
            groups += _list_session_words(tx, is_archived)
        else:
            some = build_placeholders(len(audiences)) if audiences else "NULL"
            groups += _list_session_words(tx, f"{is_archived} AND audience_no IN ({some})", *audiences)
    return groups


def _list_session_words(tx: Transaction, condition: str, *params: int) -> list[list[str]]:
    """Return the group of the sessions that meet a condition; no group if there are too many."""
    sql = f"SELECT no FROM session WHERE {condition} LIMIT ${len(params) + 1}"
    rows = tx.fetch_all(sql, *params, MAX_LISTED_SESSIONS + 1)
    return [[f"s{no}" for (no,) in rows]] if len(rows) <= MAX_LISTED_SESSIONS else []


def _name_platform(platform: str) -> str:
    return "p" + _encode(platform)


def _name_person(person_id: str) -> str:
    return "u" + _encode(person_id)


def _encode(name: str) -> str:
    return name.encode("utf-8", "replace").hex()  # it may contain `-` and `_`, which split words


def _iter_periods(after: int | None, before: int | None) -> Iterator[str]:
    """Yield the years and months that cover a range of time: years where all of a year is in it."""
    if before is not None and before <= 0:  # before 1970
        return
    month = FIRST_YEAR * 12 if after is None or after <= 0 else _count_months(after)
    last_end = (LAST_YEAR + 1) * 12
    end = last_end if before is None else _count_months(before - 1) + 1  # exclusive
    while month < min(end, last_end):
        year, month_index = divmod(month, 12)
        if month_index == 0 and month + 12 <= end:
            yield f"y{year:04}"
            month += 12
        else:
            yield f"m{year:04}{month_index + 1:02}"
            month += 1


def _count_months(micros: int) -> int:
    moment = from_micros(min(micros, _MAX_MICROS))
    return moment.year * 12 + moment.month - 1


class _NewEvent(NamedTuple):
    no: int
    seq: int
    content: str | None
    role: str | None
    created_at: int
    kind: str
    body: str | None
    person_id: str | None


_SELECT_UNINDEXED = """SELECT no, audience_no, shared, platform, indexed_seq, last_seq,
    COALESCE((SELECT up_to_seq FROM search_rebuild WHERE session_no = no), 0) FROM session WHERE unindexed = 1"""
# An edit is indexed as its message: with the edited message's number, role, time and person.
_SELECT_NEW_EVENTS = f"""SELECT {list_columns(_NewEvent)} FROM event
    WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3"""
_SELECT_EDITED = "SELECT no, role, created_at, person_id FROM event WHERE session_no = $1 AND seq = $2"
_SELECT_REBUILD = """SELECT s.no, r.up_to_seq, s.indexed_seq, s.last_seq, s.is_deleted
    FROM search_rebuild r JOIN session s ON s.no = r.session_no ORDER BY r.session_no LIMIT $1"""
_HIT = Columns(
    SearchHit,
    types={Snippet},
    without={"message", "snippet"},
    session_id="s.id",
    title="COALESCE(s.title, s.auto_title)",
    at="e.created_at",
    archived="s.archived_at IS NOT NULL",
    owner_name=f"CASE WHEN s.shared = 0 THEN {AUDIENCE_OWNER_NAME} END",
)
_SELECT_HIT = f"""SELECT e.no AS event_no, {_HIT.format_select("e")}, e.role, e.content, e.body, e.platform_message_id,
    CASE WHEN e.edited_by IS NOT NULL THEN (SELECT edit.content FROM event AS edit
        WHERE edit.session_no = e.session_no AND edit.seq = e.edited_by) END FROM"""

NO_CONDITIONS = SearchConditions()
_IS_VISIBLE = "e.hidden_by IS NULL AND s.is_deleted = 0"  # a session that is being deleted has words in the index
# $1 looks up pairs, $8 single characters: as long as there are messages whose pairs may be missing.
_CHOSEN_QUERY = "(SELECT CASE WHEN EXISTS (SELECT 1 FROM search_rebuild) THEN $8 ELSE $1 END)"
_SEARCH_SQLITE = f"""{_SELECT_HIT} search JOIN event e ON e.no = search.rowid JOIN session s ON s.no = e.session_no
    WHERE search MATCH {_CHOSEN_QUERY} AND search.rowid < $2 AND {_IS_VISIBLE} AND {_IS_EXACT}
    ORDER BY search.rowid DESC LIMIT $3"""


def _look_up(matches: str) -> str:
    """Return the SQL that selects the newest hits of the events in a CTE.

    Twice `OFFSET 0`, so that PostgreSQL sorts these events, and then looks up one after the other until there are
    enough. By itself it reads the whole log backwards beside them, or looks up all of them. It compares `event_no < $2`
    here, because in the CTE it would read the index of all numbers for that.
    """
    return f"""SELECT hit.* FROM
        (SELECT event_no FROM {matches} WHERE event_no < $2 ORDER BY event_no DESC OFFSET 0) AS x
        CROSS JOIN LATERAL ({_SELECT_HIT} event e JOIN session s ON s.no = e.session_no
            WHERE e.no = x.event_no AND {_IS_VISIBLE} AND {_IS_EXACT} OFFSET 0) AS hit
        ORDER BY x.event_no DESC LIMIT $3"""


def _match_newest(count: str) -> str:
    return f"""SELECT event_no FROM (SELECT event_no, words FROM search WHERE event_no < $2
        ORDER BY event_no DESC LIMIT {count}) AS newest WHERE words @@ {_CHOSEN_QUERY}::tsquery"""


# PostgreSQL cannot read its word index newest first. By itself it scans the whole store backwards for a rare word, or
# sorts half of it for a common one. So we search the newest messages first, where a common word is found at once; then
# as many as probably have enough matches; then, for a word that is rare, everything that the word index returns. In one
# statement it is one round trip; PostgreSQL evaluates only the parts that it needs.
_LIKELY_COUNT = f"""(SELECT CASE WHEN COUNT(*) BETWEEN 1 AND $3 - 1 THEN LEAST(
    {NEWEST_MESSAGE_COUNT} * $3 * 3 / (COUNT(*) * 2), {MAX_NEWEST_MESSAGE_COUNT}) ELSE 0 END FROM few_hits)"""
_SEARCH_POSTGRES = f"""WITH few AS MATERIALIZED ({_match_newest(str(NEWEST_MESSAGE_COUNT))}),
    few_hits AS MATERIALIZED ({_look_up("few")}),
    more AS MATERIALIZED ({_match_newest(_LIKELY_COUNT)}),
    more_hits AS MATERIALIZED ({_look_up("more")}),
    matches AS MATERIALIZED (SELECT event_no FROM search WHERE words @@ {_CHOSEN_QUERY}::tsquery),
    hits AS MATERIALIZED ({_look_up("matches")})
    SELECT * FROM few_hits WHERE (SELECT COUNT(*) FROM few_hits) >= $3
    UNION ALL SELECT * FROM more_hits WHERE (SELECT COUNT(*) FROM few_hits) < $3
        AND (SELECT COUNT(*) FROM more_hits) >= $3
    UNION ALL SELECT * FROM hits WHERE (SELECT COUNT(*) FROM few_hits) < $3
        AND (SELECT COUNT(*) FROM more_hits) < $3
    ORDER BY event_no DESC"""


@dataclass(frozen=True, slots=True)
class IndexBatch:
    """Messages prepared for the index, and how far each session will then be indexed."""

    progress: Sequence[tuple[int, int, int]]  # session number, its `indexed_seq` before, and after
    rows: Sequence[tuple[int, int, str, str]]  # session number, event number, scope, words


@dataclass(frozen=True, slots=True)
class PendingScope:
    audiences: Sequence[int] | None = None  # None: all
    session_no: int | None = None  # None: all in the audiences


EVERYTHING = PendingScope()


def has_unindexed(tx: Transaction, scope: PendingScope = EVERYTHING) -> bool:
    return bool(_list_unindexed(tx, scope, 1))


def collect_unindexed(
    tx: Transaction, limit: int, pause: Callable[[], None] | None = None, scope: PendingScope = EVERYTHING
) -> IndexBatch | None:
    """Prepare up to about `limit` unindexed events, fewer if they are long; None if there are none.

    Most of the indexing work is done here, in a read, where no writer waits for it. `pause` is called now and then.
    """
    progress: list[tuple[int, int, int]] = []
    rows: dict[int, tuple[int, int, str, str]] = {}  # by event number
    chars_left = MAX_BATCH_CHARS
    for session_no, audience_no, shared, platform, indexed_seq, last_seq, again_up_to in _list_unindexed(
        tx, scope, limit
    ):
        if len(rows) >= limit or chars_left <= 0:
            break
        session_scope = (f"a{audience_no}", f"s{session_no}", _name_platform(platform))
        own_audience_no = None if shared else audience_no
        after = None
        for event in _iterate_new_events(tx, session_no, indexed_seq):
            after = event.seq
            is_edit = event.kind == EventKind.MESSAGE_EDITED
            chars_left -= len(event.content or "")
            if event.seq <= again_up_to and not is_edit and (event.content or "").isascii():
                pass  # it is in the index, and has no pairs
            elif event.content or is_edit:
                row = _prepare_row(tx, session_no, session_scope, own_audience_no, event)
                rows[row[1]] = row
                if pause is not None and len(rows) % 16 == 0:
                    pause()
            if len(rows) >= limit or chars_left <= 0:
                break
        progress.append((session_no, indexed_seq, last_seq if after is None else after))
    return IndexBatch(progress, list(rows.values())) if progress else None


def _iterate_new_events(tx: Transaction, session_no: int, after: int) -> Iterator[_NewEvent]:
    while len(rows := tx.fetch_all(_SELECT_NEW_EVENTS, session_no, after, _EVENTS_PER_READ)) > 0:
        for event in map(_NewEvent._make, rows):
            yield event
            after = event.seq
        if len(rows) < _EVENTS_PER_READ:
            return


def _prepare_row(
    tx: Transaction, session_no: int, session_scope: Sequence[str], own_audience_no: int | None, event: _NewEvent
) -> tuple[int, int, str, str]:
    no, _, text, role, created_at, kind, body, person_id = event
    if kind == EventKind.MESSAGE_EDITED:
        edited = tx.fetch_one(_SELECT_EDITED, session_no, find_facts(body).get("seq"))
        no, role, created_at, person_id = edited or (no, "user", created_at, person_id)
    scope = (*session_scope, *_build_message_scope(role, created_at, person_id, own_audience_no))
    scope_text = " ".join(scope) if tx.name == "sqlite" else " ".join(f"'@{word}'" for word in scope)
    return session_no, no, scope_text, _build_words(tx, text or "")


def _list_unindexed(tx: Transaction, scope: PendingScope, limit: int) -> Sequence[Row]:
    """List sessions with messages that are not indexed: for a reader, those that were active last come first."""
    if scope.session_no is not None:
        return tx.fetch_all(f"{_SELECT_UNINDEXED} AND no = $1 LIMIT $2", scope.session_no, limit)
    if scope.audiences is None:
        return tx.fetch_all(f"{_SELECT_UNINDEXED} ORDER BY audience_no, no LIMIT $1", limit)
    if not scope.audiences:
        return ()
    some = build_placeholders(len(scope.audiences), 2)
    order = "ORDER BY COALESCE(active_at, 0) DESC, no"
    return tx.fetch_all(f"{_SELECT_UNINDEXED} AND audience_no IN ({some}) {order} LIMIT $1", limit, *scope.audiences)


def index_batch(tx: Transaction, batch: IndexBatch) -> None:
    """Add a batch to the index, without the sessions that another process has indexed meanwhile.

    What was deleted or erased since the batch was collected is left out.
    """
    unchanged = {
        session_no
        for session_no, before, _ in batch.progress
        if tx.fetch_one("SELECT 1 FROM session WHERE no = $1 AND indexed_seq = $2", session_no, before)
    }
    kept = _find_kept_events(tx, [no for session_no, no, _, _ in batch.rows if session_no in unchanged])
    rows = [(no, scope, words) for _, no, scope, words in batch.rows if no in kept]
    if tx.name == "sqlite":
        tx.execute_many("INSERT OR REPLACE INTO search (rowid, scope, body) VALUES ($1, $2, $3)", rows)
    elif rows:
        sql = """INSERT INTO search (event_no, words) SELECT no, words::tsvector
            FROM unnest($1::bigint[], $2::text[]) AS new (no, words)
            ON CONFLICT (event_no) DO UPDATE SET words = excluded.words"""
        tx.execute(sql, [no for no, _, _ in rows], [f"{scope} {words}" for _, scope, words in rows])
    # Last, because until the commit it makes writers in these sessions wait.
    tx.execute_many(
        "UPDATE session SET indexed_seq = $2, unindexed = CASE WHEN last_seq > $2 THEN 1 ELSE 0 END"
        " WHERE no = $1 AND indexed_seq = $3",  # another process may be further, or have begun again
        [(session_no, after, before) for session_no, before, after in batch.progress if session_no in unchanged],
    )
    # Erasing locks the session first. So it is either committed by now, or it waits and will find these words.
    for session_no in sorted(unchanged):
        tx.fetch_one(f"SELECT 1 FROM session WHERE no = $1 {tx.for_key_share}", session_no)
    key = "rowid" if tx.name == "sqlite" else "event_no"
    erased = kept - _find_kept_events(tx, sorted(kept))
    tx.execute_many(f"DELETE FROM search WHERE {key} = $1", [(no,) for no in sorted(erased)])


def has_rebuild(tx: Transaction) -> bool:
    """Return whether sessions are still to be indexed again, because their messages may lack pairs."""
    return tx.fetch_one("SELECT 1 FROM search_rebuild LIMIT 1") is not None


def rebuild_sessions(tx: Transaction) -> bool:
    """Let the next sessions be indexed again from their beginning; return whether there may be more to do.

    A session stays in the list until that is done, so that no search misses its messages (`_CHOSEN_QUERY`).
    """
    has_changed, started_events = False, 0
    rows = tx.fetch_all(f"{_SELECT_REBUILD} {tx.skip_locked}", MAX_REBUILT_SESSIONS)
    for session_no, up_to_seq, indexed_seq, last_seq, is_deleted in rows:
        if is_deleted or (up_to_seq is not None and indexed_seq >= up_to_seq):
            tx.execute("DELETE FROM search_rebuild WHERE session_no = $1", session_no)
            has_changed = True
        elif up_to_seq is None and started_events < MIN_REBUILT_EVENTS:
            tx.execute("UPDATE search_rebuild SET up_to_seq = $2 WHERE session_no = $1", session_no, indexed_seq)
            tx.execute("UPDATE session SET indexed_seq = 0, unindexed = 1 WHERE no = $1", session_no)
            has_changed, started_events = True, started_events + last_seq
    return has_changed


def _find_kept_events(tx: Transaction, event_nos: Sequence[int]) -> set[int]:
    """Return those of these events that still have their text."""
    kept: set[int] = set()
    for start in range(0, len(event_nos), _EVENTS_PER_LOOKUP):
        nos = event_nos[start : start + _EVENTS_PER_LOOKUP]
        sql = f"SELECT no FROM event WHERE no IN ({build_placeholders(len(nos))}) AND kind <> 'erased'"
        kept.update(no for (no,) in tx.fetch_all(sql, *nos))
    return kept


def find_event_no(tx: Transaction, session_no: int, seq: int) -> int | None:
    return fetch_value(tx, "SELECT no FROM event WHERE session_no = $1 AND seq = $2", session_no, seq)


def find_messages(
    tx: Transaction,
    query: Query,
    audiences: Sequence[int] | None,
    *,
    limit: int,
    before: int | None = None,
    conditions: SearchConditions = NO_CONDITIONS,
) -> list[SearchHit]:
    """Return the newest messages that match, in these audiences (None: in all)."""
    scopes = list_required_scopes(tx, audiences, conditions)
    if query.is_empty or not all(scopes):
        return []
    before = 2**62 if before is None else before
    sql, build = (_SEARCH_SQLITE, _build_fts5_query) if tx.name == "sqlite" else (_SEARCH_POSTGRES, _build_tsquery)
    with_pairs, with_chars = (build(terms, scopes) for terms in _list_forms(query))
    rows = tx.fetch_all(sql, with_pairs, before, limit, *conditions.exact_params, with_chars)
    return [_hit_from_row(row, query) for row in rows]


def _list_forms(query: Query) -> tuple[Sequence[Term], Sequence[Term]]:
    """Return the terms of a query with pairs instead of single characters where possible, and as they are."""
    pairs = [(term, list_pairs(term.words)) for term in query.terms]
    return [replace(term, words=tuple(each)) if each and all(each) else term for term, each in pairs], query.terms


def _build_words(tx: Transaction, text: str) -> str:
    """Return the words of a text, and their pairs, in the engine's format."""
    words = split_index_words(text)
    pairs = list_pairs(words)
    if tx.name == "sqlite":  # the pairs after the words; the gap keeps apart what does not follow one another
        runs = [" ".join(run) for is_run, run in groupby(pairs, bool) if is_run]
        return " ".join([*words, _PAIR_GAP.join(runs)])
    lexemes, bytes_left = list[str](), MAX_WORD_BYTES
    for position, (word, pair) in enumerate(zip_longest(words, pairs, fillvalue=""), 1):
        for lexeme in filter(None, (word, pair)):
            bytes_left -= len(lexeme.encode()) + 2
            if bytes_left < 0:
                return " ".join(lexemes)
            lexemes.append(f"'{lexeme}':{min(position, 16383)}")
    return " ".join(lexemes)


def _build_fts5_query(terms: Sequence[Term], scopes: Sequence[Sequence[str]]) -> str:
    parts = ["scope : (" + " OR ".join(names) + ")" for names in scopes]
    parts += ["body : " + _build_fts5_term(term) for term in terms if not term.excluded]
    fts5_query = " AND ".join(parts)
    for term in terms:
        if term.excluded:
            fts5_query = f"({fts5_query}) NOT body : {_build_fts5_term(term)}"
    return fts5_query


def _build_fts5_term(term: Term) -> str:
    phrase = " ".join(term.words)
    return f'"{phrase}"*' if term.prefix else f'"{phrase}"'


def _build_tsquery(terms: Sequence[Term], scopes: Sequence[Sequence[str]]) -> str:
    parts = ["(" + " | ".join(f"'@{name}'" for name in names) + ")" for names in scopes]
    for term in terms:
        lexemes = [f"'{word}'" for word in term.words]
        if term.prefix:
            lexemes[-1] += ":*"
        phrase = "(" + " <-> ".join(lexemes) + ")"
        parts.append(f"!{phrase}" if term.excluded else phrase)
    return " & ".join(parts)


def _hit_from_row(row: Row, query: Query) -> SearchHit:
    _, *columns, role, content, body, platform_message_id, edited_text = row
    try:
        message = decode_message(role, content, body, platform_message_id, edited_text)
    except UnreadableRow:  # the text that was found is all that can be shown of it
        message = Message(role if role in MESSAGE_ROLES else "system", content)
    text = content if edited_text is None else edited_text
    return _HIT.decode(columns, message=message, snippet=build_snippet(text or "", query))


def merge_parts(tx: Transaction) -> bool:
    """Merge a few pages of the parts that new messages have added; return whether there may be more to merge.

    Not while a conversation is being deleted: a merge that writes few pages may then have to read very many.
    """
    return tx.name == "sqlite" and session_deletion.find_hidden(tx) is None and merge_pages(tx, MERGED_PAGES)


def merge_piece(tx: Transaction) -> bool:
    """Merge a few pages of the parts of which much is deleted; return whether there may be more to merge."""
    if tx.name != "sqlite":  # in PostgreSQL the words are deleted with their message
        return False
    before = fetch_value(tx, "SELECT v FROM search_config WHERE k = 'deletemerge'")
    set_delete_merge(tx, MERGED_DELETIONS_PERCENT)
    has_merged = merge_pages(tx, MERGED_PAGES)
    set_delete_merge(tx, int(before or 0))  # an erasure, too, may be merging
    return has_merged


def merge_pages(tx: Transaction, pages: int) -> bool:
    """Merge about so many pages (negative: begin to merge everything); return whether anything was merged."""
    before = fetch_value(tx, "SELECT total_changes()") or 0
    tx.execute("INSERT INTO search (search, rank) VALUES ('merge', $1)", pages)
    after = fetch_value(tx, "SELECT total_changes()") or 0
    return after - before >= 2  # so says the documentation of FTS5


def set_delete_merge(tx: Transaction, percent: int) -> None:
    """Let the index merge a part of which so much is deleted; 0: only when there are other reasons to."""
    tx.execute("INSERT INTO search (search, rank) VALUES ('deletemerge', $1)", percent)

"""Finding messages by their words.

The index follows the log behind a mark on each session (`indexed_seq`), in batches, outside of anybody's
turn. A search first lets it catch up, so a stored message is always found; the mark moves in the same
transaction as the index, so a crash leaves no hole. Every indexed message carries its audience, so a search
walks through nothing that is not the asker's. Newest first; nothing is ranked, nothing is scanned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.ids import SessionId
from palaver.domain.search_text import indexed, snippet
from palaver.domain.session import SearchHit
from palaver.storage.message_rows import decoded
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.domain.search_text import Query, Term
    from palaver.storage.engines.base import Row, Transaction

_UNINDEXED = """SELECT no, audience_no, indexed_seq, last_seq FROM session WHERE unindexed = 1
    ORDER BY no LIMIT $1"""
_NEW_WORDS = """SELECT no, seq, content FROM event WHERE session_no = $1 AND seq > $2 ORDER BY seq LIMIT $3"""
_HIT = """SELECT e.no, s.id, s.title, e.seq, e.at, e.role, e.content, e.body, e.platform_message_id FROM"""

# PostgreSQL cannot read its word index newest first. Left to itself it walks the whole store backwards for a rare
# word, or sorts half of it for a common one. So: first the newest messages, where a common word is found at once;
# then, for a word that is not common, all that the word index gives.
NEWEST = 200
_FOUND = "JOIN event e ON e.no = x.event_no JOIN session s ON s.no = e.session_no WHERE e.hidden_by IS NULL"
_AMONG_NEWEST = f"""WITH x AS MATERIALIZED (SELECT event_no FROM (SELECT event_no, words FROM search
    WHERE event_no < $2 ORDER BY event_no DESC LIMIT $4) AS newest WHERE words @@ $1::tsquery)
    {_HIT} x {_FOUND} ORDER BY x.event_no DESC LIMIT $3"""
_AMONG_ALL = f"""WITH x AS MATERIALIZED (SELECT event_no FROM search WHERE words @@ $1::tsquery)
    {_HIT} x {_FOUND} AND x.event_no < $2 ORDER BY x.event_no DESC LIMIT $3"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages made ready for the index, and how far each session's mark will move."""

    marks: Sequence[tuple[int, int, int]]  # session, its mark now, its mark afterwards
    rows: Sequence[tuple[int, int, str, str]]  # session, event, scope, words


def unindexed(tx: Transaction, most: int, pause: Callable[[], None] | None = None) -> Batch | None:
    """Up to about `most` events that are not indexed yet, made ready; None when there are none.

    Most of the work of indexing is done here, while nobody has to wait for it. `pause` is called now and then.
    """
    marks: list[tuple[int, int, int]] = []
    rows: list[tuple[int, int, str, str]] = []
    for session_no, audience_no, mark, last in tx.all(_UNINDEXED, most):
        if len(rows) >= most:
            break
        found = tx.all(_NEW_WORDS, session_no, mark, most - len(rows))
        marks.append((session_no, mark, found[-1][1] if found else last))
        scope = _scope(tx, audience_no, session_no)
        for no, _, text in found:
            if text:
                rows.append((session_no, no, scope, _words(tx, text)))
                if pause is not None and len(rows) % 16 == 0:
                    pause()
    return Batch(marks, rows) if marks else None


def index(tx: Transaction, batch: Batch) -> None:
    """Put a batch into the index and move the marks, unless somebody else has done it meanwhile."""
    stands = {
        session_no
        for session_no, mark, _ in batch.marks
        if tx.one("SELECT 1 FROM session WHERE no = $1 AND indexed_seq = $2", session_no, mark)
    }
    rows = [(no, scope, words) for session_no, no, scope, words in batch.rows if session_no in stands]
    if tx.name == "sqlite":
        tx.many("INSERT INTO search (rowid, scope, body) VALUES ($1, $2, $3)", rows)
    elif rows:
        tx.run(
            "INSERT INTO search (event_no, words) SELECT no, words::tsvector"
            " FROM unnest($1::bigint[], $2::text[]) AS new (no, words) ON CONFLICT DO NOTHING",
            [no for no, _, _ in rows],
            [f"{scope} {words}" for _, scope, words in rows],
        )
    # Last, because until the commit it keeps those who speak in these sessions waiting.
    tx.many(
        "UPDATE session SET indexed_seq = $2, unindexed = CASE WHEN last_seq > $2 THEN 1 ELSE 0 END"
        " WHERE no = $1 AND indexed_seq <= $2",  # another process may be further already
        [(session_no, reached) for session_no, _, reached in batch.marks if session_no in stands],
    )


def find(
    tx: Transaction,
    query: Query,
    audiences: Sequence[int] | None,
    *,
    limit: int,
    before: int | None = None,
    session_no: int | None = None,
) -> list[SearchHit]:
    """The newest messages that match, among these audiences (None: among all)."""
    if query.is_empty or (audiences is not None and not audiences):
        return []
    before = 2**62 if before is None else before
    if tx.name == "sqlite":
        rows = tx.all(
            f"{_HIT} search JOIN event e ON e.no = search.rowid JOIN session s ON s.no = e.session_no"
            " WHERE search MATCH $1 AND search.rowid < $2 AND e.hidden_by IS NULL ORDER BY search.rowid DESC LIMIT $3",
            _match(query, audiences, session_no),
            before,
            limit,
        )
    else:
        words = _tsquery(query, audiences, session_no)
        rows = tx.all(_AMONG_NEWEST, words, before, limit, NEWEST)
        if len(rows) < limit:  # not a common word: few enough to be sorted
            rows = tx.all(_AMONG_ALL, words, before, limit)
    return [_hit(row, query) for row in rows]


def _scope(tx: Transaction, audience_no: int, session_no: int) -> str:
    if tx.name == "sqlite":
        return f"a{audience_no} s{session_no}"
    return f"'@a{audience_no}' '@s{session_no}'"


MOST_BYTES = 500_000  # of words in one message: PostgreSQL keeps less than twice that


def _words(tx: Transaction, text: str) -> str:
    """The words of a text as the engine takes them."""
    if tx.name == "sqlite":
        return indexed(text)
    lexemes, room = [], MOST_BYTES
    for place, word in enumerate(indexed(text).split(), 1):
        room -= len(word.encode()) + 2
        if room < 0:
            break
        lexemes.append(f"'{word}':{min(place, 16383)}")
    return " ".join(lexemes)


def _match(query: Query, audiences: Sequence[int] | None, session_no: int | None) -> str:
    """The query in the language of FTS5."""
    parts = ["scope : (" + " OR ".join(names) + ")" for names in _scopes(audiences, session_no)]
    parts += ["body : " + _fts_term(term) for term in query.terms if not term.excluded]
    match = " AND ".join(parts)
    for term in query.terms:
        if term.excluded:
            match = f"({match}) NOT body : {_fts_term(term)}"
    return match


def _fts_term(term: Term) -> str:
    phrase = " ".join(term.words)
    return f'"{phrase}"*' if term.prefix else f'"{phrase}"'


def _tsquery(query: Query, audiences: Sequence[int] | None, session_no: int | None) -> str:
    """The query in the language of PostgreSQL."""
    parts = ["(" + " | ".join(f"'@{name}'" for name in names) + ")" for names in _scopes(audiences, session_no)]
    for term in query.terms:
        each = [f"'{word}'" for word in term.words]
        if term.prefix:
            each[-1] += ":*"
        phrase = "(" + " <-> ".join(each) + ")"
        parts.append(f"!{phrase}" if term.excluded else phrase)
    return " & ".join(parts)


def _scopes(audiences: Sequence[int] | None, session_no: int | None) -> list[list[str]]:
    """Groups of names of which an indexed message must carry one each."""
    scopes = []
    if audiences is not None:
        scopes.append([f"a{no}" for no in audiences])
    if session_no is not None:
        scopes.append([f"s{session_no}"])
    return scopes


def _hit(row: Row, query: Query) -> SearchHit:
    no, session_id, title, seq, at, role, content, body, platform_message_id = row
    message = decoded(role, content, json.loads(body) if body else {}, platform_message_id)
    return SearchHit(
        session_id=SessionId(session_id),
        title=title,
        seq=seq,
        at=from_micros(at),
        message=message,
        snippet=snippet(content or "", query),
        position=no,
    )

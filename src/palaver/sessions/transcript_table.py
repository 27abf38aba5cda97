"""Pages of a session's log for people to read: without what is hidden, such as messages of other versions."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from palaver.people import table as people
from palaver.sessions import versions_table as versions
from palaver.sessions.hidden_ranges import iterate_backwards, iterate_forwards
from palaver.sessions.log_table import END_OF_LOG, list_events
from palaver.sessions.message_table import event_from_row
from palaver.sessions.model import TranscriptPage

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.events import Event


def load_page(
    tx: Transaction,
    session_no: int,
    *,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
    limit: int,
) -> TranscriptPage:
    """Return the events before, after or around a seq (that event included); without one, the last ones."""
    if around is not None:
        earlier, has_more_before = _read_backwards(tx, session_no, around, max(limit // 2, 1))
        later, has_more_after = _read_forwards(tx, session_no, around - 1, max(limit - len(earlier), 1))
        events = [*earlier, *later]
    elif after is not None:
        events, has_more_after = _read_forwards(tx, session_no, after, limit)
        has_more_before = bool(_read_backwards(tx, session_no, after + 1, 1)[0])
    else:
        events, has_more_before = _read_backwards(tx, session_no, END_OF_LOG if before is None else before, limit)
        has_more_after = before is not None and bool(_read_forwards(tx, session_no, before - 1, 1)[0])
    return _make_page(tx, session_no, events, has_more_before=has_more_before, has_more_after=has_more_after)


def load_log_page(tx: Transaction, session_no: int, *, after: int, limit: int) -> TranscriptPage:
    """Return the first events after a seq, hidden messages included."""
    events = list_events(tx, session_no, after=after, limit=limit + 1)
    return _make_page(tx, session_no, events[:limit], has_more_before=after > 0, has_more_after=len(events) > limit)


def _read_backwards(tx: Transaction, session_no: int, before: int, limit: int) -> tuple[list[Event], bool]:
    """Return the last readable events before a seq, oldest first, and whether there are more before them."""
    rows = list(islice(iterate_backwards(tx, session_no, before, limit + 1), limit + 1))
    return [event_from_row(row) for row in reversed(rows[:limit])], len(rows) > limit


def _read_forwards(tx: Transaction, session_no: int, after: int, limit: int) -> tuple[list[Event], bool]:
    """Return the first readable events after a seq, and whether there are more after them."""
    rows = list(islice(iterate_forwards(tx, session_no, after, limit + 1), limit + 1))
    return [event_from_row(row) for row in rows[:limit]], len(rows) > limit


def _make_page(
    tx: Transaction, session_no: int, events: list[Event], *, has_more_before: bool, has_more_after: bool
) -> TranscriptPage:
    names = people.load_names(tx, (event.person_id for event in events if event.person_id is not None))
    return TranscriptPage(
        events=events,
        has_more_before=has_more_before,
        has_more_after=has_more_after,
        person_names=names,
        versions=versions.load_infos(tx, session_no, [event for event in events if not event.hidden]),
    )

"""A session and its complete log as JSON-ready data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from palaver.people import table as people
from palaver.sessions import log_table as events, transcript_table as transcript_pages
from palaver.sessions.document_entry import DocumentEntry
from palaver.sessions.json import event_to_json, session_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.core.engines.base import Transaction
    from palaver.sessions.events import Event
    from palaver.sessions.session_rows import SessionRow

EXPORT_FORMAT = "palaver.session/1"
_BATCH_EVENTS = 100
_PAUSE_SECONDS = 0.0005


def iterate_log(tx: Transaction, row: SessionRow) -> Iterator[Event]:
    """Yield every event of a session, oldest first.

    A long log is exported on a thread of its own, which shares the interpreter with the event loop; the pause between
    two batches lets the others go first.
    """
    after = 0
    while batch := events.list_events(tx, row.no, after=after, limit=_BATCH_EVENTS):
        yield from batch
        after = batch[-1].seq
        time.sleep(_PAUSE_SECONDS)


def iterate_visible_entries(tx: Transaction, row: SessionRow) -> Iterator[DocumentEntry]:
    """Yield the events of a session that people see, oldest first, with the version that each message is."""
    after, has_more = 0, True
    while has_more:
        page = transcript_pages.load_page_after(tx, row.no, after=after, limit=_BATCH_EVENTS)
        yield from (DocumentEntry(event, page.versions.get(event.seq)) for event in page.events)
        has_more = page.has_more_after
        if has_more:
            after = page.events[-1].seq
            time.sleep(_PAUSE_SECONDS)


def export_session(tx: Transaction, row: SessionRow) -> dict[str, Any]:
    """Export a session: the keys of `session_to_json`, and its complete log as `events`."""
    log = list(iterate_log(tx, row))
    names = people.load_names(tx, (event.person_id for event in log if event.person_id is not None))
    return {
        "format": EXPORT_FORMAT,
        **session_to_json(row.session),
        "events": [event_to_json(event, names) for event in log],
    }

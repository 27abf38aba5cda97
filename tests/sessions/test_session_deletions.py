"""Long conversations: they disappear at once and as a whole, and their rows go in pieces; nothing of others changes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NotFound, SessionNotFound
from palaver.jobs.table import ALL_PIECES
from palaver.media.attachments import Attachments
from palaver.operation import invariants
from palaver.operation.cleanup import Cleanup
from palaver.sessions import deletion_table as session_deletion, log_table as events, table as sessions
from palaver.sessions.deletions import clean_search_index, finish_deletions
from palaver.sessions.events import EventKind
from palaver.sessions.indexer import Indexer
from palaver.sessions.usage import TurnUsage
from support.inbox import list_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver import SessionSource
    from palaver.sessions.view import SessionView

    Source = Callable[..., SessionSource]

MESSAGES = 3 * session_deletion.ROWS_PER_PIECE + 10
TABLES = ("event", "turn", "delivery", "attachment_use", "share", "read_mark")


def start_long(store: SessionStore, source: SessionSource, word: str = "zebra") -> str:
    """Store a conversation that is deleted in pieces, and index it."""
    session_id = store.record_user_message(source, f"{word} first").session_id
    for number in range(1, MESSAGES):
        store.append_to_transcript(session_id, {"role": "assistant", "content": f"{word} {number}"})
    store.search(word)
    return session_id


def start_short(store: SessionStore, source: SessionSource) -> str:
    return store.record_user_message(source, "hello").session_id


def open_views(store: SessionStore, source: SessionSource) -> list[SessionView]:
    """Return the view of the person, and that of the owner who sees everything."""
    principal = store.get_or_create_person(source).principal
    return [store.seen_by(principal), store.seen_by(store.get_owner().principal, everything=True)]


def get_no(store: SessionStore, session_id: str) -> int:
    return int(list_rows(store, "SELECT no FROM session WHERE id = $1", session_id)[0][0])


def count_rows(store: SessionStore, table: str, session_no: int) -> int:
    return int(list_rows(store, f"SELECT COUNT(*) FROM {table} WHERE session_no = $1", session_no)[0][0])


@pytest.mark.both_engines
def test_a_long_conversation_disappears_at_once_for_every_reader(store: SessionStore, dm: Source) -> None:
    session_id, other_id = start_long(store, dm()), start_long(store, dm("bob"), "camel")
    no = get_no(store, session_id)
    store.rename_session(session_id, "Stripes")
    views = open_views(store, dm())
    views[0].transcripts.mark_read(session_id, 3)
    store.update_session(session_id, TurnUsage(model="small", input_tokens=7))
    fork_id = views[0].fork(session_id, at=2).id
    views[0].delete(session_id)
    assert count_rows(store, "event", no) > MESSAGES - session_deletion.ROWS_PER_PIECE  # its rows are still there
    for view in views:
        assert session_id not in {session.id for session in view.list()}
        assert session_id not in {hit.session_id for hit in view.search("zebra", limit=50)}
        for text in (session_id, f"deleted-{no}", "deleted"):
            with pytest.raises(NotFound):
                view.find(text)
        assert view.find("Stripes").id == fork_id
        for read in (view.get, view.load_messages, view.export):
            with pytest.raises(SessionNotFound):
                read(session_id)
        assert view.get(fork_id).parent_id is None
        assert [(row.group, row.input_tokens) for row in view.usage.report("session").rows] == [(None, 7)]
    assert store.get_or_create_session(dm()).session_id != session_id
    assert store.load_transcript(other_id)[0]["content"] == "camel first"
    assert list_rows(store, "SELECT session_id FROM deleted_session") == [(session_id,)]


def test_what_comes_too_late_finds_no_session(store: SessionStore, dm: Source) -> None:
    session_id = start_long(store, dm())
    no = get_no(store, session_id)
    open_views(store, dm())[0].delete(session_id)
    with pytest.raises(SessionNotFound):
        store.append_to_transcript(session_id, {"role": "assistant", "content": "too late"})
    with pytest.raises(SessionNotFound):
        store.engine.run(Write(lambda tx: events.append_event(tx, no, EventKind.PINNED, 1)))


@pytest.mark.both_engines
async def test_the_rows_go_in_bounded_pieces_and_nothing_is_left(store: SessionStore, dm: Source) -> None:
    session_id, other_id = start_long(store, dm()), start_long(store, dm("bob"), "camel")
    no = get_no(store, session_id)
    view = open_views(store, dm())[0]
    audience_count = list_rows(store, "SELECT COUNT(*) FROM audience")
    view.delete(session_id)
    left = [count_rows(store, "event", no)]
    while store.engine.run(Write(session_deletion.find_hidden)) is not None:
        store.engine.run(Write(lambda tx: session_deletion.delete_piece(tx, no)))
        left.append(count_rows(store, "event", no))
    assert max(before - after for before, after in itertools.pairwise(left)) <= session_deletion.ROWS_PER_PIECE
    assert [count_rows(store, table, no) for table in TABLES] == [0] * len(TABLES)
    assert list_rows(store, "SELECT 1 FROM session WHERE no = $1", no) == []
    assert list_rows(store, "SELECT COUNT(*) FROM audience") == audience_count
    assert list_rows(store, "SELECT session_id FROM deleted_session") == [(session_id,)]  # told once
    key = "rowid" if store.engine.name == "sqlite" else "event_no"
    orphans = f"SELECT 1 FROM search WHERE {key} NOT IN (SELECT no FROM event)"
    assert list_rows(store, orphans) == []
    assert len(store.load_transcript(other_id)) == MESSAGES


def test_a_check_of_the_store_finds_nothing_wrong_while_a_deletion_goes_on(store: SessionStore, dm: Source) -> None:
    session_id = start_long(store, dm())
    no = get_no(store, session_id)
    open_views(store, dm())[0].delete(session_id)
    store.engine.run(Write(lambda tx: session_deletion.delete_piece(tx, no)))
    assert store.engine.run(Write(lambda tx: invariants.find_wrong_counters(tx, 0, 2**62, 10))) == []


@pytest.mark.both_engines
async def test_the_cleanup_of_a_server_deletes_what_is_left(store: SessionStore, dm: Source, tmp_path: Path) -> None:
    session_id = start_long(store, dm())
    no = get_no(store, session_id)
    open_views(store, dm())[0].delete(session_id)
    await Cleanup(store, Attachments(store, tmp_path / "attachments")).run_once()
    assert list_rows(store, "SELECT 1 FROM event WHERE session_no = $1", no) == []
    assert await finish_deletions(store.engine, ALL_PIECES) == 0


async def test_its_words_leave_the_search_index_and_the_file_soon(
    dm: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Indexer, "notify", lambda _: None)  # its thread merges, too: then the words are gone before
    path = tmp_path / "palaver.db"
    with SessionStore.open(path) as store:  # the index of SQLite has the words in small letters
        session_id, other_id = start_long(store, dm(), "ZQXJVMIRAGE"), start_long(store, dm("bob"), "camel")
        store.delete_session(session_id)
    assert b"zqxjvmirage" in path.read_bytes()
    with SessionStore.open(path) as store:
        steps = await Cleanup(store, Attachments(store, tmp_path / "attachments")).clean_search_index()
        assert steps > 0
        assert await clean_search_index(store.engine) == 0  # nothing is merged twice
        assert len(store.search("camel", limit=50)) == 50
        assert {hit.session_id for hit in store.search("camel", limit=50)} == {other_id}
        assert list_rows(store, "SELECT v FROM search_config WHERE k = 'deletemerge'") == [(0,)]
    assert b"zqxjvmirage" not in path.read_bytes()


def test_the_text_of_a_short_conversation_is_not_in_the_file_anymore(dm: Source, tmp_path: Path) -> None:
    path = tmp_path / "palaver.db"
    with SessionStore.open(path) as store:
        session_id = store.record_user_message(dm(), "Meet me AT THE MIRAGE " * 500).session_id
        for number in range(20):
            store.append_to_transcript(session_id, f"AT THE MIRAGE, said {number}")
        store.record_user_message(dm("bob"), "of another person")
    assert b"AT THE MIRAGE" in path.read_bytes()
    with SessionStore.open(path) as store:
        store.delete_session(session_id)
    content = path.read_bytes()
    assert b"AT THE MIRAGE" not in content
    assert b"of another person" in content


@pytest.mark.both_engines
def test_deleting_completely_returns_when_the_last_row_is_gone(store: SessionStore, dm: Source) -> None:
    first_id, second_id = start_long(store, dm()), start_long(store, dm("bob"))
    open_views(store, dm())[0].delete_completely(first_id)
    store.delete_session(second_id)
    assert list_rows(store, "SELECT COUNT(*) FROM event") == [(0,)]


def test_a_short_conversation_goes_in_one_transaction(store: SessionStore, dm: Source) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    open_views(store, dm())[0].delete(session_id)
    assert list_rows(store, "SELECT 1 FROM session") == []
    assert list_rows(store, "SELECT 1 FROM event") == []


@pytest.mark.both_engines
@pytest.mark.parametrize("start", [start_long, start_short])
async def test_a_conversation_that_another_process_has_just_deleted_is_deleted_once(
    store: SessionStore, dm: Source, start: Callable[[SessionStore, SessionSource], str]
) -> None:
    """Both have found it, and the second waits for the first."""
    session_id = start(store, dm())
    row = store.engine.run(Read(lambda tx: sessions.get(tx, session_id)))
    deletions = [store.engine.run(Write(lambda tx: session_deletion.delete(tx, row))) for _ in range(2)]
    assert [deleted.messages > 0 for deleted in deletions] == [True, False]
    await finish_deletions(store.engine, ALL_PIECES)
    assert list_rows(store, "SELECT COUNT(*) FROM session") == [(0,)]

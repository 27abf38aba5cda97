"""The thread that keeps the search index up to date."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from palaver.core.engines.base import Read, Write
from palaver.media.attachments import Attachments
from palaver.operation.cleanup import Cleanup
from palaver.sessions import deletion_table as session_deletion, search_table as search, table as sessions
from palaver.sessions.indexer import Indexer
from support.gateway import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import OpenStore
    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction

on_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.mark.both_engines
def test_the_thread_ends_if_the_store_is_closed_just_when_it_starts_to_work(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer = Indexer(store.engine)
    clear = indexer._wake.clear

    def close_and_clear() -> None:
        indexer._closed.set()
        indexer._wake.set()
        clear()

    monkeypatch.setattr(indexer._wake, "clear", close_and_clear)
    indexer.notify()
    assert indexer._thread is not None
    indexer._thread.join(60)
    assert not indexer._thread.is_alive()


@pytest.mark.both_engines
async def test_a_server_indexes_what_another_process_has_left(
    open_store: OpenStore, dm: Callable[..., SessionSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "notify", lambda _: None)
        open_store().record_user_message(dm(), "hello")
    store = open_store()
    assert store.engine.run(Read(search.has_unindexed))
    await Cleanup(store, Attachments(store, tmp_path / "attachments")).run_once()
    await wait_until(lambda: not store.engine.run(Read(search.has_unindexed)))


def count_parts(tx: Transaction) -> int:
    row = tx.fetch_one("SELECT COUNT(DISTINCT segid) FROM search_idx")
    assert row is not None
    return int(row[0])


def delete_piece(session_no: int, tx: Transaction) -> None:
    session_deletion.delete_piece(tx, session_no)


@on_sqlite
async def test_the_parts_of_the_index_are_merged_in_steps_of_their_own(
    open_store: OpenStore, dm: Callable[..., SessionSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No message and no search waits for a merge: each only adds a part, and the thread merges some pages at a time."""
    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "notify", lambda _: None)
        store = open_store()
        for number in range(40):
            store.record_user_message(dm(), f"message {number}")
            store.search("nothing")  # it indexes the message
    assert store.engine.run(Read(count_parts)) == 40
    store.indexer.notify()
    await wait_until(lambda: store.engine.run(Read(count_parts)) < 4)
    assert len(store.search("message", limit=100)) == 40


@on_sqlite
def test_the_index_is_not_merged_while_a_conversation_is_being_deleted(
    store: SessionStore, dm: Callable[..., SessionSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge would have to read very many deleted messages in one step."""
    monkeypatch.setattr(Indexer, "notify", lambda _: None)
    for number in range(20):
        session_id = store.record_user_message(dm(), f"message {number}").session_id
        store.search("nothing")
    monkeypatch.setattr(session_deletion, "MAX_SHORT_ROWS", 5)
    store.engine.run(Write(lambda tx: session_deletion.delete(tx, sessions.get(tx, session_id))))
    assert not store.engine.run(Write(search.merge_parts))
    while (no := store.engine.run(Read(session_deletion.find_hidden))) is not None:
        store.engine.run(Write(partial(delete_piece, no)))
    assert store.engine.run(Write(search.merge_parts))

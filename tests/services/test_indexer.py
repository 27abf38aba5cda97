"""The thread that keeps the search index up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.services.attachments import Attachments
from palaver.services.cleanup import Cleanup
from palaver.services.indexer import Indexer
from palaver.storage import search
from palaver.storage.engines.base import Read
from support.gateway import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import OpenStore
    from palaver import SessionSource, SessionStore


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

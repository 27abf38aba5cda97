"""The thread that keeps the search index up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.services.indexer import Indexer

if TYPE_CHECKING:
    from palaver import SessionStore


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

"""Searches while many messages are not indexed yet, for example after an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Read
from palaver.inbox import inbox
from palaver.sessions import indexer, search_table as search
from palaver.sessions.inbound import Inbound
from palaver.sessions.indexer import Indexer
from support.gateway import make_member

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock
    from support.gateway import StartGateway

ADA = SessionSource("telegram", "1", user_id="1", user_name="Ada")
BEN = SessionSource("telegram", "2", user_id="2", user_name="Ben")
pytestmark = pytest.mark.usefixtures("small_batches")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a search index one batch of a few messages, and let no thread index anything."""
    monkeypatch.setattr(indexer, "BATCH_EVENTS", 4)
    monkeypatch.setattr(indexer, "MAX_CATCH_UP_SECONDS", 0.0)
    monkeypatch.setattr(inbox, "MAX_CATCH_UP_SECONDS", 0.0)
    monkeypatch.setattr(Indexer, "notify", lambda _: None)


def count_pending(store: SessionStore, person: SessionSource) -> int:
    """Count the messages of a person's sessions that are not indexed."""
    principal = store.get_or_create_person(person).principal
    sessions = [session.id for session in store.seen_by(principal).list(limit=200)]

    def run(tx: Transaction) -> int:
        select = "SELECT last_seq - indexed_seq FROM session WHERE id = $1 AND unindexed = 1"
        return sum(row[0] for each in sessions if (row := tx.fetch_one(select, each)))

    return store.engine.run(Read(run))


@pytest.mark.both_engines
def test_a_search_indexes_nothing_of_what_its_reader_may_not_see(store: SessionStore) -> None:
    for number in range(40):
        store.record_user_message(ADA, f"secret {number}")
    store.record_user_message(BEN, "hello harbor")
    ben = store.seen_by(store.get_or_create_person(BEN).principal)
    hits = ben.search("harbor")
    assert [hit.message.content for hit in hits] == ["hello harbor"]
    assert not hits.is_indexing
    assert count_pending(store, BEN) == 0
    assert count_pending(store, ADA) >= 40
    assert not ben.search("secret").is_indexing
    assert ben.search("secret") == []


@pytest.mark.both_engines
def test_a_search_that_can_not_index_everything_in_time_says_so(store: SessionStore) -> None:
    for number in range(10):
        store.record_user_message(ADA, f"lighthouse {number}")
    ada = store.seen_by(store.get_or_create_person(ADA).principal)
    first = ada.search("lighthouse")
    assert (len(first), first.is_indexing) == (4, True)
    while (hits := ada.search("lighthouse")).is_indexing:
        assert len(hits) < 10
    assert len(hits) == 10
    assert not ada.search("lighthouse").is_indexing


@pytest.mark.both_engines
def test_a_search_indexes_the_conversations_that_were_active_last_first(store: SessionStore, clock: FakeClock) -> None:
    old = store.record_user_message(ADA, "the first lighthouse")
    for number in range(20):
        store.reset_session(old.session_key)
        store.record_user_message(ADA, f"harbor {number}")
    clock.advance(minutes=1)
    store.switch_session(old.session_key, old.session_id)
    store.record_user_message(ADA, "the newest lighthouse")
    hits = store.seen_by(store.get_or_create_person(ADA).principal).search("newest")
    assert ([hit.message.content for hit in hits], hits.is_indexing) == (["the newest lighthouse"], True)


@pytest.mark.both_engines
def test_a_search_within_a_conversation_indexes_only_that(store: SessionStore) -> None:
    first = store.record_user_message(ADA, "lighthouse")
    store.reset_session(first.session_key)
    for number in range(20):
        store.record_user_message(ADA, f"harbor {number}")
    ada = store.seen_by(store.get_or_create_person(ADA).principal)
    hits = ada.search("lighthouse", within=first.session_id)
    assert (len(hits), hits.is_indexing) == (1, False)
    assert count_pending(store, ADA) >= 20


@pytest.mark.both_engines
def test_long_messages_are_indexed_in_smaller_batches(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_BATCH_CHARS", 100)
    for number in range(3):
        store.record_user_message(ADA, f"lighthouse {number} " + "x" * 200)
    batch = store.engine.run(Read(lambda tx: search.collect_unindexed(tx, 512)))
    assert batch is not None
    assert len(batch.rows) == 1
    ada = store.seen_by(store.get_or_create_person(ADA).principal)
    hits = ada.search("lighthouse")
    assert (len(hits), hits.is_indexing) == (1, True)
    assert [len(ada.search("lighthouse")) for _ in range(2)] == [2, 3]
    store.record_user_message(ADA, "a new lighthouse")
    assert len(store.search("lighthouse")) == 4  # a program that uses the library gets everything


async def test_the_command_says_that_messages_are_still_being_indexed(start_gateway: StartGateway) -> None:
    gateway = await start_gateway()
    for number in range(6):
        gateway.store.record_user_message(ADA, f"lighthouse {number}")
        gateway.store.record_user_message(BEN, f"secret {number}")
    await make_member(gateway.store, ADA)
    first = await gateway.inbox.accept(Inbound(source=ADA, content="/search lighthouse"))
    assert first.reply is not None
    assert first.reply.endswith("Some messages are still being indexed and may be missing. Search again in a moment.")
    assert (first.facts or {})["is_indexing"]
    second = await gateway.inbox.accept(Inbound(source=ADA, content="/search lighthouse"))
    assert (second.facts or {})["is_indexing"] is False
    assert len((second.facts or {})["hits"]) == 6
    assert count_pending(gateway.store, BEN) >= 6

"""A store behind a pooler that gives every transaction another connection to PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

from palaver import SessionSource, SessionStore
from palaver.core.engines import postgres_connection
from palaver.core.engines.base import Read, Write
from palaver.core.engines.postgres import PostgresEngine
from palaver.core.errors import StoreBusy
from palaver.platforms.loopback import LOOPBACK
from support.transaction_pooler import TransactionPooler

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("store_url", ["postgres"], indirect=True)]


@pytest.fixture(params=[False, True], ids=["refuses options", "ignores options"])
def pooler(store_url: str, request: pytest.FixtureRequest) -> Iterator[TransactionPooler]:
    with TransactionPooler(store_url, accepts_options=request.param) as pooler:
        yield pooler


async def test_several_stores_behind_a_pooler_get_their_own_answers(pooler: TransactionPooler, store_url: str) -> None:
    with SessionStore.open(pooler.url) as first, SessionStore.open(pooler.url) as second:

        async def talk(store: SessionStore, user: str) -> list[object]:
            source = SessionSource(LOOPBACK, user, user_id=user)
            for number in range(10):
                recorded = await store.aio.record_user_message(source, f"{user} {number}")
                await store.aio.append_to_transcript(recorded.session_id, f"answer to {user} {number}")
            return [each["content"] for each in await store.aio.load_transcript(recorded.session_id)]

        users = [f"user{number}" for number in range(8)]
        stores = [first, second] * 4
        transcripts = await asyncio.gather(*map(talk, stores, users))
        for user, transcript in zip(users, transcripts, strict=True):
            expected = [[f"{user} {number}", f"answer to {user} {number}"] for number in range(10)]
            assert transcript == [text for pair in expected for text in pair]
    for query in ("SELECT 1 FROM pg_prepared_statements", "SELECT pg_listening_channels()"):
        with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as other:
            for _ in range(6):  # on each of the pooler's connections
                assert other.execute(query).fetchall() == []


def test_changes_are_noticed_behind_a_pooler(pooler: TransactionPooler, store_url: str) -> None:
    changed = threading.Event()
    with closing(PostgresEngine.open(pooler.url)) as engine, closing(engine.watch(lambda _: changed.set())):
        with SessionStore.open(store_url) as other:
            other.record_user_message(SessionSource.local_cli(), "hello")
        assert changed.wait(60)


def test_time_limits_hold_behind_a_pooler_and_stay_within_their_transaction(
    pooler: TransactionPooler, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_connection.TIME_LIMITS, "lock_timeout", 300)
    with closing(PostgresEngine.open(pooler.url)) as engine, psycopg.connect(store_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('a name', 0))")
        with pytest.raises(StoreBusy):
            engine.run(Write(lambda tx: tx.lock_name("a name")))
        for work in (Read, Write):
            assert engine.run(work(lambda tx: tx.fetch_one("SHOW lock_timeout"))) == ("300ms",)
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as other:
        assert {other.execute("SHOW lock_timeout").fetchone() for _ in range(6)} == {("0",)}

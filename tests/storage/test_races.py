"""Two processes at the same conversation on PostgreSQL, in the one order of steps that is hard to meet by chance.

What one of them does in the middle of the other's transaction is put there on purpose. (On SQLite a writer is
alone, so there is no middle.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.domain.clock import SystemClock
from palaver.domain.errors import NoSuchProject, NoSuchSession
from palaver.domain.message import Message
from palaver.storage import events, lanes, people, projects, search, sessions
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.storage.engines.base import Row, Transaction

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)

NOW = to_micros(SystemClock().now())


class Meddling:
    """A transaction in which somebody else does something just before a certain statement, the first time."""

    def __init__(self, before: str, meddle: Callable[[], object]) -> None:
        self._before = before
        self._meddle: Callable[[], object] | None = meddle
        self._tx: Any = None

    def within(self, tx: Transaction) -> Any:
        """The transaction of this attempt: after a conflict there is another."""
        self._tx = tx
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    @property
    def happened(self) -> bool:
        return self._meddle is None

    def _notice(self, sql: str) -> None:
        if self._meddle is not None and self._before in sql:
            meddle, self._meddle = self._meddle, None
            meddle()

    def one(self, sql: str, *params: object) -> Row | None:
        self._notice(sql)
        row: Row | None = self._tx.one(sql, *params)
        return row

    def all(self, sql: str, *params: object) -> list[Row]:
        self._notice(sql)
        rows: list[Row] = self._tx.all(sql, *params)
        return rows

    def run(self, sql: str, *params: object) -> int:
        self._notice(sql)
        count: int = self._tx.run(sql, *params)
        return count

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._notice(sql)
        self._tx.many(sql, rows)


@pytest.fixture
def one(open_store: OpenStore) -> SessionStore:
    return open_store()


@pytest.fixture
def other(open_store: OpenStore) -> SessionStore:
    return open_store()


def write(store: SessionStore, meddling: Meddling, work: Callable[[Any], Any]) -> Any:
    result = store._engine.run(Write(lambda tx: work(meddling.within(tx))))
    assert meddling.happened
    return result


def test_a_lane_is_switched_to_a_session_that_is_deleted_meanwhile(
    one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    lane = one.record_user_message(dm("ada"), "here")
    target = one.record_user_message(dm("bob"), "there").session_id
    meddling = Meddling("UPDATE route", lambda: other.delete_session(target))
    with pytest.raises(NoSuchSession):
        write(one, meddling, lambda tx: lanes.switch(tx, lane.session_key, sessions.get(tx, target), NOW))
    assert one.get_or_create_session(dm("ada")).session_id == lane.session_id


def test_a_session_is_forked_that_is_deleted_meanwhile(
    one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    gone = one.record_user_message(dm(), "here").session_id
    meddling = Meddling("INSERT INTO session", lambda: other.delete_session(gone))

    def fork(tx: Any) -> Any:
        found = sessions.get(tx, gone)
        return sessions.fork(tx, found, None, NOW, person_id=None, audience_no=found.audience_no)

    with pytest.raises(NoSuchSession):
        write(one, meddling, fork)
    assert list(one.list_sessions()) == []


def test_a_session_is_put_into_a_project_that_is_deleted_meanwhile(
    one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    session_id = one.record_user_message(dm(), "here").session_id
    me = one.person_for(dm())
    project = one.seen_by(me.principal).create_project("Garden")
    meddling = Meddling("UPDATE session", lambda: other.seen_by(me.principal).delete_project(project.id))

    def move(tx: Any) -> Any:
        no, found = projects.find(tx, me.id, project.id)
        return sessions.move(tx, sessions.get(tx, session_id), found.id, no, NOW, me.id)

    with pytest.raises(NoSuchProject):
        write(one, meddling, move)
    assert one.get_session(session_id).project_id is None


def test_a_restore_goes_to_a_session_that_is_deleted_meanwhile(
    one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    old = one.record_user_message(dm(), "old")
    new = one.reset_session(old.session_key)
    meddling = Meddling("UPDATE route", lambda: other.delete_session(old.session_id))
    with pytest.raises(Exception, match="restore") as caught:
        write(one, meddling, lambda tx: lanes.restore(tx, old.session_key, NOW))
    assert type(caught.value).__module__ == "palaver.domain.errors"
    assert one.get_or_create_session(dm()).session_id == new.session_id


def test_messages_are_indexed_that_are_deleted_meanwhile(
    one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    gone = one.record_user_message(dm("ada"), "needle").session_id
    kept = one.record_user_message(dm("bob"), "needle").session_id
    batch = one._engine.run(Read(lambda tx: search.unindexed(tx, 100)))
    if batch is not None:  # otherwise the thread that indexes was quicker
        meddling = Meddling("INSERT INTO search", lambda: other.delete_session(gone))
        write(one, meddling, lambda tx: search.index(tx, batch))
        assert {hit.session_id for hit in one.search("needle")} == {kept}


@pytest.mark.parametrize("quicker", ["older", "newer"])
def test_two_processes_index_the_same_session(
    one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource], quicker: str
) -> None:
    """One has seen a rewrite in which there are no words, the other the message after it as well."""
    session_id = one.record_user_message(dm(), "needle").session_id
    one.search("needle")

    def seen() -> search.Batch:
        batch = one._engine.run(Read(lambda tx: search.unindexed(tx, 100)))
        assert batch is not None
        return batch

    one.rewrite_transcript(session_id, [])
    batches = {"older": seen()}
    one.append_to_transcript(session_id, "haystack")
    batches["newer"] = seen()
    first, second = (batches.pop(quicker), *batches.values())
    meddling = Meddling(
        "UPDATE session SET indexed_seq", lambda: other._engine.run(Write(lambda tx: search.index(tx, first)))
    )
    write(one, meddling, lambda tx: search.index(tx, second))
    assert [hit.message.text for hit in one.search("haystack")] == ["haystack"]
    one.append_to_transcript(session_id, "straw")
    assert [hit.message.text for hit in one.search("straw")] == ["straw"]
    assert len(one.search("haystack")) == 1


@pytest.mark.parametrize("shared", [False, True], ids=["dm", "group"])
def test_a_message_never_follows_the_end_of_its_session(
    one: SessionStore,
    other: SessionStore,
    dm: Callable[..., SessionSource],
    group: Callable[..., SessionSource],
    shared: bool,
) -> None:
    source = group(thread_id="1") if shared else dm()
    before = one.record_user_message(source, "before")
    arrival = lanes.Arrival(
        source=source, config=GatewayConfig(), now=SystemClock().now(), busy_since=lambda _session_id: None
    )
    meddling = Meddling("INSERT INTO event", lambda: other.reset_session(before.session_key))
    if not shared:  # one statement does all of it: nobody can come between
        meddling = Meddling("UPDATE session", lambda: other.reset_session(before.session_key))
    said = write(one, meddling, lambda tx: lanes.say(tx, arrival, Message("user", "after"), human=True))
    log = one.events(said.session_id)
    ends = [event.seq for event in log if event.kind == "ended"]
    assert all(said.seq < end for end in ends)


@pytest.mark.parametrize("who", [SessionSource.local_cli(), SessionSource("telegram", "7", user_id="7")], ids=str)
def test_one_account_is_one_person(one: SessionStore, other: SessionStore, who: SessionSource) -> None:
    meddling = Meddling("INSERT INTO identity", lambda: other.person_for(who))
    found = write(one, meddling, lambda tx: people.find_or_add(tx, who, NOW))
    assert found.person.id == other.person_for(who).id == one.person_for(who).id


def test_two_undos_hide_two_turns(one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource]) -> None:
    session_id = one.get_or_create_session(dm()).session_id
    for number in range(3):
        one.append_to_transcript(session_id, [{"role": "user", "content": f"q{number}"}, f"a{number}"])
    meddling = Meddling("FOR UPDATE", lambda: other.undo(session_id))
    write(one, meddling, lambda tx: events.undo(tx, sessions.get(tx, session_id).no, 1, NOW))
    assert [message["content"] for message in one.load_transcript(session_id)] == ["q0", "a0"]
    assert one.redo(session_id).messages == 2
    assert one.redo(session_id).messages == 2
    assert one.get_session(session_id).message_count == 6


def test_a_rewrite_of_what_has_grown_meanwhile_reads_as_given(
    one: SessionStore, other: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    session_id = one.record_user_message(dm(), "one").session_id
    meddling = Meddling("FOR UPDATE", lambda: other.append_to_transcript(session_id, "two"))
    new = [Message("user", "one"), Message("user", "three")]
    write(one, meddling, lambda tx: events.rewrite(tx, sessions.get(tx, session_id).no, new, NOW))
    assert [message["content"] for message in one.load_transcript(session_id)] == ["one", "three"]
    assert one.get_session(session_id).message_count == 2

"""Two processes at the same conversation on PostgreSQL, in the one order of steps that rarely happens by chance.

The tests run what one process does in the middle of the other's transaction on purpose. (On SQLite there is only one
writer at a time, so there is no middle.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.agent.base import ModelPrices
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.clock import SystemClock, to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NothingToRestore, ProjectNotFound, SessionNotFound
from palaver.core.operation import TransactionRunner
from palaver.jobs import table as jobs
from palaver.jobs.fields import JobEnvironment
from palaver.jobs.model import JobDraft, JobState
from palaver.jobs.service import Jobs
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import (
    lanes_table as lanes,
    log_table as events,
    projects_table as projects,
    search_table as search,
    table as sessions,
)
from palaver.sessions.indexer import Indexer
from palaver.sessions.message import Message
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Row, Transaction

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)

NOW = to_micros(SystemClock().now())


class InterruptedTransaction:
    """A transaction that lets another process act just before a certain statement, the first time it comes."""

    def __init__(self, before: str, act: Callable[[], object]) -> None:
        self._before = before
        self._act: Callable[[], object] | None = act
        self._tx: Any = None

    def wrap(self, tx: Transaction) -> Any:
        """Use the transaction of this attempt: after a conflict there is another."""
        self._tx = tx
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    @property
    def was_interrupted(self) -> bool:
        return self._act is None

    def _interrupt(self, sql: str) -> None:
        if self._act is not None and self._before in sql:
            act, self._act = self._act, None
            act()

    def fetch_one(self, sql: str, *params: object) -> Row | None:
        self._interrupt(sql)
        row: Row | None = self._tx.fetch_one(sql, *params)
        return row

    def fetch_all(self, sql: str, *params: object) -> list[Row]:
        self._interrupt(sql)
        rows: list[Row] = self._tx.fetch_all(sql, *params)
        return rows

    def execute(self, sql: str, *params: object) -> int:
        self._interrupt(sql)
        count: int = self._tx.execute(sql, *params)
        return count

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._interrupt(sql)
        self._tx.execute_many(sql, rows)


@pytest.fixture
def other_store(open_store: OpenStore) -> SessionStore:
    return open_store()


def write(store: SessionStore, interrupted: InterruptedTransaction, work: Callable[[Any], Any]) -> Any:
    result = store._engine.run(Write(lambda tx: work(interrupted.wrap(tx))))
    assert interrupted.was_interrupted
    return result


def test_switching_a_lane_to_a_session_deleted_meanwhile_fails(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    lane = store.record_user_message(dm("ada"), "here")
    target = store.record_user_message(dm("bob"), "there").session_id
    interrupted = InterruptedTransaction("UPDATE lane", lambda: other_store.delete_session(target))
    with pytest.raises(SessionNotFound):
        write(store, interrupted, lambda tx: lanes.switch_session(tx, lane.session_key, sessions.get(tx, target), NOW))
    assert store.get_or_create_session(dm("ada")).session_id == lane.session_id


def test_forking_a_session_deleted_meanwhile_fails(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    deleted_id = store.record_user_message(dm(), "here").session_id
    interrupted = InterruptedTransaction("INSERT INTO session", lambda: other_store.delete_session(deleted_id))

    def fork(tx: Any) -> Any:
        session_row = sessions.get(tx, deleted_id)
        return sessions.fork(tx, session_row, None, NOW, person_id=None, audience_no=session_row.audience_no)

    with pytest.raises(SessionNotFound):
        write(store, interrupted, fork)
    assert list(store.list_sessions()) == []


@pytest.mark.parametrize("is_large", [False, True])  # a large one disappears, and its row is still there
def test_moving_a_session_to_a_project_deleted_meanwhile_fails(
    store: SessionStore,
    other_store: SessionStore,
    dm: Callable[..., SessionSource],
    monkeypatch: pytest.MonkeyPatch,
    is_large: bool,
) -> None:
    session_id = store.record_user_message(dm(), "here").session_id
    person = store.get_or_create_person(dm())
    project = store.seen_by(person.principal).projects.create("Garden")
    if is_large:
        monkeypatch.setattr(projects, "SESSIONS_PER_PIECE", 0)
        store.move_to_project(store.record_user_message(dm("bob"), "there").session_id, project.id)
    interrupted = InterruptedTransaction(
        "UPDATE session", lambda: other_store.seen_by(person.principal).projects.delete(project.id)
    )

    def move(tx: Any) -> Any:
        no, found = projects.get_by_id_or_name(tx, person.id, project.id)
        return sessions.move_to_project(tx, sessions.get(tx, session_id), found.id, no, NOW, person.id)

    with pytest.raises(ProjectNotFound):
        write(store, interrupted, move)
    assert store.get_session(session_id).project_id is None


def test_restoring_a_session_deleted_meanwhile_fails(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    old = store.record_user_message(dm(), "old")
    new = store.reset_session(old.session_key)
    interrupted = InterruptedTransaction("UPDATE lane", lambda: other_store.delete_session(old.session_id))
    with pytest.raises(NothingToRestore):
        write(store, interrupted, lambda tx: lanes.restore_session(tx, old.session_key, NOW))
    assert store.get_or_create_session(dm()).session_id == new.session_id


def collect_unindexed(store: SessionStore) -> search.IndexBatch:
    batch = store._engine.run(Read(lambda tx: search.collect_unindexed(tx, 100)))
    assert batch is not None
    return batch


@pytest.fixture
def without_indexer(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread indexes in the background; only a search does."""
    monkeypatch.setattr(Indexer, "notify", lambda _self: None)


@pytest.mark.usefixtures("without_indexer")
def test_messages_deleted_while_they_are_indexed_are_not_found(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    deleted_id = store.record_user_message(dm("ada"), "needle").session_id
    kept_id = store.record_user_message(dm("bob"), "needle").session_id
    batch = collect_unindexed(store)
    interrupted = InterruptedTransaction("INSERT INTO search", lambda: other_store.delete_session(deleted_id))
    write(store, interrupted, lambda tx: search.index_batch(tx, batch))
    assert {hit.session_id for hit in store.search("needle")} == {kept_id}


@pytest.mark.usefixtures("without_indexer")
@pytest.mark.parametrize("faster", ["older", "newer"])
def test_two_processes_can_index_the_same_session(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource], faster: str
) -> None:
    """One has read a rewrite without any words, the other also the message after it."""
    session_id = store.record_user_message(dm(), "needle").session_id
    store.search("needle")
    store.rewrite_transcript(session_id, [])
    batches = {"older": collect_unindexed(store)}
    store.append_to_transcript(session_id, "haystack")
    batches["newer"] = collect_unindexed(store)
    first, second = (batches.pop(faster), *batches.values())
    interrupted = InterruptedTransaction(
        "UPDATE session SET indexed_seq",
        lambda: other_store._engine.run(Write(lambda tx: search.index_batch(tx, first))),
    )
    write(store, interrupted, lambda tx: search.index_batch(tx, second))
    assert [hit.message.text for hit in store.search("haystack")] == ["haystack"]
    store.append_to_transcript(session_id, "straw")
    assert [hit.message.text for hit in store.search("straw")] == ["straw"]
    assert len(store.search("haystack")) == 1


@pytest.mark.parametrize("shared", [False, True], ids=["dm", "group"])
def test_a_message_never_follows_the_end_of_its_session(
    store: SessionStore,
    other_store: SessionStore,
    dm: Callable[..., SessionSource],
    group: Callable[..., SessionSource],
    shared: bool,
) -> None:
    source = group(thread_id="1") if shared else dm()
    before = store.record_user_message(source, "before")
    arrival = lanes.Arrival(
        source=source, config=GatewayConfig(), now=SystemClock().now(), busy_since=lambda _session_id: None
    )
    # A direct message is appended by one statement, which nothing can interrupt: it starts with the update.
    statement = "INSERT INTO event" if shared else "UPDATE session"
    interrupted = InterruptedTransaction(statement, lambda: other_store.reset_session(before.session_key))
    recorded = write(
        store, interrupted, lambda tx: lanes.append_message(tx, arrival, Message("user", "after"), from_human=True)
    )
    log = store.load_events(recorded.session_id)
    end_seqs = [event.seq for event in log if event.kind == "ended"]
    assert all(recorded.seq < seq for seq in end_seqs)


@pytest.mark.parametrize("source", [SessionSource.local_cli(), SessionSource("telegram", "7", user_id="7")], ids=str)
def test_an_account_is_one_person(store: SessionStore, other_store: SessionStore, source: SessionSource) -> None:
    interrupted = InterruptedTransaction("INSERT INTO identity", lambda: other_store.get_or_create_person(source))
    person_row = write(store, interrupted, lambda tx: people.find_or_add_by_source(tx, source, NOW))
    ids = {opened.get_or_create_person(source).id for opened in (store, other_store)}
    assert ids == {person_row.person.id}


def test_two_undos_hide_two_turns(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    session_id = store.get_or_create_session(dm()).session_id
    for number in range(3):
        store.append_to_transcript(session_id, [{"role": "user", "content": f"q{number}"}, f"a{number}"])
    interrupted = InterruptedTransaction("FOR UPDATE", lambda: other_store.undo(session_id))
    write(store, interrupted, lambda tx: events.undo_turns(tx, sessions.get(tx, session_id).no, 1, NOW))
    assert [message["content"] for message in store.load_transcript(session_id)] == ["q0", "a0"]
    assert store.redo(session_id).messages == 2
    assert store.redo(session_id).messages == 2
    assert store.get_session(session_id).message_count == 6


def test_a_rewrite_also_replaces_messages_appended_meanwhile(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    session_id = store.record_user_message(dm(), "one").session_id
    interrupted = InterruptedTransaction("FOR UPDATE", lambda: other_store.append_to_transcript(session_id, "two"))
    messages = [Message("user", "one"), Message("user", "three")]
    write(
        store,
        interrupted,
        lambda tx: events.rewrite_transcript(tx, sessions.get(tx, session_id).no, messages, NOW),
    )
    assert [message["content"] for message in store.load_transcript(session_id)] == ["one", "three"]
    assert store.get_session(session_id).message_count == 2


def test_a_job_whose_last_slot_passes_while_it_is_edited_is_active_again(
    store: SessionStore, other_store: SessionStore, dm: Callable[..., SessionSource]
) -> None:
    agent = ScriptedAgent()
    environment = JobEnvironment(
        config=store.config, rules=TurnRules(), agent=agent, profile=AgentProfile(), prices=ModelPrices(agent)
    )
    store.record_user_message(dm(), "hello")  # so that the job may be sent there
    principal = replace(store.get_or_create_person(dm()).principal, role=Role.OWNER)
    store._engine.run(Write(lambda tx: people.set_role(tx, principal.person_id, Role.OWNER)))

    def open_jobs(tx: Any) -> Jobs[TransactionRunner]:
        return Jobs(TransactionRunner(tx), environment, SystemClock())

    draft = JobDraft(name="Tea", prompt="Make tea", schedule="30m")
    store._engine.run(Write(lambda tx: open_jobs(tx).add(principal, draft, dm())))

    def pass_slot(tx: Transaction) -> bool:
        return jobs.advance(tx, jobs.get_owned(tx, principal.person_id, "Tea"), None, NOW, runs_left=None)

    interrupted = InterruptedTransaction(
        "SELECT 1 FROM job WHERE no", lambda: other_store._engine.run(Write(pass_slot))
    )
    write(store, interrupted, lambda tx: open_jobs(tx).edit(principal, "Tea", JobDraft(schedule="every 2h")))
    job = store._engine.run(Read(lambda tx: jobs.get_owned(tx, principal.person_id, "Tea"))).job
    assert job.state is JobState.ACTIVE
    assert job.next_slot is not None

"""No statement on the way from a message to its answer scans a whole table.

SQLite's planner does not consider the number of rows: its plans for an empty database are the same as for a full one.
PostgreSQL is told to avoid scans, so that it scans a table only if no index can be used.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from palaver import SessionSource, SessionStore
from palaver.agent.base import TextDelta, ToolCall, ToolResult
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.clock import to_micros
from palaver.core.engines import sqlite
from palaver.core.engines.base import Read, Write
from palaver.core.engines.postgres_connection import PostgresTransaction
from palaver.core.engines.sqlite import SqliteTransaction
from palaver.core.errors import SendRetryable, TargetUnreachable
from palaver.core.source import Platform
from palaver.delivery.model import Capabilities, Pace
from palaver.gateway.gateway import Gateway
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.model import JobRunKind
from palaver.jobs.table import ALL_PIECES
from palaver.media import table as attachments
from palaver.people import account_table as accounts
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.prompts.service import SavedPromptOperations
from palaver.push import table as push
from palaver.push.model import PushSubscription
from palaver.sessions import (
    deletions as deletion_pieces,
    log_table as events,
    message_edits,
    message_table as message_log,
    projects_table as projects,
    shares_table as shares,
    table as sessions,
    transcript_table as transcript_pages,
    versions_table as versions,
)
from palaver.sessions.inbound import (
    ButtonPressed,
    ChatMoved,
    Cursor,
    Inbound,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
)
from palaver.sessions.message import Message
from palaver.sessions.model import VersionInfo
from palaver.sessions.search_text import ArchivedFilter, SearchFilter
from palaver.testing import ScriptedAgent
from support.gateway import make_member, wait_for_turn, wait_until
from support.job_runs import insert_job
from support.metered_work import make_call, make_rules, make_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.people.model import Person

# Partial indexes on open rows, which may be scanned: they stay short, however much has ended.
SHORT_INDEXES = {
    *("turn_open", "turn_queued", "turn_due", "one_running_turn"),
    *("delivery_sending", "delivery_due", "delivery_open", "session_unindexed"),
    *("job_run_queued", "job_run_running", "job_run_untold", "one_open_run_per_job"),
    *("session_deletion", "job_deletion", "project_deletion"),  # what has disappeared and still has rows
    "preview",  # a table: one row for each running turn
    *("home_channel", "platform_account"),  # tables: one row for each platform or account
    *("model_call", "budget_limit"),  # tables: one row for each call that is under way, or limit that an owner has set
    *("push_message", "push_message_due"),  # notifications on their way
    "search_rebuild",  # a table: empty, except after an upgrade; only its first rows are read
    "push_subscription",  # a table: one row for each browser of a person who wants notifications
    *("wanted", "CONSTANT"),  # values in the statement itself
}
# What SQLite runs when a row is deleted that others reference.
CASCADE_STATEMENTS = [
    "UPDATE job SET origin_session_no = NULL WHERE origin_session_no = $1",
    "UPDATE job_run SET session_no = NULL WHERE session_no = $1",
    "UPDATE job_run SET turn_no = NULL WHERE turn_no = $1",
    "DELETE FROM job_run WHERE job_no = $1",
    "DELETE FROM turn WHERE session_no = $1",
    "DELETE FROM delivery WHERE session_no = $1",
    "DELETE FROM delivery WHERE turn_no = $1",
    "DELETE FROM draft WHERE turn_no = $1",
    "DELETE FROM delivery_part WHERE delivery_no = $1",
    "UPDATE delivery_part SET attachment_no = NULL WHERE attachment_no = $1",
    "UPDATE preview SET turn_no = NULL WHERE turn_no = $1",
    "UPDATE sender_id SET main_id = $3 WHERE platform = $1 AND main_id = $2",
]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Collects every statement that runs from now on."""
    collected: set[str] = set()
    for name in ("fetch_one", "fetch_all", "execute", "execute_many"):
        original = getattr(SqliteTransaction, name)

        def collect(self: SqliteTransaction, sql: str, *params: Any, original: Any = original) -> Any:
            collected.add(sql)
            return original(self, sql, *params)

        monkeypatch.setattr(SqliteTransaction, name, collect)
    return collected


def find_scans(db: apsw.Connection, sql: str) -> list[str]:
    """Return the steps of a statement that scan a whole table or long index."""
    parameters = [None] * max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
    steps = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sqlite._to_sqlite(sql), parameters)]
    scans = [step for step in steps if re.match(r"SCAN (?!CONSTANT|\(subquery|.* VIRTUAL)", step)]
    return [step for step in scans if not SHORT_INDEXES & set(step.split())]


async def send_updates(gateway: Gateway) -> None:
    """Send everything that a platform reports besides new messages."""
    ada = SessionSource(LOOPBACK, "club", chat_type="group", user_id="ada", user_name="Ada")
    bob = replace(ada, user_id="bob", user_name="Bob")
    for message_id, source, is_addressed in (("g1", bob, False), ("g2", ada, True), ("g3", bob, False)):
        inbound = Inbound(source=source, content="hello", message_id=message_id, is_addressed=is_addressed)
        await gateway.inbox.accept(inbound, cursor=Cursor(message_id))
    updates = (
        MessageEdited(source=ada, message_id="g2", content="hello again"),
        MessageEdited(source=bob, message_id="g3", content="hello again"),
        MessageReaction(source=ada, message_id="g2", emoji="+"),
        MessageReaction(source=ada, message_id="sent", emoji="+"),
        ButtonPressed(source=ada, message_id="sent", data="retry:t_1", press_id="1"),
        MembersChanged(source=ada, joined=("Eve",)),
        MessageDeleted(source=ada, message_id="g2"),
        MessageDeleted(source=bob, message_id="g3"),
        ChatMoved(source=ada, new_chat_id="super-club"),
    )
    for update in updates:
        await gateway.inbox.accept(update, cursor=Cursor(str(update)))
    await gateway.inbox.load_cursor((LOOPBACK, ""))


async def run_job(gateway: Gateway) -> None:
    """Run a job at its slot, with a slot that was missed before it."""
    store = gateway.store
    job_row = insert_job(store, LoopbackAdapter().get_source("ada"), "every 1h")
    slot = store.clock.now() - timedelta(minutes=65)

    def make_due(tx: Transaction) -> None:
        row = jobs.update_fields(tx, job_row, {"anchor": slot, "next_slot": slot}, to_micros(slot))
        job_runs.enqueue(tx, row, store.clock.now(), JobRunKind.MANUAL, to_micros(slot))

    await store.engine.arun(Write(make_due))
    await gateway.scheduler.poll()
    await wait_until(lambda: store.engine.run(Read(lambda tx: job_runs.find_open(tx, job_row.no))) is None)
    await gateway.scheduler.poll()
    assert len(store.engine.run(Read(lambda tx: job_runs.list_runs(tx, job_row.no, limit=5)))) == 3


async def send_from_several_ids(gateway: Gateway) -> None:
    """Write as a person with a number and a lasting id, and as others who had or get that number."""
    pairs = (("491", "DE.1"), ("491", "DE.1"), ("491", "DE.2"), ("492", None), (None, "DE.3"), ("492", "DE.3"))
    for number, bsuid in pairs:
        ids = [each for each in (number, bsuid) if each]
        source = SessionSource("whatsapp", ids[0], user_id=ids[0], user_id_alt=ids[-1])
        await gateway.inbox.accept(Inbound(source=source, content="hello"))
    source = SessionSource("whatsapp", "491", user_id="491", user_id_alt="DE.2")
    await gateway.inbox.accept(ChatMoved(source=source, new_chat_id="493", new_user_ids=("493", "DE.4")))


async def test_no_statement_of_a_conversation_scans_a_table(tmp_path: Path, statements: set[str]) -> None:
    has_started, may_continue = asyncio.Event(), asyncio.Event()
    send_errors: list[Exception] = [SendRetryable("not now", retry_after=0.01)]

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"] == "long":
            has_started.set()
            await may_continue.wait()
            yield ToolCall("c1", "look", "{}")
            yield ToolResult("c1", "look", "seen")
            await request.take_steering()
        held, refused = await request.meter.hold(make_call()), await request.meter.hold(make_call())
        await refused.release()
        yield TextDelta("Here you are.")
        await held.settle(make_usage(3, 2))

    async def send(_message: OutgoingMessage) -> str | None:
        if send_errors:
            raise send_errors.pop()
        return None

    path = tmp_path / "palaver.db"
    with SessionStore.open(path) as store:
        statements.clear()  # those of opening the store
        streaming = Capabilities(can_edit=True, can_delete=True, edit_pace=Pace(0.0), typing_seconds=5)
        loopback = LoopbackAdapter(send, capabilities=streaming)
        budgets = make_rules(all_day_tokens=10**9, person_month_usd=10**12)
        rules = TurnRules(open_platforms=frozenset({LOOPBACK, Platform.WHATSAPP}), budgets=budgets)
        gateway = Gateway(store, ScriptedAgent(answer), profile=AgentProfile(), rules=rules, adapters=[loopback])
        await make_member(store, SessionSource(LOOPBACK, "ada", user_id="ada", user_name="Ada"))  # who may steer
        async with gateway.run():
            first = await loopback.say("hello", message_id="m1")
            await loopback.say("hello", message_id="m1")
            await wait_for_turn(gateway, first.turn_id)
            running = await loopback.say("long")
            await has_started.wait()
            for text in ("/steer and this", "another", "/stop all"):
                await loopback.say(text)
            may_continue.set()
            await wait_for_turn(gateway, running.turn_id)
            for text in ("/undo", "/redo"):
                await loopback.say(text)
            retried = await loopback.say("/retry")
            await wait_for_turn(gateway, retried.turn_id)
            for text in ("/versions", "/version 1", "/why", "/new"):
                await loopback.say(text)
            send_errors.append(TargetUnreachable("blocked"))
            last = await loopback.say("bye")
            await wait_for_turn(gateway, last.turn_id)
            await wait_until(lambda: not send_errors)
            await send_updates(gateway)
            await send_from_several_ids(gateway)
            await gateway.outbox.report_failed((LOOPBACK, ""), "d_0000000000000000.1", TargetUnreachable("gone"))
            await run_job(gateway)
            await gateway.turn_worker.recover_orphans()
            await gateway.outbox.recover_orphans()
            store.delete_session(first.session_id or "")
    db = apsw.Connection(str(path))
    scans = {
        sql: steps
        for sql in [*statements, *CASCADE_STATEMENTS]
        if not sql.startswith("INSERT") and (steps := find_scans(db, sql))
    }
    db.close()
    assert scans == {}
    assert len(statements) > 40


# ---- both engines ------------------------------------------------------------------------------------------

NOW = 1_000_000


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[object, ...]]:
    """Collects every statement that runs from now on, with the parameters of one call."""
    collected: dict[str, tuple[object, ...]] = {}
    for transaction in (SqliteTransaction, PostgresTransaction):
        for name in ("fetch_one", "fetch_all", "execute"):
            original = getattr(transaction, name)

            def collect(self: Transaction, sql: str, *params: object, original: Any = original) -> Any:
                collected[sql] = params
                return original(self, sql, *params)

            monkeypatch.setattr(transaction, name, collect)
    return collected


# Of tables with a few rows, PostgreSQL would choose any plan.
_MAKE_TABLES_LOOK_LARGE = (
    "UPDATE pg_class SET relpages = 1, reltuples = 1000000"
    " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND reltuples <> 1000000"
)


def find_postgres_scans(tx: Transaction, sql: str, params: tuple[object, ...]) -> list[str]:
    """Return the steps of a statement that read a whole table or index although PostgreSQL avoids them."""
    tx.execute("SET LOCAL enable_seqscan = off")
    tx.execute(_MAKE_TABLES_LOOK_LARGE)
    row = tx.fetch_one(f"EXPLAIN (FORMAT JSON) {sql}", *params)
    assert row is not None
    plans = row[0] if isinstance(row[0], list) else json.loads(row[0])
    steps = [step for plan in plans for step in iterate_steps(plan["Plan"])]
    return [
        f"{step['Node Type']} {step.get('Relation Name', '')} {step.get('Index Name', '')}"
        for step in steps
        if (step["Node Type"] == "Seq Scan" or ("Index Name" in step and "Index Cond" not in step))
        and not SHORT_INDEXES & {step.get("Relation Name"), step.get("Index Name")}
    ]


def iterate_steps(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for below in step.get("Plans", []):
        yield from iterate_steps(below)


def use_versions(store: SessionStore, session_id: str, person: Person) -> None:
    """Ask again, edit and choose versions, and read the conversation in every direction."""
    no = store.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))
    place, actor = message_edits.MessagePlace(no, 2), message_edits.Actor("telegram", person.id)

    def change(tx: Transaction) -> None:
        assert message_edits.edit_message(tx, place, "another text", actor, NOW)
        assert message_edits.revert_late_edit(tx, place, NOW)
        info = versions.start_version(tx, no, place.seq, NOW, person.id)
        message_log.append_messages(tx, session_id, [Message("user", "again")], NOW)
        versions.choose_version(tx, no, info.group, 1, NOW, person.id)
        assert message_edits.delete_message(tx, place, actor, NOW, first_seq=place.seq)

    def read(tx: Transaction) -> None:
        page = transcript_pages.load_page(tx, no, before=None, limit=1)
        transcript_pages.load_page(tx, no, after=1, limit=1)
        transcript_pages.load_page(tx, no, around=place.seq, limit=2)
        events.load_context(tx, no, first_seq=1, up_to=9)
        versions.find_last_info(tx, no)
        versions.find_info(tx, no, place.seq)
        info = VersionInfo(group=place.seq, number=1, count=2, has_edits=False)
        assert len(versions.list_versions(tx, no, info)) == 2
        assert page.events

    store.engine.run(Write(change))
    store.engine.run(Read(read))


def use_prompts_and_searches(store: SessionStore, session_id: str, person: Person) -> None:
    view = store.seen_by(person.principal)
    prompt = view.part(SavedPromptOperations).create("Explain", "Explain {{topic}}")
    view.part(SavedPromptOperations).update(prompt.id, name="Explain it")
    view.part(SavedPromptOperations).list()
    view.part(SavedPromptOperations).delete(prompt.id)
    project = view.projects.create("Trips")
    view.projects.update(project.id, instructions="Be brief.")
    view.move(session_id, project.id)
    no = store.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))
    store.engine.run(Read(lambda tx: projects.load_instructions(tx, no, person.id)))
    for archived in ArchivedFilter:
        view.search("hello", search_filter=SearchFilter(person=person.id, archived=archived, project=project.id))


def use_shares_and_push(store: SessionStore, session_id: str, person: Person) -> None:
    subscription = PushSubscription(id="p1", endpoint="https://push", public_key="k", auth_secret="s", server_key="v")

    def run(tx: Transaction) -> None:
        no = sessions.get(tx, session_id).no
        accounts.open_account(tx, person, NOW)
        share = shares.add(tx, person.id, no, "s" * 43, {"title": None, "messages": []}, NOW, NOW + 5)
        shares.set_expiry(tx, share.id, person.id, NOW + 6)
        for old_rows in shares.OLD_ROWS.values():
            old_rows.has_older(tx, NOW)
            old_rows.delete_older(tx, NOW, 10)
        sign_in_id = accounts.sign_in(tx, person.id, "digest", "link", "Firefox", "127.0.0.1", NOW)
        push.save_subscription(tx, sign_in_id, subscription, NOW)
        push.find_subscription(tx, sign_in_id)
        push.enqueue(tx, no, person.id, NOW, NOW)
        assert push.find_next_due(tx, "v") == NOW
        (waiting,) = push.list_due(tx, "v", NOW, 5, except_people=["nobody"], except_origins=["https://other/"])
        (due,) = push.claim(tx, [waiting.no], NOW, NOW + 9)
        push.retry_message(tx, due.no, due.seq, NOW)
        push.delete_message(tx, due.no, due.seq)
        push.delete_subscription_of_sign_in(tx, sign_in_id)

    store.engine.run(Write(run))


def use_deletions(store: SessionStore, session_id: str, person: Person) -> None:
    """Delete a job and a project in pieces, and look for unused files."""
    source = SessionSource("telegram", "ada", user_id="ada")
    job_row = insert_job(store, source, "every 2h")
    view = store.seen_by(person.principal)
    project_id = view.projects.create("Deleted").id
    for each in (session_id, store.get_or_create_session(source, force_new=True).session_id):
        view.move(each, project_id)

    def run(tx: Transaction) -> None:
        for minutes in (1, 2):
            slot = store.clock.now() + timedelta(minutes=minutes)
            job_runs.record_skipped(tx, job_row, slot, "It was off.", NOW)
        jobs.delete(tx, job_row.no)
        projects.delete(tx, person.id, "Deleted")
        while (hidden := deletion_pieces.find_hidden(ALL_PIECES).run(tx)) is not None:
            ALL_PIECES[hidden.table](tx, hidden.no)
        attachments.list_unused(tx, NOW, attachments.START, 10)
        attachments.delete_unused(tx, [1, 2])

    store.engine.run(Write(run))


@pytest.mark.both_engines
def test_no_statement_about_versions_prompts_shares_push_and_deletions_scans_a_table(
    store: SessionStore, calls: dict[str, tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RUNS_PER_PIECE", 1)
    monkeypatch.setattr(projects, "SESSIONS_PER_PIECE", 1)
    source = SessionSource("telegram", "ada", user_id="ada")
    person = store.get_or_create_person(source)
    recorded = store.record_user_message(source, "hello there")
    store.append_to_transcript(recorded.session_id, {"role": "assistant", "content": "hello", "answers": 2})
    store.search("hello")
    calls.clear()  # those of storing and indexing messages
    for use in (use_versions, use_prompts_and_searches, use_shares_and_push, use_deletions):
        use(store, recorded.session_id, person)
    statements = {
        sql: params for sql, params in calls.items() if not re.match(r"INSERT.* VALUES|SAVEPOINT", sql, re.DOTALL)
    }
    if store.engine.name == "sqlite":
        scans = {sql: store.engine.run(Read(lambda tx, sql=sql: find_scans(tx.connection, sql))) for sql in statements}  # type: ignore[misc]
    else:
        scans = {
            sql: store.engine.run(Write(lambda tx, sql=sql, params=params: find_postgres_scans(tx, sql, params)))  # type: ignore[misc]
            for sql, params in statements.items()
        }
    assert {sql: steps for sql, steps in scans.items() if steps} == {}
    assert len(statements) > 50

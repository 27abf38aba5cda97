"""No statement on the way from a message to its answer scans a whole table.

The test uses SQLite, whose planner does not consider the number of rows: its plans for an empty database are the same
as for a full one.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from palaver import SessionSource, SessionStore
from palaver.agent.base import TextDelta, ToolCall, ToolResult
from palaver.domain.capabilities import Capabilities, Pace
from palaver.domain.errors import SendRetryable, TargetUnreachable
from palaver.domain.inbound import Inbound
from palaver.domain.job import JobRunKind
from palaver.domain.platform_updates import (
    ButtonPressed,
    ChatMoved,
    Cursor,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
)
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.domain.source import Platform
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter
from palaver.services.gateway import Gateway
from palaver.storage import job_runs, jobs
from palaver.storage.engines import sqlite
from palaver.storage.engines.base import Read, Write
from palaver.storage.engines.sqlite import SqliteTransaction
from palaver.storage.timestamps import to_micros
from palaver.testing import ScriptedAgent
from support.gateway import make_member, wait_for_turn, wait_until
from support.job_runs import insert_job
from support.metered_work import make_call, make_rules, make_usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.services.platforms.adapter import OutgoingMessage
    from palaver.storage.engines.base import Transaction

# Partial indexes on open rows, which may be scanned: they stay short, however much has ended.
SHORT_INDEXES = {
    *("turn_open", "turn_queued", "turn_due", "one_running_turn"),
    *("delivery_sending", "delivery_due", "delivery_open", "session_unindexed"),
    *("job_run_queued", "job_run_running", "job_run_untold", "one_open_run_per_job"),
    "preview",  # a table: one row for each running turn
    *("home_channel", "platform_account"),  # tables: one row for each platform or account
    *("model_call", "budget_limit"),  # tables: one row for each call that is under way, or limit that an owner has set
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
    scans = [step for step in steps if re.match(r"SCAN (?!CONSTANT|.* VIRTUAL)", step)]
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
        row = jobs.update_fields(tx, job_row, {"anchor": slot}, to_micros(slot))
        jobs.set_next_slot(tx, row.no, slot, to_micros(slot))
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
            for text in ("/undo", "/redo", "/retry", "/new"):
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

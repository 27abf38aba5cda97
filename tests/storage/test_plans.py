"""Nothing on the way from a message to its answer walks through a whole table.

On SQLite, whose planner does not look at how much there is: what it says of an empty database holds for a full one.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from palaver import SessionStore
from palaver.agent.base import TextDelta, ToolCall, ToolResult
from palaver.domain.errors import SendLater, TargetGone
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.platforms.loopback import LOOPBACK, Loopback
from palaver.services.gateway import Gateway
from palaver.storage import turns
from palaver.storage.engines import sqlite
from palaver.storage.engines.base import Read
from palaver.storage.engines.sqlite import SqliteTransaction
from palaver.testing import ScriptedAgent
from support.gateway import ended, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.domain.delivery import Delivery

# Indexes of what is open: as long as what runs, waits or is being sent, however much has ended.
OF_THE_OPEN = {
    *("turn_open", "turn_queued", "turn_later", "one_running_turn"),
    *("delivery_sending", "delivery_due", "delivery_open", "session_unindexed"),
}
# What SQLite does when a row goes that others point at.
CASCADES = [
    "DELETE FROM turn WHERE session_no = $1",
    "DELETE FROM delivery WHERE session_no = $1",
    "DELETE FROM delivery WHERE turn_no = $1",
    "DELETE FROM draft WHERE turn_no = $1",
]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every statement that is run from now on."""
    seen: set[str] = set()
    for name in ("one", "all", "run", "many"):
        original = getattr(SqliteTransaction, name)

        def noted(self: SqliteTransaction, sql: str, *params: Any, original: Any = original) -> Any:
            seen.add(sql)
            return original(self, sql, *params)

        monkeypatch.setattr(SqliteTransaction, name, noted)
    return seen


def walked(db: apsw.Connection, sql: str) -> list[str]:
    """The tables that a statement walks through from end to end."""
    parameters = [None] * max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
    steps = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sqlite._native(sql), parameters)]
    scans = [step for step in steps if re.match(r"SCAN (?!CONSTANT|.* VIRTUAL)", step)]
    return [step for step in scans if not OF_THE_OPEN & set(step.split())]


async def test_nothing_on_the_way_walks_through_a_table(tmp_path: Path, statements: set[str]) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    outcomes: list[Exception] = [SendLater("not now", retry_after=0.01)]

    async def answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"] == "long":
            begun.set()
            await go_on.wait()
            yield ToolCall("c1", "look", "{}")
            yield ToolResult("c1", "look", "seen")
            await request.steering()
        yield TextDelta("Here you are.")

    async def wire(_delivery: Delivery) -> str | None:
        if outcomes:
            raise outcomes.pop()
        return None

    path = tmp_path / "palaver.db"
    with SessionStore.open(path) as store:
        statements.clear()  # from opening it
        loopback = Loopback(wire)
        rules = TurnRules(open_to_all=frozenset({LOOPBACK}))
        gateway = Gateway(store, ScriptedAgent(answer), profile=AgentProfile(), rules=rules, adapters=[loopback])
        async with gateway.running():
            first = await loopback.say("hello", message_id="m1")
            await loopback.say("hello", message_id="m1")
            await ended(gateway, first.turn_id)
            running = await loopback.say("long")
            await begun.wait()
            for text in ("/steer and this", "another", "/stop all"):
                await loopback.say(text)
            go_on.set()
            await ended(gateway, running.turn_id)
            for text in ("/undo", "/redo", "/retry", "/new"):
                await loopback.say(text)
            outcomes.append(TargetGone("blocked"))
            last = await loopback.say("bye")
            await ended(gateway, last.turn_id)
            await until(lambda: not outcomes)
            await gateway.turns.recover()
            await gateway.outbox.recover()
            store.engine.run(Read(turns.depth))
            store.delete_session(first.session_id or "")
    db = apsw.Connection(str(path))
    found = {
        sql: steps for sql in [*statements, *CASCADES] if not sql.startswith("INSERT") and (steps := walked(db, sql))
    }
    db.close()
    assert found == {}
    assert len(statements) > 40

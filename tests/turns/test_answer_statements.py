"""What an answered message costs on SQLite: two commits with few statements, and no read on another thread."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from palaver.agent.base import TextDelta, UsageReport
from palaver.core.engines.base import run_on_thread
from palaver.core.engines.sqlite import SqliteEngine
from palaver.core.source import Platform
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent
from palaver.turns.request_builder import MAX_QUICK_BYTES, MAX_QUICK_EVENTS
from support.gateway import ask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import pytest

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.gateway import MakeSource, StartGateway

_TARGET = re.compile(r"(SELECT|INSERT INTO|UPDATE|DELETE FROM)(?:.*?\bFROM)?\s+(\w+)", re.DOTALL)

ACCEPT = [
    "SELECT person",
    "SELECT inbound_message",
    "SELECT turn",
    "SELECT session",
    "UPDATE session",
    "INSERT INTO event",
    "INSERT INTO turn",
    "INSERT INTO inbound_message",
    "SELECT dead_target",
    "UPDATE turn",
]
END = [
    "UPDATE turn",
    "SELECT session",
    "INSERT INTO usage",
    "UPDATE session",
    "INSERT INTO event",
    "INSERT INTO delivery",
]


async def _answer(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
    del request
    yield TextDelta("hi")
    yield UsageReport(TurnUsage(model="m", input_tokens=10, output_tokens=5))


def describe(statement: str) -> str:
    target = _TARGET.match(statement.strip())
    return statement if target is None else f"{target[1]} {target[2]}"


def list_thread_reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the list of the requests that are read on another thread from now on."""
    found: list[object] = []

    async def note_thread(threads: Any, run: Any, *arguments: Any) -> Any:
        if "_read_request" in arguments[0].__code__.co_names:
            found.append(arguments[0])
        return await run_on_thread(threads, run, *arguments)

    monkeypatch.setattr("palaver.core.engines.sqlite.run_on_thread", note_thread)
    return found


async def test_an_answered_message_takes_two_commits_and_few_statements(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start_gateway(ScriptedAgent(_answer), open_platforms=frozenset({Platform.TELEGRAM}))
    await ask(gateway, dm(), "hello", message_id="1")
    engine = gateway.store.engine
    assert isinstance(engine, SqliteEngine)
    found: list[str] = []

    def note(_cursor: object, sql: str, _params: object) -> bool:
        found.append(describe(sql))
        return True

    thread_reads = list_thread_reads(monkeypatch)
    db = engine._writer_connection.db
    db.exec_trace = note
    try:
        await ask(gateway, dm(), "and again", message_id="2")
    finally:
        db.exec_trace = None
    transactions = " ".join(found).replace("PRAGMA data_version ", "").split("BEGIN IMMEDIATE ")
    assert [each.strip() for each in transactions if each] == [
        " ".join([*ACCEPT, "COMMIT"]),
        " ".join([*END, "COMMIT"]),
    ]
    assert not thread_reads


async def test_a_conversation_with_much_text_is_read_on_another_thread(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start_gateway(ScriptedAgent(_answer), open_platforms=frozenset({Platform.TELEGRAM}))
    thread_reads = list_thread_reads(monkeypatch)
    await ask(gateway, dm(), "hello", message_id="1")
    assert not thread_reads
    await ask(gateway, dm(), "x" * MAX_QUICK_BYTES, message_id="2")
    assert len(thread_reads) == 1


async def test_a_long_conversation_is_read_on_another_thread(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start_gateway(ScriptedAgent(_answer), open_platforms=frozenset({Platform.TELEGRAM}))
    thread_reads = list_thread_reads(monkeypatch)
    for number in range(MAX_QUICK_EVENTS):
        gateway.store.record_user_message(dm(), str(number))
    await ask(gateway, dm(), "hello", message_id="1")
    assert len(thread_reads) == 1


async def test_a_conversation_that_was_silent_for_long_is_read_on_another_thread(
    start_gateway: StartGateway, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have to be read from the disk."""
    gateway = await start_gateway(ScriptedAgent(_answer), open_platforms=frozenset({Platform.TELEGRAM}))
    await ask(gateway, dm(), "hello", message_id="1")
    thread_reads = list_thread_reads(monkeypatch)
    monkeypatch.setattr("palaver.turns.request_builder.QUICK_SECONDS", 0.0)
    await ask(gateway, dm(), "and again", message_id="2")
    assert len(thread_reads) == 1

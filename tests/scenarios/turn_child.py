"""Processes that run a gateway, for tests that kill them.

Run as a script it is the nursery: everything is imported once, and each gateway is a fork of it that is up at once.
`turn_harness` is the other end. What a gateway does in the world stands in files outside of it: one line for each
message that the platform was sent, one for each thing that a tool has done.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import palaver.storage.engines.postgres
import palaver.storage.engines.sqlite  # noqa: F401  (a fork is to be killed at its work and not at its imports)
from palaver import PalaverError, SessionSource, SessionStore, TurnUsage
from palaver.agent.base import TextDelta, Tool, ToolCall, ToolResult, Used
from palaver.agent.compaction import SUMMARY_REQUEST
from palaver.domain import crash_points
from palaver.domain.errors import ContextOverflow
from palaver.domain.inbound import Inbound, ReplyTo
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.platforms.loopback import LOOPBACK, Loopback
from palaver.services.conversations import source_in
from palaver.services.delivery import outbox
from palaver.services.gateway import Gateway
from palaver.services.turns import worker
from palaver.storage import accounts
from palaver.storage.engines.base import Read, Write
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.domain.delivery import Delivery
    from palaver.domain.inbound import Receipt
    from palaver.storage.engines.base import Transaction

WORDS = ("one", "two", "three", "four", "five", "six")
TOO_MANY = 6  # messages of people that the agent's model can take, when it is asked something "long"


@dataclass(frozen=True, kw_only=True)
class Orders:
    """How a gateway is to live."""

    url: str
    sends: str  # the file that is the platform
    deeds: str  # the file that is the rest of the world
    knows_keys: bool = False  # whether the platform takes the same delivery once
    dies_at: list[Any] = field(default_factory=list)  # the name of a fault point, and the how-manieth passing of it
    pause: float = 0.001  # seconds between two words
    pace: float = 0.004  # seconds between two times drafts are kept
    heartbeat: float = 0.1  # seconds between two looks for what the dead have left
    patience: float = 5.0  # seconds for turns to finish after SIGTERM
    collect: float = 0.0  # seconds
    concurrency: int = 8
    wire: float = 0.0  # seconds that every other message is on its way to the platform


# -- what is said --------------------------------------------------------------------------------------------


def answer_to(asked: str) -> str:
    """What the agent says to a message that asks for nothing in particular."""
    return " ".join([f"You said {asked}:", *WORDS])


def begins_to_act(asked: str) -> str:
    """What it says before it uses its tool."""
    return f"I am about to act for {asked}."


def has_acted(asked: str, steered: list[str]) -> str:
    """What it says afterwards, with what people told it meanwhile."""
    return " ".join([*(f"Noted: {text}." for text in steered), f"I have acted for {asked}."])


class Mind:
    """The agent: its words come one by one, and a message that begins with "act" makes it use a tool that acts."""

    def __init__(self, orders: Orders) -> None:
        self._pause = orders.pause
        self._deeds = orders.deeds
        tool = Tool(name="act", description="Act.", parameters={"type": "object"}, run=self._act, acts=True)
        self.agent = ScriptedAgent(self._answer, tools=[tool])

    async def _act(self, arguments: Mapping[str, Any]) -> str:
        write_line(self._deeds, {"for": arguments["for"]})
        await asyncio.sleep(3 * self._pause)
        return "acted"

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        asked = str(request.messages[-1]["content"])
        if asked.startswith(SUMMARY_REQUEST):
            yield TextDelta("They talked.")
            return
        people = sum(message["role"] == "user" for message in request.messages)
        if asked.startswith("long") and people > TOO_MANY:
            raise ContextOverflow
        if asked.startswith("act"):
            async for event in self._acting(request, asked):
                yield event
        else:
            async for event in self._say(answer_to(asked)):
                yield event
        yield Used(TurnUsage(model="m", input_tokens=3, output_tokens=2, cost="0.001"))

    async def _acting(self, request: AgentRequest, asked: str) -> AsyncGenerator[AgentEvent, None]:
        async for event in self._say(begins_to_act(asked)):
            yield event
        arguments = {"for": asked}
        yield ToolCall("c1", "act", json.dumps(arguments))
        tool = next(tool for tool in request.tools if tool.name == "act")
        yield ToolResult("c1", "act", await tool.run(arguments))
        async for event in self._say(has_acted(asked, list(await request.steering()))):
            yield event

    async def _say(self, text: str) -> AsyncGenerator[AgentEvent, None]:
        first, *others = text.split(" ")
        yield TextDelta(first)
        for word in others:
            await asyncio.sleep(self._pause)
            yield TextDelta(f" {word}")


def write_line(path: str, line: dict[str, Any]) -> None:
    """Something has happened outside of this process, for good."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


# -- one life ------------------------------------------------------------------------------------------------


class Life:
    """A gateway that does what it is told by JSON lines."""

    def __init__(self, orders: Orders, line: socket.socket) -> None:
        self._orders = orders
        self._line = line
        self._passed: Counter[str] = Counter()
        self._sends = 0
        self._loopback = Loopback(self._wire, knows_keys=orders.knows_keys)
        self._tasks: set[asyncio.Task[None]] = set()

    async def live(self) -> None:
        orders = self._orders
        worker.PACE, worker.HEARTBEAT, outbox.LOOK = orders.pace, orders.heartbeat, orders.heartbeat
        crash_points.on_point(self._point)
        over = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
        reader, writer = await asyncio.open_connection(sock=self._line)
        with SessionStore.open(orders.url) as store:
            gateway = Gateway(
                store,
                Mind(orders).agent,
                profile=AgentProfile(),
                rules=TurnRules(open_to_all=frozenset({LOOPBACK}), concurrency=orders.concurrency, queue_limit=1000),
                adapters=[self._loopback],
            )
            async with gateway.running(patience=orders.patience):
                self._tell(writer, ready=True)
                listening = asyncio.create_task(self._listen(reader, writer, gateway))
                ending = asyncio.create_task(over.wait())
                await asyncio.wait({listening, ending}, return_when=asyncio.FIRST_COMPLETED)
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        with contextlib.suppress(ConnectionError):  # nobody wants to know
            self._tell(writer, passed=dict(self._passed))
            writer.close()
            await writer.wait_closed()

    def _point(self, name: str) -> None:
        self._passed[name] += 1
        if [name, self._passed[name]] == self._orders.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    async def _wire(self, delivery: Delivery) -> str:
        line = {"id": delivery.id, "address": str(delivery.address), "content": delivery.content}
        self._sends += 1
        if self._sends % 2:
            await asyncio.sleep(self._orders.wire)
        write_line(self._orders.sends, line)
        await asyncio.sleep(self._orders.pause)
        return f"got {delivery.id}"

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gateway: Gateway) -> None:
        while line := await reader.readline():
            order = json.loads(line)
            do = self._settle(writer, gateway.store) if order["do"] == "settle" else self._say(writer, order, gateway)
            task = asyncio.create_task(do)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _say(self, writer: asyncio.StreamWriter, order: dict[str, Any], gateway: Gateway) -> None:
        try:
            if order["do"] == "write":
                receipt = await self._write(order, gateway)
            else:
                receipt = await self._loopback.say(order["text"], user=order["user"], message_id=order["id"])
        except PalaverError as error:
            self._tell(writer, refused=order["id"], error=repr(error))
        else:
            self._tell(writer, ack=order["id"], outcome=receipt.outcome.value, turn=receipt.turn_id)

    async def _write(self, order: dict[str, Any], gateway: Gateway) -> Receipt:
        """Somebody who has spoken on the platform writes on the web, and wants to be answered there."""
        chat = SessionSource(LOOPBACK, order["user"], user_id=order["user"], user_name=order["user"].title())
        person = await gateway.store.aio.person_for(chat)
        await gateway.store.engine.arun(Write(lambda tx: accounts.open_account(tx, person, 0)))
        session = (await gateway.store.aio.seen_by(person.principal).list())[0]
        inbound = Inbound(
            source=source_in(person, session),
            content=order["text"],
            message_id=order["id"],
            session_id=session.id,
            reply=ReplyTo.THERE,
        )
        return await gateway.inbox.accept(inbound)

    async def _settle(self, writer: asyncio.StreamWriter, store: SessionStore) -> None:
        """Wait until nothing is left to be done."""
        while await store.engine.arun(Read(_open)):  # noqa: ASYNC110  (another process may do it)
            await asyncio.sleep(0.003)
        self._tell(writer, settled=True, passed=dict(self._passed))

    def _tell(self, writer: asyncio.StreamWriter, **facts: Any) -> None:
        writer.write(json.dumps(facts).encode() + b"\n")


def _open(tx: Transaction) -> int:
    row = tx.one(
        "SELECT (SELECT COUNT(*) FROM turn WHERE state IN ('queued', 'running'))"
        " + (SELECT COUNT(*) FROM delivery WHERE state IN ('pending', 'sending'))"
    )
    return int(row[0]) if row else 0


# -- the nursery ---------------------------------------------------------------------------------------------


def main() -> None:
    """Fork gateways and tell how they ended, until the other end is gone; then end them all."""
    control = socket.socket(fileno=os.dup(0))
    while True:
        order, handles, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not order:
            os.killpg(0, signal.SIGKILL)
        asked = json.loads(order)
        if asked["do"] == "reap":
            ended = os.waitstatus_to_exitcode(os.waitpid(asked["pid"], 0)[1])
            control.send(json.dumps(ended).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            _live(Orders(**asked["orders"]), socket.socket(fileno=handles[0]))
        os.close(handles[0])
        control.send(json.dumps(pid).encode())


def _live(orders: Orders, line: socket.socket) -> None:
    try:
        asyncio.run(Life(orders, line).live())
    except BaseException:  # noqa: BLE001  (the one who waits for its end must know)
        traceback.print_exc()
        os._exit(1)
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

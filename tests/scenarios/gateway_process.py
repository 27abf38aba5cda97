"""Gateways in processes of their own, for tests that kill them.

Run as a script, this is the launcher: it imports everything once and forks a gateway for each request, so that a
gateway starts at once. `gateway_harness` is the other end. What a gateway does to the outside world is recorded in
files outside of it: one line for each message sent to the platform, and one for each action of a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import palaver.core.engines.postgres
import palaver.core.engines.sqlite  # noqa: F401  (a fork should be killed at its work, not during its imports)
from palaver import PalaverError, SessionSource, SessionStore, TurnUsage
from palaver.agent.base import ModelCall, TextDelta, Tool, ToolCall, ToolResult, UsageReport
from palaver.agent.compaction import SUMMARY_REQUEST
from palaver.config.agent_rules import AgentProfile, MemoryRules, TurnRules
from palaver.config.budget_rules import TokenPrice
from palaver.core.clock import to_micros
from palaver.core.crash_points import set_crash_hook
from palaver.core.engines import postgres_connection, postgres_pool
from palaver.core.engines.base import Read, WorkKind, Write
from palaver.core.errors import ContextOverflow, SendRejected
from palaver.delivery import outbox, preview_stream, sender
from palaver.delivery.model import Capabilities, Pace
from palaver.gateway.account_runner import ConnectionTiming
from palaver.gateway.gateway import Gateway
from palaver.media.attachments import Attachments
from palaver.memory.queue import LEARNING_REQUEST
from palaver.people import account_table as accounts, table as people
from palaver.people.model import Role
from palaver.platforms.loopback import LOOPBACK, RECOGNIZES_KEYS, LoopbackAdapter
from palaver.sessions import turn, turn_leases
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound, InboundFile, ReplyTo
from palaver.testing import ScriptedAgent
from palaver.turns import worker
from support.warm_process import reset_signals

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from palaver.delivery.adapter import OutgoingMessage
    from palaver.sessions.delivery import Address
    from palaver.sessions.inbound import Receipt

LEARNED_FACTS = ("My cat is called Ada.", "I drink tea in the morning.")
# What a call to the model counts, in sizes that can be told apart in a sum: one that ended, one that was stopped, and
# one whose process died.
USAGE = TurnUsage(model="m", input_tokens=3, output_tokens=2, cost="0.000000005")
ESTIMATED_TOKENS = 10_000
HELD_TOKENS = 100_000_000
PROMPT_TOKENS = 12
MODEL_CALL = ModelCall(
    model="m",
    provider=None,
    input_tokens=10,
    max_tokens=HELD_TOKENS - PROMPT_TOKENS,
    price=TokenPrice(input_usd=Decimal("0.001"), output_usd=Decimal("0.001")),  # a nano-dollar for a token
)
CALLS_FILE = "calls"  # beside the actions: a line for each call that the model has received
WORDS = ("one", "two", "three", "four", "five", "six")
MAX_USER_MESSAGES = 6  # that the model can take with a message that starts with "long"
# To PostgreSQL, one for each kind of work: a new one takes its server about as long as a whole test on SQLite.
MAX_CONNECTIONS = dict.fromkeys(WorkKind, 1)
IDLE_POLL_SECONDS = 0.03


@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    url: str
    sends_path: str  # the file that stands for the platform
    actions_path: str  # the file that stands for everything that tools change
    has_idempotency_keys: bool = False
    streams: bool = False  # answers are shown while they are being written
    crash_at: list[Any] = field(default_factory=list)  # the name of a crash point, and at which passing of it
    word_seconds: float = 0.001  # between two words of an answer
    draft_save_seconds: float = 0.004
    recovery_seconds: float = 0.1
    grace_seconds: float = 5.0  # for turns to finish after SIGTERM
    max_running: int = 8
    send_seconds: float = 0.0  # that every other delivery takes to reach the platform
    learns: bool = False  # from conversations that have ended
    is_server: bool = False  # it runs jobs, too
    lease_seconds: float = 60.0  # of turns, deliveries and the account; a process that is paused longer loses them
    pauses_in_claim: str | None = None  # it stops itself in the first claim: of a "message", or of the "loop"
    holds_answers: bool = False  # in the middle of the text or the action, until it is requested to continue


# -- the platform --------------------------------------------------------------------------------------------

MEMBERS = ("ada", "bob", "dan", "eve", "fay")  # they may steer
REFUSING_CHAT = "eve"  # there, a growing message cannot be replaced by the answer


def split_text(text: str) -> list[str]:
    """Return the messages that a text becomes on the platform: two, if it is long enough."""
    middle = text.find(" ", len(text) // 2)
    return [text] if len(text) < 40 or middle < 0 else [text[:middle], text[middle + 1 :]]


class FileAdapter(LoopbackAdapter):
    """An adapter whose platform is a file, with a line for everything that is sent, edited or deleted."""

    def __init__(self, options: GatewayOptions) -> None:
        key_lifetime = RECOGNIZES_KEYS.key_lifetime * options.has_idempotency_keys
        capabilities = Capabilities(
            key_lifetime=key_lifetime, can_edit=options.streams, can_delete=options.streams, edit_pace=Pace(0.0)
        )
        super().__init__(capabilities=capabilities)
        self._options = options
        self._send_count = 0
        self.preview_count = 0  # how often an unfinished answer was shown

    def render(self, markdown: str) -> list[str]:
        return split_text(markdown)

    async def send(self, message: OutgoingMessage) -> str:
        self._send_count += 1
        if self._send_count % 2:
            await asyncio.sleep(self._options.send_seconds)
        message_id = f"got {message.key}"
        self._append("send", message_id, message)
        if self._options.streams and message.key.endswith(".2") and self._link is not None:
            await self._link.confirm(message.key, message_id)
        await asyncio.sleep(self._options.word_seconds)
        return message_id

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        if message.address.chat_id == REFUSING_CHAT and not message.is_preview:
            raise SendRejected("This message can't be edited.")
        self._append("edit", message_id, message)

    async def delete(self, address: Address, message_id: str) -> None:
        append_line(self._options.sends_path, {"action": "delete", "id": message_id})

    def _append(self, action: str, message_id: str, message: OutgoingMessage) -> None:
        self.preview_count += message.is_preview
        fields = {"key": message.key, "address": str(message.address), "body": message.body}
        line = {"action": action, "id": message_id, "is_preview": message.is_preview}
        append_line(self._options.sends_path, {**line, **fields})


# -- the agent -----------------------------------------------------------------------------------------------


def format_plain_answer(question: str) -> str:
    """The answer to a message that asks for nothing special."""
    return " ".join([f"You said {question}:", *WORDS])


def format_text_before_action(question: str) -> str:
    return f"I am about to act for {question}."


def format_text_after_action(question: str, steering: list[str]) -> str:
    """The text after the action, with the messages that steered the run meanwhile."""
    return " ".join([*(f"Noted: {text}." for text in steering), f"I have acted for {question}."])


def get_question(content: str | list[Any]) -> str:
    """Return the text of a message, which may have a file."""
    return content if isinstance(content, str) else str(content[0]["text"])


async def read_file() -> AsyncGenerator[bytes, None]:
    """Download the file that messages with "file" have."""
    yield b"The beginning, "
    await asyncio.sleep(0)
    yield b"and the end."


class ActingAgent:
    """Answers word by word. After "act" it uses a tool with side effects; "poison" kills the process."""

    def __init__(self, options: GatewayOptions, adapter: FileAdapter) -> None:
        self._adapter = adapter
        self._is_watched = options.streams and options.word_seconds > 0
        self._word_seconds = options.word_seconds
        self._actions_path = options.actions_path
        self._calls_path = str(Path(options.actions_path).with_name(CALLS_FILE))
        self.may_continue = asyncio.Event()
        if not options.holds_answers:
            self.may_continue.set()
        tool = Tool(name="act", description="Act.", parameters={"type": "object"}, run=self._act, has_side_effects=True)
        self.agent = ScriptedAgent(self._answer, tools=[tool], can_write_titles=options.learns)

    async def _act(self, arguments: Mapping[str, Any]) -> str:
        append_line(self._actions_path, {"question": arguments["question"]})
        await asyncio.sleep(3 * self._word_seconds)
        await self.may_continue.wait()
        return "acted"

    async def _answer(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        question = get_question(request.messages[-1]["content"])
        held = await request.meter.hold(MODEL_CALL)
        user_messages = sum(message["role"] == "user" for message in request.messages)
        if question.startswith("long") and user_messages > MAX_USER_MESSAGES:
            await held.release()
            raise ContextOverflow
        append_line(self._calls_path, {"question": question})
        if question.startswith("poison"):
            await asyncio.sleep(4 * self._word_seconds)  # others have begun meanwhile, and have not ended
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            async for event in self._react(request, question):
                yield event
        except BaseException:
            await held.settle(None, streamed_tokens=ESTIMATED_TOKENS - PROMPT_TOKENS)
            raise
        await held.settle(USAGE)
        yield UsageReport(USAGE, held.is_recorded)

    async def _react(self, request: AgentRequest, question: str) -> AsyncGenerator[AgentEvent, None]:
        if question.startswith(SUMMARY_REQUEST):
            yield TextDelta("They talked.")
        elif question.startswith(LEARNING_REQUEST):
            async for event in self._learn(request):
                yield event
        elif question.startswith("act"):
            async for event in self._act_and_answer(request, question):
                yield event
        else:
            async for event in self._say(format_plain_answer(question), is_held=True):
                yield event

    async def _learn(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        """Remember two facts, whatever people wrote."""
        append_line(self._actions_path, {"question": "learn"})
        tool = next(tool for tool in request.tools if tool.name == "remember")
        for number, fact in enumerate(LEARNED_FACTS):
            yield ToolCall(f"c{number}", "remember", json.dumps({"text": fact}))
            yield ToolResult(f"c{number}", "remember", await tool.run({"text": fact}))

    async def _act_and_answer(self, request: AgentRequest, question: str) -> AsyncGenerator[AgentEvent, None]:
        async for event in self._say(format_text_before_action(question)):
            yield event
        arguments = {"question": question}
        yield ToolCall("c1", "act", json.dumps(arguments))
        tool = next(tool for tool in request.tools if tool.name == "act")
        yield ToolResult("c1", "act", await tool.run(arguments))
        async for event in self._say(format_text_after_action(question, list(await request.take_steering()))):
            yield event

    async def _say(self, text: str, *, is_held: bool = False) -> AsyncGenerator[AgentEvent, None]:
        first, *others, last = text.split(" ")
        shown_before = self._adapter.preview_count
        yield TextDelta(first)
        for word in others:
            await asyncio.sleep(self._word_seconds)
            yield TextDelta(f" {word}")
        await self._wait_until_shown(shown_before + 1)
        if is_held:
            await self.may_continue.wait()
        yield TextDelta(f" {last}")
        await self._wait_until_shown(shown_before + 2)

    async def _wait_until_shown(self, count: int) -> None:
        """Wait until people have seen the unfinished answer; not for long, because not every answer can be shown."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3):
                while self._is_watched and self._adapter.preview_count < count:  # noqa: ASYNC110  (each waits for its own)
                    await asyncio.sleep(0.005)


def append_line(path: str, line: dict[str, Any]) -> None:
    """Record durably that something has happened outside of this process."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def make_members(store: SessionStore, *users: str) -> None:
    """Make people members, because guests can't use /steer."""
    for user in users:
        person = store.get_or_create_person(SessionSource(LOOPBACK, user, user_id=user, user_name=user.title()))
        store.engine.run(Write(partial(people.set_role, person_id=person.id, role=Role.MEMBER)))


# -- one gateway ---------------------------------------------------------------------------------------------


def _pause_in_claim(*, with_message: bool) -> None:
    postgres_connection.TIME_LIMITS["idle_in_transaction_session_timeout"] = 1000  # type: ignore[index]
    name = "claim_if_next" if with_message else "claim_turns"
    claim, is_first = getattr(turn_leases, name), True

    def claim_and_pause(*arguments: Any) -> Any:
        nonlocal is_first
        claimed = claim(*arguments)
        if claimed and is_first:
            is_first = False
            # To this thread: if another one got it, this one could commit before the process stops.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return claimed

    setattr(turn_leases, name, claim_and_pause)
    if not with_message:
        turn_leases.claim_if_next = lambda *_: None  # the loop claims all


class GatewayRunner:
    """Runs a gateway, and obeys requests that arrive as JSON lines."""

    def __init__(self, options: GatewayOptions, connection: socket.socket) -> None:
        self._options = options
        self._connection = connection
        self._passed_points: Counter[str] = Counter()
        self._adapter = FileAdapter(options)
        self._agent = ActingAgent(options, self._adapter)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        options = self._options
        postgres_pool.MAX_CONNECTIONS = MAX_CONNECTIONS  # type: ignore[misc]
        worker.DRAFT_SAVE_SECONDS = options.draft_save_seconds
        worker.HEARTBEAT_SECONDS = outbox.RECOVERY_SECONDS = options.recovery_seconds
        worker.LEASE_SECONDS = sender.LEASE_SECONDS = options.lease_seconds
        turn.TRIAL_UPTIME = turn.MAX_REQUEUE_DELAY = timedelta(milliseconds=20)
        worker.TRIAL_POLL_SECONDS = 0.02
        preview_stream.PREVIEW_DELAY_SECONDS = 0.0
        set_crash_hook(self._pass_crash_point)
        if options.pauses_in_claim is not None:
            _pause_in_claim(with_message=options.pauses_in_claim == "message")
        stop_requested = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop_requested.set)
        reader, writer = await asyncio.open_connection(sock=self._connection)
        with SessionStore.open(options.url) as store:
            gateway = Gateway(
                store,
                self._agent.agent,
                profile=AgentProfile(),
                rules=TurnRules(
                    open_platforms=frozenset({LOOPBACK}),
                    max_running=options.max_running,
                    max_queued=1000,
                    model_titles=False,
                    memory=MemoryRules(learn=options.learns),
                ),
                adapters=[self._adapter],
                timing=ConnectionTiming(
                    acquisition=0.02, lease=options.lease_seconds, renewal=options.lease_seconds / 3
                ),
                files=Attachments(store, Path(options.sends_path).with_name("attachments")),
                is_server=options.is_server,
            )
            make_members(store, *MEMBERS)
            async with gateway.run(grace_seconds=options.grace_seconds):
                self._report(writer, ready=True)
                serving = asyncio.create_task(self._serve_requests(reader, writer, gateway))
                stopping = asyncio.create_task(stop_requested.wait())
                await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
        with contextlib.suppress(ConnectionError):  # the harness no longer reads
            self._report(writer, passed_points=dict(self._passed_points))
            writer.close()
            await writer.wait_closed()

    def _pass_crash_point(self, name: str) -> None:
        self._passed_points[name] += 1
        if [name, self._passed_points[name]] == self._options.crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    async def _serve_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gateway: Gateway
    ) -> None:
        while line := await reader.readline():
            request = json.loads(line)
            if request["action"] == "continue_answers":
                self._agent.may_continue.set()
                continue
            if request["action"] == "wait_until_idle":
                action = self._wait_until_idle(writer, gateway.store)
            else:
                action = self._accept_message(writer, request, gateway)
            task = asyncio.create_task(action)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _accept_message(self, writer: asyncio.StreamWriter, request: dict[str, Any], gateway: Gateway) -> None:
        try:
            if request["action"] == "send_from_web":
                receipt = await self._accept_from_web(request, gateway)
            else:
                files = [InboundFile("note.txt", read_file)] if request["text"].startswith("file") else []
                source = self._adapter.get_source(request["user"])
                inbound = Inbound(source=source, content=request["text"], message_id=request["id"], files=files)
                receipt = await gateway.inbox.accept(inbound)  # also if another process runs the account
        except PalaverError as error:
            self._report(writer, rejected=request["id"], error=repr(error))
        else:
            self._report(writer, accepted=request["id"], outcome=receipt.outcome.value, turn=receipt.turn_id)

    async def _accept_from_web(self, request: dict[str, Any], gateway: Gateway) -> Receipt:
        """Accept a message from the web, in the newest conversation of a person, to be answered on the platform."""
        user = request["user"]
        chat = SessionSource(LOOPBACK, user, user_id=user, user_name=user.title())
        person = await gateway.store.aio.get_or_create_person(chat)
        await gateway.store.engine.arun(Write(lambda tx: accounts.open_account(tx, person, 0)))
        while LOOPBACK not in gateway.platforms:  # noqa: ASYNC110  (it may become connected in another process)
            await asyncio.sleep(0.003)
        session = (await gateway.store.aio.seen_by(person.principal).list())[0]
        inbound = Inbound(
            source=build_person_source(person),
            content=request["text"],
            message_id=request["id"],
            session_id=session.id,
            reply_to=ReplyTo.ORIGIN,
        )
        return await gateway.inbox.accept(inbound)

    async def _wait_until_idle(self, writer: asyncio.StreamWriter, store: SessionStore) -> None:
        """Wait until no turn, no run of a job, no delivery and no growing message is open."""
        count = partial(_count_open_work, now=to_micros(store.clock.now()))
        while await store.engine.arun(Read(count)):  # noqa: ASYNC110  (another process may finish it)
            await asyncio.sleep(IDLE_POLL_SECONDS)
        self._report(writer, idle=True, passed_points=dict(self._passed_points))

    def _report(self, writer: asyncio.StreamWriter, **facts: Any) -> None:
        writer.write(json.dumps(facts).encode() + b"\n")


def _count_open_work(tx: Transaction, now: int) -> int:
    row = tx.fetch_one(
        "SELECT (SELECT COUNT(*) FROM turn WHERE state IN ('queued', 'running'))"
        " + (SELECT COUNT(*) FROM delivery WHERE state IN ('pending', 'sending'))"
        " + (SELECT COUNT(*) FROM preview) + (SELECT COUNT(*) FROM model_call)"
        " + (SELECT COUNT(*) FROM memory_turn WHERE ended_at IS NULL)"
        " + (SELECT COUNT(*) FROM job WHERE next_slot <= $1) + (SELECT COUNT(*) FROM job_run WHERE ended_at IS NULL)",
        now,
    )
    return int(row[0]) if row else 0


# -- the launcher --------------------------------------------------------------------------------------------


def main() -> None:
    """Fork gateways and report how they ended, until the harness has gone; then kill all of them."""
    control = socket.socket(fileno=os.dup(0))
    gc.freeze()  # forks use what exists by now without a copy: their garbage collection leaves it alone
    while True:
        message, handles, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            os.killpg(0, signal.SIGKILL)
        request = json.loads(message)
        if request["action"] == "wait":
            exit_code = os.waitstatus_to_exitcode(os.waitpid(request["pid"], 0)[1])
            control.send(json.dumps(exit_code).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            reset_signals()
            _run_gateway(GatewayOptions(**request["options"]), socket.socket(fileno=handles[0]))
        os.close(handles[0])
        control.send(json.dumps(pid).encode())


def _run_gateway(options: GatewayOptions, connection: socket.socket) -> None:
    try:
        asyncio.run(GatewayRunner(options, connection).run())
    except BaseException:  # noqa: BLE001  (whatever it is, the test that waits for this process must see it)
        traceback.print_exc()
        os._exit(1)
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

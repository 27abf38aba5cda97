"""The platform that the author of an adapter provides to `PlatformContract`: the tests can use and break it."""

from __future__ import annotations

import asyncio
import traceback
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn, TypeVar

import pytest

from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountRefused, DeliveryError, LeaseLost, SendRetryable
from palaver.delivery.adapter import AccountLink, Adapter, OutgoingFile, OutgoingMessage
from palaver.testing.account_link import MemoryInbox, MemoryLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from palaver.sessions.delivery import Address, Button

RECONNECT_SECONDS = 0.05
CANCEL_SECONDS = 30.0

_T = TypeVar("_T")


class Fault(StrEnum):
    """The ways in which a platform fails: the switches of `ContractPlatform.break_platform`."""

    RATE_LIMITED = "rate limited"  # the next message is refused: too many, try again in some seconds
    SERVER_ERROR = "server error"  # the next message is answered with an internal error
    REFUSED = "refused"  # the next message is refused: something about it is wrong
    CHAT_GONE = "chat gone"  # the chat does not exist, or our account was removed from it
    CHAT_MOVED = "chat moved"  # the chat has another id now
    ANSWER_LOST = "answer lost"  # the next message arrives, but the connection breaks before the platform answers
    UNREACHABLE = "unreachable"  # nothing listens at the platform's address
    REVOKED = "revoked"  # the credentials no longer work
    CONNECTION_CUT = "connection cut"  # the connection that receives breaks once


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message of ours, as people see it on the platform."""

    message_id: str
    text: str
    file_names: tuple[str, ...] = ()


class ContractPlatform(ABC):
    """A platform with one chat: a fake server, or a real one that the test has started.

    A method that the platform has no means for is left as it is: the tests that need it are skipped.
    """

    faults: frozenset[Fault] = frozenset()  # that `break_platform` knows
    secrets: Sequence[str] = ()  # of the account: texts that must appear in no error and no representation
    is_called: bool = False  # True: it sends requests to the adapter's webhook, so that `run` has nothing to notice
    has_inbox: bool = True  # False: what a person writes while nothing runs is not kept by the platform

    @property
    @abstractmethod
    def address(self) -> Address:
        """The chat that messages are sent to, and that people write in."""

    @abstractmethod
    def make_adapter(self) -> Adapter:
        """Return a new adapter for the same account, as after a restart."""

    @abstractmethod
    async def say(self, text: str) -> str:
        """Write a message to the agent as a person; return the platform's id of it."""

    @abstractmethod
    async def list_messages(self) -> Sequence[ShownMessage]:
        """Return the messages of our account in the chat, oldest first."""

    def note_start(self, adapter: Adapter, link: AccountLink) -> None:  # noqa: B027  (most platforms need it not)
        """Learn that an adapter runs. A platform that calls webhooks sends its requests there from now on."""

    def note_stop(self) -> None:  # noqa: B027
        """Learn that it no longer runs."""

    async def break_platform(self, fault: Fault) -> None:
        """Let a fault happen."""
        _skip(f"the fault {fault.value!r}")

    async def repeat_updates(self) -> None:
        """Send the updates of the last message to the adapter once more."""
        _skip("it sends nothing twice")

    async def say_in_reverse(self, first: str, second: str) -> None:
        """Write two messages, whose updates arrive in reverse order."""
        _skip("its updates are in order")

    async def say_with_file(self, name: str, data: bytes) -> str:
        """Send a file to the agent as a person; return the platform's id of the message."""
        _skip("people cannot send files")

    async def edit_as_person(self, message_id: str, text: str) -> None:
        """Change a message of a person."""
        _skip("people cannot edit")

    async def delete_as_person(self, message_id: str) -> None:
        """Delete a message of a person."""
        _skip("people cannot delete")

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        """React to a message of ours."""
        _skip("people cannot react")

    async def press_button(self, message_id: str, label: str) -> None:
        """Press a button under a message of ours."""
        _skip("there are no buttons")

    async def is_typing(self) -> bool:
        """Return whether people see that the agent is typing."""
        _skip("people can't see it")


def _skip(reason: str) -> NoReturn:
    pytest.skip(f"not on this platform: {reason}")


class ContractHelpers:
    """The helpers that the tests of a contract share."""

    timeout_seconds = 30.0  # for anything that should happen at once, on a busy machine
    waits_for_pace = False  # True: the platform's own rate limit is real, so that sending may have to wait

    @asynccontextmanager
    async def _run(
        self, platform: ContractPlatform, inbox: MemoryInbox, *, link: MemoryLink | None = None
    ) -> AsyncIterator[Adapter]:
        """Connect as a gateway does, with a new adapter after every error; stop by canceling and closing it."""
        connection = Connection(platform, link or MemoryLink(inbox))
        connected_before = inbox.connected_count
        running = asyncio.create_task(connection.keep())
        waiting = asyncio.create_task(
            inbox.wait_until(lambda: inbox.connected_count > connected_before, self.timeout_seconds)
        )
        try:
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running  # raises why it could not connect
            try:
                await waiting
            except TimeoutError:
                raise AssertionError("It never called `report_connected`.") from connection.error
            assert connection.adapter is not None
            yield connection.adapter
        finally:
            await cancel_task(waiting)
            await cancel_task(running)

    async def _limit(self, awaitable: Awaitable[_T]) -> _T:
        return await asyncio.wait_for(awaitable, self.timeout_seconds)

    async def _wait_for_texts(self, inbox: MemoryInbox, texts: Sequence[str]) -> None:
        """Wait for the messages that must have been accepted; there may be no others."""
        try:
            await inbox.wait_until(lambda: len(inbox.texts) >= len(texts), self.timeout_seconds)
        except TimeoutError:
            pytest.fail(f"Accepted were only {inbox.texts!r} instead of {texts!r}.")
        assert inbox.texts == list(texts)

    async def _wait_for_update(self, inbox: MemoryInbox, kind: type[_T]) -> _T:
        def find() -> _T | None:
            return next((update for update in inbox.updates if isinstance(update, kind)), None)

        await inbox.wait_until(find, self.timeout_seconds)
        found = find()
        assert found is not None
        return found

    async def _wait_for_messages(self, platform: ContractPlatform, count: int) -> Sequence[ShownMessage]:
        async with asyncio.timeout(self.timeout_seconds):
            while len(messages := await platform.list_messages()) < count:  # noqa: ASYNC110  (a real platform)
                await asyncio.sleep(0.02)
        return messages

    @staticmethod
    def _make_message(
        platform: ContractPlatform,
        body: str,
        *,
        key: str = "d_contract.1",
        buttons: Sequence[Button] = (),
        file: OutgoingFile | None = None,
    ) -> OutgoingMessage:
        return OutgoingMessage(key=key, address=platform.address, body=body, buttons=buttons, file=file)

    async def _send_body(self, platform: ContractPlatform, adapter: Adapter, body: str, *, key: str) -> str:
        """Send a message; wait as the outbox would if the platform is slow, which is no fault."""
        async with asyncio.timeout(self.timeout_seconds):
            while True:
                try:
                    message_id = await adapter.send(self._make_message(platform, body, key=key))
                except SendRetryable as error:
                    if not self.waits_for_pace:
                        raise
                    await asyncio.sleep(error.retry_after or 1)
                else:
                    assert message_id, "It returned no id: the message could not be edited, deleted or replied to."
                    return message_id

    async def _send(
        self, platform: ContractPlatform, adapter: Adapter, markdown: str, *, key: str = "d_contract.1"
    ) -> str:
        [body] = adapter.render(markdown)
        return await self._send_body(platform, adapter, body, key=key)

    @staticmethod
    def _require_fault(platform: ContractPlatform, fault: Fault) -> None:
        if fault not in platform.faults:
            pytest.skip(f"not on this platform: the fault {fault.value!r}")

    async def _fail_to_send(self, platform: ContractPlatform, inbox: MemoryInbox, fault: Fault) -> DeliveryError:
        """Return the error of a message that meets a fault; it must not have arrived."""
        self._require_fault(platform, fault)
        async with self._run(platform, inbox) as adapter:
            [body] = adapter.render("This fails")
            await platform.break_platform(fault)
            with pytest.raises(DeliveryError) as failed:
                await self._limit(adapter.send(self._make_message(platform, body)))
        self._check_error(platform, failed.value)
        return failed.value

    @staticmethod
    def _check_error(platform: ContractPlatform, error: BaseException) -> None:
        """Check that nothing that a log could show of an error has a secret in it, and that people can read it."""
        assert str(error).strip()
        shown = "".join(traceback.format_exception(error)) + repr(getattr(error, "facts", ""))
        assert [secret for secret in platform.secrets if secret in shown] == []


class Connection:
    """Keeps an account connected, like the gateway's supervisor without its pauses and leases."""

    def __init__(self, platform: ContractPlatform, link: MemoryLink) -> None:
        self._platform = platform
        self._link = link
        self.adapter: Adapter | None = None
        self.error: Exception | None = None  # of the last connection

    async def keep(self) -> None:
        """Connect again and again until canceled. Raises AccountRefused and LeaseLost."""
        try:
            while True:
                try:
                    await self._connect()
                except (AccountRefused, LeaseLost):
                    raise
                except Exception as error:  # noqa: BLE001  (as the supervisor does)
                    self.error = error
                await asyncio.sleep(RECONNECT_SECONDS)
        finally:
            self._link.end()

    async def _connect(self) -> None:
        self.adapter = adapter = self._platform.make_adapter()
        try:
            await adapter.probe()
            self._platform.note_start(adapter, self._link)
            await adapter.run(self._link)
        finally:
            self._platform.note_stop()
            await adapter.close()


async def cancel_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_SECONDS)
    assert task.done(), f"It goes on {CANCEL_SECONDS:g} seconds after it was canceled: {task!r}"
    if not task.cancelled():
        task.exception()  # so that it counts as seen


def require_capability(is_supported: bool) -> None:
    if not is_supported:
        pytest.skip("not on this platform, as its capabilities say")


async def read_ten_bytes() -> AsyncIterator[bytes]:
    yield b"01234"
    yield b"56789"

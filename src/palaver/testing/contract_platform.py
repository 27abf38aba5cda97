"""What the author of an adapter provides to `PlatformContract`: a platform that the tests can use and break."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.delivery.adapter import AccountLink, Adapter
    from palaver.sessions.delivery import Address


class Fault(StrEnum):
    """How a platform fails: the switches of `ContractPlatform.break_platform`."""

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
        """Whether people see that the agent is typing."""
        _skip("people can't see it")


def _skip(reason: str) -> NoReturn:
    pytest.skip(f"not on this platform: {reason}")

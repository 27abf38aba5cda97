"""The contract finds adapters that do not keep it."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.outcomes import Failed

from palaver.core.errors import SendRejected, SendRetryable, SendUncertain
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.inbound import Inbound
from palaver.testing import Fault, MemoryInbox, PlatformContract
from palaver.testing.account_link import Death

from .test_loopback_contract import LoopbackPlatform

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.delivery.adapter import OutgoingMessage
    from palaver.sessions.inbound import AnyUpdate, Cursor, Receipt


class ContractInAHurry(PlatformContract):
    __test__ = False
    timeout_seconds = 0.3


class ForgetfulAdapter(LoopbackAdapter):
    """Acknowledges before the message is stored."""

    async def receive(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        task = asyncio.ensure_future(super().receive(update, cursor=cursor))
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # no task waits for it
        await asyncio.sleep(0)
        return None  # type: ignore[return-value]


class RenumberingAdapter(LoopbackAdapter):
    """Makes up a new id each time that a message arrives."""

    numbers = itertools.count()

    async def receive(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        assert isinstance(update, Inbound)
        renumbered = Inbound(
            source=update.source, content=update.content, message_id=f"{update.message_id}-{next(self.numbers)}"
        )
        return await super().receive(renumbered, cursor=cursor)


class EchoingAdapter(LoopbackAdapter):
    """Takes its own messages for those of a person."""

    async def send(self, message: OutgoingMessage) -> str | None:
        message_id = await super().send(message)
        await self.say(message.body, message_id=message_id)
        return message_id


class CuttingAdapter(LoopbackAdapter):
    """Sends only the beginning of a long text."""

    def render(self, markdown: str) -> list[str]:
        return super().render(markdown)[:1]


class RepeatingAdapter(LoopbackAdapter):
    """Sends again by itself when no answer came, with another key."""

    async def send(self, message: OutgoingMessage) -> str | None:
        try:
            return await super().send(message)
        except SendUncertain:
            return await super().send(replace(message, key=f"{message.key}x"))


class KeylessAdapter(LoopbackAdapter):
    """Sends a message that is tried again as another one."""

    numbers = itertools.count()

    async def send(self, message: OutgoingMessage) -> str | None:
        return await super().send(replace(message, key=f"{message.key}-{next(self.numbers)}"))


class ResignedAdapter(LoopbackAdapter):
    """Gives up on everything that fails."""

    async def send(self, message: OutgoingMessage) -> str | None:
        try:
            return await super().send(message)
        except SendRetryable:
            raise SendRejected("No.") from None


class TalkativeAdapter(LoopbackAdapter):
    """Shows its secret."""

    def __repr__(self) -> str:
        return "<TalkativeAdapter token=s3cret>"

    async def send(self, message: OutgoingMessage) -> str | None:
        raise SendRejected("Refused: https://example.org/s3cret/send")


class LeakingAdapter(LoopbackAdapter):
    """Leaves a task behind."""

    tasks: set[asyncio.Task[None]] = set()  # noqa: RUF012

    async def close(self) -> None:
        self.tasks.add(asyncio.create_task(asyncio.sleep(60)))


class AppendingAdapter(LoopbackAdapter):
    """Sends a new message instead of an edit."""

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        await self.send(message)


class SilentAdapter(LoopbackAdapter):
    """Never says that it is connected."""

    async def run(self, link: Any) -> None:
        await asyncio.Event().wait()


def make_platform(adapter_class: type[LoopbackAdapter]) -> LoopbackPlatform:
    class BrokenPlatform(LoopbackPlatform):
        secrets = ("s3cret",)

        def make_adapter(self) -> LoopbackAdapter:
            adapter = super().make_adapter()
            adapter.__class__ = adapter_class
            return adapter

    return BrokenPlatform()


Contract = ContractInAHurry


@pytest.mark.parametrize(
    ("adapter_class", "test", "arguments"),
    [
        (ForgetfulAdapter, Contract.test_a_message_is_not_lost_when_the_process_dies, (Death.BEFORE_STORING,)),
        (RenumberingAdapter, Contract.test_a_message_is_accepted_once, ()),
        (RenumberingAdapter, Contract.test_an_update_that_comes_twice_is_one_message, ()),
        (RenumberingAdapter, Contract.test_a_message_is_not_lost_when_the_process_dies, (Death.AFTER_STORING,)),
        (EchoingAdapter, Contract.test_what_was_sent_does_not_come_back, ()),
        (CuttingAdapter, Contract.test_a_long_text_arrives_whole_and_in_order, ()),
        (RepeatingAdapter, Contract.test_a_lost_answer_is_uncertain_and_never_a_second_message, ()),
        (KeylessAdapter, Contract.test_a_message_that_is_sent_again_with_its_key_is_one_message, ()),
        (ResignedAdapter, Contract.test_a_rate_limit_says_how_long_to_wait, ()),
        (ResignedAdapter, Contract.test_without_a_connection_nothing_was_sent, ()),
        (TalkativeAdapter, Contract.test_secrets_are_not_in_representations, ()),
        (TalkativeAdapter, Contract.test_a_refused_message_is_rejected, ()),
        (LeakingAdapter, Contract.test_nothing_is_left_running, ()),
        (AppendingAdapter, Contract.test_a_message_is_edited_in_place, ()),
        (SilentAdapter, Contract.test_a_message_is_accepted_once, ()),
    ],
)
async def test_an_adapter_that_breaks_the_contract_fails(
    adapter_class: type[LoopbackAdapter], test: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    with pytest.raises((AssertionError, Failed, TimeoutError)):
        await test(ContractInAHurry(), make_platform(adapter_class), MemoryInbox(), *arguments)
    for task in LeakingAdapter.tasks:
        task.cancel()
    LeakingAdapter.tasks.clear()


async def test_what_a_platform_lacks_is_skipped() -> None:
    platform = LoopbackPlatform()
    platform.faults = frozenset()
    with pytest.raises(pytest.skip.Exception, match=str(Fault.REVOKED)):
        await ContractInAHurry().test_revoked_credentials_are_refused(platform, MemoryInbox())


def test_the_test_kit_needs_pytest_only_for_the_contract() -> None:
    code = "import sys, palaver.testing; assert 'pytest' not in sys.modules; palaver.testing.FakeClock()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

"""The intake of webhooks: a request succeeds when all of it is stored, and is answered in time if that is slow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import LeaseLost, StoreBusy
from palaver.core.source import SessionSource
from palaver.gateway.intake import WebhookIntake
from palaver.sessions.inbound import Cursor, Inbound, Outcome
from palaver.testing.account_link import MemoryInbox, MemoryLink
from support.gateway import wait_until

if TYPE_CHECKING:
    from palaver.sessions.inbound import AnyUpdate, Receipt

WAIT_SECONDS = 60.0


def say(text: str, chat: str = "ada") -> Inbound:
    return Inbound(source=SessionSource("loopback", chat, user_id=chat), content=text, message_id=text)


class SlowLink(MemoryLink):
    """A link that accepts what a test has allowed, or raises its error."""

    def __init__(self, inbox: MemoryInbox, slow: str = "") -> None:
        super().__init__(inbox)
        self.slow = slow  # the text that waits
        self.go_on = asyncio.Event()
        self.begun: list[str] = []
        self.errors: dict[str, Exception] = {}  # by text

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        assert isinstance(update, Inbound)
        text = str(update.content)
        self.begun.append(text)
        if text == self.slow:
            await self.go_on.wait()
        if (error := self.errors.get(text)) is not None:
            raise error
        return await super().accept(update, cursor=cursor)


@pytest.fixture
def inbox() -> MemoryInbox:
    return MemoryInbox()


async def test_a_request_succeeds_when_all_of_it_is_stored(inbox: MemoryInbox) -> None:
    intake, link = WebhookIntake(), MemoryLink(inbox)
    assert await intake.accept(link, [])
    assert await intake.accept(link, [say("one"), say("of Ben", "ben"), say("two")], cursor=Cursor("7"))
    assert [text for text in inbox.texts if text != "of Ben"] == ["one", "two"]
    assert intake.is_idle


async def test_one_chat_that_fails_does_not_hold_up_the_others(inbox: MemoryInbox) -> None:
    """The platform sends the request again, and what is stored already is recognized."""
    intake, link = WebhookIntake(), SlowLink(inbox)
    link.errors["one"] = StoreBusy()
    updates = [say("one", "ben"), say("after it", "ben"), say("two")]
    with pytest.raises(StoreBusy):
        await intake.accept(link, updates)
    assert inbox.texts == ["two"]
    link.errors.clear()
    assert await intake.accept(link, updates)
    assert sorted(inbox.texts) == ["after it", "one", "two"]


async def test_a_lost_lease_is_told_before_other_errors(inbox: MemoryInbox) -> None:
    intake, link = WebhookIntake(), SlowLink(inbox)
    link.errors = {"one": StoreBusy(), "two": LeaseLost()}
    with pytest.raises(LeaseLost):
        await intake.accept(link, [say("one", "ben"), say("two")])


async def test_a_later_message_does_not_overtake_a_file(inbox: MemoryInbox) -> None:
    intake, link = WebhookIntake(), SlowLink(inbox, slow="file")
    first = asyncio.create_task(intake.accept(link, [say("file")]))
    await wait_until(lambda: link.begun)
    second = asyncio.create_task(intake.accept(link, [say("second")]))
    assert await intake.accept(link, [say("of Ben", "ben")])
    assert inbox.texts == ["of Ben"]
    link.go_on.set()
    assert await first
    assert await second
    assert inbox.texts == ["of Ben", "file", "second"]
    assert intake.is_idle


async def test_a_slow_file_is_not_begun_again_by_each_request(
    inbox: MemoryInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake, link = WebhookIntake(), SlowLink(inbox, slow="file")
    with monkeypatch.context() as impatient:
        impatient.setattr("palaver.gateway.intake.ACCEPT_SECONDS", 0.02)
        for _ in range(2):
            assert not await intake.accept(link, [say("file")])
    assert link.begun == ["file"]
    link.go_on.set()
    await inbox.wait_until(lambda: inbox.duplicate_count == 1, WAIT_SECONDS)
    assert await intake.accept(link, [say("file")])
    assert inbox.texts == ["file"]


async def test_a_request_that_is_given_up_is_stored_all_the_same(inbox: MemoryInbox) -> None:
    intake, link = WebhookIntake(), SlowLink(inbox, slow="file")
    request = asyncio.create_task(intake.accept(link, [say("file")]))
    await wait_until(lambda: link.begun)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    link.go_on.set()
    await inbox.wait_until(lambda: inbox.texts == ["file"], WAIT_SECONDS)
    await wait_until(lambda: intake.is_idle)


async def test_no_cursor_runs_ahead_of_what_is_still_being_accepted(inbox: MemoryInbox) -> None:
    intake, link = WebhookIntake(), SlowLink(inbox, slow="file")
    first = asyncio.create_task(intake.accept(link, [say("file")], cursor=Cursor("1")))
    await wait_until(lambda: link.begun)
    await intake.accept(link, [say("of Ben", "ben")], cursor=Cursor("2"))
    await intake.accept(link, [say("again of Ben", "ben"), say("of Eve", "eve")], cursor=Cursor("3"))
    assert inbox.cursors == {}
    link.go_on.set()
    await first
    assert inbox.cursors == {"": "1"}
    await intake.accept(link, [say("last")], cursor=Cursor("4"))
    assert inbox.cursors == {"": "4"}


async def test_closing_ends_what_is_being_accepted(inbox: MemoryInbox) -> None:
    intake, link = WebhookIntake(), SlowLink(inbox, slow="file")
    request = asyncio.create_task(intake.accept(link, [say("file")]))
    await wait_until(lambda: link.begun)
    await intake.close()
    assert not await request
    assert intake.is_idle
    assert inbox.texts == []


async def test_the_adapter_is_told_of_each_update_after_it_was_stored(inbox: MemoryInbox) -> None:
    told: list[tuple[str, Outcome, bool]] = []

    async def note(update: AnyUpdate, receipt: Receipt) -> None:
        assert isinstance(update, Inbound)
        told.append((str(update.content), receipt.outcome, str(update.content) in inbox.texts))

    intake = WebhookIntake(note)
    for _ in range(2):
        await intake.accept(MemoryLink(inbox), [say("one")])
    assert told == [("one", Outcome.ACCEPTED, True), ("one", Outcome.DUPLICATE, True)]

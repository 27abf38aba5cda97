"""The intake of an adapter: chats do not wait for each other, each keeps its order, and cursors never run ahead."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import LeaseLost
from palaver.core.source import SessionSource
from palaver.gateway.intake import MAX_WAITING_UPDATES, Intake
from palaver.sessions.inbound import Cursor, Inbound, InboundFile, Outcome, Receipt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.core.errors import SendRejected
    from palaver.delivery.model import LinkingPrompt
    from palaver.sessions.inbound import AnyUpdate


class SlowLink:
    """A link that accepts a message with files when its download was allowed to end."""

    def __init__(self) -> None:
        self.accepted: list[str] = []
        self.cursors: list[str] = []
        self.downloads: dict[str, asyncio.Event] = {}
        self.slow_texts: set[str] = set()  # of messages that take as long as a download
        self.error: Exception | None = None

    async def accept(self, update: AnyUpdate, *, cursor: Cursor | None = None) -> Receipt:
        assert isinstance(update, Inbound)
        text = str(update.content)
        if update.files or text in self.slow_texts:
            await self.downloads.setdefault(text, asyncio.Event()).wait()
        if self.error is not None:
            raise self.error
        self.accepted.append(text)
        if cursor is not None:
            self.cursors.append(cursor.value)
        return Receipt(outcome=Outcome.ACCEPTED)

    async def load_cursor(self, name: str = "") -> str | None:
        return None

    async def save_cursor(self, cursor: Cursor) -> None:
        self.cursors.append(cursor.value)

    async def confirm(self, key: str, message_id: str) -> None: ...

    async def report_failed(self, key: str, error: SendRejected) -> bool:
        return True

    def report_connected(self) -> None: ...

    def report_linking(self, prompt: LinkingPrompt) -> None: ...

    def end_download(self, text: str) -> None:
        self.downloads.setdefault(text, asyncio.Event()).set()


async def download() -> AsyncIterator[bytes]:
    yield b"x"


def say(text: str, chat: str = "a", *, has_file: bool = False) -> Inbound:
    files = [InboundFile("x.txt", download)] if has_file else []
    return Inbound(source=SessionSource("loopback", chat, user_id=chat), content=text, files=files)


async def test_other_chats_do_not_wait_for_a_file() -> None:
    link = SlowLink()
    async with Intake(link) as intake:
        await intake.accept(say("photo", "a", has_file=True), cursor=Cursor("1"))
        await intake.accept(say("after it", "a"), cursor=Cursor("2"))
        await intake.accept(say("elsewhere", "b"), cursor=Cursor("3"))
        assert (link.accepted, link.cursors, intake.is_busy) == (["elsewhere"], [], True)
        link.end_download("photo")
        await intake.wait_until_stored()
        assert link.accepted == ["elsewhere", "photo", "after it"]
        assert (link.cursors[-1], intake.cursor, intake.is_busy) == ("3", "3", False)


async def test_other_chats_do_not_wait_for_a_command_that_makes_a_file() -> None:
    link = SlowLink()
    link.slow_texts.add("/export html")
    async with Intake(link) as intake:
        await intake.accept(say("/export html", "a"), cursor=Cursor("1"))
        await intake.accept(say("/export nonsense", "b"), cursor=Cursor("2"))
        await intake.accept(say("elsewhere", "b"), cursor=Cursor("3"))
        assert (link.accepted, link.cursors) == (["/export nonsense", "elsewhere"], [])
        link.end_download("/export html")
        await intake.wait_until_stored()
        assert (link.accepted[-1], intake.cursor) == ("/export html", "3")


async def test_a_cursor_is_stored_only_when_everything_before_it_is_stored() -> None:
    link = SlowLink()
    async with Intake(link) as intake:
        await intake.accept(say("first", "a", has_file=True), cursor=Cursor("1"))
        await intake.accept(say("second", "b", has_file=True), cursor=Cursor("2"))
        await intake.save_cursor(Cursor("9"))
        link.end_download("second")
        await intake.wait_for_change()
        assert (link.accepted, link.cursors) == (["second"], [])
    assert link.cursors == []  # the end of the connection stores nothing either


async def test_each_stream_has_a_cursor_of_its_own() -> None:
    link = SlowLink()
    async with Intake(link) as intake:
        await intake.accept(say("photo", "a", has_file=True), cursor=Cursor("1", "a"))
        await intake.accept(say("elsewhere", "b"), cursor=Cursor("2", "b"))
        await intake.save_cursor(Cursor("3", "c"))
        await intake.save_cursor(Cursor("9"))
        await intake.accept(say("more", "b"), cursor=Cursor("4", "b"))
        assert link.cursors == []
        link.end_download("photo")
        await intake.wait_until_stored()
        assert sorted(link.cursors) == ["1", "3", "4", "9"]
        assert intake.cursor == "9"


async def test_without_files_an_update_and_its_cursor_are_accepted_at_once() -> None:
    link = SlowLink()
    seen: list[str] = []

    async def note(update: AnyUpdate, _receipt: Receipt) -> None:
        assert isinstance(update, Inbound)
        seen.append(str(update.content))

    async with Intake(link, note) as intake:
        await intake.accept(say("one"), cursor=Cursor("1"))
        await intake.save_cursor(Cursor("2"))
        assert (link.accepted, seen, link.cursors, intake.cursor) == (["one"], ["one"], ["1", "2"], "2")


async def test_an_error_in_the_background_is_raised_where_the_adapter_waits() -> None:
    link = SlowLink()
    link.error = LeaseLost()
    async with Intake(link) as intake:
        await intake.accept(say("photo", has_file=True), cursor=Cursor("1"))
        await intake.accept(say("after it"), cursor=Cursor("2"))
        link.end_download("photo")
        with pytest.raises(LeaseLost):
            await intake.wait_until_stored()
        with pytest.raises(LeaseLost):
            await intake.accept(say("later"), cursor=Cursor("3"))
    assert (link.accepted, link.cursors) == ([], [])


async def test_the_number_of_waiting_updates_is_bounded() -> None:
    link = SlowLink()
    async with Intake(link) as intake:
        for number in range(MAX_WAITING_UPDATES):
            await intake.accept(say(f"photo {number}", f"chat {number}", has_file=True))
        extra = asyncio.create_task(intake.accept(say("one more", "another chat")))
        await asyncio.sleep(0)
        assert not extra.done()
        link.end_download("photo 0")
        await extra
        assert link.accepted == ["photo 0", "one more"]

"""How far an account has read is stored with what it has read, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.core.crash_points import set_crash_hook
from palaver.core.engines.base import Write
from palaver.core.errors import InvalidMessage, LeaseLost
from palaver.core.source import Platform
from palaver.delivery import accounts_table as platform_accounts
from palaver.media.attachments import Attachments
from palaver.sessions.inbound import Cursor, Inbound, InboundFile, MessageEdited, Outcome
from support.inbox import list_rows, make_dm, make_inbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver import SessionStore
    from palaver.delivery.accounts_table import Fence

ACCOUNT = (Platform.TELEGRAM, "")
LATER = 10**17


def take_account(store: SessionStore, owner: str) -> Fence:
    acquire = Write(lambda tx: platform_accounts.acquire(tx, ACCOUNT, owner, LATER, 1, lambda _owner: True))
    acquired = store.engine.run(acquire)
    assert acquired is not None
    fence, _ = acquired
    return fence


async def test_the_cursor_is_stored_with_the_message(store: SessionStore) -> None:
    inbox = make_inbox(store)
    assert await inbox.load_cursor(ACCOUNT) is None
    await inbox.accept(Inbound(source=make_dm(), content="Hi", message_id="1"), cursor=Cursor("10"))
    assert await inbox.load_cursor(ACCOUNT) == "10"
    await inbox.accept(Inbound(source=make_dm(), content="Hi", message_id="1"), cursor=Cursor("11", "other"))
    assert (await inbox.load_cursor(ACCOUNT), await inbox.load_cursor(ACCOUNT, "other")) == ("10", "11")


@pytest.mark.parametrize(
    "text", ["Hello", "/help", "/undo", "/title A, B"], ids=["message", "read", "rejected", "write"]
)
async def test_the_cursor_moves_on_with_messages_commands_and_duplicates(store: SessionStore, text: str) -> None:
    inbox = make_inbox(store)
    for value in ("1", "2"):
        await inbox.accept(Inbound(source=make_dm(), content=text, message_id="7"), cursor=Cursor(value))
        assert await inbox.load_cursor(ACCOUNT) == value


@pytest.mark.both_engines
async def test_an_update_about_nothing_moves_the_cursor(store: SessionStore) -> None:
    inbox = make_inbox(store)
    edit = MessageEdited(source=make_dm(), message_id="404", content="?")
    receipt = await inbox.accept(edit, cursor=Cursor("5"))
    assert receipt.outcome is Outcome.IGNORED
    assert await inbox.load_cursor(ACCOUNT) == "5"


async def test_what_can_never_be_accepted_does_not_hold_up_the_rest(store: SessionStore) -> None:
    inbox = make_inbox(store)
    empty = Inbound(source=make_dm(), content="   ", message_id="1")
    receipt = await inbox.accept(empty, cursor=Cursor("5"))
    assert receipt.outcome is Outcome.REJECTED
    assert await inbox.load_cursor(ACCOUNT) == "5"
    with pytest.raises(InvalidMessage):  # a program that calls the inbox itself is told
        await inbox.accept(empty)


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("point", "stored"), [("inbox.files_received", False), ("inbox.before_accept", False), ("inbox.accepted", True)]
)
async def test_a_crash_stores_the_message_with_its_file_and_the_cursor_or_nothing(
    store: SessionStore, tmp_path: Path, point: str, stored: bool
) -> None:
    inbox = make_inbox(store, Attachments(store, tmp_path))

    async def read() -> AsyncIterator[bytes]:
        yield b"text"

    def crash(name: str) -> None:
        if name == point:
            raise RuntimeError(name)

    inbound = Inbound(source=make_dm(), content="", message_id="1", files=[InboundFile("a.txt", read)])
    set_crash_hook(crash)
    try:
        with pytest.raises(RuntimeError):
            await inbox.accept(inbound, cursor=Cursor("1"))
    finally:
        set_crash_hook(None)
    assert await inbox.load_cursor(ACCOUNT) == ("1" if stored else None)
    assert len(list_rows(store, "SELECT 1 FROM event WHERE kind = 'message'")) == int(stored)
    again = await inbox.accept(inbound, cursor=Cursor("1"))
    assert (again.outcome is Outcome.DUPLICATE) is stored
    assert len(list_rows(store, "SELECT 1 FROM event WHERE kind = 'message'")) == 1
    assert len(list_rows(store, "SELECT 1 FROM attachment_use")) == 1
    assert await inbox.load_cursor(ACCOUNT) == "1"


@pytest.mark.both_engines
async def test_a_process_that_lost_its_account_stores_nothing(store: SessionStore) -> None:
    inbox = make_inbox(store)
    old = take_account(store, "old")
    await inbox.accept(Inbound(source=make_dm(), content="Hi", message_id="1"), cursor=Cursor("1"), fence=old)
    new = take_account(store, "new")
    with pytest.raises(LeaseLost):
        await inbox.accept(Inbound(source=make_dm(), content="Hi", message_id="2"), cursor=Cursor("2"), fence=old)
    with pytest.raises(LeaseLost):
        await inbox.save_cursor(ACCOUNT, Cursor("2"), old)
    with pytest.raises(LeaseLost):
        await inbox.accept(Inbound(source=make_dm(), content="/help", message_id="3"), cursor=Cursor("2"), fence=old)
    assert await inbox.load_cursor(ACCOUNT) == "1"
    assert list_rows(store, "SELECT message_id FROM inbound_message") == [("1",)]
    await inbox.save_cursor(ACCOUNT, Cursor("9"), new)
    assert await inbox.load_cursor(ACCOUNT) == "9"

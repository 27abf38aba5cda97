"""Old receipts and group messages are deleted in small batches; newer receipts still recognize a message."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Read, Write
from palaver.media import attachments as services_attachments, table as attachments
from palaver.media.attachments import Attachments
from palaver.operation import cleanup
from palaver.operation.cleanup import Cleanup
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions import table as sessions
from palaver.sessions.inbound import Inbound, Outcome
from palaver.sessions.inbound_table import MAX_GROUP_MESSAGE_AGE, MAX_RECEIPT_AGE
from palaver.sessions.shares import Shares
from palaver.sessions.speech import Attachment
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import wait_for_turn
from support.inbox import list_rows, make_group, make_inbox, say

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from support.gateway import MakeSource, StartGateway


async def test_receipts_are_kept_for_thirty_days(
    start_gateway: StartGateway, dm: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "ROWS_PER_BATCH", 2)
    clock = FakeClock()
    gateway = await start_gateway(ScriptedAgent("Done."), loopback=LoopbackAdapter(), clock=clock)

    async def send(number: int) -> bool:
        receipt = await gateway.inbox.accept(Inbound(source=dm(), content="Hello", message_id=str(number)))
        if receipt.turn_id is not None:
            await wait_for_turn(gateway, receipt.turn_id)
        return receipt.outcome is Outcome.DUPLICATE

    for number in range(5):
        assert not await send(number)
    clock.advance(days=MAX_RECEIPT_AGE.days)
    assert not await send(5)
    clean_up = Cleanup(gateway.store, Attachments(gateway.store, tmp_path / "attachments"))
    assert await clean_up.delete_old("receipts") == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_old("receipts") == 5
    assert await gateway.store.engine.arun(Read(lambda tx: tx.fetch_all("SELECT message_id FROM inbound_message"))) == [
        ("5",)
    ]
    assert await send(5)


@pytest.mark.both_engines
async def test_copies_are_deleted_seven_days_after_their_links_expired(
    store: SessionStore, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "ROWS_PER_BATCH", 2)
    owner = store.get_owner().principal
    session_id = store.record_user_message(SessionSource("local", "1", user_id="1"), "hello").session_id
    shares = Shares(store)
    expires_at = clock.now() + timedelta(days=1)
    for expiry in (expires_at, expires_at, expires_at, expires_at + timedelta(hours=1), None):
        await shares.create(owner, session_id, everything=True, expires_at=expiry)
    clean_up = Cleanup(store, Attachments(store, tmp_path))
    clock.advance(days=8)
    assert await clean_up.delete_old("expired_shares") == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_old("expired_shares") == 3
    clock.advance(days=400)
    assert await clean_up.delete_old("expired_shares") == 1
    assert [share.expires_at for share in await shares.list(owner)] == [None]


@pytest.mark.both_engines
async def test_group_messages_are_kept_for_seven_days(
    store: SessionStore, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "ROWS_PER_BATCH", 2)
    inbox = make_inbox(store)
    for number in range(5):
        await say(inbox, make_group("bob"), f"{number}", is_addressed=False)
    clock.advance(days=MAX_GROUP_MESSAGE_AGE.days)
    await say(inbox, make_group("bob"), "new", is_addressed=False)
    clean_up = Cleanup(store, Attachments(store, tmp_path))
    assert await clean_up.delete_old("group_messages") == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_old("group_messages") == 5
    receipt = await say(inbox, make_group("ada"), "@bot hi")
    message = store.load_events(receipt.session_id or "")[-1].message
    assert message is not None
    assert [entry["text"] for entry in message.extra["context"]] == ["new"]


@pytest.mark.both_engines
async def test_unused_files_are_deleted_after_a_day_a_few_at_a_time(
    store: SessionStore, clock: FakeClock, dm: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services_attachments, "RECORDS_PER_PIECE", 2)
    pieces: list[int] = []

    def delete_unused(tx: Transaction, attachment_nos: list[int]) -> int:
        pieces.append(len(attachment_nos))
        return original(tx, attachment_nos)

    original = attachments.delete_unused
    monkeypatch.setattr(attachments, "delete_unused", delete_unused)
    files = Attachments(store, tmp_path)
    session_id = store.record_user_message(dm(), "hello").session_id
    person_id = store.get_or_create_person(dm()).id
    used = {2, 3, 6}

    def add(tx: Transaction) -> None:
        session_no = sessions.get(tx, session_id).no
        for number in range(9):  # the first five at the same moment
            sent_at = clock.now() + timedelta(seconds=max(0, number - 4))
            file = Attachment(
                id=f"a_{number:024x}",
                name=f"{number}",
                media_type="text/plain",
                size=1,
                sha256=f"{number:064x}",
                person_id=person_id,
                created_at=sent_at,
            )
            attachments.add(tx, file)
        nos = [attachments.get_visible(tx, f"a_{number:024x}", None)[0] for number in used]
        attachments.use_in_session(tx, session_no, nos)

    store.engine.run(Write(add))
    clock.advance(days=1)
    assert await files.clean_up() == 0
    clock.advance(seconds=4)
    assert await files.clean_up() == 5  # the ninth is not a day old
    assert max(pieces) <= 2
    assert {int(name) for (name,) in list_rows(store, "SELECT name FROM attachment")} == used | {8}

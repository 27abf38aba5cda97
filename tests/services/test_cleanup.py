"""Old receipts and group messages are deleted in small batches; newer receipts still recognize a message."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver import SessionSource
from palaver.domain.inbound import Inbound, Outcome
from palaver.platforms.loopback import LoopbackAdapter
from palaver.services import cleanup
from palaver.services.attachments import Attachments
from palaver.services.cleanup import MAX_GROUP_MESSAGE_AGE, MAX_RECEIPT_AGE, Cleanup
from palaver.services.shares import Shares
from palaver.storage.engines.base import Read
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import wait_for_turn
from support.inbox import make_group, make_inbox, say

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from palaver import SessionStore
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
    assert await clean_up.delete_old_receipts() == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_old_receipts() == 5
    assert await gateway.store.engine.arun(Read(lambda tx: tx.fetch_all("SELECT message_id FROM inbound_message"))) == [
        ("5",)
    ]
    assert await send(5)


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
    assert await clean_up.delete_expired_shares() == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_expired_shares() == 3
    clock.advance(days=400)
    assert await clean_up.delete_expired_shares() == 1
    assert [share.expires_at for share in await shares.list(owner)] == [None]


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
    assert await clean_up.delete_old_group_messages() == 0
    clock.advance(seconds=1)
    assert await clean_up.delete_old_group_messages() == 5
    receipt = await say(inbox, make_group("ada"), "@bot hi")
    message = store.load_events(receipt.session_id or "")[-1].message
    assert message is not None
    assert [entry["text"] for entry in message.extra["context"]] == ["new"]

"""Old receipts are deleted in small batches; newer ones still recognize a message that is sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.inbound import Inbound, Outcome
from palaver.platforms.loopback import LoopbackAdapter
from palaver.services import cleanup
from palaver.services.attachments import Attachments
from palaver.services.cleanup import MAX_RECEIPT_AGE, Cleanup
from palaver.storage.engines.base import Read
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import wait_for_turn

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.gateway import MakeSource, StartGateway


async def test_receipts_are_kept_for_thirty_days(
    start_gateway: StartGateway, dm: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "RECEIPTS_PER_BATCH", 2)
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

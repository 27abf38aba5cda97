"""Files that the target `local` writes."""

from __future__ import annotations

import errno
import stat
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.errors import SendRejected, SendRetryable
from palaver.delivery import table as deliveries
from palaver.delivery.adapter import OutgoingMessage
from palaver.delivery.local_files import LocalFiles
from palaver.gateway.gateway import Gateway
from palaver.sessions.delivery import Address, DeliveryState
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.messaging import get_now

if TYPE_CHECKING:
    from pathlib import Path


def make_message(folder: str = "news-j_1", name: str | None = "2026-03-01T07-00-00Z") -> OutgoingMessage:
    return OutgoingMessage(key="d_1.1", address=Address(Platform.LOCAL, folder, name), body="# Sunny\n\n20 degrees\n\n")


def list_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_file_is_complete_private_and_written_again_without_harm(tmp_path: Path) -> None:
    adapter = LocalFiles(tmp_path / "outputs")
    for _ in range(2):
        assert await adapter.send(make_message()) == "news-j_1/2026-03-01T07-00-00Z.md"
    [path] = (tmp_path / "outputs").rglob("*.md")
    assert path.read_text() == "# Sunny\n\n20 degrees\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(path.parent.iterdir())) == 1  # no temporary file is left


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("..", "x"),
        ("a/b", "x"),
        (".ssh", "x"),
        ("a", "../x"),
        ("a", "x/y"),
        ("a", None),
        ("a\0", "x"),
        ("a", "x" * 200),
    ],
)
async def test_no_name_leads_out_of_the_folder(tmp_path: Path, folder: str, name: str | None) -> None:
    with pytest.raises(SendRejected):
        await LocalFiles(tmp_path / "outputs").send(make_message(folder, name))
    assert list_files(tmp_path) == []


async def test_a_full_disk_is_tried_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("palaver.core.files.os.fsync", fail)
    with pytest.raises(SendRetryable, match="No space left on device"):
        await LocalFiles(tmp_path).send(make_message())
    assert list_files(tmp_path) == []


async def test_a_folder_that_cannot_be_made_is_tried_again_later(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file, not a folder")
    with pytest.raises(SendRetryable, match="Could not create the folder"):
        await LocalFiles(tmp_path / "outputs").send(make_message())


async def test_a_gateway_with_a_home_folder_writes_what_waits(tmp_path: Path) -> None:
    config = GatewayConfig(saves_local_files=True)
    with SessionStore.open(f"sqlite:///{tmp_path}/test.db", config=config) as store:
        address = str(make_message().address)
        store.engine.run(Write(lambda tx: deliveries.enqueue(tx, address, "Sunny.", get_now(store))))
        gateway = Gateway(
            store, ScriptedAgent(), profile=AgentProfile(), rules=TurnRules(), outputs=tmp_path / "outputs"
        )
        async with gateway.run(grace_seconds=5):
            await wait_until(lambda: _list_states(store) == [DeliveryState.SENT.value])
    [path] = (tmp_path / "outputs").rglob("*.md")
    assert path.read_text() == "Sunny.\n"


def _list_states(store: SessionStore) -> list[Any]:
    rows = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT state FROM delivery")))
    return [state for (state,) in rows]

"""The adapter in the guide is short, complete, found like any other, and keeps what every adapter must keep."""

from __future__ import annotations

import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver.app import make_gateway, open_store
from palaver.config import load_settings
from palaver.core.source import Platform
from palaver.platforms.manifest import ENTRY_POINT_GROUP, AccountPlace, PlatformManifest
from palaver.platforms.registry import list_configured_accounts, load_manifests
from palaver.sessions.delivery import Address
from palaver.testing import ContractPlatform, Fault, PlatformContract, ShownMessage
from support.gateway import wait_until

from .linechat_server import ROOM, TOKEN, LineChatServer, run_linechat_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from palaver.delivery.adapter import Adapter

GUIDE = Path(__file__).parents[2] / "docs/guides/writing-an-adapter.md"
LINECHAT = Platform("linechat")
CODE = re.findall(r"```py\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]
ENTRY_POINTS = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlatformManifest]:
    """Install the package of the guide as pip would, and find it."""
    site = tmp_path / "site-packages"
    info = site / "palaver_linechat-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "palaver_linechat.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: palaver-linechat\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        ENTRY_POINTS.replace('project.entry-points."palaver.platforms"', ENTRY_POINT_GROUP).replace('"', "")
    )
    monkeypatch.syspath_prepend(str(site))
    yield load_manifests(point for point in entry_points(group=ENTRY_POINT_GROUP) if point.name == "linechat")[LINECHAT]
    sys.modules.pop("palaver_linechat", None)


@pytest.fixture
async def server() -> AsyncIterator[LineChatServer]:
    async with run_linechat_server() as linechat:
        yield linechat


def test_it_has_less_than_a_hundred_lines() -> None:
    assert len(CODE.splitlines()) < 100


class LineChatPlatform(ContractPlatform):
    faults = frozenset(
        {Fault.RATE_LIMITED, Fault.REFUSED, Fault.CHAT_GONE, Fault.ANSWER_LOST, Fault.REVOKED, Fault.CONNECTION_CUT}
    )
    secrets = (TOKEN,)

    def __init__(self, server: LineChatServer, manifest: PlatformManifest) -> None:
        self.server = server
        self.manifest = manifest

    @property
    def address(self) -> Address:
        return Address(LINECHAT, ROOM)

    def make_adapter(self) -> Adapter:
        settings = self.manifest.settings.model_validate({"token": TOKEN, "port": self.server.port})
        return self.manifest.create_adapter(
            settings, AccountPlace(account="", folder=Path("/nonexistent"), webhook_url=None)
        )

    async def say(self, text: str) -> str:
        return self.server.write_as_person(text)

    async def repeat_updates(self) -> None:
        self.server.send_to_clients(self.server.written[-1])

    async def list_messages(self) -> list[ShownMessage]:
        return [ShownMessage(str(fields["id"]), fields["text"]) for fields in self.server.shown.values()]

    async def break_platform(self, fault: Fault) -> None:
        if fault is Fault.REVOKED:
            self.server.tokens.clear()
        elif fault is Fault.CONNECTION_CUT:
            self.server.cut_connections()
        else:
            self.server.fault = fault


class TestLineChatContract(PlatformContract):
    @pytest.fixture
    def platform(self, server: LineChatServer, manifest: PlatformManifest) -> LineChatPlatform:
        return LineChatPlatform(server, manifest)


async def test_a_conversation_with_the_demo_agent(
    tmp_path: Path, server: LineChatServer, manifest: PlatformManifest
) -> None:
    config: dict[str, Any] = {"token": TOKEN, "port": server.port}
    lines = [f"      {key}: {value}" for key, value in config.items()]
    (tmp_path / "config.yaml").write_text(
        "\n".join(["model: demo", "platforms:", "  linechat:", "    access: everyone", "    settings:", *lines])
    )
    settings = load_settings({}, tmp_path)
    accounts = list_configured_accounts(settings, {}, {LINECHAT: manifest})
    assert [account.problem for account in accounts] == [None]
    server.write_as_person("Hello there")  # before the gateway runs
    with open_store(settings) as store:
        gateway = make_gateway(store, settings, {}, accounts=accounts)
        async with gateway.run(grace_seconds=5):
            await wait_until(lambda: server.shown)
            server.write_as_person("/status")
            await wait_until(lambda: len(server.shown) >= 2)
    answer, status = list(server.shown.values())
    assert answer["room"] == ROOM
    assert answer["text"]
    assert "Conversation" in status["text"]

"""Linking with a phone, and what is said about signal-cli and the account."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.platforms.signal import linking as linking_module
from palaver.platforms.signal.client import build_environment
from palaver.platforms.signal.linking import LinkedAccount, describe_account, is_outdated, read_account
from palaver.testing import MemoryInbox, MemoryLink
from support.gateway import TIMEOUT_SECONDS
from support.platform_adapters import connect_adapter

from .conftest import make_adapter_for
from .signal_server import ADA, OWN_ACI, OWN_NUMBER, SignalServer

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeAdapter

NOW = datetime(2026, 11, 16, tzinfo=UTC)


async def test_a_code_is_shown_until_a_phone_has_scanned_one() -> None:
    inbox = MemoryInbox()
    async with SignalServer(is_linked=False) as server:
        adapter = make_adapter_for(server)
        info = await adapter.probe()
        assert (info.name, info.details, info.is_linked) == (None, ("signal-cli 0.14.6",), False)
        task = asyncio.create_task(adapter.run(MemoryLink(inbox)))
        await inbox.wait_until(lambda: inbox.linking_prompts, TIMEOUT_SECONDS)
        server.expire_code()
        await inbox.wait_until(lambda: len(inbox.linking_prompts) == 2, TIMEOUT_SECONDS)
        assert inbox.connected_count == 0
        server.scan_code()
        await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
        task.cancel()
        await asyncio.wait({task})
        first, second = inbox.linking_prompts
        assert first.qr_text != second.qr_text
        assert "Linked devices" in first.instructions
        assert next(each for each in server.starts if "link" in each)[-2:] == ["--name", "Palaver"]
        assert server.problems == []


async def test_a_phone_whose_account_is_there_already_is_refused() -> None:
    inbox = MemoryInbox()
    async with SignalServer(is_linked=False) as server:
        task = asyncio.create_task(make_adapter_for(server).run(MemoryLink(inbox)))
        await inbox.wait_until(lambda: inbox.linking_prompts, TIMEOUT_SECONDS)
        server.expire_code(f"The user {OWN_NUMBER} already exists\nDelete it before trying again.", 1)
        with pytest.raises(AccountRefused, match="in the folder of signal-cli already"):
            await asyncio.wait_for(task, TIMEOUT_SECONDS)


async def test_codes_are_not_shown_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking_module, "MAX_CODE_SECONDS", 0.01)
    monkeypatch.setattr(linking_module, "MAX_CODES", 2)
    inbox = MemoryInbox()
    async with SignalServer(is_linked=False) as server:
        with pytest.raises(AccountRefused, match="palaver platforms connect signal"):
            await make_adapter_for(server).run(MemoryLink(inbox))
    assert len(inbox.linking_prompts) == 2


async def test_a_code_that_signal_cannot_give_is_a_lost_connection() -> None:
    async with SignalServer(is_linked=False) as server:
        server.start_error = ("Link request error: chat.signal.org: Name or service not known", 3)
        with pytest.raises(ConnectionLost, match="Name or service not known"):
            await make_adapter_for(server).run(MemoryLink(MemoryInbox()))


async def test_a_device_that_was_unlinked_shows_a_new_code(server: SignalServer, make_adapter: MakeAdapter) -> None:
    inbox = MemoryInbox()
    server.store_account(is_registered=False)
    task = asyncio.create_task(make_adapter().run(MemoryLink(inbox)))
    await inbox.wait_until(lambda: inbox.linking_prompts, TIMEOUT_SECONDS)
    server.scan_code()
    await inbox.wait_until(lambda: inbox.connected_count, TIMEOUT_SECONDS)
    task.cancel()
    await asyncio.wait({task})


async def test_a_registered_number_that_is_refused_has_to_be_registered_again(
    server: SignalServer, make_adapter: MakeAdapter
) -> None:
    server.store_account(is_registered=False, device_id=1)
    with pytest.raises(AccountRefused, match="signal-cli register"):
        await make_adapter().probe()


async def test_without_signal_cli_the_install_step_is_named(make_adapter: MakeAdapter) -> None:
    with pytest.raises(AccountRefused, match=r"not installed.*releases"):
        await make_adapter(program="no-such-signal-cli").probe()


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("ERROR: JAVA_HOME is not set and no 'java' command could be found in your PATH.", "needs Java"),
        ("Exception: java.lang.UnsupportedClassVersionError: org/asamk/signal/Main", "Java on this machine is too old"),
        ("Segmentation fault", "Segmentation fault"),
    ],
)
async def test_a_program_that_does_not_work_is_refused(
    server: SignalServer, make_adapter: MakeAdapter, output: str, words: str
) -> None:
    server.start_error = (output, 1)
    with pytest.raises(AccountRefused, match=words) as refused:
        await make_adapter().probe()
    assert "releases" in str(refused.value)


async def test_the_version_and_the_device_are_reported(server: SignalServer, make_adapter: MakeAdapter) -> None:
    adapter = make_adapter()
    info = await adapter.probe()
    assert (info.user_id, info.name) == (OWN_ACI, OWN_NUMBER)
    assert info.details == ("signal-cli 0.14.6", "Linked device 2")
    assert info.warnings == ()
    async with connect_adapter(adapter, MemoryInbox()):
        server.version = "0.13.19"
        info = await adapter.probe()
    assert info.details == ("signal-cli 0.13.19", "Linked device 2, since 2026-09-10")
    assert "0.13.19 is too old" in info.warnings[0]


def test_idle_devices_are_warned_about_before_they_end() -> None:
    account = LinkedAccount(number=OWN_NUMBER, aci=OWN_ACI, device_id=2, is_registered=True)
    long_ago = NOW - timedelta(days=25)
    info = describe_account("0.14.6", account, connected_at=long_ago, now=NOW)
    assert "last connected 25 days ago" in info.warnings[0]
    phone = {"id": 1, "lastSeenTimestamp": int(long_ago.timestamp() * 1000)}
    info = describe_account("0.14.6", account, devices=[phone], connected_at=NOW, now=NOW)
    assert "phone of this account was last seen on 2026-10-22" in info.warnings[0]
    primary = LinkedAccount(number=OWN_NUMBER, aci=OWN_ACI, device_id=1, is_registered=True)
    assert describe_account("0.14.6", primary, connected_at=long_ago, now=NOW).warnings == ()


@pytest.mark.parametrize(
    ("version", "expected"), [("0.13.19", True), ("0.14.4", True), ("0.14.5", False), ("1.0.0", False), ("x", False)]
)
def test_versions_that_miss_messages_are_known(version: str, *, expected: bool) -> None:
    assert is_outdated(version) is expected


def test_it_is_clear_which_account_is_used(tmp_path: Path) -> None:
    assert read_account(tmp_path, None) is None
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "accounts.json"
    accounts = [{"path": "1", "number": "+4911111", "uuid": ADA}, {"path": "2", "number": "+4922222", "uuid": OWN_ACI}]
    file.write_text(json.dumps({"accounts": accounts, "version": 2}))
    with pytest.raises(AccountRefused, match=r"\+4911111, \+4922222"):
        read_account(tmp_path, None)
    account = read_account(tmp_path, "+4922222")
    assert account is not None
    assert (account.aci, account.is_registered) == (OWN_ACI, False)
    with pytest.raises(AccountRefused, match=r"no Signal account \+4933333"):
        read_account(tmp_path, "+4933333")
    file.write_text("{")
    with pytest.raises(AccountRefused, match=r"accounts\.json can't be read"):
        read_account(tmp_path, None)


def test_signal_cli_does_not_get_the_keys_of_other_services() -> None:
    environ = {"PATH": "/bin", "OPENAI_API_KEY": "secret", "JAVA_HOME": "/java", "PALAVER_SECRET": "s", "LC_ALL": "C"}
    assert build_environment(environ) == {"PATH": "/bin", "JAVA_HOME": "/java", "LC_ALL": "C"}

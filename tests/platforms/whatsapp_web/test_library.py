"""The real library in the real child process: it loads, fails clearly without a network, starts again, and ends."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import AccountRefused, ConnectionLost, SendRetryable
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.whatsapp_web.adapter import WhatsAppWebAdapter
from palaver.platforms.whatsapp_web.manifest import WhatsAppWebSettings
from palaver.platforms.whatsapp_web.protocol import RequestError
from palaver.testing import MemoryInbox, MemoryLink

from .conftest import make_outgoing

if TYPE_CHECKING:
    from pathlib import Path

DEAD_PROXY = "socks5://127.0.0.1:1"  # nothing listens there, so that no test depends on a network
SECONDS = 60.0
WITHOUT_MODULE = (
    "import sys; sys.modules[{module!r}] = None\n"
    "import runpy; runpy.run_module('palaver.platforms.whatsapp_web.child', run_name='__main__')"
)
WITHOUT_LIBMAGIC = (
    "import sys, types\n"
    "class Missing:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name == 'magic':\n"
    "            raise ImportError('failed to find libmagic.  Check your installation')\n"
    "sys.meta_path.insert(0, Missing())\n"
    "import runpy; runpy.run_module('palaver.platforms.whatsapp_web.child', run_name='__main__')"
)


def make_real_adapter(folder: Path, **settings: Any) -> WhatsAppWebAdapter:
    values = WhatsAppWebSettings(**{"proxy_url": DEAD_PROXY, **settings})
    return WhatsAppWebAdapter(values, AccountPlace(account="", folder=folder, webhook_url=None))


@pytest.mark.slow
async def test_the_library_starts_fails_clearly_without_a_network_and_starts_again(tmp_path: Path) -> None:
    folder = tmp_path / "a folder?with%20signs"
    for is_signaled in (False, True):
        adapter = make_real_adapter(folder)
        try:
            info = await asyncio.wait_for(adapter.probe(), SECONDS)
            assert info.details == ("neonize 0.5.2",)
            with pytest.raises(ConnectionLost, match="WhatsApp can't be reached"):
                await asyncio.wait_for(adapter.run(MemoryLink(MemoryInbox())), SECONDS)
            with pytest.raises(SendRetryable):
                await adapter.send(make_outgoing())
            child = adapter._child
            assert child is not None
            with pytest.raises(RequestError, match="WhatsApp is not connected"):
                await child.request("send_text", seconds=SECONDS, key="d_1.1", chat="1@lid", text="x")
            if is_signaled:  # the Go part leaves the signal to us
                child._process.send_signal(signal.SIGTERM)
                await asyncio.wait_for(child._process.wait(), SECONDS)
        finally:
            await adapter.close()
        assert child._process.returncode == 0
        assert child._error_output == b""
    with sqlite3.connect(folder / "session.db") as session:  # the library has made its tables
        tables = {row[0] for row in session.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    session.close()
    assert "whatsmeow_device" in tables


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (WITHOUT_MODULE.format(module="neonize"), "pip install 'palaver[whatsapp-web]'"),
        (WITHOUT_LIBMAGIC, "apt install libmagic1"),
        ('print(\'{"state":"failed","module":"","error":"wrong ELF class"}\')', "on this machine: wrong ELF"),
    ],
    ids=["without the package", "without libmagic", "on another processor"],
)
async def test_a_library_that_cannot_be_loaded_is_refused_with_the_fix(
    tmp_path: Path, program: str, words: str
) -> None:
    adapter = make_real_adapter(tmp_path, child_command=[sys.executable, "-c", program])
    try:
        with pytest.raises(AccountRefused) as refused:
            await asyncio.wait_for(adapter.probe(), SECONDS)
    finally:
        await adapter.close()
    assert words in str(refused.value)


async def test_without_the_package_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.platforms.whatsapp_web.adapter.find_spec", lambda _name: None)
    adapter = make_real_adapter(tmp_path)
    with pytest.raises(AccountRefused, match="neonize"):
        await adapter.probe()
    assert adapter._child is None

"""Tests of where a server listens, and of the URLs under which browsers reach it."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.cli import server_runner
from palaver.cli.running_servers import describe_port_user
from palaver.cli.server_runner import build_server_urls, find_network_address
from palaver.config import load_settings
from palaver.web.sockets import open_socket
from support.process import find_free_port

if TYPE_CHECKING:
    from palaver.config import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({}, tmp_path)


def test_a_server_on_this_machine_only_has_no_url_for_others(settings: Settings) -> None:
    with closing(open_socket("127.0.0.1", 0)) as listener:
        server = build_server_urls(settings, "127.0.0.1", listener)
        assert server.url == f"http://localhost:{listener.getsockname()[1]}"
    assert server.network_url is None


def test_a_server_on_all_addresses_has_a_url_for_the_network(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_socket("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(server_runner, "find_network_address", lambda: "192.168.1.20")
        server = build_server_urls(settings, "0.0.0.0", listener)
        assert (server.url, server.network_url) == (f"http://localhost:{port}", f"http://192.168.1.20:{port}")
        monkeypatch.setattr(server_runner, "find_network_address", lambda: None)
        assert build_server_urls(settings, "0.0.0.0", listener).network_url is None


def test_the_configured_url_is_the_one_for_everybody(settings: Settings) -> None:
    public = replace(settings, web=replace(settings.web, public_url="https://chat.example.org/"))
    with closing(open_socket("127.0.0.1", 0)) as listener:
        server = build_server_urls(public, "127.0.0.1", listener)
    assert (server.url, server.network_url) == ("https://chat.example.org", None)


def test_the_network_address_is_one_that_this_machine_can_listen_on() -> None:
    address = find_network_address()
    if address is not None:  # a machine without a network has none
        with closing(open_socket(address, 0)) as listener:
            assert listener.getsockname()[0] == address


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_the_program_that_uses_a_port_is_named_with_its_process() -> None:
    with socket.create_server(("127.0.0.1", port := find_free_port())):
        program = Path(Path("/proc/self/cmdline").read_text(encoding="utf-8").split("\0")[0]).name
        assert describe_port_user(port) == f"{program} (process {os.getpid()})"
    assert describe_port_user(port) is None


def test_where_the_system_does_not_say_it_no_program_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert describe_port_user(listener.getsockname()[1], proc=tmp_path) is None

"""The address that a server listens on."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from palaver.cli.running_servers import RunningServer, describe_port_user, find_running_server
from palaver.core.errors import PortInUse
from palaver.core.invocation import format_command
from palaver.people.model import is_loopback
from palaver.web.sockets import DEFAULT_PORT, open_socket, open_socket_on_free_port

if TYPE_CHECKING:
    from palaver.config import Settings


_ANY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104  (compared, not bound)


_TEST_NETWORK_ADDRESS = "192.0.2.1"  # of a network for documentation, which no machine is in


def open_server_socket(settings: Settings, host: str, port: int | None) -> socket.socket:
    """Open the socket on this port; without one, on the default port or the next that is free.

    Raises `PortInUse` with the program that uses the port.
    """
    if port is None:
        return open_socket_on_free_port(host)
    try:
        return open_socket(host, port)
    except PortInUse:
        raise PortInUse(_explain_used_port(settings, port), host=host, port=port) from None


def _explain_used_port(settings: Settings, port: int) -> str:
    running = find_running_server(settings.home, port)
    if running is not None:
        link_command = format_command(f"serve --link --port {port}")
        return (
            f"Palaver is already running at {running.url}. For a sign-in link to it, run `{link_command}`."
            " To start a second server on the same data, choose another port with --port."
        )
    user = describe_port_user(port)
    return (
        f"Port {port} is already in use by {user or 'another program'}. Stop that program, or choose another port"
        " with --port or the setting web.port; --port 0 picks a free one."
    )


def explain_other_port(port: int) -> str | None:
    """Say why a server without a configured port uses this one; None if it is the default port."""
    if port == DEFAULT_PORT:
        return None
    user = describe_port_user(DEFAULT_PORT)
    return f"Port {DEFAULT_PORT} is already in use by {user or 'another program'}, so Palaver uses port {port}."


def build_server_urls(settings: Settings, host: str, server_socket: socket.socket) -> RunningServer:
    """Return the URLs of a server: the configured one, or else those that its socket answers to."""
    if settings.web.public_url:
        return RunningServer(url=settings.web.public_url.rstrip("/"), network_url=None)
    bound_host, port = server_socket.getsockname()[:2]
    if is_loopback(bound_host):
        return RunningServer(url=_format_url("localhost", port), network_url=None)  # passkeys belong to names
    if bound_host not in _ANY_ADDRESS:
        return RunningServer(url=_format_url(host, port), network_url=_format_url(bound_host, port))
    address = find_network_address()
    return RunningServer(
        url=_format_url("localhost", port), network_url=None if address is None else _format_url(address, port)
    )


def find_network_address() -> str | None:
    """Return the address under which other machines in the network reach this one; None if it is in no network."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((_TEST_NETWORK_ADDRESS, 9))  # sends nothing: the system only chooses the address to send from
            address: str = probe.getsockname()[0]
    except OSError:
        return None
    return None if is_loopback(address) or address in _ANY_ADDRESS else address


def _format_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

"""Listening sockets: an unavailable address gives a clear error before anything else starts.

The terminal imports this module whatever it does, so it must not import FastAPI.
"""

from __future__ import annotations

import contextlib
import errno
import socket

from palaver.core.errors import ConfigError, PortInUse

DEFAULT_PORT = 8765
MAX_PORTS_TRIED = 100
SOCKET_BACKLOG = 2048  # connections that may wait to be accepted


def open_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 means any free port."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(SOCKET_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        error_type = PortInUse if error.errno == errno.EADDRINUSE else ConfigError
        raise error_type(_explain_socket_error(host, port, error), host=host, port=port) from None
    listener.setblocking(False)
    return listener


def open_socket_on_free_port(host: str) -> socket.socket:
    """Open a listening socket on the default port, or else on the next one that is free."""
    for port in range(DEFAULT_PORT, DEFAULT_PORT + MAX_PORTS_TRIED - 1):
        with contextlib.suppress(PortInUse):
            return open_socket(host, port)
    return open_socket(host, DEFAULT_PORT + MAX_PORTS_TRIED - 1)


def _explain_socket_error(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is already in use. Choose another with --port, or --port 0 for any free port."
    if error.errno == errno.EACCES:
        return f"You don't have permission to use port {port}. Choose a port above 1023 with --port."
    return f"Cannot listen on {host} port {port}: {error.strerror or error}. --host must be an address of this machine."

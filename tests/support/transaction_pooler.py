"""A pooler in front of PostgreSQL that gives every transaction another connection, as PgBouncer does in its mode
`transaction`: what a client sets or prepares on "its" connection is found by others, or lost.

It speaks only as much of the protocol as that needs: no passwords, no TLS.
"""

from __future__ import annotations

import queue
import select
import socket
import struct
import threading
from contextlib import suppress
from typing import Any, Self

from psycopg.conninfo import conninfo_to_dict

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
OPTIONS_REFUSED = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"


class TransactionPooler:
    """Listens on a loopback port; `url` leads through it."""

    def __init__(self, url: str, *, server_count: int = 3, accepts_options: bool = False) -> None:
        self._parameters = conninfo_to_dict(url)
        self._accepts_options = accepts_options  # and ignores them
        self._status: bytes = b""  # what the server says about itself to a new connection
        self._is_closed = False
        self._sockets: list[socket.socket] = []  # everything to close at the end
        self._servers: queue.SimpleQueue[socket.socket] = queue.SimpleQueue()  # the one idle longest is used first
        for _ in range(server_count):
            self._servers.put(self._connect())
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://{self._parameters['user']}@127.0.0.1:{port}/{self._parameters['dbname']}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _connect(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        self._sockets.append(server)
        server.connect(f"{self._parameters['host']}/.s.PGSQL.{self._parameters.get('port', 5432)}")
        pairs = f"user\0{self._parameters['user']}\0database\0{self._parameters['dbname']}\0\0".encode()
        server.sendall(struct.pack("!II", len(pairs) + 8, 196608) + pairs)
        self._status = b""
        while (message := read_message(server))[:1] != b"Z":
            assert message[:1] != b"E", message
            if message[:1] == b"S":
                self._status += message
        return server

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError, ValueError):  # ValueError: closed while it was waited for
            if self._greet(client):
                while self._pass_transaction(client):
                    pass

    def _greet(self, client: socket.socket) -> bool:
        while True:
            length, code = struct.unpack("!II", read_exactly(client, 8))
            if code not in {SSL_REQUEST, GSS_REQUEST}:
                break
            client.sendall(b"N")
        if code == CANCEL_REQUEST:
            return False
        names = read_exactly(client, length - 8).split(b"\0")[:-2:2]
        if b"options" in names and not self._accepts_options:
            client.sendall(build_message(b"E", OPTIONS_REFUSED))
            return False
        key = build_message(b"K", struct.pack("!II", 0x7FFF0001, 1))
        client.sendall(build_message(b"R", struct.pack("!I", 0)) + self._status + key + build_message(b"Z", b"I"))
        return True

    def _pass_transaction(self, client: socket.socket) -> bool:
        """Pass on messages until the client's transaction has ended; False if the client is gone."""
        message = read_message(client)
        if message[:1] == b"X":
            return False
        server = self._servers.get(timeout=60)
        pending = 0  # answers that the server still owes
        try:
            while True:
                server.sendall(message)
                pending += message[:1] in {b"Q", b"S"}
                while True:
                    ready = select.select([client, server], [], [])[0]
                    if server in ready:
                        answer = read_message(server)
                        pending -= answer[:1] == b"Z"
                        client.sendall(answer)
                        if answer == build_message(b"Z", b"I") and not pending and client not in ready:
                            self._servers.put(server)
                            return True
                    if client in ready:
                        message = read_message(client)
                        break
        except (OSError, EOFError):
            server.close()
            if not self._is_closed:
                self._servers.put(self._connect())
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self._is_closed = True
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # its thread ends
            each.close()


def build_message(kind: bytes, payload: bytes) -> bytes:
    return kind + struct.pack("!I", len(payload) + 4) + payload


def read_message(connection: socket.socket) -> bytes:
    head = read_exactly(connection, 5)
    return head + read_exactly(connection, struct.unpack("!I", head[1:])[0] - 4)


def read_exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data

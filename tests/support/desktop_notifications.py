"""The notification service of a desktop, for a real browser: shows nothing, records everything, and can be clicked.

Chromium on Linux hands its notifications to the desktop through D-Bus. This is a message bus with one service,
`org.freedesktop.Notifications`. A click is the signal that a real desktop sends, so the browser treats it as a click of
its user: a service worker may open a window or focus one. The profile must not be a private one.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

SERVICE = "org.freedesktop.Notifications"
_REPLIES: dict[str, tuple[str, tuple[object, ...]]] = {
    "Hello": ("s", (":1.1",)),  # the name of the browser
    "AddMatch": ("", ()),
    "RemoveMatch": ("", ()),
    "NameHasOwner": ("b", (1,)),
    "GetNameOwner": ("s", (SERVICE,)),
    "ListNames": ("as", (SERVICE,)),
    "ListActivatableNames": ("as", (SERVICE,)),
    "GetCapabilities": ("as", ("actions", "body", "icon-static", "persistence")),
    "GetServerInformation": ("ssss", ("test", "test", "1", "1.2")),
}
CLICK_INTERVAL_SECONDS = 0.3
_CALL, _RETURN, _ERROR, _SIGNAL = 1, 2, 3, 4  # types of messages
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_SERIAL, _SENDER, _SIGNATURE = 1, 2, 3, 4, 5, 7, 8  # header fields
_NO_REPLY_EXPECTED = 1


@dataclass(frozen=True)
class ShownNotification:
    """What a desktop would show."""

    id: int
    title: str
    body: str


class _Reader:
    """Reads values of a message in D-Bus's format."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def align(self, size: int) -> None:
        self.at += -self.at % size

    def read_number(self) -> int:
        self.align(4)
        self.at += 4
        return int(struct.unpack_from("<I", self.data, self.at - 4)[0])

    def read_text(self) -> str:
        length = self.read_number()
        self.at += length + 1
        return self.data[self.at - length - 1 : self.at - 1].decode()

    def read_signature(self) -> str:
        length = self.data[self.at]
        self.at += length + 2
        return self.data[self.at - length - 1 : self.at - 1].decode()

    def read_fields(self) -> dict[int, str | int]:
        """Read the fields of a header: each has a number, and a value with its type."""
        fields: dict[int, str | int] = {}
        length = self.read_number()
        self.align(8)
        end = self.at + length
        while self.at < end:
            self.align(8)
            number = self.data[self.at]
            self.at += 1
            kind = self.read_signature()
            if kind == "u":
                fields[number] = self.read_number()
            else:
                fields[number] = self.read_signature() if kind == "g" else self.read_text()
        return fields


@dataclass
class _Writer:
    """Writes values in D-Bus's format."""

    data: bytearray = field(default_factory=bytearray)

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def write_number(self, value: int) -> None:
        self.align(4)
        self.data += struct.pack("<I", value)

    def write_text(self, text: str) -> None:
        self.write_number(len(text.encode()))
        self.data += text.encode() + b"\0"

    def write_signature(self, text: str) -> None:
        self.data += bytes([len(text)]) + text.encode() + b"\0"

    def write_values(self, signature: str, values: tuple[object, ...]) -> None:
        if signature == "as":
            texts = _Writer()
            for text in values:
                texts.write_text(str(text))
            self.write_number(len(texts.data))
            self.data += texts.data
            return
        for kind, value in zip(signature, values, strict=True):
            if kind == "s":
                self.write_text(str(value))
            else:  # u and b
                assert isinstance(value, int)
                self.write_number(value)


def _encode(kind: int, serial: int, fields: dict[int, str | int], signature: str, values: tuple[object, ...]) -> bytes:
    body = _Writer()
    body.write_values(signature, values)
    if signature:
        fields = fields | {_SIGNATURE: signature}
    header = _Writer()
    for number, value in fields.items():
        header.align(8)
        header.data.append(number)
        header.write_signature({_PATH: "o", _REPLY_SERIAL: "u", _SIGNATURE: "g"}.get(number, "s"))
        if isinstance(value, int):
            header.write_number(value)
        elif number == _SIGNATURE:
            header.write_signature(value)
        else:
            header.write_text(value)
    start = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body.data), serial, len(header.data))
    return start + header.data + bytes(-len(header.data) % 8) + body.data


class DesktopNotifications:
    """Listens at `address` (the value of `DBUS_SESSION_BUS_ADDRESS` for the browser)."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "bus"
        self.address = f"unix:path={self._path}"
        self.shown: list[ShownNotification] = []
        self.closed_ids: set[int] = set()
        self._serial = 0
        self._clients: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for client in self._clients:
            client.close()

    async def click(self, notification: ShownNotification) -> None:
        """Click a notification, as its reader would, until the browser closes it.

        It ignores a click that comes before it has processed the reply with the notification's id.
        """
        fields: dict[int, str | int] = {
            _PATH: "/org/freedesktop/Notifications",
            _INTERFACE: SERVICE,
            _MEMBER: "ActionInvoked",
            _SENDER: SERVICE,
        }
        while notification.id not in self.closed_ids:
            for client in self._clients:
                self._send(client, _SIGNAL, fields, "us", (notification.id, "default"))
            await asyncio.sleep(CLICK_INTERVAL_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._authenticate(reader, writer)
            self._clients.append(writer)
            while True:
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the browser was closed
        finally:
            writer.close()

    async def _authenticate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (line := (await reader.readuntil(b"\r\n")).strip(b"\0\r\n")) != b"BEGIN":
            writer.write(b"OK 0123456789abcdef0123456789abcdef\r\n" if line.startswith(b"AUTH ") else b"ERROR\r\n")

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = await reader.readexactly(16)
        _, kind, flags, _, body_length, serial, fields_length = struct.unpack("<cBBBIII", start)
        rest = await reader.readexactly(fields_length + -fields_length % 8)
        head = _Reader(start + rest)
        head.at = len(start) - 4  # where the length of the fields is
        fields = head.read_fields()
        body = _Reader(await reader.readexactly(body_length))
        if kind != _CALL or flags & _NO_REPLY_EXPECTED:
            return
        reply = self._call(str(fields[_MEMBER]), body)
        if reply is None:
            self._send(writer, _ERROR, {_REPLY_SERIAL: serial, _ERROR_NAME: "org.freedesktop.DBus.Error.Failed"})
        else:
            self._send(writer, _RETURN, {_REPLY_SERIAL: serial, _SENDER: SERVICE}, *reply)

    def _call(self, member: str, body: _Reader) -> tuple[str, tuple[object, ...]] | None:
        """Return the type and the values of a reply; None refuses the call."""
        if member == "Notify":
            return "u", (self._show(body).id,)
        if member == "CloseNotification":
            self.closed_ids.add(body.read_number())
            return "", ()
        if member in {"NameHasOwner", "GetNameOwner"} and body.read_text() != SERVICE:
            return ("b", (0,)) if member == "NameHasOwner" else None
        return _REPLIES.get(member)

    def _show(self, body: _Reader) -> ShownNotification:
        body.read_text()  # the program
        replaced_id = body.read_number()
        body.read_text()  # the icon
        notification = ShownNotification(replaced_id or len(self.shown) + 1, body.read_text(), body.read_text())
        self.shown.append(notification)
        return notification

    def _send(
        self,
        writer: asyncio.StreamWriter,
        kind: int,
        fields: dict[int, str | int],
        signature: str = "",
        values: tuple[object, ...] = (),
    ) -> None:
        self._serial += 1
        writer.write(_encode(kind, self._serial, fields, signature, values))

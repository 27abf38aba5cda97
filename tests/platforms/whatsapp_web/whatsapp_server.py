"""A WhatsApp that runs in the test: people, chats, a phone to link, and faults. No pytest in it.

Its only client is the library of `stand_in.py`. It keeps an event until the client says that it is stored, as WhatsApp
keeps messages for a device that is offline.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

PHONE, LID = "491700000001", "700000000000001"
OWN = [f"{PHONE}@s.whatsapp.net", f"{LID}@lid"]
IDENTITY = {"phone": PHONE, "lid": LID, "device": 7, "name": "Palaver"}
ADA, ADA_LID = "491711111111@s.whatsapp.net", "711111111111111@lid"
BEN, BEN_LID = "491722222222@s.whatsapp.net", "722222222222222@lid"
GROUP = "120363000000000001@g.us"
NAMES = {ADA: "Ada", BEN: "Ben", OWN[0]: "Owner"}
LIDS = {ADA: ADA_LID, BEN: BEN_LID, OWN[0]: OWN[1]}
STAND_IN = Path(__file__).with_name("stand_in.py")


def make_media(reference: str, **fields: Any) -> dict[str, Any]:
    """Return what the child's translation says about a file."""
    usual = {"type": "document", "media_type": "text/plain", "size": 10, "name": "notes.txt"}
    return {**usual, "is_voice": False, "seconds": None, "reference": reference, **fields}


@dataclass(frozen=True)
class SendFault:
    """What happens to the next request."""

    error: str | None = None  # a kind of error, see `ErrorKind`
    text: str = "WhatsApp: something is wrong"
    arrives: bool = False  # it was taken all the same
    is_cut: bool = False  # the connection breaks before the answer
    is_silent: bool = False  # no answer comes
    panics: bool = False  # the client crashes before the answer


@dataclass
class SentMessage:
    """A message of our account."""

    id: str
    chat: str
    text: str
    file_name: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)


class WhatsAppServer:
    """Use it as a context manager."""

    def __init__(self) -> None:
        self.messages: list[SentMessage] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.hellos: list[dict[str, Any]] = []  # what each connection has said about itself
        self.events: deque[tuple[int, dict[str, Any]]] = deque()  # not stored by the client yet
        self.files: dict[str, bytes] = {}
        self.faults: deque[SendFault | None] = deque()  # of the next messages
        self.refusal: dict[str, Any] | None = None  # a state that every connection gets instead of being connected
        self.is_linked = True
        self.crashes_on_download = False  # once
        self.crashing_files: set[str] = set()  # that crash the client whenever it downloads them
        self.answers_groups = True
        self.group_name = "Engines"
        self.count = 0
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def child_command(self) -> list[str]:
        return [sys.executable, "-P", str(STAND_IN), str(self.port)]

    @property
    def is_connected(self) -> bool:
        return self._writer is not None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=64 * 1024 * 1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self.cut()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._server = None

    def cut(self) -> None:
        """Break the connection."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    # ---- the connection --------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while line := await reader.readline():
                await self._handle(json.loads(line), writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            if self._writer is writer:
                self._writer = None
            writer.close()

    async def _handle(self, fields: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if "hello" in fields:
            self.hellos.append(fields["hello"])
            self._writer = writer
            self._greet(fields["hello"])
        elif "stored" in fields:
            self.events = deque(each for each in self.events if each[0] != fields["stored"])
        else:
            self._answer(fields["request"], fields["do"], fields["fields"])

    def _greet(self, hello: dict[str, Any]) -> None:
        if self.refusal is not None:
            self.tell(**self.refusal)
        elif self.is_linked:
            self.connect()
        elif hello["phone_number"]:
            self.tell(state="pairing_code", code="ABCD-EFGH", seconds=160)
        else:
            self.tell(state="qr_code", code="2@first,key", seconds=60)

    def connect(self) -> None:
        """Let our account in, as after a scanned code."""
        self.is_linked = True
        self.tell(state="connected", identity=IDENTITY)
        for number, event in self.events:
            self.tell(number=number, event=event)

    def tell(self, **fields: Any) -> None:
        """Send a line to the client."""
        if self._writer is not None:
            self._writer.write(json.dumps(fields).encode() + b"\n")

    def _answer(self, number: int, name: str, fields: dict[str, Any]) -> None:
        self.requests.append((name, fields))
        fault = None
        if name in {"send_text", "send_file"}:
            fault = self.faults.popleft() if self.faults else None
            if fault is None or fault.arrives:
                self._take(fields)
        elif name == "delete":
            self.messages = [message for message in self.messages if message.id != fields["target"]]
        elif name == "download" and self._should_crash(fields["reference"]):
            fault = SendFault(panics=True)
        elif name == "group" and not self.answers_groups:
            fault = SendFault(error="not_sent")
        if fault is None:
            self.tell(answer=number, result=self._make_result(name, fields))
        elif fault.error:
            self.tell(answer=number, error=fault.error, text=fault.text)
        elif fault.is_cut:
            self.cut()
        elif fault.panics:
            self.tell(misbehave="panic")

    def _should_crash(self, reference: str) -> bool:
        crashes_once, self.crashes_on_download = self.crashes_on_download, False
        return crashes_once or reference in self.crashing_files

    def _take(self, fields: dict[str, Any]) -> None:
        self.count += 1
        name = fields.get("name")
        self.messages.append(SentMessage(f"3EB0{self.count:08X}", fields["chat"], fields.get("text", ""), name, fields))

    def _make_result(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        match name:
            case "send_text" | "send_file":
                return {"id": self.messages[-1].id}
            case "download":
                return {"content": self.files[fields["reference"]].hex()}
            case "group":
                return {"name": self.group_name}
            case _:
                return {}

    # ---- people ----------------------------------------------------------------------------------------------

    def make_event(self, kind: str, *, sender: str = ADA, chat: str | None = None, **fields: Any) -> dict[str, Any]:
        """Return an event as the child's translation makes it."""
        self.count += 1
        chat = chat or sender
        is_group = chat.endswith("@g.us")
        usual: dict[str, Any] = {
            "kind": kind,
            "id": f"3A{self.count:08X}",
            "chat": chat,
            "chat_alt": None if is_group else LIDS.get(chat),
            "sender": sender,
            "sender_alt": LIDS.get(sender),
            "is_group": is_group,
            "is_self": chat in OWN,
            "own": OWN,
            "name": NAMES.get(sender, ""),
            "at": 1_790_000_000.0 + self.count,
        }
        if kind == "message":
            usual |= {"text": "", "media": None, "mentions": [], "quoted": None, "is_forwarded": False, "album": None}
        return usual | fields

    def push(self, event: dict[str, Any]) -> dict[str, Any]:
        """Deliver an event, now or when the device is online again."""
        self.count += 1
        self.events.append((self.count, event))
        if self.is_linked and self.refusal is None:
            self.tell(number=self.count, event=event)
        return event

    def say(self, text: str, *, sender: str = ADA, chat: str | None = None, **fields: Any) -> str:
        """Write a message as a person; return its id."""
        return str(self.push(self.make_event("message", sender=sender, chat=chat, text=text, **fields))["id"])

    def list_texts(self, chat: str) -> list[str]:
        """Return the texts of our account in a chat."""
        return [message.text for message in self.messages if message.chat == chat]

"""A local stand-in for signal-cli and Signal: a program with signal-cli's command line, and the server behind it.

The program is a small script that the adapter starts as `program`. It passes its arguments and what it reads to the
server in the test process, and prints what the server says. So one object knows everything: people who write, what was
sent to them, and which faults happen.

Requests are checked against what signal-cli documents, and events against the fields that it prints. What does not
match is kept in `problems`, and refused.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .signal_checks import check_record, find_problem

OWN_ACI: Final = "0b5ce4f1-1a5c-4b2e-9a2f-000000000001"
OWN_NUMBER: Final = "+491700000001"
OWN_DEVICE: Final = 2
ADA: Final = "0b5ce4f1-1a5c-4b2e-9a2f-00000000000a"
BEN: Final = "0b5ce4f1-1a5c-4b2e-9a2f-00000000000b"
NAMES: Final = {ADA: "Ada", BEN: "Ben", OWN_ACI: "Owner"}
GROUP: Final = "Pmpi+EfPWmsxiomLe9Nx2XF9HOE483p6iKiFj65iMwI="
CODE: Final = "sgnl://linkdevice?uuid=kTOuvGfPV-2MlY5Ktest{number}&pub_key=BQ8dPVnY1zS"

_PROGRAM = """#!{python} -IS
import os, select, socket, sys
try:
    server = socket.socket(socket.AF_UNIX)
    server.connect({path!r})
except OSError:
    sys.exit(3)
server.sendall(repr(sys.argv[1:]).encode() + b"\\n")
buffer, client, inputs = b"", None, [server]
while True:
    readable, _, _ = select.select(inputs, [], [])
    if client in readable:
        data = client.recv(65536)
        if not data:
            inputs.remove(client)
            server.sendall(b"-\\n")
        else:
            server.sendall(data)
    elif server not in readable:
        client, _ = listener.accept()
        inputs.append(client)
        server.sendall(b"+\\n")
    else:
        data = server.recv(65536)
        if not data:
            os._exit(137)
        buffer += data
        while b"\\n" in buffer:
            order, _, buffer = buffer.partition(b"\\n")
            kind, text = order[:1], order[1:]
            if kind == b"x":
                os._exit(int(text))
            elif kind == b"l":
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(sys.argv[sys.argv.index("--socket") + 1])
                listener.listen()
                inputs.append(listener)
            elif kind == b"c":
                if client in inputs:
                    inputs.remove(client)
                client.close()
            elif kind == b"a":
                client.sendall(text + b"\\n")
            else:
                os.write(2 if kind == b"e" else 1, text + (b"" if kind == b"t" else b"\\n"))
                server.sendall(b"!\\n")
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next request of a method."""

    code: int = 0
    message: str = ""
    results: tuple[dict[str, Any], ...] = ()
    is_taken: bool = False  # the message arrives nevertheless
    is_crash: bool = False  # signal-cli ends without an answer
    is_silent: bool = False  # no answer ever


def build_result(kind: str, **fields: Any) -> dict[str, Any]:
    return {"recipientAddress": {"uuid": ADA, "number": None, "username": None}, "type": kind, **fields}


RATE_LIMITED = Fault(
    -5, "Failed to send message due to rate limiting", (build_result("RATE_LIMIT_FAILURE", retryAfterSeconds=3),)
)
CAPTCHA = Fault(
    -5,
    "Failed to send message due to rate limiting",
    (build_result("RATE_LIMIT_FAILURE", token="challenge-1", retryAfterSeconds=86400),),
)
UNTRUSTED = Fault(-4, "Failed to send message due to untrusted identities", (build_result("IDENTITY_FAILURE"),))
UNREGISTERED = Fault(-1, "Failed to send message", (build_result("UNREGISTERED_FAILURE"),))
NO_GROUP = Fault(-1, f"Group not found: {GROUP}")
NETWORK_FAILURE = Fault(-1, "Failed to send message", (build_result("NETWORK_FAILURE"),))
INTERNAL_ERROR = Fault(-32603, "Failed to send message: null (IOException)")
UNAUTHORIZED = Fault(-3, "Failed to get linked devices: [403] Authorization failed!")
LOSE_ANSWER = Fault(is_taken=True, is_crash=True)
CRASH = Fault(is_crash=True)
HANG = Fault(is_silent=True)


@dataclass(slots=True)
class SentMessage:
    """A message of ours, as people see it."""

    chat_id: str
    timestamp: int
    text: str
    parameters: dict[str, Any]
    files: dict[str, bytes]
    latest: int = 0  # the time of the last edit

    @property
    def id(self) -> str:
        return f"{OWN_ACI}:{self.timestamp}"


@dataclass(eq=False, slots=True)
class _Program:
    """A running program."""

    arguments: list[str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    unprinted: list[str] = field(default_factory=list)  # events that it was told to print, not confirmed yet
    is_connected: bool = False  # it receives only then

    def order(self, kind: str, text: str = "") -> None:
        with contextlib.suppress(ConnectionError):
            self.writer.write(f"{kind}{text}\n".encode())


class SignalServer:
    """Signal with one account of ours; use it as a context manager, or call `start` and `stop`."""

    def __init__(self, *, is_linked: bool = True, version: str = "0.14.6") -> None:
        self.version = version
        self.folder = Path(tempfile.mkdtemp(prefix="signal-"))
        self.program = self.folder / "signal-cli"
        self.config_folder = self.folder / "config"
        self.messages: list[SentMessage] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.starts: list[list[str]] = []  # the arguments of every start
        self.problems: list[str] = []
        self.start_error: tuple[str, int] | None = None  # what the program says instead of working, and its exit code
        self.is_revoked = False
        self.is_locked = False  # another program uses the account
        self.devices = [
            {"id": 1, "name": None, "createdTimestamp": 1_700_000_000_000, "lastSeenTimestamp": 1_790_000_000_000},
            {"id": 2, "name": "Palaver", "createdTimestamp": 1_789_000_000_000, "lastSeenTimestamp": 1_790_000_000_000},
        ]
        self.pending: list[str] = []  # events that no program has printed yet
        self.code_count = 0  # codes for linking that were shown
        self._is_linked = is_linked
        self._faults: dict[str, list[Fault | None]] = {}
        self._clock = 1_790_000_000_000
        self._programs: list[_Program] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()

    async def start(self) -> None:
        path = str(self.folder / "s")
        self._server = await asyncio.start_unix_server(self._serve, path, limit=4 * 1024 * 1024)
        self.program.write_text(_PROGRAM.format(python=sys.executable, path=path))
        self.program.chmod(0o755)
        if self._is_linked:
            self.store_account()

    async def stop(self) -> None:
        await self.go_down()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def __aenter__(self) -> SignalServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def go_down(self) -> None:
        """End every program, and let no other one start; return when they are gone."""
        if self._server is not None:
            self._server.close()
            (self.folder / "s").unlink(missing_ok=True)
        await self.end_programs()

    @property
    def has_programs(self) -> bool:
        return bool(self._programs)

    async def end_programs(self, code: int = 137) -> None:
        """End the programs that run, as a crash does."""
        for program in self._programs:
            program.order("x", str(code))
        await self.wait_until(lambda: not self._programs)

    async def wait_until(self, condition: Any, seconds: float = 20.0) -> None:
        """Wait until a condition on this server is true."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    # ---- people ----------------------------------------------------------------------------------------------

    def tick(self) -> int:
        self._clock += 1000
        return self._clock

    def push_text(self, text: str | None, person: str = ADA, *, group: str | None = None, **fields: Any) -> str:
        """Let a person write; return the id of the message."""
        data = self.make_data(text, group=group, **fields)
        self.push(self.make_envelope(person, data["timestamp"], dataMessage=data))
        return f"{person}:{data['timestamp']}"

    def push_sync(self, text: str | None, destination: str | None = OWN_ACI, **fields: Any) -> str:
        """Let the owner write on their phone; return the id of the message."""
        data = self.make_data(text, **fields)
        sent = {"destination": destination, "destinationNumber": None, "destinationUuid": destination, **data}
        envelope = self.make_envelope(OWN_ACI, data["timestamp"], sourceDevice=1, syncMessage={"sentMessage": sent})
        self.push(envelope)
        return f"{OWN_ACI}:{data['timestamp']}"

    def push(self, envelope: dict[str, Any], **fields: Any) -> str:
        """Let an event arrive; return the line that signal-cli prints."""
        check_record("envelope", envelope, self.problems)
        line = json.dumps({"envelope": envelope, "account": OWN_NUMBER, **fields}, ensure_ascii=False)
        self.push_line(line)
        return line

    def push_line(self, line: str) -> None:
        """Let signal-cli print a line as soon as it runs."""
        self.pending.append(line)
        self._print_pending()

    def make_data(self, text: str | None, *, group: str | None = None, **fields: Any) -> dict[str, Any]:
        data = {"timestamp": self.tick(), "message": text, "expiresInSeconds": 0, "viewOnce": False, **fields}
        if group is not None:
            data["groupInfo"] = {"groupId": group, "groupName": "Engines", "revision": 3, "type": "DELIVER"}
        return data

    @staticmethod
    def make_envelope(person: str, timestamp: int, **content: Any) -> dict[str, Any]:
        return {
            "source": person,
            "sourceNumber": None,
            "sourceUuid": person,
            "sourceName": NAMES.get(person, ""),
            "sourceDevice": 1,
            "timestamp": timestamp,
            "serverReceivedTimestamp": timestamp + 10,
            "serverDeliveredTimestamp": timestamp + 20,
            **content,
        }

    def add_file(self, name: str, data: bytes, media_type: str = "text/plain") -> dict[str, Any]:
        """Store a file as signal-cli does when it receives one; return how it describes it."""
        folder = self.config_folder / "attachments"
        folder.mkdir(parents=True, exist_ok=True)
        file_id = f"f{self.tick()}"
        (folder / file_id).write_bytes(data)
        fields = dict.fromkeys(("width", "height", "caption"))
        return {
            "contentType": media_type,
            "filename": name or None,
            "id": file_id,
            "size": len(data),
            **fields,
            "uploadTimestamp": 0,
        }

    def list_texts(self, chat_id: str = ADA) -> list[str]:
        return [message.text for message in self.messages if message.chat_id == chat_id]

    def list_requests(self, method: str) -> list[dict[str, Any]]:
        return [parameters for name, parameters in self.requests if name == method]

    # ---- the account -----------------------------------------------------------------------------------------

    def store_account(self, *, is_registered: bool = True, device_id: int = OWN_DEVICE) -> None:
        """Write the files in which signal-cli keeps an account."""
        folder = self.config_folder / "data"
        folder.mkdir(parents=True, exist_ok=True)
        account = {"path": "123456", "environment": "LIVE", "number": OWN_NUMBER, "uuid": OWN_ACI}
        (folder / "accounts.json").write_text(json.dumps({"accounts": [account], "version": 2}))
        (folder / "123456").write_text(json.dumps({"version": 10, "registered": is_registered, "deviceId": device_id}))

    def scan_code(self) -> None:
        """Link the device with a phone."""
        self.store_account()
        self.is_revoked = False
        for program in self._programs:
            if "link" in program.arguments:
                program.order("o", f"Associated with: {OWN_NUMBER}")
                program.order("x", "0")

    def expire_code(self, error: str = "Link request error: Connection closed!", exit_code: int = 3) -> None:
        """Let Signal close the connection that a code belongs to, or signal-cli fail otherwise."""
        for program in self._programs:
            if "link" in program.arguments:
                for line in error.splitlines():
                    program.order("e", line)
                program.order("x", str(exit_code))

    def fail(self, method: str, *faults: Fault | None) -> None:
        """Let the next requests of a method fail; None: that one works."""
        self._faults.setdefault(method, []).extend(faults)

    def has_pending_fault(self, method: str) -> bool:
        """Whether a fault still waits for the next request of a method."""
        return bool(self._faults.get(method))

    # ---- programs --------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arguments = ast.literal_eval((await reader.readline()).decode())
        program = _Program(arguments, reader, writer)
        self._programs.append(program)
        self.starts.append(arguments)
        self._changed.set()
        try:
            await self._run_program(program)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._programs.remove(program)
            self.pending = [line for line in program.unprinted if line] + self.pending
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._print_pending()
            self._changed.set()

    async def _run_program(self, program: _Program) -> None:
        if self.start_error is not None:
            program.order("e", self.start_error[0])
            program.order("x", str(self.start_error[1]))
        elif program.arguments == ["--version"]:
            program.order("o", f"signal-cli {self.version}")
            program.order("x", "0")
        elif "link" in program.arguments:
            self.code_count += 1
            program.order("o", CODE.format(number=self.code_count))
        elif "daemon" not in program.arguments or program.arguments[1] != str(self.config_folder):
            self.problems.append(f"unknown command: {program.arguments}")
            program.order("x", "1")
        elif self.is_locked:
            program.order("e", "INFO  SignalAccount - Config file is in use by another instance, waiting…")
        elif self.is_revoked:
            program.order("e", f"User {OWN_NUMBER} is not registered.")
            program.order("x", "1")
        else:
            program.order("l")
        await self._listen(program)

    async def _listen(self, program: _Program) -> None:
        while line := await program.reader.readline():
            if line == b"!\n":
                if program.unprinted:
                    program.unprinted.pop(0)
            elif line == b"+\n":
                program.is_connected = True
                self._print_pending()
            elif line.endswith(b"-\n"):  # what stands before it is a request that was torn off
                program.is_connected = False
                program.order("c")
            else:
                self._answer(program, json.loads(line))
            self._changed.set()

    def _print_pending(self) -> None:
        for program in self._programs:
            if program.is_connected and not self.is_revoked:
                while self.pending:
                    line = self.pending.pop(0)
                    program.unprinted.append(line)
                    program.order("o", line)

    def push_answer(self, answer: dict[str, Any]) -> None:
        """Let signal-cli send an answer that no caller waits for."""
        for program in self._programs:
            program.order("a", json.dumps(answer))

    def disconnect(self) -> None:
        """Let signal-cli close its connection, as it does a moment before it ends."""
        for program in self._programs:
            program.order("c")

    def tear_line(self, text: str) -> None:
        """Let signal-cli print the beginning of a line."""
        for program in self._programs:
            program.unprinted.append("")
            program.order("t", text)

    # ---- requests --------------------------------------------------------------------------------------------

    def _answer(self, program: _Program, request: dict[str, Any]) -> None:
        method, parameters = request["method"], request["params"]
        self.requests.append((method, parameters))
        fault = self._faults[method].pop(0) if self._faults.get(method) else None
        problem = find_problem(request)
        if problem is not None:
            self.problems.append(problem)
            fault = Fault(-32602, problem)
        result = self._handle(method, parameters) if fault is None or fault.is_taken else None
        if fault is not None and fault.is_crash:
            program.order("x", "137")
            return
        if fault is not None and fault.is_silent:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if fault is not None:
            data = {"response": {"timestamp": 0, "results": list(fault.results)}} if fault.results else None
            answer["error"] = {"code": fault.code, "message": fault.message, "data": data}
        else:
            answer["result"] = result
        program.order("a", json.dumps(answer))

    def _handle(self, method: str, parameters: dict[str, Any]) -> Any:
        if method == "version":
            return {"version": self.version}
        if method == "listDevices":
            return self.devices
        if method == "send":
            timestamp = self._store_message(parameters)
        elif method == "remoteDelete":
            timestamp = self.tick()
            self.messages = [each for each in self.messages if each.timestamp != parameters["targetTimestamp"]]
        else:
            timestamp = self.tick()
        return {"timestamp": timestamp, "results": [build_result("SUCCESS")]}

    def _store_message(self, parameters: dict[str, Any]) -> int:
        timestamp, text = self.tick(), parameters.get("message", "")
        if target := parameters.get("editTimestamp"):
            [message] = [each for each in self.messages if target in {each.timestamp, each.latest}]
            if message.latest not in {0, target}:
                self.problems.append("an edit does not name the last one")
            message.text, message.latest, message.parameters = text, timestamp, parameters
            return timestamp
        chat_id = _read_chat(parameters)
        files = {Path(path).name: Path(path).read_bytes() for path in parameters.get("attachments", ())}
        self.messages.append(SentMessage(chat_id, timestamp, text, parameters, files))
        return timestamp


def _read_chat(parameters: dict[str, Any]) -> str:
    chat = parameters.get("groupId") or next(iter(parameters.get("recipient", ())), OWN_ACI)
    return OWN_ACI if chat == OWN_NUMBER else str(chat)

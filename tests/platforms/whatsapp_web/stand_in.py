"""A child whose library is a stand-in: the real lines, spool and threads, and a WhatsApp that a test runs.

    python stand_in.py <port> <device>

The stand-in connects to `whatsapp_server.WhatsAppServer` on the port, and does what it says: it delivers what people
write, and crashes, hangs or prints garbage when it is told to.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.platforms.whatsapp_web.child import serve
from palaver.platforms.whatsapp_web.protocol import FILES_FOLDER, SESSION_FILE, ErrorKind, RequestError, State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEARTBEAT_SECONDS = 0.2


class StandInLibrary:
    """What neonize is in the real child."""

    version = "stand-in 1"

    def __init__(self, port: int, output: int) -> None:
        self._port = port
        self._output = output
        self._socket: socket.socket | None = None
        self._answers: dict[int, dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._last = 0
        self._is_connected = False
        self._is_cut = False

    def connect(
        self,
        options: Mapping[str, Any],
        *,
        report: Callable[[State, dict[str, Any]], None],
        receive: Callable[[dict[str, Any]], None],
    ) -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        except OSError as error:
            raise RequestError(ErrorKind.NOT_SENT, "WhatsApp can't be reached.") from error
        self._socket.settimeout(None)
        has_session = Path(SESSION_FILE).exists()
        self._write({"hello": {**options, "has_session": has_session}})
        for line in self._socket.makefile("rb"):
            fields = json.loads(line)
            if "event" in fields:
                receive(fields["event"])
                self._write({"stored": fields["number"]})
            elif "answer" in fields:
                with self._changed:
                    self._answers[fields["answer"]] = fields
                    self._changed.notify_all()
            elif "state" in fields:
                if fields["state"] == State.CONNECTED:
                    Path(SESSION_FILE).touch()
                    self._is_connected = True
                report(State(fields["state"]), {name: value for name, value in fields.items() if name != "state"})
            else:
                self._misbehave(fields["misbehave"])
        self._is_connected = False
        with self._changed:
            self._is_cut = True
            self._changed.notify_all()

    def _misbehave(self, how: str) -> None:
        match how:
            case "panic":
                os.write(2, b"panic: runtime error: invalid memory address\n\nsecret text of a message\n")
                os._exit(2)
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            case "garbage":
                os.write(self._output, b"panic: this is no line of ours\n")
            case "deaf":
                self._is_connected = False

    def is_alive(self) -> bool:
        return self._is_connected

    def perform(self, name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        if not self._is_connected:
            raise RequestError(ErrorKind.NOT_SENT, "WhatsApp is not connected.")
        request = dict(fields)
        if name == "send_file":
            request["content"] = (Path(FILES_FOLDER) / fields["file"]).read_bytes().hex()
        with self._changed:
            self._last = number = self._last + 1
        self._write({"request": number, "do": name, "fields": request})
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers or self._is_cut)
            answer = self._answers.pop(number, None)
        if answer is None:
            raise RequestError(ErrorKind.UNCERTAIN, "WhatsApp: websocket disconnected before message send")
        if "error" in answer:
            raise RequestError(ErrorKind(answer["error"]), answer["text"])
        if name == "download":
            content = bytes.fromhex(answer["result"].pop("content"))
            (Path(FILES_FOLDER) / fields["file"]).write_bytes(content)
        return dict(answer["result"])

    def stop(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _write(self, fields: dict[str, Any]) -> None:
        assert self._socket is not None
        self._socket.sendall(json.dumps(fields).encode() + b"\n")


if __name__ == "__main__":
    real_output = os.dup(1)
    serve(lambda: StandInLibrary(int(sys.argv[1]), real_output), heartbeat_seconds=HEARTBEAT_SECONDS)
    os._exit(0)

"""The child itself, in this process: what it does when Palaver is slow, and when the disk or the library fail."""

from __future__ import annotations

import json
import os
import queue
import threading
from typing import TYPE_CHECKING, Any

import pytest

from palaver.platforms.whatsapp_web.child import Child
from palaver.platforms.whatsapp_web.protocol import MAX_LINE_BYTES, MAX_WAITING_REQUESTS, ErrorKind, RequestError, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


class QuietLibrary:
    """A library that does what the test says."""

    version = "quiet"

    def __init__(self) -> None:
        self.is_stopped = threading.Event()
        self.is_connected = threading.Event()
        self.report: Callable[[State, dict[str, Any]], None] = lambda _state, _fields: None
        self.receive: Callable[[dict[str, Any]], None] = lambda _event: None
        self.error: Exception | None = None
        self.downloads = threading.Semaphore(0)  # each waits for one

    def connect(self, _options: Mapping[str, Any], *, report: Any, receive: Any) -> None:
        self.report, self.receive = report, receive
        self.is_connected.set()
        self.is_stopped.wait()
        if self.error is not None:
            raise self.error

    def is_alive(self) -> bool:
        return False

    def perform(self, name: str, _fields: Mapping[str, Any]) -> dict[str, Any]:
        if name == "download":
            self.downloads.acquire()
        if self.error is not None:
            raise self.error
        return {"id": "3EB0"}

    def stop(self) -> None:
        self.is_stopped.set()


class Palaver:
    """The other side of the lines."""

    def __init__(self, folder: Path, max_events: int) -> None:
        self.library = QuietLibrary()
        self.folder = folder
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._unread: list[dict[str, Any]] = []
        reading, writing = os.pipe()
        self._output = os.fdopen(reading, "rb")
        self._writing = writing
        child = Child(self.library, writing, max_events=max_events)
        self._thread = threading.Thread(target=child.run, args=[lambda _limit: self._lines.get()])
        self._thread.start()
        assert self.read()["state"] == "ready"

    def write(self, **fields: Any) -> None:
        self._lines.put(json.dumps(fields).encode() + b"\n")

    def read(self) -> dict[str, Any]:
        return self._unread.pop(0) if self._unread else self._read_line()

    def _read_line(self) -> dict[str, Any]:
        fields = json.loads(self._output.readline())
        assert isinstance(fields, dict)
        return fields

    def connect(self) -> None:
        self.write(id=1, do="connect", folder=str(self.folder))
        while "re" not in (fields := self._read_line()):  # an event may come before the reply
            self._unread.append(fields)
        assert fields == {"re": 1, "ok": {}}

    def close(self) -> None:
        if self._output.closed:
            return
        self._lines.put(b"")
        self._output.close()  # ends a writer that waits for room
        self._thread.join()
        os.close(self._writing)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Palaver]]:
    monkeypatch.chdir(tmp_path)  # the child changes it
    started: list[Palaver] = []

    def make(max_events: int = 100) -> Palaver:
        started.append(Palaver(tmp_path / "account", max_events))
        return started[-1]

    yield make
    for each in started:
        each.close()


def test_events_wait_for_the_connection_and_for_room(start: Callable[..., Palaver]) -> None:
    palaver = start()
    palaver.connect()
    assert palaver.library.is_connected.wait(60)
    for number in range(70):
        palaver.library.receive({"n": number})  # does not wait for Palaver
    palaver.library.report(State.CONNECTED, {})
    assert palaver.read()["state"] == "connected"
    received = [palaver.read() for _ in range(64)]
    assert [fields["event"]["n"] for fields in received] == list(range(64))
    palaver.write(id=2, do="group")
    assert palaver.read()["re"] == 2  # no more events until one is acknowledged
    palaver.write(ack=received[0]["seq"])
    assert palaver.read()["event"] == {"n": 64}
    kept = {int(path.stem) for path in (palaver.folder / "received").iterdir()}
    assert received[0]["seq"] not in kept
    assert len(kept) == 69


def test_when_too_much_waits_the_connection_ends_and_nothing_is_lost(start: Callable[..., Palaver]) -> None:
    palaver = start(max_events=3)
    palaver.connect()
    assert palaver.library.is_connected.wait(60)
    for number in range(4):
        palaver.library.receive({"n": number})
    assert palaver.library.is_stopped.is_set()
    assert palaver.read() == {"state": "ended", "reason": "Too many messages wait to be stored."}
    assert len(list((palaver.folder / "received").iterdir())) == 4


def test_what_waits_is_handed_over_first_when_it_is_too_much(start: Callable[..., Palaver]) -> None:
    first = start()
    first.connect()
    assert first.library.is_connected.wait(60)
    for number in range(3):
        first.library.receive({"n": number})
    first.close()
    second = start(max_events=3)
    second.connect()
    event = second.read()
    assert event["event"] == {"n": 0}
    assert not second.library.is_connected.is_set()
    second.write(ack=event["seq"])
    assert second.library.is_connected.wait(60)


def test_a_disk_that_is_full_ends_the_connection(
    start: Callable[..., Palaver], monkeypatch: pytest.MonkeyPatch
) -> None:
    palaver = start()
    palaver.connect()
    assert palaver.library.is_connected.wait(60)

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        palaver.library.receive({"n": 1})
    assert palaver.read()["reason"] == "What was received can't be written to the disk: No space left on device."
    assert palaver.library.is_stopped.is_set()
    palaver.library.is_stopped.clear()
    palaver.write(id=2, do="send_text", key="d_1.1")
    while (fields := palaver.read()).get("re") != 2:
        pass
    assert fields["ok"] == {"id": "3EB0"}  # it was sent, although the proof can't be kept


def test_downloads_that_hang_do_not_block_sending(start: Callable[..., Palaver]) -> None:
    palaver = start()
    palaver.connect()
    assert palaver.library.is_connected.wait(60)
    for number in range(100, 140):
        palaver.write(id=number, do="download")
    refused = [palaver.read() for _ in range(40 - MAX_WAITING_REQUESTS)]
    assert {fields["error"]["kind"] for fields in refused} == {"not_sent"}
    palaver.write(id=2, do="send_text", key="d_1.1")
    while (fields := palaver.read()).get("re") != 2:
        pass
    assert fields["ok"] == {"id": "3EB0"}
    palaver.library.downloads.release(MAX_WAITING_REQUESTS)


def test_an_event_that_is_too_long_for_a_line_is_left_out_and_stops_nothing(start: Callable[..., Palaver]) -> None:
    palaver = start()
    palaver.connect()
    assert palaver.library.is_connected.wait(60)
    palaver.library.receive({"n": "x" * MAX_LINE_BYTES})
    assert palaver.read() == {"state": "unreadable", "reason": "too long"}
    palaver.library.report(State.CONNECTED, {})
    palaver.library.receive({"n": 1})
    assert palaver.read()["state"] == "connected"
    assert palaver.read()["event"] == {"n": 1}


def test_an_event_that_cannot_be_read_from_the_disk_ends_the_connection_and_stays(
    start: Callable[..., Palaver], monkeypatch: pytest.MonkeyPatch
) -> None:
    palaver = start()
    palaver.connect()
    assert palaver.library.is_connected.wait(60)

    def fail(_path: Path) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(type(palaver.folder), "read_bytes", fail)
        palaver.library.receive({"n": 1})
        palaver.library.receive({"n": 2})
        palaver.library.report(State.CONNECTED, {})
        assert palaver.read()["state"] == "connected"
        assert palaver.read()["reason"] == "What was received can't be read from the disk: Too many open files."
    palaver.write(id=2, do="group")
    while (fields := palaver.read()).get("re") != 2:
        assert "event" not in fields  # the second must not overtake the first
    assert len(list((palaver.folder / "received").iterdir())) == 2


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (RequestError(ErrorKind.REFUSED, "No."), "refused", "No."),
        (RuntimeError("secret text"), "uncertain", "Unexpected error in the WhatsApp library (RuntimeError)."),
    ],
)
def test_an_error_is_passed_on_without_what_it_may_hold(
    start: Callable[..., Palaver], error: Exception, kind: str, text: str
) -> None:
    palaver = start()
    palaver.connect()
    assert palaver.library.is_connected.wait(60)
    palaver.library.error = error
    palaver.write(id=2, do="send_text", key="d_1.1")
    assert palaver.read() == {"re": 2, "error": {"kind": kind, "text": text}}
    palaver.library.stop()
    assert palaver.read() == {"state": "ended", "reason": text}

"""What strangers can do to a server: the memory that one large request costs, and service during half requests.

Run it with `python -m benchmarks.strangers`. It starts `palaver serve` on a new SQLite file, with 256 open files (the
default of macOS), and prints one line for each measurement.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OPEN_FILES = 256
HALF_REQUESTS = 260
WATCH_SECONDS = 20
BODY_BYTES = 32_000_000


class Server:
    """A running `palaver serve`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, link: str, log: Path) -> None:
        self.pid = process.pid
        self.port = port
        self.link = link
        self.log = log

    def read_memory_mb(self, field: str = "VmRSS") -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(rf"{field}:\s+(\d+)", status)[0]) / 1000

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        """Send a request and return the status and the first cookie."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        origin = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json"}
        with contextlib.closing(connection), contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body, origin | headers)
            response = connection.getresponse()
            return response.status, (response.headers.get_all("set-cookie") or [""])[0].partition(";")[0]
        return 0, ""


@contextlib.contextmanager
def run_server() -> Iterator[Server]:
    command = f"ulimit -n {OPEN_FILES}; exec {sys.executable} -m palaver serve --port 0 --no-open"
    with tempfile.TemporaryDirectory() as home:
        log = Path(home) / "log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                ["sh", "-c", command],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**os.environ, "PALAVER_HOME": home},
            )
        assert process.stdout is not None
        text = ""
        while "sign-in#" not in text:
            line = process.stdout.readline().decode()
            if not line:
                raise RuntimeError(log.read_text())
            text += line
        port = int(re.findall(r":(\d+)", text)[0])
        try:
            yield Server(process, port, text.partition("sign-in#")[2].split()[0], log)
        finally:
            process.terminate()
            process.wait(30)


def measure_large_requests(server: Server) -> None:
    """Print the memory at its peak after one large body of a stranger, and of a signed-in person."""
    lists = b'{"title": [' + b"[]," * (BODY_BYTES // 3) + b"[]]}"
    before = server.read_memory_mb()
    status, _ = server.request("POST", "/api/sessions", lists, Cookie="a=b")
    print(f"stranger, 32 MB of JSON: status {status}, memory {before:.0f} -> {server.read_memory_mb('VmHWM'):.0f} MB")
    _, cookie = server.request("POST", "/api/sign-in/link", f'{{"token": "{server.link}"}}'.encode())
    status, _ = server.request("POST", "/api/sessions", lists, Cookie=cookie)
    print(f"signed in, 32 MB of JSON: status {status}, memory at most {server.read_memory_mb('VmHWM'):.0f} MB")
    text = "\U0001f600" + "x" * 15_000_000  # one such character makes Python store four bytes for each
    body = f'{{"model": "palaver", "messages": [{{"role": "user", "content": "{text}"}}]}}'.encode()
    status, _ = server.request("POST", "/v1/chat/completions", body, Cookie=cookie)
    print(f"signed in, 15 MB of text to /v1: status {status}, memory at most {server.read_memory_mb('VmHWM'):.0f} MB")


def measure_half_requests(server: Server) -> None:
    """Print how a server answers health checks while many requests stay unfinished."""
    sockets = []
    for _ in range(HALF_REQUESTS):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=5)
        connection.sendall(b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nCookie: a")
        sockets.append(connection)
    answered, failed, slowest = 0, 0, 0.0
    stopped = time.monotonic() + WATCH_SECONDS
    while time.monotonic() < stopped:
        started = time.monotonic()
        try:
            status = server.request("GET", "/healthz")[0]
        except OSError:
            status = 0
        slowest = max(slowest, time.monotonic() - started)
        answered, failed = answered + (status == 200), failed + (status != 200)
        time.sleep(0.1)
    print(
        f"{HALF_REQUESTS} half requests for {WATCH_SECONDS} s: {answered} health checks answered, {failed} not,"
        f" slowest {slowest * 1000:.0f} ms; log {server.log.stat().st_size / 1e6:.3f} MB;"
        f" memory {server.read_memory_mb():.0f} MB"
    )
    for connection in sockets:
        connection.close()


def main() -> None:
    with run_server() as server:
        measure_large_requests(server)
    with run_server() as server:
        measure_half_requests(server)


if __name__ == "__main__":
    main()

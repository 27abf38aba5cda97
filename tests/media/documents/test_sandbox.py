"""The process that reads a document can compute and answer, and nothing else, whatever the document makes it do."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import socket
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.media.documents import limits
from palaver.media.documents.extraction import TextExtractor
from palaver.media.documents.limits import PDF_TYPE, WORD_TYPE
from palaver.media.documents.sandbox import CHECK_COMMAND
from support.documents import make_pdf, make_word
from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,  # starts real child processes
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has Landlock and seccomp"),
]

HOSTILE_READER = Path(__file__).with_name("hostile_reader.py")
FILE_ATTEMPTS = {"open the database", "read a file", "read /etc/passwd", "read its own memory", "write a file"}
SOCKET_ATTEMPTS = {"connect over TCP", "open a UDP socket", "open a Unix socket"}


def has_landlock() -> bool:
    return int(ctypes.CDLL(None).syscall(444, None, 0, 1)) >= 1


def has_seccomp() -> bool:
    return ctypes.CDLL(None).prctl(21, 0, 0, 0, 0) >= 0 and os.uname().machine in {"x86_64", "aarch64"}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "palaver.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE secret (text TEXT)")
    connection.close()
    return path


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def run_hostile_reader(database: Path, port: int, *missing: str) -> dict[str, str | None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HOSTILE_READER), str(database), str(port), *missing), stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), TIMEOUT_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
    results: dict[str, str | None] = json.loads(output)
    return results


@pytest.mark.skipif(not has_seccomp(), reason="this kernel has no seccomp")
async def test_a_hostile_document_reaches_no_file_no_network_and_no_process(database: Path, port: int) -> None:
    results = await run_hostile_reader(database, port)
    assert FILE_ATTEMPTS | SOCKET_ATTEMPTS | {"fork", "start a program", "become a program"} <= set(results)
    assert {name for name, refusal in results.items() if refusal is None} == set()


async def test_without_the_sandbox_the_same_attempts_succeed(database: Path, port: int) -> None:
    """Else the test above would prove nothing."""
    results = await run_hostile_reader(database, port, "all")
    assert {name for name in FILE_ATTEMPTS | SOCKET_ATTEMPTS | {"fork", "delete a file"} if results[name]} == set()


@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
async def test_landlock_alone_refuses_files(database: Path, port: int) -> None:
    results = await run_hostile_reader(database, port, "seccomp", "limits")
    assert {name for name in FILE_ATTEMPTS | {"delete a file"} if results[name] is None} == set()


async def test_limits_alone_refuse_files_and_sockets(database: Path, port: int) -> None:
    results = await run_hostile_reader(database, port, "seccomp", "landlock")
    assert {name for name in FILE_ATTEMPTS | SOCKET_ATTEMPTS if results[name] is None} == set()


async def test_the_check_of_the_doctor_tries_it(database: Path) -> None:
    process = await asyncio.create_subprocess_exec(*CHECK_COMMAND, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert json.loads(output) == {"possible": []}


async def test_a_small_document_gets_little_computing_time() -> None:
    program = (
        "import os, sys; from palaver.media.documents import child;"
        "child._prepare_reader = lambda *_: lambda data: all(True for _ in iter(int, 1));"
        "child.main(sys.argv[1:])"
    )
    result = await TextExtractor((sys.executable, "-c", program)).read(b"x" * 256_000, PDF_TYPE, person="ada")
    assert result.problem == "reading it takes too long"
    assert limits.compute_cpu_seconds(256_000) <= 5
    assert limits.compute_cpu_seconds(limits.MAX_INPUT_BYTES) <= 20


async def test_documents_of_one_person_leave_a_place_to_others() -> None:
    """The first person's documents never end; the second person's are read meanwhile."""
    program = "import sys, time; from palaver.media.documents import child;" + (
        "time.sleep(600) if sys.argv[1] == 'slow' else child.main(sys.argv[1:])"
    )
    extractor = TextExtractor((sys.executable, "-c", program), max_seconds=300)
    slow = [asyncio.create_task(extractor.read(b"x", "slow", person="mallory")) for _ in range(20)]
    await asyncio.sleep(0)
    try:
        for data, media_type in ((make_pdf("One"), PDF_TYPE), (make_word(), WORD_TYPE)):
            result = await extractor.read(data, media_type, person="ada")
            assert result.problem is None
        assert not any(task.done() for task in slow)
    finally:
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_a_page_is_read_in_the_codec_that_it_names() -> None:
    """A codec is a file of Python, which the closed process could not open."""
    extractor = TextExtractor()
    for charset in ("shift_jis", "windows-1251", "iso-2022-jp", "gb18030", "x-unknown"):
        codec = "utf-8" if charset.startswith("x-") else charset
        page = f'<meta charset="{charset}"><p>日本'.encode(codec, "replace")
        result = await extractor.read(page, "text/html", person="ada")
        assert result.text == "日本".encode(codec, "replace").decode(codec)

"""Reads the text of documents in child processes: a hostile one can only end its own process.

Always true: a child has limits of memory and time, can open no file and no socket where the system can forbid it
(`sandbox.py`), gets no secrets of our environment, and is gone when `read` returns or is cancelled. Nothing is parsed
on the event loop. One person's documents never take all places.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from palaver.core.fair_slots import FairSlots
from palaver.core.text import make_storable
from palaver.media.documents.limits import MAX_TEXT_CHARS, MAX_WALL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

CHILD_COMMAND: Final = (sys.executable, "-P", "-m", "palaver.media.documents.child")
MAX_PROCESSES: Final = 2  # at the same time
MAX_PROCESSES_PER_PERSON: Final = 1
MAX_OUTPUT_BYTES: Final = MAX_TEXT_CHARS * 4 + 10_000
MISSING_EXTRA: Final = "reading such files needs the extra palaver[documents], which is not installed here"
_TIME_SIGNALS: Final = frozenset({-signal.SIGKILL, -signal.SIGXCPU})  # end a process that has computed for too long
_PASSED_VARIABLES: Final = re.compile(
    r"PATH|LANG|LC_\w+|LD_LIBRARY_PATH|PYTHON\w*|VIRTUAL_ENV|SystemRoot", re.IGNORECASE
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText:
    """What came of reading a document: its text, or why there is none."""

    text: str = ""
    title: str = ""
    is_cut: bool = False  # the document has more text
    problem: str | None = None  # the end of a sentence
    is_lasting: bool = True  # reading it again would give the same
    is_worth_waiting: bool = False  # it may work later, but trying again at once would only cost time


class TextExtractor:
    """Reads documents, a few at a time."""

    def __init__(self, command: Sequence[str] = CHILD_COMMAND, *, max_seconds: float = MAX_WALL_SECONDS) -> None:
        self._command = command
        self._max_seconds = max_seconds
        self._slots = FairSlots(MAX_PROCESSES, per_key=MAX_PROCESSES_PER_PERSON)

    async def read(
        self, source: IO[bytes] | bytes, media_type: str, *, person: str, charset: str = "", url: str = ""
    ) -> DocumentText:
        """Read a document for a person. It never raises for what is in the document."""
        async with self._slots.hold(person):
            try:
                async with asyncio.timeout(self._max_seconds):
                    exit_code, output = await self._run(source, (media_type, charset, url))
            except TimeoutError:
                return DocumentText(problem="reading it took too long", is_lasting=False, is_worth_waiting=True)
            except OSError as error:
                log.error("document_process_failed", extra={"error": str(error)})
                return DocumentText(problem="the server can't read documents at the moment", is_lasting=False)
        result = _parse_output(output)
        if result is None:
            log.warning("document_process_ended", extra={"media_type": media_type, "exit_code": exit_code})
            if exit_code in _TIME_SIGNALS:
                return DocumentText(problem="reading it takes too long")
            return DocumentText(problem="reading it needs too much memory, or it is damaged")
        return result

    async def _run(self, source: IO[bytes] | bytes, arguments: Sequence[str]) -> tuple[int | None, bytes]:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            stdin=asyncio.subprocess.PIPE if isinstance(source, bytes) else source,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if _PASSED_VARIABLES.fullmatch(name)},
            start_new_session=True,
        )
        writing = asyncio.create_task(_write_input(process, source)) if isinstance(source, bytes) else None
        try:
            assert process.stdout is not None  # noqa: S101  (it is a pipe)
            output = bytearray()
            while chunk := await process.stdout.read(64 * 1024):
                output += chunk
                if len(output) > MAX_OUTPUT_BYTES:
                    break
            return (None if len(output) > MAX_OUTPUT_BYTES else await process.wait()), bytes(output)
        finally:
            if writing is not None:
                writing.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())


async def _write_input(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101  (it is a pipe)
    with contextlib.suppress(OSError):  # the process has ended; its output says why
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


def _parse_output(output: bytes) -> DocumentText | None:
    """Return what the child has written; None if it ended before it could."""
    line, separator, text = output.partition(b"\n")
    if not separator or len(output) > MAX_OUTPUT_BYTES:
        return None
    try:
        outcome: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    if "missing" in outcome:
        return DocumentText(problem=MISSING_EXTRA, is_lasting=False)
    if "problem" in outcome:
        return DocumentText(problem=str(outcome["problem"]))
    return DocumentText(
        text=make_storable(text.decode("utf-8", "replace")),
        title=make_storable(str(outcome.get("title", ""))),
        is_cut=bool(outcome.get("is_cut")),
    )

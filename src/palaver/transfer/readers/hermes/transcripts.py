"""Transcripts in files: `<id>.jsonl`, a message in each line, and `session_<id>.json`, written by the agent itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

from palaver.transfer.imported import ImportProblem
from palaver.transfer.readers.hermes.json_object import UnreadableObject, read_members
from palaver.transfer.readers.hermes.records import Record, read_record
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.plain_file import open_plain_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo
    from pathlib import Path

MAX_LINE_BYTES: Final = 64_000_000


def open_transcript(path: Path, name: str, zone: tzinfo | None) -> Iterator[Record | ImportProblem]:
    """Read `<id>.jsonl`; a line that is damaged is a problem, and the rest is read."""
    try:
        with open_plain_file(path) as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if not line.strip():
                    continue
                where = f"{name}, line {number}"
                found = _read_line(line, where, zone)
                if found is not None:
                    yield found
                if not line.endswith(b"\n") and len(line) >= MAX_LINE_BYTES:
                    _skip_line(file)
    except OSError as error:
        yield ImportProblem(where=name, what=f"The file cannot be read: {error.strerror}.")


def _read_line(line: bytes, where: str, zone: tzinfo | None) -> Record | ImportProblem | None:
    try:
        data = parse_json(line)
    except UnreadableItem as error:
        return ImportProblem(where=where, what=str(error))
    if not isinstance(data, dict):
        return ImportProblem(where=where, what="The line is not a message.")
    return read_record(data, where, zone)


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
        pass


def open_snapshot(path: Path, name: str, zone: tzinfo | None) -> Iterator[Record | ImportProblem]:
    """Read `session_<id>.json`: the conversation as the agent saw it."""
    number = 0
    try:
        for key, data in read_members(path, ("messages",)):
            if key != "messages" or not isinstance(data, dict):
                continue
            number += 1
            if record := read_record(data, f"{name}, message {number}", zone):
                yield record
    except UnreadableObject as error:
        yield ImportProblem(where=f"{name}, after message {number}", what=str(error))
    except OSError as error:
        yield ImportProblem(where=name, what=f"The file cannot be read: {error.strerror}.")

"""The child process that reads one document: the bytes come in on standard input, the text goes out on standard output.

The first line of the output is JSON with the outcome. The process limits its own memory and time before it looks at
the document, and ends after it. It needs no files, no network and nothing of the environment.

    python -m palaver.services.document_text.child <media type> [charset] [address of the page]
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import IO, TYPE_CHECKING, Any

from palaver.services.document_text.limits import (
    MAX_CPU_SECONDS,
    MAX_INPUT_BYTES,
    MAX_MEMORY_BYTES,
    DocumentUnreadable,
    join_up_to_limit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
_OFFICE = "application/vnd.openxmlformats-officedocument"


def main(arguments: list[str]) -> int:
    """Read one document."""
    _limit_resources()
    media_type, charset, url = [*arguments, "", "", ""][:3]
    try:
        outcome, text = _read(sys.stdin.buffer.read(MAX_INPUT_BYTES + 1), media_type, charset, url)
    except DocumentUnreadable as error:
        outcome, text = {"problem": str(error)}, ""
    except MemoryError:
        outcome, text = {"problem": "reading it needs too much memory"}, ""
    except ModuleNotFoundError as error:
        outcome, text = {"missing": str(error.name)}, ""
    output = json.dumps(outcome).encode() + b"\n" + text.encode("utf-8", "replace")
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()
    os._exit(0)  # a library may hang or crash when it is torn down


def _read(data: bytes, media_type: str, charset: str, url: str) -> tuple[dict[str, Any], str]:
    if len(data) > MAX_INPUT_BYTES:
        raise DocumentUnreadable("it is too large")
    title = ""
    if media_type == "text/html":
        from palaver.services.document_text.html_text import decode_page, read_html

        title, content = read_html(decode_page(data, charset), url)
        pieces: Iterator[str] = iter([content])
    else:
        pieces = _find_reader(media_type)(io.BytesIO(data))
    text, is_cut = join_up_to_limit(pieces)
    text = text.strip()
    if not text:
        raise DocumentUnreadable("it contains no text")
    return {"title": title, "is_cut": is_cut}, text


def _find_reader(media_type: str) -> Callable[[IO[bytes]], Iterator[str]]:
    from palaver.services.document_text import office_text, pdf_text, sheet_text

    return {
        "application/pdf": pdf_text.read_pdf,
        f"{_OFFICE}.wordprocessingml.document": office_text.read_word,
        f"{_OFFICE}.presentationml.presentation": office_text.read_powerpoint,
        f"{_OFFICE}.spreadsheetml.sheet": sheet_text.read_sheets,
        f"{_OPEN_DOCUMENT}.text": office_text.read_open_document,
        f"{_OPEN_DOCUMENT}.presentation": office_text.read_open_document,
        f"{_OPEN_DOCUMENT}.spreadsheet": sheet_text.read_sheets,
        "application/epub+zip": office_text.read_epub,
    }[media_type]


def _limit_resources() -> None:
    try:
        import resource
    except ImportError:  # Windows; the parent still limits the time
        return
    for limit, value in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MAX_CPU_SECONDS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, highest = resource.getrlimit(limit)
        allowed = value if highest == resource.RLIM_INFINITY else min(value, highest)
        try:
            resource.setrlimit(limit, (allowed, allowed))
        except (ValueError, OSError):  # macOS does not limit the address space
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The child process that reads one document: the bytes come in on standard input, the text goes out on standard output.

The first line of the output is JSON with the outcome. The process limits its own memory and time, imports what it
needs, reads its input and closes itself (`sandbox.py`) before it looks at the document, and ends after it. It needs no
files, no network and nothing of the environment.

    python -m palaver.media.documents.child <media type> [charset] [address of the page]
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import json
import os
import sys
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

from palaver.media.documents import limits
from palaver.media.documents.limits import (
    MAX_INPUT_BYTES,
    MAX_MEMORY_BYTES,
    DocumentUnreadable,
    compute_cpu_seconds,
    join_up_to_limit,
)
from palaver.media.documents.sandbox import close_sandbox, limit_cpu, limit_resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIBRARIES: Final = {
    limits.PDF_TYPE: "pypdfium2",
    limits.EXCEL_TYPE: "python_calamine",
    limits.OPEN_SHEET_TYPE: "python_calamine",
}
NICENESS: Final = 10  # the server itself comes first
# That documents and names in them may be in: a codec is a file, which the closed process could not open.
CODECS: Final = (
    *("utf_8", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "ascii", "cp437", "cp850", "cp866", "cp874"),
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859_{number}" for number in range(1, 17) if number != 12),
    *("koi8_r", "koi8_u", "mac_roman", "mac_cyrillic", "tis_620", "gb2312", "gbk", "gb18030", "hz", "big5"),
    *("big5hkscs", "cp950", "shift_jis", "cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "johab"),
)


def main(arguments: list[str]) -> int:
    limit_resources(memory_bytes=MAX_MEMORY_BYTES, cpu_seconds=compute_cpu_seconds(MAX_INPUT_BYTES))
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    media_type, charset, url = [*arguments, "", "", ""][:3]
    try:
        read = _prepare_reader(media_type, charset, url)
    except ModuleNotFoundError as error:
        return _write({"missing": str(error.name)}, "")
    try:
        data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        limit_cpu(compute_cpu_seconds(len(data)))
        close_sandbox()
        outcome, text = _read(data, read)
    except DocumentUnreadable as error:
        outcome, text = {"problem": str(error)}, ""
    except MemoryError:
        outcome, text = {"problem": "reading it needs too much memory"}, ""
    return _write(outcome, text)


def _write(outcome: dict[str, Any], text: str) -> NoReturn:
    sys.stdout.buffer.write(json.dumps(outcome).encode() + b"\n" + text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    os._exit(0)  # a library may hang or crash when it is torn down


def _read(data: bytes, read: Callable[[bytes], tuple[str, Iterator[str]]]) -> tuple[dict[str, Any], str]:
    if len(data) > MAX_INPUT_BYTES:
        raise DocumentUnreadable("it is too large")
    title, pieces = read(data)
    text, is_cut = join_up_to_limit(pieces)
    text = text.strip()
    if not text:
        raise DocumentUnreadable("it contains no text")
    return {"title": title, "is_cut": is_cut}, text


def _prepare_reader(media_type: str, charset: str, url: str) -> Callable[[bytes], tuple[str, Iterator[str]]]:
    """Import everything that reading a document of this kind needs. Raises ModuleNotFoundError."""
    importlib.import_module(_LIBRARIES.get(media_type, "unicodedata"))  # which addresses of pages need
    for name in CODECS:
        codecs.lookup(name)
    if media_type == "text/html":
        from palaver.media.documents.html_text import decode_page, read_html

        def read_page(data: bytes) -> tuple[str, Iterator[str]]:
            title, content = read_html(decode_page(data, charset), url)
            return title, iter([content])

        return read_page
    read_document = _find_reader(media_type)
    return lambda data: ("", read_document(io.BytesIO(data)))


def _find_reader(media_type: str) -> Callable[[IO[bytes]], Iterator[str]]:
    from palaver.media.documents import office_text, table_text

    return {
        limits.PDF_TYPE: table_text.read_pdf,
        limits.WORD_TYPE: office_text.read_word,
        limits.POWERPOINT_TYPE: office_text.read_powerpoint,
        limits.EXCEL_TYPE: table_text.read_sheets,
        limits.OPEN_TEXT_TYPE: office_text.read_open_document,
        limits.OPEN_SLIDES_TYPE: office_text.read_open_document,
        limits.OPEN_SHEET_TYPE: table_text.read_sheets,
        limits.EPUB_TYPE: office_text.read_epub,
    }[media_type]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

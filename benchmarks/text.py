"""Functions of the server that process people's text, on texts that are chosen to make them slow.

Every function runs on every text at three sizes, each twice as long as the one before. A function that takes time in
proportion to the text takes about twice as long each time; one that takes time in proportion to the square, four times.
The table shows the slowest text of each function. The exit code is 1 if a function grows faster than in proportion.

    python -m benchmarks.text
    python -m benchmarks.text --only snippet,share --sizes 20000,40000,80000
"""

from __future__ import annotations

import argparse
import gc
import io
import re
import sys
import time
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from palaver.agent.base import estimate_tokens
from palaver.agent.compaction import check_summary
from palaver.agent.summary_facts import find_missing_facts
from palaver.cli.chat.renderer import format_arguments
from palaver.cli.output import clean_line, clean_text, format_json, get_display_width, truncate_text
from palaver.commands.reply_text import escape_markdown, quote_text
from palaver.core.errors import PalaverError
from palaver.core.ids import MemoryId, PersonId
from palaver.core.logs import remove_secrets
from palaver.core.text import make_json_storable, make_storable
from palaver.core.titles import clean_title, parse_title_slot, title_from
from palaver.delivery.model import Capabilities, LengthUnit
from palaver.delivery.splitting import split_markdown
from palaver.drivers.demo import _RULES
from palaver.inbox.registry import parse_command
from palaver.media.attachments import describe_document
from palaver.media.documents.extraction import DocumentText, find_archive_type
from palaver.media.documents.html_text import decode_page, read_html
from palaver.media.documents.office_text import read_word
from palaver.memory.model import Memory, clean_memory, find_best_matches, find_similar, matches_query
from palaver.people.model import normalize_name
from palaver.platforms.telegram.outbound import render_markdown
from palaver.sessions.context import clean_chat_text, format_author_prefix, quote_chat_text
from palaver.sessions.events import Event, EventKind
from palaver.sessions.export import _format_message
from palaver.sessions.message import Message, make_preview
from palaver.sessions.quoted_messages import choose_context, format_quotes
from palaver.sessions.search_text import build_snippet, parse_query, split_index_words, split_words
from palaver.sessions.share import build_shared_copy
from palaver.sessions.speech import Attachment, make_spoken_text, split_spoken_text
from palaver.transfer.html_export import MAX_MARKDOWN_CHARS, _fold, _indent_json, render_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SIZES: Final = (50_000, 100_000, 200_000)
MAX_GROWTH: Final = 3.0  # from the first to the last size, for each doubling; quadratic time is 4
NOISE_SECONDS: Final = 0.02  # what takes less than this at the largest size is not judged

# What is repeated to make a text.
TEXTS: Final[Mapping[str, str]] = {
    "letters": "a",
    "spaces": " ",
    "words": "a ",
    "digits": "0",
    "phone numbers": "+49 170 ",
    "dots": ".",
    "words and dots": "a.",
    "at signs": "@",
    "words and at signs": "a@",
    "e-mail addresses": "a@b.cd+",
    "dashes": "-",
    "private keys": "-----BEGIN ",
    "web tokens": "eyJ-",
    "addresses": "a://b:",
    "passwords": "password ",
    "password, spaces": "password=  ",
    "quotes": '"',
    "cookies": 'cookie="',
    "backslashes": "\\",
    "backticks": "`",
    "headings": "# ",
    "slashes": "/",
    "tags": "<think>",
    "brackets": "[",
    "near phrases": "near " * 58 + "miss ",
    "lines": "a\n",
    "open elements": "<div>",
    "open comments": "<!--",
    "open attributes": '<a b="',
    "open cells": "<td>",
    "open lists": "<ul><li>x",
    "open links": "<a href=x>y",
    "bases": "<base href=x/>",
    "escape sequences": "\x1b[",
    "C1 controls": "\x9d",
    "ends of sentences": "remember that . ",
    "accents": "é",
    "combining marks": "\u0301\u0316",
    "hidden marks": "\u0f73\u0316",
    "Chinese": "漢字",
    "jamo": "\u1112\u1161\u11ab",
    "ligatures": "\ufdfa",
    "emoji": "👨\u200d👩",
    "surrogates": "\ud800",
    "pairs": "\ud83d\ude00",
    "NUL": "\0",
    "direction marks": "\u202e",
    "fences": "```py\n",
    "code": "```py\nx = 1\n```\n",
    "nested lists": "  - 1. a\n",
    "tables": "|a|b|\n|-|-|\n",
    "rows": "|a|",
    "links": "[a](b",
    "flags": "🇩🇪",
    "line breaks": "\n",
}

_QUERY = parse_query('"' + "near " * 58 + 'hit" a* 0 é 漢字')
_MEMORY = "near miss a 0 é 漢字 " * 50
_NOW = datetime(2026, 11, 15, tzinfo=UTC)
_KNOWN_MEMORY = Memory(id=MemoryId("m_1"), text=_MEMORY, person_id=None, created_at=_NOW)
_NO_XML = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that XML can't contain
_DOCUMENT = Attachment(
    id="a", name="a.docx", media_type="a/b", size=1, sha256="", person_id=PersonId("p"), created_at=_NOW
)
_NAMES = [f"Ada {number}" for number in range(500)] + ["near near near near", "a a a a", "@@@@", "----", "0000"]


def _ignore_refusals(function: Callable[[str], object]) -> Callable[[str], object]:
    """Return a function for which refusing a text is an answer like any other."""

    def run(text: str) -> object:
        try:
            return function(text)
        except PalaverError:
            return None

    return run


def _share(text: str) -> object:
    event = Event(seq=1, kind=EventKind.MESSAGE, at=datetime.now(UTC), message=Message("user", text))
    return build_shared_copy(text[:100], [event], _NAMES)


def _check_message(text: str) -> None:
    Message.from_dict({"role": "user", "content": text, "author": {"name": text}, "note": text}).check_limits()


def _plan_demo_answer(text: str) -> object:
    return [pattern.search(f"{start} {text}x") for start in ("remember that", "recall", "") for pattern, _ in _RULES]


def _export_markdown(text: str) -> object:
    message = Message("assistant", text, extra={"reasoning": text, "tool_calls": [{"name": text, "arguments": text}]})
    return [*_format_message(message), *_format_message(Message("tool", text))]


def _split_messages(text: str) -> object:
    texts = (text, f"```py\n{text}", f"|a|b|\n|-|-|\n{text}")
    return [
        split_markdown(markdown, Capabilities(max_length=4096, length_unit=unit))
        for markdown, unit in zip(texts, LengthUnit, strict=True)
    ]


def _split_escaped_messages(text: str) -> object:
    return split_markdown(text, Capabilities(max_length=4096), lambda part: 5 * len(part))


def _quote_messages(text: str) -> str:
    """Quote a text of a group as one message and, cut into many, as several."""
    parts = [("Ada", text[start : start + 1000]) for start in range(0, len(text), 1000)]
    return format_quotes({"context": choose_context(parts)}) + format_quotes(
        {"context": [{"author": "", "text": text}]}
    )


def _edit_text(text: str) -> Message:
    return Message("user", [text, {"type": "attachment", "id": "a"}]).with_edited_text(text)


def _read_word(text: str) -> list[str]:
    """Read a text as the paragraphs of a Word document, which are split here at every tenth character."""
    runs = "".join(f"<w:t>{escape(text[start : start + 10])}</w:t>" for start in range(0, len(text), 10))
    document = make_storable(f'<w:document xmlns:w="w"><w:p><w:r>{runs}</w:r></w:p></w:document>')
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", _NO_XML.sub("?", document))
    return list(read_word(file))


def _clean_lines(text: str) -> object:
    return [clean_line(line) for line in text.split("\n")]


FUNCTIONS: Final[Mapping[str, Callable[[str], object]]] = {
    "share": _ignore_refusals(_share),
    "HTML of an answer": lambda text: render_answer(text[:MAX_MARKDOWN_CHARS]),
    "HTML of a tool call": lambda text: _fold("tool", _indent_json(text)),
    "snippet": lambda text: build_snippet(text, _QUERY),
    "snippet at the end": lambda text: build_snippet(f"{text} hit", parse_query("hit")),
    "words": split_words,
    "index text": split_index_words,
    "query": _ignore_refusals(parse_query),
    "title": _ignore_refusals(clean_title),
    "title of a conversation": lambda text: title_from([{"role": "user", "content": text}]),
    "title slot": _ignore_refusals(parse_title_slot),
    "telegram messages": render_markdown,
    "preview": make_preview,
    "message": _check_message,
    "storable text": lambda text: make_json_storable({"text": [text], "again": make_storable(text)}),
    "chat text": clean_chat_text,
    "quotes for the agent": _quote_messages,
    "edited text": _edit_text,
    "quoted chat text": quote_chat_text,
    "author": format_author_prefix,
    "memory": _ignore_refusals(clean_memory),
    "similar memory": lambda text: find_similar([_KNOWN_MEMORY], text),
    "memory query": lambda text: (matches_query(_MEMORY, text), find_best_matches([], text, 10)),
    "sign-in name": normalize_name,
    "command": _ignore_refusals(parse_command),
    "command /title": _ignore_refusals(lambda text: parse_command(f"/title {text}")),
    "reply text": lambda text: (quote_text(text), escape_markdown(text, len(text))),
    "summary": _ignore_refusals(check_summary),
    "facts of a summary": lambda text: find_missing_facts(text, [{"role": "user", "content": text}], text),
    "tokens": estimate_tokens,
    "log line": remove_secrets,
    "terminal text": clean_text,
    "terminal line": _clean_lines,
    "terminal width": lambda text: (get_display_width(text), truncate_text(text, 80)),
    "terminal JSON": format_json,
    "tool arguments": format_arguments,
    "demo agent": _plan_demo_answer,
    "markdown export": _export_markdown,
    "messages": _split_messages,
    "escaped messages": _split_escaped_messages,
    "web page": lambda text: read_html(text, "https://example.org/"),
    "tag of a web page": lambda text: read_html(f"<a {text}", "https://example.org/"),
    "charset of a web page": lambda text: decode_page(text.encode("utf-8", "replace")),
    "Word document": _read_word,
    "text of a document": lambda text: describe_document(_DOCUMENT, DocumentText(text=text), len(text)),
    "spoken text": lambda text: split_spoken_text(make_spoken_text(text)),
    "spoken text in pieces": split_spoken_text,
    "archive of a document": lambda text: find_archive_type(b"PK\x03\x04" + text.encode("utf-8", "replace")),
}


def measure(function: Callable[[str], object], text: str) -> float:
    """Return the CPU seconds that one call takes."""
    gc.disable()
    try:
        start = time.thread_time()  # so that other processes are not in the way
        function(text)
        return time.thread_time() - start
    finally:
        gc.enable()


def make_text(pattern: str, size: int) -> str:
    return (pattern * (size // len(pattern) + 1))[:size]


def get_growth(times: list[float]) -> float:
    """Return the growth for each doubling; times that are noise count as linear."""
    if times[-1] < NOISE_SECONDS:
        return 2.0
    return float((times[-1] / max(times[0], NOISE_SECONDS / 2 ** len(times))) ** (1 / (len(times) - 1)))


def measure_function(function: Callable[[str], object], sizes: list[int]) -> tuple[str, list[float], float]:
    """Return the slowest text, its times, and the fastest growth of any text."""
    slowest: tuple[str, list[float]] = ("", [0.0])
    growth = 0.0
    function("warm up, é")
    for name, pattern in TEXTS.items():
        times = [measure(function, make_text(pattern, size)) for size in sizes]
        if get_growth(times) > MAX_GROWTH:  # perhaps another process was in the way
            again = [measure(function, make_text(pattern, size)) for size in sizes]
            times = [min(pair) for pair in zip(times, again, strict=True)]
        growth = max(growth, get_growth(times))
        slowest = max(slowest, (name, times), key=lambda each: each[1][-1])
    return *slowest, growth


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="names of functions, separated by commas")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="characters, separated by commas")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    names = options.only.split(",") if options.only else list(FUNCTIONS)
    print(f"| function | slowest text | {' | '.join(f'{size:,}' for size in sizes)} | growth per doubling |")
    print(f"|---|---|{'---:|' * (len(sizes) + 1)}")
    failed = []
    for name in names:
        text, times, growth = measure_function(FUNCTIONS[name], sizes)
        print(
            f"| {name} | {text} | {' | '.join(f'{each * 1e3:.1f} ms' for each in times)} | {growth:.1f} |", flush=True
        )
        if growth > MAX_GROWTH:
            failed.append(name)
    if failed:
        print(f"Not linear: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

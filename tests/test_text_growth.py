"""Functions that process people's text take time in proportion to it. `benchmarks/text.py` measures all of them.

A text that is ten times as long may take ten times as long; with a quadratic algorithm it takes a hundred times as
long. Only the time that this thread computes is counted, so a busy machine changes nothing.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from palaver.agent.compaction import check_summary
from palaver.agent.summary_facts import find_missing_facts
from palaver.cli.output import clean_text
from palaver.core.errors import AgentError, InvalidInput
from palaver.core.logs import remove_secrets
from palaver.core.text import normalize_unicode
from palaver.delivery.model import Capabilities, LengthUnit
from palaver.delivery.splitting import split_markdown
from palaver.media.documents.html_text import read_html
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Message
from palaver.sessions.search_text import MAX_QUERY_WORDS, build_snippet, parse_query, split_words
from palaver.sessions.share import build_shared_copy
from palaver.transfer.html_export import _fold, _indent_json, _render_text, render_answer

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_GROWTH = 50  # for ten times the text
MIN_SECONDS = 0.002  # what is faster than this counts as this much


def share(text: str) -> object:
    event = Event(seq=1, kind=EventKind.MESSAGE, at=datetime.now(UTC), message=Message("user", text))
    return build_shared_copy(None, [event], ["aaa", "a a a a a"])


def build_near_match_snippet(text: str) -> object:
    return build_snippet(text, parse_query('"' + "a " * (MAX_QUERY_WORDS - 1) + 'b"'))


def summarize(text: str) -> object:
    with suppress(AgentError):  # it is too long for a summary
        return check_summary(text)
    return None


def find_facts(text: str) -> object:
    return find_missing_facts(text, [{"role": "user", "content": text}] * 10, text)


def split_messages(text: str) -> object:
    return split_markdown(text, Capabilities(max_length=4096, length_unit=LengthUnit.UTF16))


def export_texts(text: str) -> object:
    return [_render_text(text), _fold(text, _indent_json(text)), _indent_json(f"[{text}")]


@pytest.mark.parametrize(
    ("function", "unit"),
    [
        (share, "a"),
        (share, "a."),
        (share, "a@"),
        (share, "eyJ-"),
        (share, "a@b.cd+"),
        (share, "-----BEGIN "),
        (share, "a a a a a "),
        (build_near_match_snippet, "a "),
        (build_near_match_snippet, "é a a a a a a a a a a a a "),
        (split_words, "\u0301\u0316"),
        (lambda text: normalize_unicode("NFC", text), "\u0f73\u0316"),
        (summarize, "<think>"),
        (find_facts, "a@"),
        (find_facts, "a-1"),
        (find_facts, "1 "),
        (find_facts, "1.1.?"),
        (remove_secrets, "a"),
        (remove_secrets, "eyJ-"),
        (clean_text, "\x9d"),
        (split_messages, "a"),
        (split_messages, "🇩🇪"),
        (split_messages, "[a](b"),
        (split_messages, "|a|b|\n|-|-|\n"),
        (split_messages, "```py\n"),
        (render_answer, "["),
        (render_answer, "![a]("),
        (export_texts, "&\0<"),
        (export_texts, "["),
        (read_html, "<div>"),
        (read_html, '<a b="'),
        (read_html, "<b><p>"),
        (read_html, "<a href=x>y"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or ascii(value),
)
def test_time_grows_in_proportion_to_the_text(function: Callable[[str], object], unit: str) -> None:
    def measure(length: int) -> float:
        text = (unit * length)[:length]
        start = time.thread_time()
        function(text)
        return time.thread_time() - start

    function("é")  # builds what is built once
    length = 10_000 if measure(10_000) < 10 * MIN_SECONDS else 3_000  # what is slow need not be so long
    # On a busy machine one measurement may be far off.
    assert any(measure(10 * length) < MAX_GROWTH * max(MIN_SECONDS, measure(length)) for _ in range(3))


@pytest.mark.parametrize(
    "query", ["word " * (MAX_QUERY_WORDS + 1), '"' + "漢" * (MAX_QUERY_WORDS + 1) + '"', "-x " * 100, "x" * 1001]
)
def test_a_search_that_is_too_long_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput, match="at most"):
        parse_query(query)

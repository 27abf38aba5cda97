"""Markdown as plain text."""

from __future__ import annotations

import pytest

from palaver.core.text import strip_markdown
from palaver.sessions.message import make_preview


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("**Lisbon** is *sunny*, ***very*** ~~hot~~", "Lisbon is sunny, very hot"),
        ("__bold__ and _thin_, **bold with *thin* inside**", "bold and thin, bold with thin inside"),
        ("# Plan\n\nFirst:\n- one\n- two\n  * three\n1. four\n2) five", "Plan First: one two three four five"),
        ("## Heading ##\n> quoted\n> > twice", "Heading quoted twice"),
        ("Heading\n=======\ntext\n\n---\n\n* * *\nmore", "Heading text more"),
        ("- [ ] buy milk\n- [x] pay rent", "buy milk pay rent"),
        ("Run this:\n```python\nprint('a_b')\n```\nDone", "Run this: print('a_b') Done"),
        ("Call `make_it()` or ``a`` now", "Call make_it() or a now"),
        ('See [the docs](https://example.com/a_b "Docs") and ![a cat](cat.png)', "See the docs and a cat"),
        ("[![badge](b.svg)](https://x.y) [ref][1] <https://example.com/x>", "badge ref https://example.com/x"),
        ("A fact[^1].\n\n[^1]: source", "A fact. source"),
        ("| City | Days |\n|------|:----:|\n| Porto | 2 |", "City Days Porto 2"),
        ("H<sub>2</sub>O<br>next <details><summary>More</summary>", "H 2 O next More"),
        (r"5 \* 3 and \_x\_", "5 * 3 and _x_"),
    ],
)
def test_a_preview_has_no_markdown(markdown: str, plain: str) -> None:
    assert make_preview(markdown) == plain


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4 and 5*6*7",
        "snake_case_name and __init__.py, __init__()",
        "a < b > c || d | e",
        "#hashtag, C# and issue #12",
        "5* hotel, rated 4*",
        "-5 degrees, a-b - c",
        "2026. A year",
        "List<String> and <div>",
        "array[0](x y z) [note]",
        "~5 ~ 6",
        "$5 **and an open mark",
    ],
)
def test_what_only_looks_like_markdown_stays(text: str) -> None:
    assert make_preview(text) == text


@pytest.mark.parametrize("text", ["---", "```", "***", "> "])
def test_a_preview_of_marks_alone_shows_them(text: str) -> None:
    assert make_preview(text) == text.strip()


def test_text_without_marks_is_not_copied() -> None:
    text = "Nothing to strip here, is there?"
    assert strip_markdown(text) is text

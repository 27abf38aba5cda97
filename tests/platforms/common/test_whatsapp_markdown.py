"""Markdown as WhatsApp shows it: every mark is one that WhatsApp reads, and everything that was said is there."""

from __future__ import annotations

import re

import pytest

from palaver.delivery.model import Capabilities, LengthUnit, measure_length
from palaver.platforms.common.whatsapp_markdown import format_whatsapp_text, render_whatsapp_messages

CAPABILITIES = Capabilities(max_length=400, length_unit=LengthUnit.UTF16)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("Good **morning**, *Ada* ~~Bob~~.", "Good *morning*, _Ada_ ~Bob~."),
        ("***both*** and **a *b* c**", "_*both*_ and *a _b_ c*"),
        ("# Title with **bold**", "*Title with bold*"),
        ("un**bel**ievable", "unbelievable"),  # WhatsApp shows asterisks inside of a word
        ("**a**b and a**b**", "ab and ab"),
        ("**(a)** and “**b**”", "*(a)* and “*b*”"),
        ("1 * 2 * 3, snake_case_name, stray ** here", "1 * 2 * 3, snake_case_name, stray ** here"),
        ("**two\nlines**", "*two*\n*lines*"),  # a format ends with its line
        ("****nested** bold**", "*nested bold*"),
        ("call `a_b()` or ``x`y``", "call `a_b()` or ```x`y```"),
        ("[docs](https://e.org/a_(b))", "docs (https://e.org/a_(b))"),
        ("[**docs**](https://e.org)", "*docs* (https://e.org)"),
        ("<https://e.org> <ada@e.org> [e.org](https://e.org)", "https://e.org ada@e.org e.org"),
        ("![A cat](https://e.org/c.png) ![](https://e.org/d.png)", "A cat (https://e.org/c.png) https://e.org/d.png"),
        ("a<br>b <b>c</b>", "a<br>b <b>c</b>"),
        ("one\n\ntwo  \nthree\n\n---\n\nfour", "one\n\ntwo\nthree\n\n———\n\nfour"),
        ("", ""),
        ("```\n```", ""),
    ],
)  # fmt: skip
def test_inline_formats(markdown: str, shown: str) -> None:
    assert format_whatsapp_text(markdown) == shown


def test_lists_keep_their_numbers_and_their_depth() -> None:
    markdown = "3. first\n   - inner\n     - deeper\n4. second\n\n* a\n* b"
    assert format_whatsapp_text(markdown) == "3. first\n   - inner\n     - deeper\n4. second\n\n- a\n- b"


def test_an_item_with_paragraphs_and_code_stays_one_item() -> None:
    markdown = "- first\n\n  more\n\n  ```py\n  x = 1\n  ```\n- second\n-"
    assert format_whatsapp_text(markdown) == "- first\n  more\n  ```\n  x = 1\n  ```\n\n- second\n\n-"


def test_every_line_of_a_quote_is_marked() -> None:
    assert format_whatsapp_text("> said **Ada**\n> then\n>\n> - x") == "> said *Ada*\n> then\n>\n> - x"


def test_code_is_unchanged_and_cannot_end_its_block() -> None:
    assert format_whatsapp_text("```py\n*a* = [_b_]\n\n  c\n```") == "```\n*a* = [_b_]\n\n  c\n```"
    assert format_whatsapp_text('````\nprint("```")\n````').count("```") == 2


def test_a_narrow_table_is_aligned() -> None:
    markdown = "| City | **Rain** |\n|---|---|\n| 東京 | [4](https://e.org) |\n| Rome | `0` |"
    assert format_whatsapp_text(markdown) == (
        "```\nCity | Rain\n-----|------------------\n東京 | 4 (https://e.org)\nRome | 0\n```"
    )


def test_a_wide_table_is_a_list_of_its_rows() -> None:
    markdown = (
        "| Name | What it is for | |\n|---|---|---|\n"
        "| spool | keeps what was received until it is stored | x |\n| lock | | |"
    )
    assert format_whatsapp_text(markdown) == (
        "*Name:* spool\n*What it is for:* keeps what was received until it is stored\nx\n\n*Name:* lock"
    )


def test_a_long_text_becomes_messages_that_fit_and_loses_nothing() -> None:
    words = [f"word{number}" for number in range(400)]
    markdown = "\n\n".join(f"**{' '.join(words[start : start + 8])}** 😀" for start in range(0, 400, 8))
    messages = render_whatsapp_messages(markdown, CAPABILITIES)
    assert all(measure_length(text, LengthUnit.UTF16) <= 400 for text in messages)
    assert [word for text in messages for word in re.findall(r"word\d+", text)] == words
    assert all(text.count("*") % 2 == 0 for text in messages)


def test_code_that_is_split_is_code_in_every_message() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(60))
    messages = render_whatsapp_messages(f"Look:\n\n```py\n{code}\n```", CAPABILITIES)
    assert len(messages) > 1
    assert all(text.count("```") == 2 for text in messages)


def test_nothing_becomes_no_message() -> None:
    assert render_whatsapp_messages(" \n", CAPABILITIES) == []
    assert render_whatsapp_messages("[](https://e.org)\0", CAPABILITIES) == ["https://e.org\N{REPLACEMENT CHARACTER}"]

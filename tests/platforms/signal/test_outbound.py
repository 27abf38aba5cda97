"""Markdown becomes text and styles that Signal shows, in messages that are short enough."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from palaver.core.errors import SendRejected
from palaver.core.source import Platform
from palaver.platforms.signal.inbound import MessageRef, build_target, parse_message_id
from palaver.platforms.signal.manifest import MAX_MESSAGE_BYTES
from palaver.platforms.signal.outbound import MessageBody, build_quote, format_markdown, render_markdown
from palaver.sessions.delivery import Address

from .signal_server import ADA, GROUP


@pytest.mark.parametrize(
    ("markdown", "text", "styles"),
    [
        ("plain", "plain", []),
        ("a **bold** _word_", "a bold word", ["2:4:BOLD", "7:4:ITALIC"]),
        ("~~gone~~ `code`", "gone code", ["0:4:STRIKETHROUGH", "5:4:MONOSPACE"]),
        ("**bold _and italic_**", "bold and italic", ["5:10:ITALIC", "0:15:BOLD"]),
        ("👍 **yes**", "👍 yes", ["3:3:BOLD"]),
        ("# Title\n\nText", "Title\n\nText", ["0:5:BOLD"]),
        ("```py\nx = 1\n```", "x = 1", ["0:5:MONOSPACE"]),
        ("one\ntwo", "one\ntwo", []),
        ("one\n\ntwo", "one\n\ntwo", []),
        ("1 * 2 * 3 and a **b", "1 * 2 * 3 and a **b", []),
        ("see [the page](https://example.org/a_(b))", "see the page (https://example.org/a_(b))", []),
        ("<https://example.org>", "https://example.org", []),
        ("![a cat](https://example.org/cat.png)", "a cat (https://example.org/cat.png)", []),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("<b>tag</b>", "<b>tag</b>", []),
        ("a \ufffc b", "a  b", []),
    ],
)
def test_markdown_becomes_text_and_styles(markdown: str, text: str, styles: list[str]) -> None:
    formatted = format_markdown(markdown)
    assert formatted.text == text
    assert sorted(formatted.styles) == sorted(styles)


def test_lists_are_indented_and_numbered() -> None:
    markdown = "Todo:\n\n- one\n- two\n  - inner\n  - more\n- three\n\n4. four\n5. five\n\nEnd"
    assert format_markdown(markdown).text == (
        "Todo:\n\n• one\n• two\n   • inner\n   • more\n• three\n\n4. four\n5. five\n\nEnd"
    )


def test_a_quote_has_a_mark_on_each_line() -> None:
    assert format_markdown("> first\n> second\n\nafter").text == "> first\n> second\n\nafter"


def test_a_narrow_table_is_aligned_and_a_wide_one_becomes_lines() -> None:
    narrow = format_markdown("| a | bb |\n|---|---|\n| 1 | 2 |")
    assert narrow.text == "a │ bb\n──┼───\n1 │ 2"
    assert narrow.styles == ("0:19:MONOSPACE",)
    wide = format_markdown(f"| name | text |\n|---|---|\n| one | {'word ' * 20} |\n| two | **b** |")
    assert wide.text == f"one\ntext: {('word ' * 20).strip()}\n\ntwo\ntext: b"
    assert wide.styles == ("0:3:BOLD", f"{len(wide.text) - 11}:3:BOLD")


def test_messages_fit_in_bytes_and_keep_every_word() -> None:
    words = [f"wörd{number}" for number in range(1200)]
    markdown = "\n\n".join(" ".join(words[start : start + 40]) for start in range(0, len(words), 40))
    bodies = [MessageBody.from_json(each) for each in render_markdown(markdown)]
    assert all(len(body.text.encode()) <= MAX_MESSAGE_BYTES for body in bodies)
    assert " ".join(body.text for body in bodies).split() == words
    assert len(bodies) > 5


def test_styles_stay_inside_of_their_message() -> None:
    markdown = "\n\n".join(f"**Part {number}** 🙂 " + "text `code` " * 30 for number in range(40))
    for each in render_markdown(markdown):
        body = MessageBody.from_json(each)
        units = len(body.text.encode("utf-16-le")) // 2
        ranges = [tuple(map(int, style.split(":")[:2])) for style in body.styles]
        assert ranges
        assert all(start + length <= units for start, length in ranges)
        assert all(first != second for first, second in pairwise(sorted(ranges)))


@pytest.mark.parametrize("markdown", ["", "  \n ", "<!-- -->", "***", "[]()"])
def test_a_text_of_nothing_but_markup_is_not_lost(markdown: str) -> None:
    bodies = render_markdown(markdown)
    assert all(MessageBody.from_json(body).text.strip() for body in bodies)
    assert bool(bodies) is bool(markdown.strip())


@pytest.mark.parametrize("markdown", ["[" * 20_000, "**" * 20_000, "> " * 10_000 + "x", "- " * 5_000, "|" * 20_000])
def test_strange_texts_take_no_long_time(markdown: str) -> None:
    assert render_markdown(markdown)


def test_a_message_is_stored_as_json() -> None:
    [body] = render_markdown("**Hi**")
    assert json.loads(body) == {"text": "Hi", "styles": ["0:2:BOLD"]}
    assert MessageBody.from_json(body).build_parameters() == {"message": "Hi", "textStyles": ["0:2:BOLD"]}


def test_a_quote_names_author_time_and_text() -> None:
    quote = build_quote(parse_message_id(f"{ADA}:1790000001000"), "x" * 500)
    assert quote == {"quoteTimestamp": 1_790_000_001_000, "quoteAuthor": ADA, "quoteMessage": "x" * 200}


@pytest.mark.parametrize("message_id", ["", "1", f"{ADA}:", f"{ADA}:abc", ":5"])
def test_what_is_no_message_id_is_refused(message_id: str) -> None:
    with pytest.raises(SendRejected):
        parse_message_id(message_id)


def test_people_and_groups_are_addressed() -> None:
    assert build_target(Address(Platform.SIGNAL, ADA)) == {"recipient": [ADA]}
    assert build_target(Address(Platform.SIGNAL, "+491701234567")) == {"recipient": ["+491701234567"]}
    assert build_target(Address(Platform.SIGNAL, GROUP)) == {"groupId": GROUP}
    assert build_target(Address(Platform.SIGNAL, f"group:{GROUP}")) == {"groupId": GROUP}
    assert Address.from_text(str(Address(Platform.SIGNAL, GROUP))).chat_id == GROUP
    for chat in ("a-name", "ABCD", "0170123", "a b c"):
        with pytest.raises(SendRejected):
            build_target(Address(Platform.SIGNAL, chat))
    assert MessageRef(ADA, 5).id == f"{ADA}:5"

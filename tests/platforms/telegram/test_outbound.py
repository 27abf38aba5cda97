"""Markdown, and the messages that Telegram gets: texts with entities, cut in UTF-16."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from palaver.delivery.model import LengthUnit, measure_length
from palaver.delivery.splitting import FILL_PERCENT
from palaver.platforms.telegram.manifest import CAPABILITIES
from palaver.platforms.telegram.outbound import (
    MessageBody,
    choose_file_method,
    choose_menu_commands,
    compute_draft_id,
    render_markdown,
)

from .bot_api_server import list_problems

MAX_PIECE_UNITS = (CAPABILITIES.max_length or 0) * FILL_PERCENT // 100


def render(markdown: str, **options: Any) -> list[MessageBody]:
    """Render a text, and check that every message is valid."""
    bodies = [MessageBody.from_json(body) for body in render_markdown(markdown, **options)]
    for body in bodies:
        units = measure_length(body.text, LengthUnit.UTF16)
        assert 0 < units <= MAX_PIECE_UNITS
        assert body.text == body.text.strip("\n")
        assert (
            list_problems("SendMessageParams", {"chat_id": 1, "text": body.text, "entities": list(body.entities)}) == []
        )
        for entity in body.entities:
            assert 0 <= entity["offset"] < entity["offset"] + entity["length"] <= units
    return bodies


def list_formats(body: MessageBody) -> list[tuple[str, str, str]]:
    """Return each format, the text that it is over, and its address or language."""
    units = body.text.encode("utf-16-le")
    return [
        (
            entity["type"],
            units[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode("utf-16-le"),
            entity.get("url") or entity.get("language") or "",
        )
        for entity in body.entities
    ]


@pytest.mark.parametrize(
    ("markdown", "text", "formats"),
    [
        ("plain", "plain", []),
        ("**b** *i* `c`", "b i c", [("bold", "b", ""), ("italic", "i", ""), ("code", "c", "")]),
        ("~~gone~~", "gone", [("strikethrough", "gone", "")]),
        ("🎉 **after**", "🎉 after", [("bold", "after", "")]),
        ("مرحبا **بالعالم** 1", "مرحبا بالعالم 1", [("bold", "بالعالم", "")]),
        ("# Title\n\ntext", "Title\n\ntext", [("bold", "Title", ""), ("underline", "Title", "")]),
        ("- a\n  - b\n    - c\n- d", "• a\n  • b\n    • c\n• d", []),
        ("1. a\n2. b\n   - c", "1. a\n2. b\n  • c", []),
        ("- [x] done\n- [ ] open", "✅ done\n⬜ open", []),
        ("[x](https://e.org/a_(b)) y", "x y", [("text_link", "x", "https://e.org/a_(b)")]),
        ("[file](docs/a.md)", "file (docs/a.md)", []),
        ("[mail](mailto:a@e.org)", "mail (mailto:a@e.org)", []),
        ("[](https://e.org)", "https://e.org", []),
        ("![cat](https://e.org/c.png)", "🖼 cat", [("text_link", "cat", "https://e.org/c.png")]),
        ("stray ** and 1 * 2 * 3 and a_b_c", "stray ** and 1 * 2 * 3 and a_b_c", []),
        ("about ~5 or ~6, $10 and $20, $HOME/$USER", "about ~5 or ~6, $10 and $20, $HOME/$USER", []),
        ("$\\alpha + \\beta$", "α + β", [("code", "α + β", "")]),
        ("a || b || c", "a || b || c", []),
        ("x<br>y <b>z</b> <custom>", "x\ny z <custom>", [("bold", "z", "")]),
        ("<div>\nkept\n</div>", "<div>\nkept\n</div>", []),
        ("a <!-- hidden --> b", "a  b", []),
        ("> a\n> > b", "a\nb", [("blockquote", "a\nb", "")]),
        ("> quoted\n> more", "quoted\nmore", [("blockquote", "quoted\nmore", "")]),
        ("```python\nprint(1)\n```", "print(1)", [("pre", "print(1)", "python")]),
        ("```", "```", []),
        (
            "| a | b |\n|---|---|\n| 日本 | **x** `y` |\n| | z |",
            "a    │ b\n─────┼────\n日本 │ x y\n     │ z",
            [("pre", "a    │ b\n─────┼────\n日本 │ x y\n     │ z", "")],
        ),
        (
            f"| name | text | note |\n|-|-|-|\n| one | {'long ' * 20}| yes |\n| two | short | |",
            f"one\ntext: {'long ' * 19}long\nnote: yes\n\ntwo\ntext: short",
            [("bold", "one", ""), ("bold", "two", "")],
        ),
    ],
)  # fmt: skip
def test_markdown_becomes_text_and_entities(markdown: str, text: str, formats: list[tuple[str, str, str]]) -> None:
    [body] = render(markdown)
    assert body.text == text
    assert list_formats(body) == formats


@pytest.mark.parametrize("markdown", ["", "  \n\n "])
def test_an_empty_text_is_no_message(markdown: str) -> None:
    assert render_markdown(markdown) == []


# ---- splitting -----------------------------------------------------------------------------------------------


def test_long_text_is_cut_between_paragraphs_and_nothing_is_lost() -> None:
    paragraphs = [f"**{number}** " + "word " * 150 for number in range(20)]
    bodies = render("\n\n".join(paragraphs))
    assert len(bodies) > 3
    assert all(body.text[0].isdigit() for body in bodies)
    assert "\n\n".join(body.text for body in bodies).split() == " ".join(paragraphs).replace("*", "").split()
    bold = [text for body in bodies for kind, text, _ in list_formats(body) if kind == "bold"]
    assert bold == [str(number) for number in range(20)]


def test_a_block_of_code_longer_than_a_message_goes_on_as_code() -> None:
    lines = [f"line_{number} = {number}" for number in range(800)]
    bodies = render("Before\n\n```python\n" + "\n".join(lines) + "\n```\n\nAfter")
    pieces = [
        text for body in bodies for kind, text, language in list_formats(body) if (kind, language) == ("pre", "python")
    ]
    assert len(pieces) == len(bodies) > 3
    assert "\n".join(pieces).splitlines() == lines
    assert bodies[0].text.startswith("Before")
    assert bodies[-1].text.endswith("After")


def test_a_block_of_code_that_fits_into_a_message_is_not_cut() -> None:
    code = "\n".join(f"print({number})" for number in range(150))
    bodies = render("word " * 500 + f"\n\n```\n{code}\n```")
    assert [text for body in bodies for kind, text, _ in list_formats(body) if kind == "pre"] == [code]


def test_a_table_that_is_cut_has_its_header_again() -> None:
    bodies = render("| name | value |\n|-|-|\n" + "| some name | some value |\n" * 300)
    assert len(bodies) > 1
    assert all(body.text.startswith("name      │ value\n") for body in bodies)


@pytest.mark.parametrize("offset", range(4))
def test_an_emoji_at_the_limit_stays_whole(offset: int) -> None:
    family = "👩🏽‍🚀"  # five code points, seven UTF-16 units
    text = "x" * offset + family * 2000
    bodies = render(text)
    assert "".join(body.text for body in bodies) == text
    assert all(body.text.removeprefix("x" * offset).replace(family, "") == "" for body in bodies)


def test_text_without_any_break_is_cut_at_the_limit() -> None:
    bodies = render("a" * 10_000)
    assert [len(body.text) for body in bodies] == [MAX_PIECE_UNITS, MAX_PIECE_UNITS, 10_000 - 2 * MAX_PIECE_UNITS]


@pytest.mark.parametrize(
    "unit",
    [
        "- 1. ",
        "> - ",
        "**_",
        "||a\n> > > ",
        "\\[",
        "$x^{",
        "|a|\n|-|\n",
        "**a ",
        "~a ",
        "<b>x",
        "[a](b",
        "> ",
        "😀",
        "```\na\n",
    ],
)
def test_rendering_takes_time_in_proportion_to_the_text(unit: str) -> None:
    def measure(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        start = time.thread_time()
        render_markdown(text)
        return max(time.thread_time() - start, 0.005)

    measure(1_000)
    # On a busy machine one measurement may be far off.
    assert any(measure(40_000) / measure(4_000) < 50 for _ in range(3))


def test_a_message_has_at_most_a_hundred_formats_and_keeps_its_links() -> None:
    [body] = render("_a_ " * 150 + "[b](https://e.org)")
    assert len(body.entities) == 100
    assert list_formats(body)[-1] == ("text_link", "b", "https://e.org")


@pytest.mark.parametrize("unit", ["- 1. ", "> - "])
def test_lists_in_lists_cannot_grow_beyond_their_text(unit: str) -> None:
    markdown = unit * 2000 + "end"
    assert sum(map(len, render_markdown(markdown))) < 20 * len(markdown)


def test_a_table_cannot_grow_beyond_its_text() -> None:
    markdown = f"| {'a' * 5000} | b |\n|-|-|\n" + "| x | y |\n" * 1000
    assert sum(map(len, render_markdown(markdown))) < 10 * len(markdown)


# ---- rich messages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markdown", "is_rich"),
    [
        ("| a | b |\n|-|-|\n| 1 | 2 |", True),
        ("# Title\n\ntext", True),
        ("$$x^2$$", True),
        ("**bold** and `code`", False),
        ("# Title\n\n" + "word " * 900, False),  # apps show only the beginning of long ones
    ],
)
def test_rich_messages_are_used_only_where_they_pay(markdown: str, is_rich: bool) -> None:
    bodies = render(markdown, uses_rich_messages=True)
    assert [body.rich for body in bodies if body.rich] == ([markdown] if is_rich else [])
    assert all(body.text for body in bodies)  # what is sent if Telegram refuses
    assert not any(body.rich for body in render(markdown))


# ---- other parameters ----------------------------------------------------------------------------------------


def test_bodies_are_json_with_text_and_entities() -> None:
    assert [json.loads(body) for body in render_markdown("**é**")] == [
        {"text": "é", "entities": [{"type": "bold", "offset": 0, "length": 1}]}
    ]


@pytest.mark.parametrize(
    ("media_type", "size", "method"),
    [
        ("image/png", 1000, "photo"),
        ("image/png", 11 * 1024 * 1024, "document"),
        ("image/svg+xml", 1000, "document"),
        ("audio/ogg; codecs=opus", 1000, "voice"),
        ("audio/mpeg", 1000, "audio"),
        ("video/mp4", 1000, "video"),
        ("application/pdf", 1000, "document"),
    ],
)
def test_files_are_sent_as_what_they_are(media_type: str, size: int, method: str) -> None:
    assert choose_file_method(media_type, size) == method


def test_the_menu_has_the_commands_that_telegram_allows() -> None:
    commands = [
        ("new", "Start"),
        ("a-b", "Has a dash"),
        ("Big", "Has a capital"),
        ("x" * 33, "Too long"),
        ("a_1", "Fine"),
    ]
    assert choose_menu_commands(commands) == [("new", "Start"), ("a_1", "Fine")]
    assert len(choose_menu_commands([(f"c{number}", "Same") for number in range(150)])) == 100


def test_draft_ids_are_stable_positive_and_differ() -> None:
    ids = {compute_draft_id(f"t_{number}") for number in range(1000)}
    assert len(ids) == 1000
    assert all(0 < draft_id < 2**31 for draft_id in ids)
    assert compute_draft_id("t_1") == compute_draft_id("t_1")

"""Texts are split into messages at good places, and nothing of them is lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, strategies as st

from palaver.core.text import find_cut
from palaver.delivery.model import Capabilities, LengthUnit, measure_length
from palaver.delivery.splitting import FILL_PERCENT, split_markdown

if TYPE_CHECKING:
    from collections.abc import Callable


def split(markdown: str, limit: int, unit: LengthUnit = LengthUnit.CHARACTERS) -> list[str]:
    """Split into messages of at most `limit`, as if the platform's own limit was a little higher."""
    limit_of_platform = -(-limit * 100 // FILL_PERCENT)
    return split_markdown(markdown, Capabilities(max_length=limit_of_platform, length_unit=unit))


@pytest.mark.parametrize(
    ("markdown", "limit", "messages"),
    [
        pytest.param("short", 10, ["short"], id="short text"),
        pytest.param(" \n", 10, [], id="blank text"),
        pytest.param("one one\n\ntwo two\n\nthree", 18, ["one one\n\ntwo two", "three"], id="paragraphs"),
        pytest.param("one one one\ntwo\n\nthree three", 20, ["one one one\ntwo", "three three"], id="not at lines"),
        pytest.param("- one\n- two\n  more\n- three", 16, ["- one", "- two\n  more", "- three"], id="list items"),
        pytest.param(
            "- one\n  - two\n  - three\n    more\n- four",
            20,
            ["- one\n  - two", "- three\n  more", "- four"],
            id="items of an inner list",
        ),
        pytest.param(
            "one one one\n\nCode:\n\n```\na\nb\n```",
            30,
            ["one one one", "Code:\n\n```\na\nb\n```"],
            id="introduction stays with what it introduces",
        ),
        pytest.param("one two three four", 9, ["one two", "three", "four"], id="words"),
        pytest.param(
            "Go to https://example.org/a/b now", 24, ["Go to", "https://example.org/a/b", "now"], id="address"
        ),
        pytest.param(
            "See [the long page](https://x.y) now", 30, ["See", "[the long page](https://x.y)", "now"], id="link"
        ),
        pytest.param("aaaaaaaaaaaa", 5, ["aaaaa", "aaaaa", "aa"], id="long word"),
        pytest.param(
            "# Title\n\ntext text text\n\n# Next\n\nmore more",
            30,
            ["# Title\n\ntext text text", "# Next\n\nmore more"],
            id="heading stays with its text",
        ),
        pytest.param(
            "```py\na = 1\nb = 2\nc = 3\nd = 4\n```\nend",
            24,
            ["```py\na = 1\nb = 2\n```", "```py\nc = 3\nd = 4\n```", "end"],
            id="fence",
        ),
        pytest.param(
            "- ~~~~ sh\n  one one one\n    two\n  three\n  ~~~~\n- end",
            32,
            ["- ~~~~ sh\n  one one one\n~~~~", "~~~~ sh\n  two\nthree\n~~~~", "- end"],
            id="fence in a list",
        ),
        pytest.param(
            "````md\n```py\na = 1\n```\nb = 2\n````\nend",
            28,
            ["````md\n```py\na = 1\n```\n````", "````md\nb = 2\n````\nend"],
            id="fence of four marks around one of three",
        ),
        pytest.param("> one two three four", 12, ["> one two", "> three four"], id="quote of one line"),
        pytest.param(">>> one two three", 16, [">>> one two", ">>> three"], id="quote in a quote"),
        pytest.param("> a\n> > two two two three\nb", 18, ["> a\n> > two two", "> > two three\nb"], id="quoted lines"),
        pytest.param(
            "> ```py\n> a = 1\n> b = 2\n> c = 3\n> ```\n> end",
            32,
            ["> ```py\n> a = 1\n> b = 2\n> ```", "> ```py\n> c = 3\n> ```\n> end"],
            id="fence in a quote",
        ),
        pytest.param(
            "> ```\n> one one two two three\nend",
            28,
            ["> ```\n> one one two\n> ```", "> ```\n> two three\nend"],
            id="fence that ends with its quote",
        ),
        pytest.param(
            "|a|b|\n|-|-|\n|1|2|\n|3|4|\n|5|6|\n\nend",
            24,
            ["|a|b|\n|-|-|\n|1|2|\n|3|4|", "|a|b|\n|-|-|\n|5|6|\n\nend"],
            id="table",
        ),
        pytest.param("漢字，漢字漢字漢字漢字", 6, ["漢字，漢字漢", "字漢字漢字"], id="no spaces"),
        pytest.param("漢字漢字，漢字漢字漢字", 6, ["漢字漢字，", "漢字漢字漢字"], id="after a comma"),
    ],
)
def test_a_text_is_split_at_good_places(markdown: str, limit: int, messages: list[str]) -> None:
    assert split(markdown, limit) == messages


@pytest.mark.parametrize(
    ("unit", "messages"),
    [
        (LengthUnit.CHARACTERS, ["😀é😀é", "😀é"]),
        (LengthUnit.UTF16, ["😀é", "😀é", "😀é"]),
        (LengthUnit.BYTES, ["😀", "é", "😀", "é", "😀", "é"]),
    ],
)
def test_the_platform_counts_in_its_own_unit(unit: LengthUnit, messages: list[str]) -> None:
    assert split("😀é😀é😀é", 4, unit) == messages


@pytest.mark.parametrize("character", ["👨‍👩‍👧", "🇩🇪", "👍🏽", "e\u0301", "한", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\r\n"], ids=ascii)
def test_what_people_see_as_one_character_stays_whole(character: str) -> None:
    length = len(character)
    text = character * 5
    cuts = {find_cut(text, 0, end) for end in range(length, len(text))}
    assert cuts == {length * number for number in range(1, 5)}


def test_a_character_that_is_longer_than_a_message_is_split_all_the_same() -> None:
    messages = split("e" + "\u0301" * 20, 6)
    assert "".join(messages) == "e" + "\u0301" * 20
    assert max(map(len, messages)) <= 6


def test_a_text_that_nearly_fills_the_limit_is_split() -> None:
    capabilities = Capabilities(max_length=100)
    assert len(split_markdown("word " * 18, capabilities)) == 1
    assert len(split_markdown("word " * 19, capabilities)) == 2


def test_there_is_no_limit_without_a_length() -> None:
    assert split_markdown("word " * 100_000, Capabilities()) == ["word " * 100_000]


def test_an_adapter_can_measure_what_it_makes_of_the_text() -> None:
    def measure_escaped(text: str) -> int:
        return len(text.replace("&", "&amp;"))

    text = "plain words " * 8 + "\n\n" + "& " * 60
    messages = split_markdown(text, Capabilities(max_length=100), measure_escaped)
    assert all(measure_escaped(message) <= 90 for message in messages)
    assert remove_spaces("".join(messages)) == remove_spaces(text)


def test_an_adapter_can_say_that_the_rendered_text_is_shorter() -> None:
    def measure_without_address(text: str) -> int:
        return len(re.sub(r"\(.*?\)", "", text))

    text = f"See [this](https://example.org/{'a' * 500}) page."
    assert split_markdown(text, Capabilities(max_length=100), measure_without_address) == [text]


def test_a_text_of_which_the_platform_counts_more_becomes_even_messages() -> None:
    messages = split_markdown("word " * 400, Capabilities(max_length=1000), lambda text: 20 + 2 * len(text))
    assert len(messages) == 5
    assert all(len(message) > 400 for message in messages[:-1])


def remove_spaces(text: str) -> str:
    return "".join(text.split())


MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *("```py\n", "```\n", "~~~\n", "  ```\n", "- ```c\n", "````\n", "\n", "\n\n", "\n   \n", " ", "\t"),
                *("|a|b|\n|-|-|\n", "|1|2|\n", "| long cell | other |\n", "# Title\n", "- item\n", "1. item\n"),
                *(
                    "> quote\n",
                    "> ```py\n",
                    "> > ",
                    "[a link](https://example.org/x_(y))",
                    "`code here`",
                    "**bold**",
                    "👨‍👩‍👧",
                    "e\u0301",
                ),
            ]
        ),
        st.text(max_size=30),
    ),
    max_size=40,
).map("".join)
MARKS = re.compile(r"[\s`~>]+")


@example("\u0800", 2, LengthUnit.BYTES)  # one character that is larger than a message
@given(MARKDOWN, st.integers(1, 80), st.sampled_from(LengthUnit))
def test_every_message_fits_and_the_text_is_whole(markdown: str, limit: int, unit: LengthUnit) -> None:
    messages = split(markdown, limit, unit)
    for message in messages:
        assert message.strip()
        assert measure_length(message, unit) <= limit or len(message) == 1
    assert is_contained_in_order(MARKS.sub("", markdown), MARKS.sub("", "".join(messages)))


def is_contained_in_order(text: str, whole: str) -> bool:
    """Whether `whole` is `text` with nothing missing; openings of fences and headers of tables may be in it again."""
    characters = iter(whole)
    return all(character in characters for character in text)


@given(st.text(alphabet=st.characters(exclude_characters="`~|>"), max_size=300), st.integers(1, 60))
def test_without_fences_tables_and_quotes_nothing_is_added(markdown: str, limit: int) -> None:
    assert remove_spaces("".join(split(markdown, limit))) == remove_spaces(markdown)


@example(["     ", "     ", "aaaaaaaaa"], 30)
@given(st.lists(st.text("abc ", min_size=1, max_size=12), min_size=1, max_size=60), st.integers(30, 90))
def test_code_stays_code_in_every_message(lines: list[str], limit: int) -> None:
    messages = split("```py\n" + "\n".join(lines) + "\n```", limit)
    assert all(message.startswith("```py\n") and message.endswith("\n```") for message in messages)
    code = "\n".join(message.removeprefix("```py\n").removesuffix("\n```") for message in messages)
    assert remove_spaces(code) == remove_spaces("".join(lines))


@pytest.mark.parametrize("make_text", [lambda n: "a " * n, lambda n: "a\n" * n, lambda n: "```\n" + "x\n" * n])
def test_messages_are_well_filled(make_text: Callable[[int], str]) -> None:
    text = make_text(2000)
    messages = split(text, 100)
    assert len(messages) <= 3 * len(text) / 100

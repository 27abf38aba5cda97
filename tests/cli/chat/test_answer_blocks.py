"""Tests of splitting a growing answer into blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from palaver.cli.chat.answer_blocks import AnswerBlocks, Block, count_finished_chars
from palaver.sessions.draft import Piece, PieceKind

MARKDOWN = """\
# Title

Some *words*
on two lines.

1. one

2. two

   with more
- other

```python
a = 1

b = 2
```

| a | b |
|---|---|
| 1 | 2 |

> quoted

end"""


def make_text_piece(text: str) -> Piece:
    return Piece(PieceKind.TEXT, text)


def split_into_blocks(pieces: list[Piece]) -> list[Block]:
    answer = AnswerBlocks()
    return [block for piece in pieces for block in answer.add(piece)] + list(answer.end())


@given(st.lists(st.integers(1, 40), max_size=80))
def test_however_an_answer_is_split_its_blocks_contain_all_of_it_and_complete_markdown(sizes: list[int]) -> None:
    rest, pieces = MARKDOWN, []
    for size in sizes:
        pieces.append(make_text_piece(rest[:size]))
        rest = rest[size:]
    blocks = split_into_blocks([*pieces, make_text_piece(rest)])
    assert "".join(block.text for block in blocks) == MARKDOWN
    for block in blocks:
        assert isinstance(block, Piece)
        assert block.kind is PieceKind.TEXT
        assert block.text.count("```") != 1
        assert ("1. one" in block.text) == ("with more" in block.text)
        assert ("| a |" in block.text) == ("| 1 |" in block.text)


@pytest.mark.parametrize(
    ("markdown", "finished"),
    [
        ("one line\n", ""),
        ("a paragraph\n\n", ""),
        ("a paragraph\n\nanother\n", "a paragraph\n\n"),
        ("```\ncode\n\nmore\n", ""),
        ("```\ncode\n```\nafter\n", "```\ncode\n```\n"),
        ("- a\n\n- b\n", ""),
        ("line with \u2028 in it\n\nnext\n", "line with \u2028 in it\n\n"),
    ],
)
def test_only_blocks_that_cannot_change_are_finished(markdown: str, finished: str) -> None:
    assert markdown[: count_finished_chars(markdown)] == finished


def test_the_tail_contains_what_may_still_change() -> None:
    answer = AnswerBlocks()
    assert answer.add(make_text_piece("first\n\nsec")) == []
    assert answer.add(make_text_piece("ond\n")) == [make_text_piece("first\n\n")]
    assert answer.tail == [make_text_piece("second\n")]


def test_a_tool_call_stays_in_the_tail_until_its_result_arrives() -> None:
    answer = AnswerBlocks()
    assert answer.add(Piece(PieceKind.REASONING, "hm")) == []
    call = Piece(PieceKind.CALL, call_id="c", name="find", arguments="{}")
    assert answer.add(call) == [Piece(PieceKind.REASONING, "hm")]
    assert answer.tail == [call]
    result = Piece(PieceKind.RESULT, "found", call_id="c", name="find", failed=True, duration_ms=40)
    assert answer.add(result) == [replace(result, arguments="{}")]
    assert answer.tail == []

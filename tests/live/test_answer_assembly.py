"""Tests of assembling an answer from its draft and its messages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from palaver.core.ids import PersonId, SessionId, TurnId
from palaver.live.feed_events import AnswerAssembly, AnswerTextStream, DraftGrew, split_message
from palaver.sessions.draft import Piece, PieceKind, build_turn_messages
from palaver.sessions.message import Message
from palaver.sessions.turn import Turn, TurnKind, TurnState

TURN = TurnId("t_1")
CALL = Piece(PieceKind.CALL, call_id="c", name="find", arguments='{"a": 1}')
RESULT = Piece(PieceKind.RESULT, "found", call_id="c", name="find", failed=True, duration_ms=40)
CALL_DATA = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
RESULT_DATA = {"tool_call_id": "c", "tool_name": "find", "is_error": True, "duration_ms": 40}


def make_text(text: str) -> Piece:
    return Piece(PieceKind.TEXT, text)


def make_reasoning(text: str) -> Piece:
    return Piece(PieceKind.REASONING, text)


def make_growth(*pieces: Piece) -> DraftGrew:
    return DraftGrew(TURN, pieces)


def make_restart(*pieces: Piece) -> DraftGrew:
    return DraftGrew(TURN, pieces, replaces_draft=True)


def make_message(content: str | None, *, role: str = "assistant", **extra: Any) -> Message:
    return Message.from_dict({"role": role, "content": content, "answers": 1, **extra})


CALL_MESSAGE = make_message(None, tool_calls=[CALL_DATA])
RESULT_MESSAGE = make_message("found", role="tool", **RESULT_DATA)


@pytest.mark.parametrize(
    ("items", "new_pieces"),
    [
        pytest.param([make_message("Hello.")], [make_text("Hello.")], id="no draft"),
        pytest.param(
            [make_growth(make_text("Hel")), make_growth(make_text("lo.")), make_message("Hello.")],
            [make_text("Hel"), make_text("lo.")],
            id="the draft was complete",
        ),
        pytest.param(
            [make_growth(make_text("Hel")), make_message("Hello.")],
            [make_text("Hel"), make_text("lo.")],
            id="the log has more than the draft",
        ),
        pytest.param(
            [make_growth(make_text("One. Two.")), make_message("One. "), make_message("Two. Three.")],
            [make_text("One. Two."), make_text(" Three.")],
            id="one piece of the draft becomes two messages",
        ),
        pytest.param(
            [make_growth(make_reasoning("Hmm"), make_text("Hi")), make_message("Hi.", reasoning="Hmm, well")],
            [make_reasoning("Hmm"), make_text("Hi"), make_reasoning(", well"), make_text(".")],
            id="text and reasoning are counted separately",
        ),
        pytest.param([CALL_MESSAGE, RESULT_MESSAGE], [CALL, RESULT], id="a tool call without a draft"),
        pytest.param([make_growth(CALL), CALL_MESSAGE, RESULT_MESSAGE], [CALL, RESULT], id="a result only in the log"),
        pytest.param([make_growth(CALL, RESULT), CALL_MESSAGE, RESULT_MESSAGE], [CALL, RESULT], id="a call in both"),
        pytest.param(
            [make_growth(make_text("Hello")), make_restart(make_text("He")), make_message("Hello")],
            [make_text("Hello"), make_text("He"), make_text("llo")],
            id="after a restart only the new draft counts",
        ),
    ],
)
def test_each_piece_is_new_once(items: list[DraftGrew | Message], new_pieces: list[Piece]) -> None:
    assembly = AnswerAssembly(TURN)
    received: list[Piece] = []
    for item in items:
        if isinstance(item, DraftGrew):
            assembly.grow_draft(item)
            received += item.pieces
        else:
            received += assembly.confirm_message(item)
    assert received == new_pieces


@pytest.mark.parametrize(
    ("items", "starts_over"),
    [
        pytest.param([make_restart(make_text("a"))], False, id="the first item"),
        pytest.param([make_growth(make_text("a")), make_growth(make_text("b"))], False, id="more of the same draft"),
        pytest.param([make_growth(make_text("a")), make_restart()], True, id="text"),
        pytest.param([make_growth(make_reasoning("a")), make_restart()], True, id="reasoning"),
        pytest.param([make_growth(CALL), make_restart(CALL)], True, id="a tool call"),
        pytest.param([make_growth(make_text("a")), make_restart(), make_restart()], False, id="an empty draft"),
    ],
)
def test_an_answer_starts_over_if_its_draft_is_replaced(items: list[DraftGrew], starts_over: bool) -> None:
    assembly = AnswerAssembly(TURN)
    assert [assembly.grow_draft(item) for item in items][-1] is starts_over


def test_a_draft_that_is_replaced_after_the_log_has_it_does_not_start_over() -> None:
    assembly = AnswerAssembly(TURN)
    assembly.grow_draft(make_growth(make_text("Hello.")))
    assembly.confirm_message(make_message("Hello."))
    assert not assembly.grow_draft(make_restart(make_text("More")))


def test_readers_that_join_later_get_the_draft_so_far() -> None:
    assembly = AnswerAssembly(TURN)
    assembly.grow_draft(make_growth(make_text("dropped")))
    assembly.grow_draft(make_restart(make_text("Hel")))
    assembly.grow_draft(make_growth(make_text("lo"), CALL))
    assert assembly.draft.pieces == [make_text("Hello"), CALL]


def test_splitting_the_messages_of_a_draft_gives_its_pieces() -> None:
    pieces = [make_reasoning("Hmm"), make_text("I look."), CALL, RESULT, make_text("Found.")]
    messages = [Message.from_dict(data) for data in build_turn_messages(pieces)]
    assert [piece for message in messages for piece in split_message(message)] == pieces


def test_tool_calls_of_an_unknown_format_are_left_out() -> None:
    message = make_message("Hi", tool_calls=["call", {"id": "c"}, {"id": "c", "function": "find"}, CALL_DATA])
    assert list(split_message(message)) == [make_text("Hi"), CALL]


# ---- the text for readers that cannot drop what they received --------------------------------------------


@pytest.mark.parametrize(
    ("items", "chunks", "text"),
    [
        pytest.param([make_message("Hello.")], ["Hello."], "Hello.", id="no draft"),
        pytest.param(
            [make_growth(make_text("Hel")), make_growth(make_text("lo.")), make_message("Hello.")],
            ["Hel", "lo.", ""],
            "Hello.",
            id="the draft was complete",
        ),
        pytest.param(
            [make_growth(make_text("Hel")), make_message("Hello.")],
            ["Hel", "lo."],
            "Hello.",
            id="the log has more than the draft",
        ),
        pytest.param(
            [
                make_growth(make_reasoning("Hmm")),
                make_growth(make_text("I look.")),
                make_growth(CALL),
                make_growth(RESULT),
                make_growth(make_text("Found.")),
                make_message("I look.", reasoning="Hmm", tool_calls=[CALL_DATA]),
                RESULT_MESSAGE,
                make_message("Found."),
            ],
            ["", "I look.", "", "", "\n\nFound.", ""],
            "I look.\n\nFound.",
            id="texts around a tool call",
        ),
        pytest.param(
            [
                make_growth(make_text("Hello")),
                make_restart(make_text("He")),
                make_growth(make_text("llo wor")),
                make_growth(make_text("ld")),
                make_message("Hello world"),
            ],
            ["Hello", "", " wor", "ld", ""],
            "Hello world",
            id="another process gives the same answer",
        ),
        pytest.param(
            [make_growth(make_text("Hello")), make_restart(make_text("Good day")), make_message("Good day")],
            ["Hello", "", "\n\nGood day"],
            "Good day",
            id="another process gives another answer",
        ),
        pytest.param(
            [make_growth(make_text("Hello")), make_restart(), make_message("Hello")],
            ["Hello", "", ""],
            "Hello",
            id="the new draft brings nothing new",
        ),
        pytest.param([make_growth(make_text("Hel"))], ["Hel", "\n\n"], "", id="the turn failed and left no message"),
        pytest.param([], [""], "", id="nothing at all"),
        pytest.param(
            [
                make_message("before", answers=0),
                make_message("mine", answers=1),
                make_message("question", role="user"),
                make_message("merged", answers=2),
                make_message("after", answers=3),
            ],
            ["mine\n\nmerged"],
            "mine\n\nmerged",
            id="answers of other turns are left out",
        ),
        pytest.param([make_message("  \n"), make_message("Hi")], ["Hi"], "Hi", id="blank messages are left out"),
    ],
)
def test_the_text_is_streamed(items: list[DraftGrew | Message], chunks: list[str], text: str) -> None:
    stream = AnswerTextStream(first_seq=1)
    received: list[str] = []
    for item in items:
        if isinstance(item, DraftGrew):
            received.append(stream.grow_draft(item))
        else:
            stream.add_message(item)
    received.append(stream.end(make_ended_turn(input_seq=2)))
    assert received == chunks
    assert stream.text == text


def make_ended_turn(*, input_seq: int) -> Turn:
    return Turn(
        id=TURN,
        session_id=SessionId("s"),
        kind=TurnKind.ANSWER,
        state=TurnState.DONE,
        input_seq=input_seq,
        attempt=1,
        person_id=PersonId("p"),
        created_at=datetime(2026, 11, 15, tzinfo=UTC),
    )

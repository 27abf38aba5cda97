"""A growing answer: what a reader hears adds up to what was said, whenever it looks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palaver.domain.draft import START, Draft, Piece, PieceKind, messages_of

words = st.builds(Piece, st.sampled_from([PieceKind.TEXT, PieceKind.REASONING]), st.text())
calls = st.builds(
    lambda n, at: Piece(PieceKind.CALL, call_id=str(n), name="look", arguments="{}", began_at=at),
    st.integers(0, 9),
    st.sampled_from(["", "2026-11-15T08:12:00+00:00"]),
)
results = st.builds(
    lambda n, failed, took: Piece(
        PieceKind.RESULT, "seen", call_id=str(n), name="look", failed=failed, duration_ms=took
    ),
    st.integers(0, 9),
    st.booleans(),
    st.none() | st.integers(0, 10**6),
)
pieces = st.lists(st.one_of(words, calls, results), max_size=30)


@given(pieces, st.lists(st.integers(0, 30)))
def test_a_reader_who_looks_now_and_then_has_read_everything_in_the_end(said: list[Piece], looks: list[int]) -> None:
    draft, heard, position = Draft(), Draft(), START
    for i, piece in enumerate(said):
        draft.add(piece)
        if i in looks:
            heard.extend(draft.since(position))
            position = draft.position
    heard.extend(draft.since(position))
    assert list(heard.pieces) == list(draft.pieces)


@given(pieces)
def test_a_piece_survives_being_written_down(said: list[Piece]) -> None:
    assert [Piece.from_dict(piece.to_dict()) for piece in said] == said


@given(pieces)
def test_messages_hold_every_word_call_and_result_once(said: list[Piece]) -> None:
    draft = Draft()
    draft.extend(said)
    messages = messages_of(draft.pieces)
    spoken = "".join(message["content"] or "" for message in messages if message["role"] == "assistant")
    assert spoken == draft.text
    assert "".join(message.get("reasoning", "") for message in messages) == "".join(
        piece.text for piece in said if piece.kind is PieceKind.REASONING
    )
    called = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    assert called == [piece.call_id for piece in said if piece.kind is PieceKind.CALL]
    answered = [
        (m["tool_call_id"], m.get("is_error", False), m.get("duration_ms")) for m in messages if m["role"] == "tool"
    ]
    told = [piece for piece in said if piece.kind is PieceKind.RESULT]
    assert answered == [(piece.call_id, piece.failed, piece.duration_ms) for piece in told]

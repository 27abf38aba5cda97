"""A draft: a reader gets everything exactly once, whenever it reads."""

from __future__ import annotations

from hypothesis import given, strategies as st

from palaver.sessions.draft import START_POSITION, Draft, Piece, PieceKind, build_turn_messages

growing_pieces = st.builds(Piece, st.sampled_from([PieceKind.TEXT, PieceKind.REASONING]), st.text())
calls = st.builds(
    lambda n, started_at: Piece(PieceKind.CALL, call_id=str(n), name="look", arguments="{}", started_at=started_at),
    st.integers(0, 9),
    st.sampled_from(["", "2026-11-15T08:12:00+00:00"]),
)
results = st.builds(
    lambda n, failed, duration: Piece(
        PieceKind.RESULT, "seen", call_id=str(n), name="look", failed=failed, duration_ms=duration
    ),
    st.integers(0, 9),
    st.booleans(),
    st.none() | st.integers(0, 10**6),
)
pieces = st.lists(st.one_of(growing_pieces, calls, results), max_size=30)


@given(pieces, st.lists(st.integers(0, 30)))
def test_a_reader_gets_everything_however_often_it_reads(added: list[Piece], reads_after: list[int]) -> None:
    draft, received, position = Draft(), Draft(), START_POSITION
    for i, piece in enumerate(added):
        draft.add(piece)
        if i in reads_after:
            received.extend(draft.get_pieces_since(position))
            position = draft.position
    received.extend(draft.get_pieces_since(position))
    assert list(received.pieces) == list(draft.pieces)


@given(pieces)
def test_a_piece_survives_conversion_to_a_dict(added: list[Piece]) -> None:
    assert [Piece.from_dict(piece.to_dict()) for piece in added] == added


@given(pieces)
def test_messages_contain_all_text_calls_and_results_once(added: list[Piece]) -> None:
    draft = Draft()
    draft.extend(added)
    messages = build_turn_messages(draft.pieces)
    answer_text = "".join(message["content"] or "" for message in messages if message["role"] == "assistant")
    assert answer_text == draft.text
    assert "".join(message.get("reasoning", "") for message in messages) == "".join(
        piece.text for piece in added if piece.kind is PieceKind.REASONING
    )
    call_ids = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    assert call_ids == [piece.call_id for piece in added if piece.kind is PieceKind.CALL]
    result_fields = [
        (m["tool_call_id"], m.get("is_error", False), m.get("duration_ms")) for m in messages if m["role"] == "tool"
    ]
    result_pieces = [piece for piece in added if piece.kind is PieceKind.RESULT]
    assert result_fields == [(piece.call_id, piece.failed, piece.duration_ms) for piece in result_pieces]

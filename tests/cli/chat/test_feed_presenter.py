"""Tests of turning the items of a feed into what a terminal shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from palaver.cli.chat.feed_presenter import ANSWER_RESTARTED_TEXT, AnswerEnd, FeedPresenter, Note, PersonMessage
from palaver.core.ids import PersonId, SessionId, TurnId
from palaver.live.feed_events import DraftGrew, EventAppended, FeedItem, NoticeSent, TurnChanged
from palaver.sessions.draft import Piece, PieceKind
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Message
from palaver.sessions.turn import Turn, TurnKind, TurnState

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ONE, TWO = TurnId("t_1"), TurnId("t_2")
ME = PersonId("p_me")


def make_text_piece(text: str) -> Piece:
    return Piece(PieceKind.TEXT, text)


def make_turn_change(state: TurnState, turn_id: TurnId = ONE, *, input_seq: int = 1) -> TurnChanged:
    return TurnChanged(
        Turn(
            id=turn_id,
            session_id=SessionId("s"),
            kind=TurnKind.ANSWER,
            state=state,
            input_seq=input_seq,
            attempt=1,
            person_id=ME,
            created_at=NOW,
        )
    )


def make_message_event(seq: int, message: dict[str, Any], **event: Any) -> EventAppended:
    return EventAppended(Event(seq=seq, kind=EventKind.MESSAGE, at=NOW, message=Message.from_dict(message), **event))


def get_text(presenter: FeedPresenter, *items: FeedItem) -> str:
    display_items = [display_item for item in items for display_item in presenter.present(item)]
    return "".join(piece.text for piece in display_items if isinstance(piece, Piece))


def test_an_answer_that_was_shown_as_a_draft_is_not_shown_again_from_the_log() -> None:
    presenter = FeedPresenter(ME)
    items: list[FeedItem] = [
        make_turn_change(TurnState.RUNNING),
        DraftGrew(ONE, [make_text_piece("Hel")]),
        DraftGrew(ONE, [make_text_piece("lo.")]),
    ]
    assert get_text(presenter, *items) == "Hello."
    assert presenter.is_running
    assert presenter.present(make_message_event(2, {"role": "assistant", "content": "Hello.", "answers": 1})) == []
    assert presenter.present(make_turn_change(TurnState.DONE)) == [AnswerEnd()]
    assert not presenter.is_running


def test_what_the_draft_did_not_bring_is_shown_from_the_log() -> None:
    presenter = FeedPresenter(ME)
    get_text(presenter, make_turn_change(TurnState.RUNNING), DraftGrew(ONE, [make_text_piece("Hel")]))
    assert get_text(presenter, make_message_event(2, {"role": "assistant", "content": "Hello.", "answers": 1})) == "lo."
    presenter.present(make_turn_change(TurnState.DONE))
    assert (
        get_text(presenter, make_message_event(4, {"role": "assistant", "content": "Whole.", "answers": 3})) == "Whole."
    )


def test_tool_calls_and_results_are_shown_once() -> None:
    call = Piece(PieceKind.CALL, call_id="c", name="find", arguments='{"a": 1}')
    result = Piece(PieceKind.RESULT, "found", call_id="c", name="find", duration_ms=40)
    calls = [{"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}]
    found = {"role": "tool", "content": "found", "answers": 1}
    log = [
        make_message_event(2, {"role": "assistant", "content": None, "tool_calls": calls, "answers": 1}),
        make_message_event(3, found | {"tool_call_id": "c", "tool_name": "find", "duration_ms": 40}),
    ]
    presenter = FeedPresenter(ME)
    assert presenter.present(DraftGrew(ONE, [call])) == [call]
    assert [display_item for item in log for display_item in presenter.present(item)] == [result]
    assert [display_item for item in log for display_item in FeedPresenter(ME).present(item)] == [call, result]


def test_an_answer_that_starts_over_is_announced() -> None:
    presenter = FeedPresenter(ME)
    get_text(presenter, make_turn_change(TurnState.RUNNING), DraftGrew(ONE, [make_text_piece("Hel")]))
    assert presenter.present(DraftGrew(ONE, [make_text_piece("He")], replaces_draft=True)) == [
        AnswerEnd(),
        Note(ANSWER_RESTARTED_TEXT),
        make_text_piece("He"),
    ]
    assert get_text(presenter, make_message_event(2, {"role": "assistant", "content": "Hello", "answers": 1})) == "llo"


def test_messages_from_elsewhere_are_shown_with_their_author() -> None:
    presenter = FeedPresenter(ME, is_own_event=lambda event: event.seq == 1)
    assert presenter.present(make_message_event(1, {"role": "user", "content": "mine"})) == []
    assert presenter.present(make_message_event(2, {"role": "user", "content": "hi"}, person_id=ME)) == [
        PersonMessage("You (elsewhere)", "hi")
    ]
    bob = {"role": "user", "content": "ho", "author": {"name": "Bob"}}
    assert presenter.present(make_message_event(3, bob, person_id=PersonId("p_bob"))) == [PersonMessage("Bob", "ho")]
    assert presenter.present(make_message_event(4, {"role": "user", "content": "undone"}, hidden=True)) == []


@pytest.mark.parametrize(
    ("kind", "reason", "note"),
    [
        (EventKind.TURN_FAILED, "The key is wrong.", Note("The key is wrong.", is_error=True)),
        (EventKind.TURN_INTERRUPTED, "stopped", Note("Stopped")),
        (EventKind.TURN_INTERRUPTED, "interrupted_by_message", Note("Interrupted: A new message arrived.")),
    ],
)
def test_an_incomplete_answer_is_explained(kind: EventKind, reason: str, note: Note) -> None:
    event = Event(seq=3, kind=kind, at=NOW, facts={"turn": "t_1", "reason": reason})
    assert FeedPresenter(ME).present(EventAppended(event)) == [AnswerEnd(), note]


def test_a_failure_shows_what_the_provider_said() -> None:
    provider_facts = {"model": "openai:x", "status": 500, "detail": "The GPU is on fire."}
    facts = {"turn": "t_1", "reason": "OpenAI is unavailable."} | provider_facts
    event = Event(seq=3, kind=EventKind.TURN_FAILED, at=NOW, facts=facts)
    assert FeedPresenter(ME).present(EventAppended(event))[1:] == [
        Note("OpenAI is unavailable.", is_error=True),
        Note("openai:x (HTTP 500): The GPU is on fire."),
    ]


def test_an_automatic_title_is_not_announced() -> None:
    event = Event(seq=3, kind=EventKind.RENAMED, at=NOW, facts={"title": "Basil", "automatic": True})
    assert FeedPresenter(ME).present(EventAppended(event)) == []


def test_an_entry_that_can_not_be_read_is_mentioned_unless_it_is_hidden() -> None:
    event = Event(seq=2, kind=EventKind.UNREADABLE, at=NOW, facts={"stored_kind": "message", "reason": "too_deep"})
    assert FeedPresenter(ME).present(EventAppended(event)) == [Note("An entry of this conversation can't be read")]
    assert FeedPresenter(ME).present(EventAppended(replace(event, hidden=True))) == []


def test_an_answer_that_another_person_stopped_is_explained() -> None:
    facts = {"turn": "t_1", "reason": "stopped"}
    event = Event(seq=3, kind=EventKind.TURN_INTERRUPTED, at=NOW, facts=facts, person_id=PersonId("p_bob"))
    assert FeedPresenter(ME).present(EventAppended(event)) == [AnswerEnd(), Note("Stopped by someone else")]


def test_a_presenter_of_one_turn_shows_no_other_answer() -> None:
    presenter = FeedPresenter(None, turn_id=TWO)
    before: list[FeedItem] = [
        make_turn_change(TurnState.RUNNING, ONE),
        make_turn_change(TurnState.QUEUED, TWO, input_seq=2),
        DraftGrew(ONE, [make_text_piece("not mine")]),
        NoticeSent(ONE, "nor this"),
        make_message_event(2, {"role": "user", "content": "a question"}),
        make_message_event(3, {"role": "assistant", "content": "not mine", "answers": 1}),
        make_turn_change(TurnState.DONE, ONE),
    ]
    assert [display_item for item in before for display_item in presenter.present(item)] == []
    mine = make_message_event(4, {"role": "assistant", "content": "mine", "answers": 2})
    assert (
        get_text(
            presenter,
            make_turn_change(TurnState.RUNNING, TWO, input_seq=2),
            DraftGrew(TWO, [make_text_piece("mi")]),
            mine,
        )
        == "mine"
    )


def test_queued_messages_are_counted_and_a_dropped_one_does_not_end_the_answer() -> None:
    presenter = FeedPresenter(ME)
    for item in (
        make_turn_change(TurnState.RUNNING, ONE),
        DraftGrew(ONE, [make_text_piece("a")]),
        make_turn_change(TurnState.QUEUED, TWO, input_seq=2),
    ):
        presenter.present(item)
    assert (presenter.is_running, presenter.queued_count) == (True, 1)
    assert presenter.present(make_turn_change(TurnState.INTERRUPTED, TWO, input_seq=2)) == []
    assert (presenter.is_running, presenter.queued_count) == (True, 0)


@pytest.mark.parametrize("turn_id", [None, ONE])
def test_a_proposed_job_is_shown_with_the_commands_to_decide(turn_id: TurnId | None) -> None:
    facts = {
        "name": "Water plants",
        "prompt": "Remind me to water the plants.",
        "words": "every day at 07:00 (Europe/Vienna)",
        "next_slots": ["2026-11-17T07:00:00+01:00"],
        "cost_per_day": "0.0213",
        "toolsets": ["history"],
        "targets": ["origin", "telegram:-100"],
        "target_words": ["Terminal", "Telegram “Club”"],
    }
    presenter = FeedPresenter(ME, turn_id=turn_id)
    [note] = presenter.present(EventAppended(Event(seq=2, kind=EventKind.JOB_PROPOSED, at=NOW, facts=facts)))
    assert isinstance(note, Note)
    assert note.text.splitlines() == [
        "Create the job “Water plants”? It runs every day at 07:00 (Europe/Vienna).",
        "Next: Tue Nov 17, 07:00. Tools: history. Estimated cost: about $0.02 per day.",
        "Sends to: this conversation, Telegram “Club”.",
        "Task: Remind me to water the plants.",
        "Type /jobs confirm Water plants or /jobs reject Water plants.",
    ]

"""Tests of the JSON of messages and events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from palaver.core.ids import PersonId
from palaver.sessions.events import Event, EventKind
from palaver.sessions.message import Message, message_to_json
from palaver.sessions.usage import UsageTotals

ADA = PersonId("p_ada")
NOW = datetime(2026, 11, 15, 10, tzinfo=timezone(timedelta(hours=2)))
EMPTY_MESSAGE = {
    "role": "user",
    "content": "hi",
    "author": None,
    "tool_calls": None,
    "tool_call_id": None,
    "tool_name": None,
    "reasoning": None,
    "interrupted": False,
    "is_error": False,
    "duration_ms": None,
    "answers_seq": None,
    "platform_message_id": None,
    "edited": False,
    "sent_at": None,
    "context": None,
    "replied_message": None,
    "sent_by": None,
}


SENT_BY = {"kind": "job", "name": "News", "job_id": "j_1", "run_id": "r_1", "session_id": None}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({}, {}),
        ({"content": ("a", {"type": "text", "text": "b"})}, {"content": ["a", {"type": "text", "text": "b"}]}),
        ({"author": {"name": "Ada"}}, {"author": {"name": "Ada", "id": None}}),
        (
            {"answers": 3, "duration_ms": 40, "interrupted": True},
            {"answers_seq": 3, "duration_ms": 40, "interrupted": True},
        ),
        ({"tool_calls": [], "is_error": False}, {}),
        ({"tool_calls": ({"id": "c"},), "reasoning": "hm"}, {"tool_calls": [{"id": "c"}], "reasoning": "hm"}),
        ({"platform_message_id": 7}, {"platform_message_id": "7"}),
        (
            {"edited": True, "context": [{"author": "Bob", "text": "hi"}], "replied_message": {"text": "yes"}},
            {"edited": True, "context": [{"author": "Bob", "text": "hi"}], "replied_message": {"text": "yes"}},
        ),
        ({"edited": 1, "context": "x", "replied_message": {"text": 1}, "sent_at": "2026"}, {}),
        ({"name": "unknown to Palaver"}, {"name": "unknown to Palaver"}),
        ({"answers": "x", "duration_ms": "y"}, {}),
        ({"sent_by": SENT_BY}, {"sent_by": SENT_BY}),
        ({"sent_by": "a program's own key"}, {}),
    ],
)
def test_a_message_has_every_key_and_keeps_unknown_ones(stored: dict[str, Any], expected: dict[str, Any]) -> None:
    message = Message.from_dict({"role": "user", "content": "hi", **stored})
    assert message_to_json(message) == EMPTY_MESSAGE | expected


def test_an_event_names_its_person_and_has_its_time_in_utc() -> None:
    event = Event(seq=4, kind=EventKind.RENAMED, at=NOW, facts={"title": "Plan"}, person_id=ADA)
    expected = {
        "seq": 4,
        "kind": "renamed",
        "at": "2026-11-15T08:00:00.000000+00:00",
        "hidden": False,
        "person": {"id": "p_ada", "name": "Ada"},
        "message": None,
        "facts": {"title": "Plan"},
    }
    assert event.to_dict({ADA: "Ada"}) == expected
    assert event.to_dict() == expected | {"person": {"id": "p_ada", "name": ""}}


def test_an_event_without_a_person_has_the_same_keys() -> None:
    event = Event(seq=1, kind=EventKind.MESSAGE, at=NOW.astimezone(UTC), message=Message("user", "hi"), hidden=True)
    data = event.to_dict()
    assert (data["person"], data["message"], data["facts"], data["hidden"]) == (None, EMPTY_MESSAGE, {}, True)


@pytest.mark.parametrize(("nanos", "text"), [(None, None), (0, "0"), (100, "0.0000001"), (1_500_000_000, "1.5")])
def test_a_cost_is_text_without_an_exponent(nanos: int | None, text: str | None) -> None:
    assert UsageTotals(cost_nanos=nanos).to_dict()["cost_usd"] == text

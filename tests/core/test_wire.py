"""Wire shapes are built from the attributes of a value, and have one format everywhere but for the times of the API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

from pydantic import TypeAdapter

from palaver.core.wire import Doc, Time, TypedDict, build_json


class NoteJson(TypedDict):
    """A note."""

    text: str
    tags: list[str]
    created_at: Annotated[Time, Doc("When it was written.")]
    edited_at: Time | None
    is_own: bool


@dataclass(frozen=True)
class Note:
    text: str
    tags: tuple[str, ...]
    created_at: datetime
    edited_at: datetime | None = None
    secret: str = "not part of the shape"


NOTE = Note("half \ud83d", ("a", "b"), datetime(2026, 11, 15, 9, tzinfo=timezone(timedelta(hours=1))))


def test_a_shape_has_the_attributes_of_a_value_and_the_keys_that_are_passed() -> None:
    assert build_json(NoteJson, NOTE, is_own=True) == {
        "text": "half ?",
        "tags": ["a", "b"],
        "created_at": "2026-11-15T08:00:00.000000+00:00",
        "edited_at": None,
        "is_own": True,
    }


def test_the_api_writes_times_without_a_fraction_of_zero_and_leaves_undeclared_keys_out() -> None:
    edited = Note("", (), NOTE.created_at, datetime(2026, 11, 15, 8, 0, 0, 5, tzinfo=UTC))
    adapter = TypeAdapter(NoteJson)
    shown = adapter.dump_json(adapter.validate_python({**build_json(NoteJson, edited, is_own=False), "secret": 1}))
    assert json.loads(shown) == {
        "text": "",
        "tags": [],
        "created_at": "2026-11-15T08:00:00Z",
        "edited_at": "2026-11-15T08:00:00.000005Z",
        "is_own": False,
    }


def test_a_shape_describes_its_keys() -> None:
    created_at = TypeAdapter(NoteJson).json_schema()["properties"]["created_at"]
    assert (created_at["format"], created_at["description"]) == ("date-time", "When it was written.")

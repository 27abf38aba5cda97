"""Damaged rows of the log: each is shown as unreadable, and everything around it can still be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.history import build_messages
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidMessage, NothingToRedo, NothingToRestore
from palaver.sessions import log_table as events, table as sessions, versions_table as compactions
from palaver.sessions.events import EventKind
from palaver.sessions.export import export_markdown, export_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction

pytestmark = pytest.mark.both_engines

DEEP = "[" * 100_000
DAMAGED_BODIES = [
    ("{", "invalid_json"),
    ("", None),  # nothing to read
    ('{"x": NaN}', "invalid_json"),
    ('{"x": 1e999}', "invalid_json"),
    (DEEP, "too_deep"),
    ('{"x": ' + "[" * 300 + "]" * 300 + "}", "too_deep"),
    ("[1]", "wrong_shape"),
    ("7", "wrong_shape"),
    ('{"content": 7}', "wrong_shape"),
    ('{"author": 7}', "wrong_shape"),
    ('{"tool_calls": 7}', "wrong_shape"),
    ('{"reasoning": {}}', "wrong_shape"),
]


@pytest.fixture
def session_id(store: SessionStore, dm: Callable[..., SessionSource]) -> str:
    session_id = store.get_or_create_session(dm()).session_id
    for text in ("first lantern", "second lantern", "third lantern"):
        store.append_to_transcript(session_id, {"role": "user", "content": text})
    return session_id


def damage(store: SessionStore, session_id: str, seq: int, **columns: object) -> None:
    def run(tx: Transaction) -> None:
        no = sessions.get_no(tx, session_id)
        for column, value in columns.items():
            tx.execute(f"UPDATE event SET {column} = $3 WHERE session_no = $1 AND seq = $2", no, seq, value)

    store.engine.run(Write(run))


def find_seq(store: SessionStore, session_id: str, text: str) -> int:
    return next(e.seq for e in store.load_events(session_id) if e.message is not None and e.message.text == text)


@pytest.mark.parametrize(("body", "reason"), DAMAGED_BODIES)
def test_a_damaged_message_does_not_break_the_others(
    store: SessionStore, session_id: str, body: str, reason: str | None
) -> None:
    seq = find_seq(store, session_id, "second lantern")
    damage(store, session_id, seq, body=body)
    log = store.load_events(session_id)
    event = next(event for event in log if event.seq == seq)
    texts = [event.message.text for event in log if event.message is not None]
    if reason is None:
        assert texts == ["first lantern", "second lantern", "third lantern"]
        return
    assert (event.kind, event.message) == (EventKind.UNREADABLE, None)
    assert event.facts == {"stored_kind": "message", "reason": reason}
    assert texts == ["first lantern", "third lantern"]

    row = store.engine.run(Read(lambda tx: sessions.get(tx, session_id)))
    exported = store.engine.run(Read(lambda tx: export_session(tx, row)))
    assert json.dumps(exported, allow_nan=False)
    assert [each["kind"] for each in exported["events"]].count("unreadable") == 1
    markdown = store.engine.run(Read(lambda tx: export_markdown(tx, row)))
    assert f"Entry {seq} of the log can't be read." in markdown
    assert "third lantern" in markdown
    assert len(store.search("lantern")) == 3
    log, _ = store.engine.run(Read(lambda tx: events.load_context(tx, row.no, first_seq=0, up_to=seq + 1)))
    built = build_messages(log, input_seq=seq + 1, compaction=None, shared=False)
    assert [message["content"] for message in built] == ["first lantern", "third lantern"]


def test_a_transcript_has_a_placeholder_for_a_damaged_message(store: SessionStore, session_id: str) -> None:
    damage(store, session_id, find_seq(store, session_id, "second lantern"), body="{")
    for limit in (None, 3):
        transcript = store.load_transcript(session_id, limit)
        assert [message["role"] for message in transcript] == ["user", "user", "user"]
        assert [message["content"] for message in transcript] == [
            "first lantern",
            events.UNREADABLE_TEXT,
            "third lantern",
        ]


@pytest.mark.parametrize(("columns", "reason"), [({"kind": "sung"}, "unknown_kind"), ({"role": "bard"}, "wrong_shape")])
def test_an_unknown_kind_or_role_is_unreadable(
    store: SessionStore, session_id: str, columns: dict[str, Any], reason: str
) -> None:
    seq = find_seq(store, session_id, "second lantern")
    damage(store, session_id, seq, **columns)
    event = next(event for event in store.load_events(session_id) if event.seq == seq)
    assert event.to_dict()["kind"] == "unreadable"
    assert event.facts["reason"] == reason
    assert store.search("lantern")


def test_a_fork_and_a_rewrite_work_with_a_damaged_message(store: SessionStore, session_id: str) -> None:
    damage(store, session_id, find_seq(store, session_id, "second lantern"), body="{")
    fork = store.fork(session_id)
    assert [event.kind for event in store.load_events(fork.id)].count(EventKind.UNREADABLE) == 1
    store.rewrite_transcript(session_id, [{"role": "user", "content": "rewritten"}])
    assert [message["content"] for message in store.load_transcript(session_id)] == ["rewritten"]


def test_an_undo_whose_event_is_damaged_can_still_be_read_past(store: SessionStore, session_id: str) -> None:
    store.undo(session_id)
    seq = store.load_events(session_id)[-1].seq
    damage(store, session_id, seq, body="{")
    assert [message["content"] for message in store.load_transcript(session_id, 1)] == ["second lantern"]
    with pytest.raises(NothingToRedo):
        store.redo(session_id)
    store.undo(session_id)
    assert [message["content"] for message in store.load_transcript(session_id)] == ["first lantern"]


def test_a_damaged_summary_is_not_used(store: SessionStore, session_id: str) -> None:
    no = store.engine.run(Read(lambda tx: sessions.get_no(tx, session_id)))

    def compact(tx: Transaction) -> None:
        seq = events.append_event(tx, no, EventKind.COMPACTED, 0, summary=7, first_kept_seq=4, message_count=2)
        tx.execute("UPDATE session SET compaction_seq = $2 WHERE no = $1", no, seq)

    store.engine.run(Write(compact))
    assert store.engine.run(Read(lambda tx: compactions.find_current(tx, no))) is None
    with pytest.raises(NothingToRestore):
        store.engine.run(Write(lambda tx: compactions.undo_last(tx, no, 0)))
    store.undo(session_id)


def test_what_could_not_be_read_again_is_not_stored(store: SessionStore, session_id: str) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    for message in (
        {"role": "user", "content": [{"type": "text", "text": "x", "more": deep}]},
        {"role": "assistant", "content": "x", "metadata": deep},
        {"role": "assistant", "content": "x", "metadata": "x" * 10_000_000},
    ):
        with pytest.raises(InvalidMessage):
            store.append_to_transcript(session_id, message)
        with pytest.raises(InvalidMessage):
            store.rewrite_transcript(session_id, [message])
    assert len(store.load_transcript(session_id)) == 3

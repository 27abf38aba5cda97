"""What a session counts: tool calls, and which provider's model answered last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import TurnUsage

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore

    Source = Callable[..., SessionSource]


def make_call(*names: str) -> dict[str, Any]:
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def test_tool_calls_are_counted_where_they_are_stored(store: SessionStore, dm: Source) -> None:
    session_id = store.record_user_message(dm(), "look it up").session_id
    assert store.get_session(session_id).tool_call_count == 0
    store.append_to_transcript(session_id, make_call("look", "read"))
    store.append_to_transcript(
        session_id,
        [{"role": "tool", "content": "seen", "tool_call_id": "look"}, make_call("look"), "Here it is."],
    )
    assert store.get_session(session_id).tool_call_count == 3
    assert store.get_session(session_id).to_dict()["tool_call_count"] == 3


def test_with_usage_the_calls_are_counted_once(store: SessionStore, dm: Source) -> None:
    session_id = store.record_user_message(dm(), "look it up").session_id
    usage = TurnUsage(turn_id="t1", model="m", input_tokens=5)
    store.append_to_transcript(session_id, [make_call("look"), "Here."], usage=usage)
    session = store.get_session(session_id)
    assert (session.tool_call_count, session.usage.input_tokens, session.message_count) == (1, 5, 3)


def test_an_undo_keeps_the_count_and_a_fork_starts_at_zero(store: SessionStore, dm: Source) -> None:
    session_id = store.record_user_message(dm(), "look it up").session_id
    store.append_to_transcript(session_id, [make_call("look"), "Here it is."])
    assert store.get_session(store.fork(session_id).id).tool_call_count == 0
    store.undo(session_id)
    assert store.get_session(session_id).tool_call_count == 1
    store.redo(session_id)
    assert store.get_session(session_id).tool_call_count == 1


@pytest.mark.both_engines
def test_the_provider_belongs_to_the_model_that_answered_last(store: SessionStore, dm: Source) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id

    def answer(turn_id: str, model: str | None, provider: str | None, tokens: int = 1) -> tuple[str | None, str | None]:
        store.update_session(
            session_id, TurnUsage(turn_id=turn_id, model=model, provider=provider, input_tokens=tokens)
        )
        session = store.get_session(session_id)
        return session.model, session.model_provider

    assert answer("t1", "gpt-5", "openai") == ("gpt-5", "openai")
    assert answer("t2", "demo", None) == ("demo", None)
    assert answer("t3", "claude", "anthropic", tokens=0) == ("claude", "anthropic")
    assert answer("t4", None, None, tokens=0) == ("claude", "anthropic")
    assert answer("t5", None, None) == ("claude", "anthropic")
    assert answer("t6", "demo", None, tokens=0) == ("demo", None)

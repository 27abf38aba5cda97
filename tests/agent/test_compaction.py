"""Where a conversation is cut, what the model is asked, and which summary is believed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver.agent.compaction import (
    LONGEST_RESULT,
    MOST_WORDS,
    SUMMARY_REQUEST,
    check_summary,
    kept_from,
    summary_request,
)
from palaver.agent.demo import SUMMARY_REQUEST as UNDERSTOOD_BY_DEMO
from palaver.agent.demo import DemoAgent
from palaver.agent.history import SUMMARY, in_order, project
from palaver.domain.errors import AgentError
from palaver.domain.events import Event, EventKind
from palaver.domain.message import Message

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def log(script: str) -> list[Event]:
    """A log from words: `u` asks, `a` answers, `a2` answers message 2, `t` is a result; the first is number 2."""
    events = []
    for seq, word in enumerate(script.split(), 2):
        role = {"u": "user", "a": "assistant", "t": "tool"}[word[0]]
        extra = {"answers": int(word[1:])} if word[1:] else {}
        message = Message(role, f"{word} at {seq}", extra=extra)
        events.append(Event(seq=seq, kind=EventKind.MESSAGE, at=NOW, message=message))
    return events


# -- where to cut --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "exchanges", "first"),
    [
        ("", 2, None),
        ("u", 2, None),
        ("u a u a", 2, None),  # nothing stands before the last two
        ("u a u a u a", 2, 4),
        ("u a u a u a", 1, 6),
        ("u a u a u", 2, 4),  # a question that waits for its answer is an exchange
        ("u u a u u a u u a", 2, 5),  # several messages answered together are one
        ("u t a t a u a u a", 2, 7),
        ("a a u a u a", 2, None),
        ("u u a2 a3 u a", 2, None),  # the cut would part a question from its answer
        ("u a u u a4 a5 u a", 2, 4),  # so it moves back to where it does not
        ("u a u u a4 a5 u a u a", 2, 8),
    ],
)
def test_the_last_exchanges_are_kept_whole(script: str, exchanges: int, first: int | None) -> None:
    assert kept_from(log(script), exchanges) == first


scripts = st.lists(st.sampled_from(["u", "a", "t", "a2", "a3", "a5", "a8"]), max_size=20).map(" ".join)


@settings(max_examples=500)
@given(scripts, st.integers(1, 4))
@example("u a u a u a2 a2 u a u a", 2)
def test_the_two_sides_of_a_cut_are_the_whole_conversation(script: str, exchanges: int) -> None:
    events = log(script)
    first = kept_from(events, exchanges)
    if first is not None:
        old = [event for event in events if event.seq < first]
        new = [event for event in events if event.seq >= first]
        last = events[-1].seq
        assert [*in_order(old, last), *in_order(new, last)] == in_order(events, last)
        assert sum(event.message is not None and event.message.role == "user" for event in new) >= exchanges
        assert old


# -- what is asked -------------------------------------------------------------------------------------------

TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "look at Münster"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": "Münster"}'}}],
    },
    {"role": "tool", "tool_call_id": "1", "tool_name": "look", "content": "rain " * 1000},
    {"role": "assistant", "content": "It rains."},
    {"role": "user", "content": "thanks"},
]


def test_the_request_ends_with_the_wish_for_a_summary() -> None:
    request = summary_request(TALK, None, None)
    last = request.messages[-1]
    assert last["role"] == "user"
    assert last["content"].startswith(SUMMARY_REQUEST)
    assert str(MOST_WORDS) in request.instructions
    assert request.tools == ()
    assert request.messages[0] == TALK[0]
    assert request.messages[-2] == TALK[-1]


def test_tools_are_told_in_words_because_a_request_without_tools_may_hold_no_calls() -> None:
    request = summary_request(TALK, None, None)
    assert {message["role"] for message in request.messages} == {"user", "assistant"}
    assert not any("tool_calls" in message for message in request.messages)
    told = request.messages[1]["content"]
    assert told.startswith('I look.\n[used look with {"at": "Münster"}]\n[result of look: rain rain')
    assert len(told) < LONGEST_RESULT + 200
    assert "5000 characters in all" in told


def test_a_focus_and_an_earlier_summary_are_part_of_the_request() -> None:
    request = summary_request(TALK, "the\nweather", "They spoke of soup.")
    assert request.messages[0] == {"role": "user", "content": f"{SUMMARY}\nThey spoke of soup."}
    assert "the weather" in request.messages[-1]["content"]
    assert "even earlier" in request.messages[-1]["content"]
    assert "thorough" not in summary_request(TALK, " \n", None).messages[-1]["content"]


async def test_the_demo_agent_understands_the_request() -> None:
    assert UNDERSTOOD_BY_DEMO == SUMMARY_REQUEST
    events = log("u a u a u a")
    messages = project(events, input_seq=7, compaction=None, shared=False)
    said = [event async for event in DemoAgent(pace=0).run(summary_request(messages, None, None))]
    text = "".join(getattr(event, "text", "") for event in said)
    assert "u at 2" in check_summary(text, messages)


# -- which summary is believed -------------------------------------------------------------------------------


def test_a_summary_is_taken_without_what_the_model_thought() -> None:
    assert check_summary("<think>well\nwell</think>\n\n They spoke of soup. \n", TALK) == "They spoke of soup."


@pytest.mark.parametrize("text", ["", " \n", "<think>hm</think>"])
def test_an_empty_summary_is_refused(text: str) -> None:
    with pytest.raises(AgentError, match="no summary"):
        check_summary(text)


def test_a_summary_that_is_none_is_refused() -> None:
    with pytest.raises(AgentError, match="far too long"):
        check_summary("soup " * MOST_WORDS * 4)
    with pytest.raises(AgentError, match="longer than what it would replace"):
        check_summary("soup " * MOST_WORDS, TALK[-2:])
    assert check_summary("soup " * 100, TALK[-2:])  # short enough whatever it replaces

"""Tests of compaction: where a conversation is cut, the summary request, and which summaries are accepted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver.agent.compaction import (
    MAX_RESULT_CHARS,
    MAX_SUMMARY_WORDS,
    SUMMARY_REQUEST,
    build_summary_request,
    check_summary,
    find_cut,
)
from palaver.agent.demo import DemoAgent
from palaver.agent.history import SUMMARY_HEADING, build_messages, order_events
from palaver.domain.errors import AgentError
from palaver.domain.events import Event, EventKind
from palaver.domain.message import Message

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def make_log(script: str) -> list[Event]:
    """Make a log: `u` is a user, `a` an answer, `a2` the answer to message 2, `t` a result; the first has number 2."""
    events = []
    for seq, word in enumerate(script.split(), 2):
        role = {"u": "user", "a": "assistant", "t": "tool"}[word[0]]
        extra = {"answers": int(word[1:])} if word[1:] else {}
        message = Message(role, f"{word} at {seq}", extra=extra)
        events.append(Event(seq=seq, kind=EventKind.MESSAGE, at=NOW, message=message))
    return events


# -- finding the cut -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "exchanges", "cut"),
    [
        ("", 2, None),
        ("u", 2, None),
        ("u a u a", 2, None),  # nothing before the last two exchanges
        ("u a u a u a", 2, 4),
        ("u a u a u a", 1, 6),
        ("u a u a u", 2, 4),  # a question without an answer is an exchange
        ("u u a u u a u u a", 2, 5),  # messages answered together are one exchange
        ("u t a t a u a u a", 2, 7),
        ("a a u a u a", 2, None),
        ("u u a2 a3 u a", 2, None),  # the cut would separate a question from its answer
        ("u a u u a4 a5 u a", 2, 4),  # so it moves back to where it does not
        ("u a u u a4 a5 u a u a", 2, 8),
    ],
)
def test_the_cut_keeps_the_last_exchanges_complete(script: str, exchanges: int, cut: int | None) -> None:
    assert find_cut(make_log(script), exchanges) == cut


scripts = st.lists(st.sampled_from(["u", "a", "t", "a2", "a3", "a5", "a8"]), max_size=20).map(" ".join)


@settings(max_examples=500)
@given(scripts, st.integers(1, 4))
@example("u a u a u a2 a2 u a u a", 2)
def test_both_sides_of_a_cut_together_are_the_whole_conversation(script: str, exchanges: int) -> None:
    events = make_log(script)
    cut = find_cut(events, exchanges)
    if cut is not None:
        old = [event for event in events if event.seq < cut]
        new = [event for event in events if event.seq >= cut]
        last = events[-1].seq
        assert [*order_events(old, last), *order_events(new, last)] == order_events(events, last)
        assert sum(event.message is not None and event.message.role == "user" for event in new) >= exchanges
        assert old


# -- the request ---------------------------------------------------------------------------------------------

CONVERSATION: list[dict[str, Any]] = [
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


def test_the_request_ends_with_the_prompt_for_a_summary() -> None:
    request = build_summary_request(CONVERSATION, None, None)
    last = request.messages[-1]
    assert last["role"] == "user"
    assert last["content"].startswith(SUMMARY_REQUEST)
    assert str(MAX_SUMMARY_WORDS) in request.instructions
    assert request.tools == ()
    assert request.messages[0] == CONVERSATION[0]
    assert request.messages[-2] == CONVERSATION[-1]


def test_tool_calls_become_text_because_a_request_without_tools_must_not_have_calls() -> None:
    request = build_summary_request(CONVERSATION, None, None)
    assert {message["role"] for message in request.messages} == {"user", "assistant"}
    assert not any("tool_calls" in message for message in request.messages)
    text = request.messages[1]["content"]
    assert text.startswith('I look.\n[used look with {"at": "Münster"}]\n[result of look: rain rain')
    assert len(text) < MAX_RESULT_CHARS + 200
    assert "5000 characters in all" in text


def test_focus_and_previous_summary_are_part_of_the_request() -> None:
    request = build_summary_request(CONVERSATION, "the\nweather", "They spoke of soup.")
    assert request.messages[0] == {"role": "user", "content": f"{SUMMARY_HEADING}\nThey spoke of soup."}
    assert "the weather" in request.messages[-1]["content"]
    assert "even earlier" in request.messages[-1]["content"]
    assert "thorough" not in build_summary_request(CONVERSATION, " \n", None).messages[-1]["content"]


async def test_the_demo_agent_understands_the_request() -> None:
    events = make_log("u a u a u a")
    messages = build_messages(events, input_seq=7, compaction=None, shared=False)
    answer = [event async for event in DemoAgent(word_delay=0).run(build_summary_request(messages, None, None))]
    text = "".join(getattr(event, "text", "") for event in answer)
    assert "u at 2" in check_summary(text, messages)


# -- checking the summary ------------------------------------------------------------------------------------


def test_reasoning_is_removed_from_a_summary() -> None:
    assert check_summary("<think>well\nwell</think>\n\n They spoke of soup. \n", CONVERSATION) == "They spoke of soup."


@pytest.mark.parametrize("text", ["", " \n", "<think>hm</think>"])
def test_an_empty_summary_is_rejected(text: str) -> None:
    with pytest.raises(AgentError, match="no summary"):
        check_summary(text)


def test_a_summary_that_is_too_long_is_rejected() -> None:
    with pytest.raises(AgentError, match="far too long"):
        check_summary("soup " * MAX_SUMMARY_WORDS * 4)
    with pytest.raises(AgentError, match="longer than the messages it would replace"):
        check_summary("soup " * MAX_SUMMARY_WORDS, CONVERSATION[-2:])
    assert check_summary("soup " * 100, CONVERSATION[-2:])  # always short enough

"""Tests of compaction: where a conversation is cut, the summary request, and which summaries are accepted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

from palaver.agent.compaction import (
    MAX_RESULT_CHARS,
    MAX_SUMMARY_WORDS,
    SUMMARY_REQUEST,
    build_summary_request,
    check_summary,
    find_carried_seqs,
    find_old_messages,
)
from palaver.agent.history import SUMMARY_HEADING, build_messages, order_events
from palaver.core.errors import AgentError
from palaver.drivers.demo import DemoAgent
from palaver.sessions.events import Compaction, Event, EventKind
from palaver.sessions.message import Message

if TYPE_CHECKING:
    from collections.abc import Collection

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


# -- finding the old messages --------------------------------------------------------------------------------


def find_old_seqs(script: str, exchanges: int, open_seqs: Collection[int] = ()) -> list[int]:
    events = make_log(script)
    input_seq = events[-1].seq if events else 0
    old = find_old_messages(events, exchanges, input_seq=input_seq, open_seqs=open_seqs)
    return [event.seq for event in old]


@pytest.mark.parametrize(
    ("script", "exchanges", "old"),
    [
        ("", 2, []),
        ("u", 2, []),
        ("u a", 1, []),
        ("u a u a", 2, [2, 3]),  # one exchange is kept if there are only two
        ("u a u a u a", 2, [2, 3]),
        ("u a u a u a", 1, [2, 3, 4, 5]),
        ("u a u a u", 2, [2, 3]),  # a question without an answer is an exchange
        ("u u a u u a u u a", 2, [2, 3, 4]),  # messages answered together are one exchange
        ("u t a t a u a u a", 2, [2, 3, 4, 5, 6]),
        ("a a u a u a", 2, [2, 3]),
        ("u u a2 u a3 u a5 u", 2, [2, 4, 3, 6]),  # the next message always came during the answer
        ("u u a2 u a3 u a5 u", 0, [2, 4, 3, 6, 5, 8, 7]),
        ("u u u u", 1, []),
        ("u u u u", 0, [2, 3, 4]),  # questions that failed long ago
        ("u a u u u", 0, [2, 3, 4, 5]),
    ],
)
def test_the_last_exchanges_are_not_old(script: str, exchanges: int, old: list[int]) -> None:
    assert find_old_seqs(script, exchanges) == old


def test_messages_that_wait_for_their_answer_are_not_old() -> None:
    assert find_old_seqs("u a u u a5 u", 0) == [2, 3, 4, 5, 6]
    assert find_old_seqs("u a u u a5 u", 0, open_seqs=[4]) == [2, 3, 5, 6]


scripts = st.lists(st.sampled_from(["u", "a", "t", "a2", "a3", "a5", "a8"]), min_size=1, max_size=20).map(" ".join)


def has_contiguous_answers(script: str) -> bool:
    """Whether the messages that answer one question follow each other, as a turn stores them."""
    numbered = [number for word in script.split() if (number := word[1:])]
    blocks = [number for index, number in enumerate(numbered) if index == 0 or numbered[index - 1] != number]
    return len(blocks) == len(set(blocks))


@settings(max_examples=4 * settings().max_examples)
@given(scripts.filter(has_contiguous_answers), st.integers(0, 4), st.integers(0, 3))
@example("u a u a u a2 a2 u a u a", 2, 0)
def test_every_message_is_either_old_or_still_seen(script: str, exchanges: int, later: int) -> None:
    events = make_log(script + " u" * later)
    input_seq = events[-1 - later].seq
    seen = [event for event in events if not is_user(event) or event.seq <= input_seq]
    old = find_old_messages(seen, exchanges, input_seq=input_seq)
    if old:
        first_kept_seq, carried_seqs = find_carried_seqs([event.seq for event in events], old, None)
        compaction = Compaction(
            seq=99, summary="", first_kept_seq=first_kept_seq, message_count=len(old), carried_seqs=carried_seqs
        )
        assert {event.seq for event in events if compaction.covers(event.seq)} == {event.seq for event in old}
        kept = [event for event in seen if not compaction.covers(event.seq)]
        shown = {event.seq for event in order_events(kept, input_seq)}
        assert shown == {event.seq for event in order_events(seen, input_seq)} - {event.seq for event in old}


def is_user(event: Event) -> bool:
    return event.message is not None and event.message.role == "user"


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

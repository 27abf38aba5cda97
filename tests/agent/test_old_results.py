"""Old, long results of tools leave the model's view: in steps, so that a prompt cache is lost rarely."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from palaver.agent.base import estimate_message_tokens
from palaver.agent.history import MIN_LONG_RESULT_CHARS, leave_out_old_results

LIMITS = {"max_tokens": 5000, "min_tokens": 2500, "keep_exchanges": 2}
REASONING = {"reasoning": "hm", "provider_reasoning": {"model": "a:b"}}


def make_exchange(number: int, chars: int = 4000) -> list[dict[str, Any]]:
    """Make a question, a call with its result, and an answer; the result has a number if it is long."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result: dict[str, Any] = {"role": "tool", "tool_call_id": f"c{number}", "tool_name": "look"}
    result["content"] = f"result {number} " + "{x} " * (chars // 4)
    if chars > MIN_LONG_RESULT_CHARS:
        result["seq"] = 10 * number
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": None, "tool_calls": [call]} | REASONING,
        result,
        {"role": "assistant", "content": f"answer {number}"} | REASONING,
    ]


def make_log(count: int, chars: int = 4000) -> list[dict[str, Any]]:
    return [message for number in range(1, count + 1) for message in make_exchange(number, chars)]


def ask(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the model sees when it is asked once more."""
    view, _ = leave_out_old_results([*log, {"role": "user", "content": "next"}], **LIMITS)
    return [dict(message) for message in view]


def list_left_out(view: list[dict[str, Any]]) -> list[int]:
    """List the numbers of the calls whose results are left out."""
    return [int(each["tool_call_id"][1:]) for each in view if each["role"] == "tool" and "left out" in each["content"]]


def test_a_short_conversation_is_seen_in_full() -> None:
    log = make_log(4)
    assert ask(log)[:-1] == log


def test_old_results_are_replaced_by_their_beginning_and_how_to_read_them() -> None:
    view = ask(make_log(5))
    assert list_left_out(view) == [1, 2, 3]  # not those of the last two exchanges
    text = view[2]["content"]
    assert text.startswith("result 1 {x} {x}")
    assert "read_tool_result, number 10" in text
    assert "4009 characters" in text
    assert len(text) < 500
    assert view[2]["tool_call_id"] == "c1"


def test_short_results_stay() -> None:
    log = make_log(100, chars=1000)
    assert ask(log)[:-1] == log


def test_between_two_steps_each_view_begins_with_the_one_before() -> None:
    steps = []
    for count in range(1, 60):
        before, after = ask(make_log(count)), ask(make_log(count + 1))
        if after[: len(before) - 1] != before[:-1]:
            steps.append(count)
        assert estimate_message_tokens(after) < 15_000
    assert 15 < len(steps) < 21
    assert min(later - earlier for earlier, later in pairwise(steps)) == 3


def test_nothing_is_left_out_for_little() -> None:
    """A log of long texts with one long result."""
    texts = [{"role": role, "content": "x" * 4000} for _ in range(20) for role in ("user", "assistant")]
    log = [*make_log(1, chars=2500), *texts]
    assert list_left_out(ask(log)) == []


def test_the_step_says_what_it_has_freed_and_later_questions_nothing() -> None:
    question = {"role": "user", "content": "next"}
    _, freed = leave_out_old_results([*make_log(5), question], **LIMITS)
    assert 2500 < freed < 3000
    _, freed = leave_out_old_results([*make_log(5), *make_exchange(6, 10), question], **LIMITS)
    assert freed == 0


def test_reasoning_that_has_seen_a_result_that_is_left_out_is_not_sent_again() -> None:
    log = make_log(5)
    view = ask([*log, *make_exchange(6, 10)])
    has_reasoning = [index for index, message in enumerate(view) if "provider_reasoning" in message]
    assert has_reasoning == [1, len(log) + 1, len(log) + 3]  # before the first one, and after the step

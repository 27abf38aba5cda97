"""The stored form of a provider's reasoning: it fits its message or is not sent."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from palaver.agent.base import ToolCall
from palaver.drivers.providers import ModelName

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow  # loads pydantic-ai

MODEL = ModelName("anthropic", "claude")


def make_answer() -> Any:
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

    return ModelResponse(
        parts=[
            ThinkingPart("First. ", signature="s1", provider_name="anthropic"),
            TextPart("Let me see. "),
            ThinkingPart("", id="redacted_thinking", signature="s2", provider_name="anthropic"),
            TextPart("Here."),
            ThinkingPart("Second.", signature="s3", provider_name="anthropic"),
            ToolCallPart("look", '{"a":  1}', tool_call_id="c1", provider_details={"thought_signature": "x"}),
            ToolCallPart("look", "{}", tool_call_id="c2"),
        ],
        provider_name="anthropic",
    )


def make_message() -> dict[str, Any]:
    from palaver.drivers.tool_loop import build_answer_message

    calls = [ToolCall("c1", "look", '{"a":  1}'), ToolCall("c2", "look", "{}")]
    return build_answer_message(make_answer(), calls, MODEL)


def test_an_answer_is_the_same_after_it_was_stored() -> None:
    from palaver.drivers.reasoning import unpack_answer

    message = make_message()
    unpacked = unpack_answer(message, MODEL)
    assert unpacked is not None

    def list_parts(answer: Any) -> list[Any]:
        own = ("content", "tool_name", "args", "tool_call_id", "id", "signature", "provider_details")
        return [tuple(getattr(part, name, None) for name in own) for part in answer.parts]

    assert list_parts(unpacked) == list_parts(make_answer())
    assert "Let me see" not in str(message["provider_reasoning"])  # what the message has is not repeated


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message | {"content": "Let me see."},
        lambda message: message | {"reasoning": "First."},
        lambda message: message | {"reasoning": None},
        lambda message: message | {"tool_calls": message["tool_calls"][:1]},
        lambda message: message | {"tool_calls": message["tool_calls"][::-1]},
        lambda message: message | {"tool_calls": []},
        lambda message: message | {"provider_reasoning": "text"},
        lambda message: message | {"provider_reasoning": {"model": str(MODEL)}},
        lambda message: message | {"provider_reasoning": {"model": str(MODEL), "system": "a", "parts": [None]}},
        lambda message: message | {"provider_reasoning": message["provider_reasoning"] | {"parts": [{"kind": "call"}]}},
        lambda message: message | {"provider_reasoning": message["provider_reasoning"] | {"model": "openai:gpt"}},
    ],
)
def test_what_does_not_fit_its_message_is_not_sent(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    from palaver.drivers.reasoning import unpack_answer

    changed = change(make_message())
    assert unpack_answer(changed, MODEL) is None
    from palaver.drivers.tool_loop import convert_messages

    assert len(convert_messages([{"role": "user", "content": "Hi"}, changed], MODEL)) == 2


def test_reasoning_that_is_too_large_is_not_stored(caplog: pytest.LogCaptureFixture) -> None:
    from palaver.drivers.reasoning import MAX_REASONING_BYTES, is_worth_storing

    reasoning = make_message()["provider_reasoning"]
    assert is_worth_storing(reasoning)
    with caplog.at_level(logging.WARNING):
        reasoning["parts"][0]["signature"] = "x" * MAX_REASONING_BYTES
        assert not is_worth_storing(reasoning)
        reasoning["parts"][0]["signature"] = object()
        assert not is_worth_storing(reasoning)
    assert [record.reason for record in caplog.records] == ["too large", "not JSON"]  # type: ignore[attr-defined]

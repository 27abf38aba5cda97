"""What a provider wants back of an answer: signatures and encrypted parts of reasoning, and their order.

Stored with the answer's message in a format of our own, beside the text and the tool calls that the message has
already: of those, only positions and ids are repeated. It goes back to the same model of the same provider alone,
because every other one rejects it. Whatever does not fit the message any more is left out, never sent.
"""

from __future__ import annotations

import json
import logging
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart

from palaver.agent.base import extract_text
from palaver.core.text import is_storable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.drivers.providers import ModelName

MAX_REASONING_BYTES: Final = 262_144  # of one answer, as JSON
_FIELD_NAMES: Final = frozenset({"content", "reasoning", "reasoning_content"})  # ids that pydantic-ai itself makes up
_KEPT_DETAILS: Final = ("input_transformations",)  # of an answer: that Anthropic has dropped reasoning of this history

log = logging.getLogger(__name__)


def pack_reasoning(response: ModelResponse, name: ModelName) -> dict[str, Any] | None:
    """Return what has to go back with an answer; None if it has no such thing."""
    parts = [packed for part in response.parts if (packed := _pack_part(part)) is not None]
    details = {key: value for key in _KEPT_DETAILS if (value := (response.provider_details or {}).get(key))}
    if not details and not any(packed["kind"] == "reasoning" or packed.keys() & {"id", "details"} for packed in parts):
        return None
    return {"model": str(name), "system": response.provider_name, "parts": parts} | (
        {"details": details} if details else {}
    )


def is_worth_storing(reasoning: Mapping[str, Any]) -> bool:
    """Return whether a later turn has to send it: it is signed or encrypted, and not too large.

    Plain reasoning is wanted back only while the tools of its own turn run.
    """
    is_wanted = "details" in reasoning or any(
        part.get("signature") or part.get("details") or part.get("id", "content") not in _FIELD_NAMES
        for part in reasoning["parts"]
    )
    if not is_wanted:
        return False
    try:
        text = json.dumps(reasoning, allow_nan=False)
        byte_count, problem = len(text), None if is_storable(text) else "not storable"
    except (TypeError, ValueError, RecursionError):
        byte_count, problem = 0, "not JSON"
    if byte_count > MAX_REASONING_BYTES:
        problem = "too large"
    if problem is not None:
        log.warning("reasoning_not_stored", extra={"model": reasoning["model"], "reason": problem, "bytes": byte_count})
    return problem is None


def unpack_answer(message: Mapping[str, Any], name: ModelName) -> ModelResponse | None:
    """Return the answer as its provider made it; None if it is another's, or does not fit the message any more."""
    reasoning = message.get("provider_reasoning")
    try:
        if not reasoning or reasoning["model"] != str(name):
            return None
        parts, system = reasoning["parts"], reasoning["system"]
        thought = _split(str(message.get("reasoning") or ""), [part for part in parts if part["kind"] == "reasoning"])
        texts = [part for part in parts if part["kind"] == "text"]
        content = extract_text(message)
        said = _split(content, texts) if content.strip() else [""] * len(texts)
        calls = {str(call["id"]): call["function"] for call in message.get("tool_calls") or ()}
        call_ids = [part["call"] for part in parts if part["kind"] == "call"]
        if thought is None or said is None or call_ids != list(calls):
            return None
        unpacked = [_unpack_part(part, system, thought, said, calls) for part in parts]
        details = reasoning.get("details")
    except (KeyError, TypeError, ValueError, AttributeError):  # not written by us
        return None
    kept = [part for part in unpacked if not isinstance(part, TextPart) or part.content.strip()]
    return ModelResponse(parts=kept, provider_name=system, provider_details=details)


def _pack_part(part: ModelResponsePart) -> dict[str, Any] | None:
    match part:
        case ThinkingPart():
            packed = {"kind": "reasoning", "chars": len(part.content), "signature": part.signature}
        case TextPart():
            packed = {"kind": "text", "chars": len(part.content)}
        case ToolCallPart():
            packed = {"kind": "call", "call": part.tool_call_id}
        case _:
            return None
    packed |= {"id": part.id, "details": part.provider_details}
    return {key: value for key, value in packed.items() if value is not None}


def _unpack_part(
    part: Mapping[str, Any],
    system: str | None,
    thought: list[str],
    said: list[str],
    calls: Mapping[str, Mapping[str, Any]],
) -> ModelResponsePart:
    own: Any = {"id": part.get("id"), "provider_name": system, "provider_details": part.get("details")}
    match part["kind"]:
        case "reasoning":
            return ThinkingPart(thought.pop(0), signature=part.get("signature"), **own)
        case "text":
            return TextPart(said.pop(0), **own)
        case _:
            function = calls[part["call"]]
            return ToolCallPart(function["name"], function.get("arguments") or "{}", tool_call_id=part["call"], **own)


def _split(text: str, parts: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Split a text into its parts again; None if it has another length, so that it was changed since."""
    lengths = [int(part["chars"]) for part in parts]
    if sum(lengths) != len(text):
        return None
    ends = list(accumulate(lengths))
    return [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]

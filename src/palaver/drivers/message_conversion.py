"""Converting between our messages and pydantic-ai's: the only module that knows both.

The same messages always become the same bytes in a request, so that the provider can read the beginning of a
conversation from its cache. Reasoning of earlier turns is not sent back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from palaver.agent.base import (
    TOKENS_PER_IMAGE,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
    estimate_message_tokens,
    extract_text,
)
from palaver.core.errors import InvalidInput
from palaver.sessions.usage import CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponsePart,
        ModelResponseStreamEvent,
        UserContent,
    )

    from palaver.agent.base import Tool
    from palaver.drivers.providers import ModelName, ModelPrices

log = logging.getLogger(__name__)

_EMPTY_TEXT = "(no text)"  # providers reject an empty message


def convert_messages(messages: Sequence[Mapping[str, Any]]) -> list[ModelMessage]:
    """Convert a conversation to pydantic-ai's messages."""
    converted: list[ModelMessage] = []
    tool_names: dict[str, str] = {}
    for message in messages:
        if message.get("role") == "assistant":
            response = _build_response(message)
            tool_names |= {
                part.tool_call_id: part.tool_name for part in response.parts if isinstance(part, ToolCallPart)
            }
            if response.parts:
                converted.append(response)
        else:
            append_request_parts(converted, [_build_request_part(message, tool_names)])
    return converted


def append_request_parts(conversation: list[ModelMessage], parts: Sequence[ModelRequestPart]) -> None:
    """Append parts of our side; consecutive parts go into one request, because every provider accepts that."""
    last = conversation[-1] if conversation else None
    if isinstance(last, ModelRequest):
        conversation[-1] = ModelRequest(parts=[*last.parts, *parts])
    else:
        conversation.append(ModelRequest(parts=list(parts)))


def convert_tool_results(results: Sequence[ToolResult]) -> list[ModelRequestPart]:
    return [_build_tool_return(result.id, result.name, result.content, failed=result.failed) for result in results]


def convert_user_texts(texts: Sequence[str]) -> list[ModelRequestPart]:
    return [UserPromptPart(content=text or _EMPTY_TEXT) for text in texts]


def convert_tools(tools: Sequence[Tool]) -> list[ToolDefinition]:
    """Convert tools to the definitions that a model gets."""
    return [
        # Not strict: the schema of a tool server may have features that strict mode does not allow.
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters), strict=False
        )
        for tool in tools
    ]


def convert_stream_event(event: ModelResponseStreamEvent) -> TextDelta | ReasoningDelta | None:
    """Convert an event of a model's stream to a delta, if it contains text or reasoning."""
    part = (
        event.part if isinstance(event, PartStartEvent) else event.delta if isinstance(event, PartDeltaEvent) else None
    )
    match part:
        case TextPart(content=text) | TextPartDelta(content_delta=text) if text:
            return TextDelta(text)
        case ThinkingPart(content=text) | ThinkingPartDelta(content_delta=text) if text:
            return ReasoningDelta(text)
        case _:
            return None


def extract_streamed_text(event: ModelResponseStreamEvent) -> str:
    """Return what an event of a model's stream adds to the answer: text, reasoning or a tool call."""
    part = (
        event.part if isinstance(event, PartStartEvent) else event.delta if isinstance(event, PartDeltaEvent) else None
    )
    match part:
        case TextPart(content=text) | TextPartDelta(content_delta=text):
            return text
        case ThinkingPart(content=text) | ThinkingPartDelta(content_delta=text):
            return text or ""
        case ToolCallPart():
            return f"{part.tool_name} {part.args_as_json_str()}"
        case ToolCallPartDelta():
            arguments = part.args_delta
            return arguments if isinstance(arguments, str) else str(arguments or "")
        case _:
            return ""


def estimate_request_tokens(messages: Sequence[ModelMessage]) -> int:
    """Estimate the tokens that messages have in a request."""
    return sum(_estimate_part_tokens(part) for message in messages for part in message.parts)


def _estimate_part_tokens(part: ModelRequestPart | ModelResponsePart) -> int:
    if isinstance(part, ToolCallPart):
        return estimate_message_tokens([{"content": f"{part.tool_name} {part.args_as_json_str()}"}])
    content = getattr(part, "content", None) or ""
    items = [content] if isinstance(content, str) else list(content)
    text = "\n".join(item for item in items if isinstance(item, str))
    image_count = sum(not isinstance(item, str) for item in items)
    return estimate_message_tokens([{"content": text}]) + image_count * TOKENS_PER_IMAGE


def extract_tool_calls(response: ModelResponse) -> list[ToolCall]:
    """Return the tool calls of a response, with the arguments exactly as the model wrote them."""
    return [
        ToolCall(
            part.tool_call_id, part.tool_name, part.args if isinstance(part.args, str) else part.args_as_json_str()
        )
        for part in response.tool_calls
    ]


def build_usage(response: ModelResponse, name: ModelName, prices: ModelPrices) -> TurnUsage:
    """Return the tokens of a request, and its cost if the price of the model is known.

    Empty if the provider reports numbers that are impossible: the answer itself is complete.
    """
    usage = response.usage
    cost, source = None, None
    try:
        if usage.input_tokens or usage.output_tokens:  # without tokens, the cost is unknown, not zero
            cost, source = prices.calculate_cost(usage, name, response.model_name or name.model)
        return TurnUsage(
            model=name.model,
            provider=name.provider,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.details.get("reasoning_tokens", 0),
            cost=cost,
            cost_status=CostStatus.UNKNOWN if cost is None else CostStatus.ESTIMATED,
            cost_source=source,
            last_prompt_tokens=usage.input_tokens or None,
        )
    except InvalidInput as error:
        log.warning("usage_invalid", extra={"model": str(name), "error": str(error)})
        return TurnUsage(model=name.model, provider=name.provider)


def _build_response(message: Mapping[str, Any]) -> ModelResponse:
    parts: list[ModelResponsePart] = []
    text = extract_text(message)
    if text.strip():
        parts.append(TextPart(content=text))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append(ToolCallPart(function["name"], function.get("arguments") or "{}", tool_call_id=call["id"]))
    return ModelResponse(parts=parts)


def _build_request_part(message: Mapping[str, Any], tool_names: Mapping[str, str]) -> ModelRequestPart:
    match message.get("role"):
        case "system":
            return SystemPromptPart(content=extract_text(message))
        case "tool":
            call_id = str(message.get("tool_call_id", ""))
            name = tool_names.get(call_id) or str(message.get("tool_name") or "tool")
            return _build_tool_return(call_id, name, extract_text(message), failed=bool(message.get("is_error")))
        case _:
            return UserPromptPart(content=_build_user_content(message))


def _build_tool_return(call_id: str, name: str, content: str, *, failed: bool) -> ToolReturnPart[Any]:
    return ToolReturnPart(name, content, tool_call_id=call_id, outcome="failed" if failed else "success")


def _build_user_content(message: Mapping[str, Any]) -> str | list[UserContent]:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or _EMPTY_TEXT
    parts = [_build_user_part(part) for part in content]
    return parts or _EMPTY_TEXT


def _build_user_part(part: Any) -> UserContent:
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            return text or _EMPTY_TEXT
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return BinaryContent.from_data_uri(url) if url.startswith("data:") else ImageUrl(url=url)
        case {"type": kind}:
            return f"(an attachment of type {kind} that cannot be shown)"
        case _:
            return "(an attachment that cannot be shown)"

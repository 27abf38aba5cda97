"""Between our stored messages and pydantic-ai's: the one place that knows both.

The same stored messages always become the same bytes on the way to a provider, so that what a conversation has in
common with its last turn is read from the provider's cache. Reasoning of earlier turns is not sent back.
"""

from __future__ import annotations

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
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from palaver.agent.base import ReasoningDelta, TextDelta, ToolCall, ToolResult
from palaver.agent.pricing import SOURCE, price
from palaver.agent.tokens import text_of
from palaver.domain.usage import CostStatus, TurnUsage

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
    from palaver.agent.providers import ModelName

_NO_WORDS = "(no words)"  # providers refuse a message without any


def history(messages: Sequence[Mapping[str, Any]]) -> list[ModelMessage]:
    """A conversation in our stored shape as pydantic-ai's."""
    found: list[ModelMessage] = []
    tool_names: dict[str, str] = {}
    for message in messages:
        if message.get("role") == "assistant":
            response = _response(message)
            tool_names |= {
                part.tool_call_id: part.tool_name for part in response.parts if isinstance(part, ToolCallPart)
            }
            if response.parts:
                found.append(response)
        else:
            extend(found, [_request_part(message, tool_names)])
    return found


def extend(conversation: list[ModelMessage], parts: Sequence[ModelRequestPart]) -> None:
    """Go on with what comes from our side; what follows itself there is one request, as every provider accepts it."""
    last = conversation[-1] if conversation else None
    if isinstance(last, ModelRequest):
        conversation[-1] = ModelRequest(parts=[*last.parts, *parts])
    else:
        conversation.append(ModelRequest(parts=list(parts)))


def results(found: Sequence[ToolResult]) -> list[ModelRequestPart]:
    """What tools answered."""
    return [_result(result.id, result.name, result.content, failed=result.failed) for result in found]


def said(texts: Sequence[str]) -> list[ModelRequestPart]:
    """What people said."""
    return [UserPromptPart(content=text or _NO_WORDS) for text in texts]


def definitions(tools: Sequence[Tool]) -> list[ToolDefinition]:
    """Tools as they are described to a model."""
    return [
        # Not strict: the schemas of a tool server need not be of the kind that strict providers accept.
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters), strict=False
        )
        for tool in tools
    ]


def delta(event: ModelResponseStreamEvent) -> TextDelta | ReasoningDelta | None:
    """What a step of a model's stream says, if it says anything."""
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


def calls(response: ModelResponse) -> list[ToolCall]:
    """The tools a model wants to use, with its arguments as it wrote them."""
    return [
        ToolCall(
            part.tool_call_id, part.tool_name, part.args if isinstance(part.args, str) else part.args_as_json_str()
        )
        for part in response.tool_calls
    ]


def usage(response: ModelResponse, name: ModelName, base_url: str | None) -> TurnUsage:
    """What a request used, and its price if somebody knows it."""
    used = response.usage
    cost = None
    if used.input_tokens or used.output_tokens:  # nothing reported is not nothing to pay
        cost = price(used, response.model_name or name.model, name.provider, base_url)
    return TurnUsage(
        model=name.model,
        provider=name.provider,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        reasoning_tokens=used.details.get("reasoning_tokens", 0),
        cost=cost,
        cost_status=CostStatus.UNKNOWN if cost is None else CostStatus.ESTIMATED,
        cost_source=None if cost is None else SOURCE,
        last_prompt_tokens=used.input_tokens or None,
    )


def _response(message: Mapping[str, Any]) -> ModelResponse:
    parts: list[ModelResponsePart] = []
    text = text_of(message)
    if text.strip():
        parts.append(TextPart(content=text))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        parts.append(ToolCallPart(function["name"], function.get("arguments") or "{}", tool_call_id=call["id"]))
    return ModelResponse(parts=parts)


def _request_part(message: Mapping[str, Any], tool_names: Mapping[str, str]) -> ModelRequestPart:
    match message.get("role"):
        case "system":
            return SystemPromptPart(content=text_of(message))
        case "tool":
            call_id = str(message.get("tool_call_id", ""))
            name = tool_names.get(call_id) or str(message.get("tool_name") or "tool")
            return _result(call_id, name, text_of(message), failed=bool(message.get("is_error")))
        case _:
            return UserPromptPart(content=_user_content(message))


def _result(call_id: str, name: str, content: str, *, failed: bool) -> ToolReturnPart[Any]:
    return ToolReturnPart(name, content, tool_call_id=call_id, outcome="failed" if failed else "success")


def _user_content(message: Mapping[str, Any]) -> str | list[UserContent]:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or _NO_WORDS
    parts = [_user_part(part) for part in content]
    return parts or _NO_WORDS


def _user_part(part: Any) -> UserContent:
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            return text or _NO_WORDS
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)}:
            return BinaryContent.from_data_uri(url) if url.startswith("data:") else ImageUrl(url=url)
        case {"type": kind}:
            return f"(an attachment of type {kind} that cannot be shown)"
        case _:
            return "(an attachment that cannot be shown)"

"""The loop of one turn: ask a model, run the tools it calls, ask again, until it has answered.

Owns the loop and the reaction to a failing provider: retry the same model after a wait, then use the next model of
the chain, then raise an error. Always true: once an answer has yielded something, it is never requested again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
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
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from palaver.agent.base import (
    CUT_OFF_NOTICE,
    TOKENS_PER_IMAGE,
    AgentEvent,
    AgentRequest,
    HeldCall,
    ModelCall,
    Notice,
    ProviderReasoning,
    ReasoningDelta,
    RetryPolicy,
    Sleep,
    TextDelta,
    Tool,
    ToolCall,
    ToolFailed,
    ToolResult,
    UsageReport,
    estimate_message_tokens,
    estimate_tokens,
    estimate_tool_tokens,
    extract_text,
    make_fallback_notice,
)
from palaver.agent.compaction import remove_reasoning
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.core.tasks import cancel_tasks
from palaver.core.text import make_storable
from palaver.drivers import provider_errors
from palaver.drivers.chat_model import REPORTED_COST_KEY
from palaver.drivers.reasoning import is_worth_storing, pack_reasoning, unpack_answer
from palaver.sessions.turn import NoticeCode
from palaver.sessions.usage import CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from palaver.drivers.model_clients import ModelClients
    from palaver.drivers.providers import ModelName, ModelPrices


log = logging.getLogger(__name__)

_EMPTY_TEXT = "(no text)"  # providers reject an empty message
_INVALID_STATUS_CODES = frozenset({400, 422})  # of a request that the provider does not accept as it is


def convert_messages(messages: Sequence[Mapping[str, Any]], name: ModelName | None = None) -> list[ModelMessage]:
    """Convert messages for a model, with the reasoning that it wants back; without a name, with none."""
    converted: list[ModelMessage] = []
    tool_names: dict[str, str] = {}
    for message in messages:
        if message.get("role") == "assistant":
            response = (unpack_answer(message, name) if name is not None else None) or _build_response(message)
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


def convert_tools(tools: Sequence[Tool]) -> list[ToolDefinition]:
    return [
        # Not strict: the schema of a tool server may have features that strict mode does not allow.
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters), strict=False
        )
        for tool in tools
    ]


def convert_stream_event(event: ModelResponseStreamEvent) -> tuple[TextDelta | ReasoningDelta | None, str]:
    """Convert an event of a model's stream to a delta, if it has text or reasoning.

    Also return what it adds to the answer: text, reasoning or a tool call.
    """
    part = (
        event.part if isinstance(event, PartStartEvent) else event.delta if isinstance(event, PartDeltaEvent) else None
    )
    match part:
        case TextPart(content=text) | TextPartDelta(content_delta=text):
            return (TextDelta(text) if text else None), text
        case ThinkingPart(content=text) | ThinkingPartDelta(content_delta=text):
            return (ReasoningDelta(text) if text else None), text or ""
        case ToolCallPart():
            return None, f"{part.tool_name} {part.args_as_json_str()}"
        case ToolCallPartDelta(args_delta=arguments):
            return None, arguments if isinstance(arguments, str) else str(arguments or "")
        case _:
            return None, ""


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


def build_answer_message(answer: ModelResponse, calls: Sequence[ToolCall], name: ModelName) -> dict[str, Any]:
    """Build the message of an answer as the log will have it, so that every later request repeats this one."""
    texts = [part.content for part in answer.parts if isinstance(part, TextPart)]
    message: dict[str, Any] = {"role": "assistant", "content": make_storable("".join(texts))}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    if (reasoning := pack_reasoning(answer, name)) is not None:
        thoughts = [part.content for part in answer.parts if isinstance(part, ThinkingPart)]
        message |= {"reasoning": make_storable("".join(thoughts)), "provider_reasoning": reasoning}
    return message


def build_usage(response: ModelResponse, name: ModelName, prices: ModelPrices) -> TurnUsage:
    """Return the tokens of a request, and its cost if the price of the model is known.

    Empty if the provider reports numbers that are impossible: the answer itself is complete.
    """
    usage = response.usage
    cost, source = None, None
    try:
        if usage.input_tokens or usage.output_tokens:  # without tokens, the cost is unknown, not zero
            cost, source = prices.calculate_cost(usage, name, response.model_name or name.model)
        reported = (response.provider_details or {}).get(REPORTED_COST_KEY)
        estimate, status = None, CostStatus.UNKNOWN if cost is None else CostStatus.ESTIMATED
        if reported is not None:
            estimate, cost, status, source = cost, reported, CostStatus.ACTUAL, name.provider
        return TurnUsage(
            model=name.model,
            provider=name.provider,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.details.get("reasoning_tokens", 0),
            cost=cost,
            cost_status=status,
            cost_source=source,
            estimated_cost=estimate,
            last_prompt_tokens=usage.input_tokens or None,
        )
    except InvalidInput as error:
        log.warning("usage_invalid", extra={"model": str(name), "error": str(error)})
        return TurnUsage(model=name.model, provider=name.provider)


def _build_result_message(result: ToolResult) -> dict[str, Any]:
    failed = {"is_error": True} if result.failed else {}
    return {"role": "tool", "tool_call_id": result.id, "tool_name": result.name, "content": result.content} | failed


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


@dataclass(kw_only=True)
class ToolLoop:
    """Runs one turn with a chain of models."""

    request: AgentRequest
    chain: list[ModelName]  # the current model, then the fallbacks that are left
    clients: ModelClients
    prices: ModelPrices
    retry: RetryPolicy
    sleep: Sleep
    max_rounds: int
    can_use_other_agent: bool = False  # after an error: nothing was said or done yet, and another agent may answer
    _input_tokens: int = 0  # of the instructions and tools, and of so many messages:
    _estimated_count: int = 0
    _answer: ModelResponse | None = None
    _has_text: bool = False
    _answer_count: int = 0

    def __post_init__(self) -> None:
        request = self.request
        self._messages = list(request.messages)
        self._conversation: list[ModelMessage] = []
        self._converted_for: ModelName | None = None
        self._tools = {tool.name: tool for tool in request.tools}
        self._input_tokens = estimate_tokens(request.instructions) + estimate_tool_tokens(request.tools)

    async def run(self) -> AsyncGenerator[AgentEvent, None]:
        """Run the turn and yield its events until the answer is complete."""
        for round_number in range(self.max_rounds + 1):
            is_last = round_number == self.max_rounds
            if is_last:
                text = f"The agent used tools {self.max_rounds} times in a row, so it has to answer now."
                yield Notice(text, NoticeCode.TOOL_LIMIT, {"count": self.max_rounds})
            async with aclosing(self._ask_with_retries(may_call_tools=not is_last)) as events:
                async for event in events:
                    yield event
            self._answer_count += 1
            answer = self._answer
            assert answer is not None  # noqa: S101
            calls = extract_tool_calls(answer)
            is_end = is_last or not calls
            for call in calls if not is_end else ():
                yield call
            message = build_answer_message(answer, calls, self.chain[0])
            reasoning = message.get("provider_reasoning")
            if reasoning is not None and is_worth_storing(reasoning):
                yield ProviderReasoning(reasoning)
            if is_end:
                if answer.finish_reason == "length":
                    yield CUT_OFF_NOTICE
                return
            tasks = [asyncio.create_task(_run_tool(call, self._tools)) for call in calls]
            async with aclosing(_yield_as_completed(tasks)) as results:
                async for result in results:
                    yield result
            returned = [_build_result_message(task.result()) for task in tasks]  # in the order of the calls
            steering = [{"role": "user", "content": text} for text in await self.request.take_steering()]
            self._add_messages([message, *returned, *steering])

    def _add_messages(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._messages += messages
        self._conversation += convert_messages(messages, self._converted_for)

    def _convert_for(self, name: ModelName) -> None:
        """Convert the conversation for a model, unless it is. Reasoning goes only to the model that it is from."""
        if name != self._converted_for:
            self._converted_for = name
            self._conversation = convert_messages(self._messages, name)

    def _can_drop_reasoning(self, error: BaseException) -> bool:
        """Whether a provider may have refused a request because of the reasoning that it wanted back.

        It was valid when it was stored; a key, an account or the messages before it may have changed since.
        """
        return (
            isinstance(error, ModelHTTPError)
            and error.status_code in _INVALID_STATUS_CODES
            and any("provider_reasoning" in message for message in self._messages)
        )

    async def _ask_with_retries(self, *, may_call_tools: bool) -> AsyncGenerator[AgentEvent, None]:
        """Yield one answer, from the first model of the chain that gives one."""
        failures = 0
        while True:
            name = self.chain[0]
            has_started = False
            try:
                async with aclosing(self._ask_once(name, may_call_tools=may_call_tools)) as events:
                    async for event in events:
                        has_started = has_started or not isinstance(event, UsageReport)
                        yield event
                answer = self._answer
                if answer is not None and (answer.tool_calls or self._has_text):
                    return  # after text earlier in this turn, it may end silently
                reason = answer.finish_reason if answer else None
                failure = provider_errors.make_empty_answer_failure(name, reason)
            except provider_errors.PROVIDER_EXCEPTIONS as error:
                failure = provider_errors.classify_error(error, name, self.clients.get_provider(name))
                if not has_started and self._can_drop_reasoning(error):
                    self._messages = remove_reasoning(self._messages)
                    self._converted_for = None
                    log.warning("reasoning_refused", extra={"model": str(name)})
                    continue
            if has_started:
                raise provider_errors.make_dropped_error(failure, name) from failure.cause
            failures += 1
            wait = None
            if failure.can_retry:
                wait = self.retry.get_wait_seconds(failures, requested_wait=failure.retry_after_seconds)
            if wait is not None:
                await self.sleep(wait)
            elif failure.can_use_fallback and len(self.chain) > 1:
                self.chain.pop(0)
                failures = 0
                yield make_fallback_notice(failure.error, str(self.chain[0]), str(name))
            else:
                self.can_use_other_agent = failure.can_use_fallback and self._answer_count == 0
                raise failure.error from failure.cause

    async def _ask_once(self, name: ModelName, *, may_call_tools: bool) -> AsyncGenerator[AgentEvent, None]:
        """Ask one model once, yield its events, and keep the complete answer in `self._answer`."""
        self._answer = None
        self._convert_for(name)
        model = await self.clients.get_model(name)
        parameters = ModelRequestParameters(
            function_tools=convert_tools(self.request.tools),
            instruction_parts=[InstructionPart(content=self.request.instructions)]
            if self.request.instructions
            else None,
        )
        messages = model.prepare_messages(list(self._conversation), parameters)
        held = await self._hold(name)
        settings = self._build_settings(name, held.max_tokens, may_call_tools=may_call_tools)
        streamed: list[str] = []
        try:
            async with model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                async for event in stream:
                    delta, added = convert_stream_event(event)
                    streamed.append(added)
                    if delta is not None:
                        self._has_text |= isinstance(delta, TextDelta) and bool(delta.text.strip())
                        yield delta
                self._answer = stream.get()
            if name.provider == "openai" and self._answer.finish_reason is None:  # others say so by themselves
                raise ModelAPIError(str(name), "The stream ended before the answer was complete.")
            usage = build_usage(self._answer, name, self.prices)
        except BaseException as error:  # also when it is canceled: what was streamed has to be paid for
            streamed_tokens = estimate_tokens("".join(streamed))
            if not streamed_tokens and provider_errors.is_refused(error):
                await held.release()
            else:
                await held.settle(None, streamed_tokens=streamed_tokens)
            raise
        streamed_tokens = 0 if usage.has_usage else estimate_tokens("".join(streamed))
        await held.settle(usage if usage.has_usage else None, streamed_tokens=streamed_tokens)
        if usage.has_usage:
            yield UsageReport(usage, held.is_recorded)

    async def _hold(self, name: ModelName) -> HeldCall:
        """Hold what the next call to a model may cost; raises `BudgetExceeded`, which no other model can help with."""
        new_parts = [part for message in self._conversation[self._estimated_count :] for part in message.parts]
        self._input_tokens += await asyncio.to_thread(lambda: sum(map(_estimate_part_tokens, new_parts)))
        self._estimated_count = len(self._conversation)
        call = ModelCall(
            model=str(name),
            provider=name.provider,
            input_tokens=self._input_tokens,
            max_tokens=self.request.max_tokens,
            price=await self.prices.find_price(name),
        )
        return await self.request.meter.hold(call)

    def _build_settings(self, name: ModelName, max_tokens: int | None, *, may_call_tools: bool) -> ModelSettings:
        settings = ModelSettings(max_retries=0)
        if name.provider == "anthropic":  # the other providers cache prompts without being asked
            settings["cache"] = True
        if max_tokens is not None:
            settings["max_tokens"] = max_tokens
        if self.request.tools and not may_call_tools:
            settings["tool_choice"] = "none"
        return settings


async def _yield_as_completed(tasks: Sequence[asyncio.Task[ToolResult]]) -> AsyncGenerator[ToolResult, None]:
    """Yield the results of concurrent tools as they arrive; no task outlives this generator."""
    try:
        for completed in asyncio.as_completed(tasks):
            yield await completed
    finally:
        await cancel_tasks(tasks)


async def _run_tool(call: ToolCall, tools: Mapping[str, Tool]) -> ToolResult:
    tool = tools.get(call.name)
    try:
        if tool is None:
            raise ToolFailed(f"There is no tool {call.name!r}. Available tools: {', '.join(tools) or 'none'}.")
        return ToolResult(call.id, call.name, make_storable(await tool.run(_parse_arguments(call))))
    except ToolFailed as error:
        return ToolResult(call.id, call.name, make_storable(str(error)), failed=True)


def _parse_arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError as error:
        raise ToolFailed(
            f"The arguments are not valid JSON ({error}). Call the tool again with a JSON object."
        ) from error
    if not isinstance(arguments, dict):
        raise ToolFailed("The arguments are not a JSON object. Call the tool again with a JSON object.")
    return arguments

"""A turn with a model: ask, run the tools it calls, ask again, until it has answered.

Owns the loop, and what is done when a provider fails: the same model again after a while, then the next of the chain,
then an error. Always true: what has been yielded is never asked for a second time.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from palaver.agent import message_conversion, provider_errors
from palaver.agent.base import Notice, TextDelta, ToolCall, ToolFailed, ToolResult, Used

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from pydantic_ai.messages import ModelResponse

    from palaver.agent.base import AgentEvent, AgentRequest, Tool
    from palaver.agent.model_clients import Endpoints
    from palaver.agent.provider_errors import Failure
    from palaver.agent.providers import ModelName
    from palaver.agent.retry import Retry, Sleep


class Rounds:
    """The rounds of one turn."""

    def __init__(
        self,
        request: AgentRequest,
        chain: Sequence[ModelName],
        endpoints: Endpoints,
        *,
        retry: Retry,
        sleep: Sleep,
        most: int,
    ) -> None:
        self._request = request
        self._chain = list(chain)  # the model that is being asked, and those that are left
        self._endpoints = endpoints
        self._retry = retry
        self._sleep = sleep
        self._most = most
        self._conversation = message_conversion.history(request.messages)
        self._tools = {tool.name: tool for tool in request.tools}
        self._answer: ModelResponse | None = None
        self._has_spoken = False

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """Everything that happens until the answer is complete."""
        for number in range(self._most + 1):
            last = number == self._most
            if last:
                yield Notice(f"The agent has used tools {self._most} times in a row; it is asked to come to an end.")
            async with aclosing(self._answered(may_call=not last)) as events:
                async for event in events:
                    yield event
            answer = self._answer
            assert answer is not None  # noqa: S101
            calls = message_conversion.calls(answer)
            if last or not calls:
                if answer.finish_reason == "length":
                    yield Notice("The answer has reached the limit of its length and ends here.")
                return
            for call in calls:
                yield call
            running = [asyncio.create_task(_result(call, self._tools)) for call in calls]
            async with aclosing(_as_they_end(running)) as ended:
                async for result in ended:
                    yield result
            found = message_conversion.results([task.result() for task in running])  # in the order of the calls
            self._conversation.append(answer)
            message_conversion.extend(
                self._conversation, [*found, *message_conversion.said(await self._request.steering())]
            )

    async def _answered(self, *, may_call: bool) -> AsyncGenerator[AgentEvent, None]:
        """One answer, from the first model of the chain that gives one."""
        failed = 0
        while True:
            name = self._chain[0]
            begun = False
            try:
                async with aclosing(self._asked(name, may_call=may_call)) as events:
                    async for event in events:
                        begun = begun or not isinstance(event, Used)
                        yield event
                failure = self._fault_of_answer(name)
                if failure is None:
                    return
            except provider_errors.CAUGHT as error:
                failure = provider_errors.understood(error, name, self._endpoints.provider(name))
            if begun:
                raise provider_errors.broken_off(failure, name) from failure.cause
            failed += 1
            wait = self._retry.wait(failed, asked=failure.asked) if failure.again else None
            if wait is not None:
                await self._sleep(wait)
            elif failure.elsewhere and len(self._chain) > 1:
                self._chain.pop(0)
                failed = 0
                yield Notice(f"{failure.reason} {self._chain[0]} answers instead of {name}.")
            else:
                raise failure.error from failure.cause

    async def _asked(self, name: ModelName, *, may_call: bool) -> AsyncGenerator[AgentEvent, None]:
        """Ask one model once. The whole answer is kept when it has ended."""
        self._answer = None
        model = await self._endpoints.model(name)
        parameters = ModelRequestParameters(
            function_tools=message_conversion.definitions(self._request.tools),
            instruction_parts=[InstructionPart(content=self._request.instructions)]
            if self._request.instructions
            else None,
        )
        messages = model.prepare_messages(list(self._conversation), parameters)
        asked = model_request_stream(
            model, messages, model_settings=self._settings(name, may_call=may_call), model_request_parameters=parameters
        )
        async with asked as stream:
            async for event in stream:
                delta = message_conversion.delta(event)
                if delta is not None:
                    self._has_spoken |= isinstance(delta, TextDelta) and bool(delta.text.strip())
                    yield delta
            self._answer = stream.get()
        used = message_conversion.usage(self._answer, name, self._endpoints.provider(name).base_url)
        if used.counts:
            yield Used(used)

    def _settings(self, name: ModelName, *, may_call: bool) -> ModelSettings:
        settings = ModelSettings(max_retries=0)
        if name.provider == "anthropic":  # the others keep what conversations have in common without being told
            settings["cache"] = True
        if self._request.max_tokens is not None:
            settings["max_tokens"] = self._request.max_tokens
        if self._request.tools and not may_call:
            settings["tool_choice"] = "none"
        return settings

    def _fault_of_answer(self, name: ModelName) -> Failure | None:
        """Nothing at all was said. After other words in this turn, silence is a way to end it."""
        answer = self._answer
        if answer is None or (not answer.tool_calls and not self._has_spoken):
            return provider_errors.empty(name, answer.finish_reason if answer else None)
        return None


async def _as_they_end(running: Sequence[asyncio.Task[ToolResult]]) -> AsyncGenerator[ToolResult, None]:
    """What tools answer that run at the same time, each as soon as it is there; none outlives this."""
    try:
        for ended in asyncio.as_completed(running):
            yield await ended
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _result(call: ToolCall, tools: Mapping[str, Tool]) -> ToolResult:
    tool = tools.get(call.name)
    try:
        if tool is None:
            raise ToolFailed(f"There is no tool called {call.name!r}; there are: {', '.join(tools) or 'none'}.")
        return ToolResult(call.id, call.name, await tool.run(_arguments(call)))
    except ToolFailed as error:
        return ToolResult(call.id, call.name, str(error), failed=True)


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError as error:
        raise ToolFailed(f"The arguments are not JSON ({error}). Call it again with a JSON object.") from error
    if not isinstance(arguments, dict):
        raise ToolFailed("The arguments are not a JSON object. Call it again with one.")
    return arguments

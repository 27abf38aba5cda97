"""What a turn does when its conversation is too long for the model: it makes the request smaller, step by step.

The steps, until the model accepts one: the newest message alone is shortened if it is most of the conversation; a
summary replaces everything before the last exchanges, then before the last one, then before the messages that wait for
their answer; the longest texts are shortened more and more, and again whenever new results of tools make it too long.
Where no summary can be made, the older messages leave the agent's view. So every conversation is answered, as long as
the instructions and tools alone fit into the model.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.agent.base import Notice
from palaver.agent.context_fitting import MIN_CONTEXT_TOKENS, count_tokens, shorten_messages
from palaver.core.errors import AgentError, InvalidInput, NothingToDo
from palaver.sessions.turn_codes import NoticeCode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from palaver.agent.base import AgentRequest
    from palaver.config.agent_rules import CompactionRules
    from palaver.turns.compaction import Compactor

SUMMARIZED_NOTICE = Notice(
    "This conversation was too long for the model, so the agent now sees a summary of it.", NoticeCode.SUMMARIZED
)
OMITTED_NOTICE = Notice(
    "This conversation was too long for the model, so the agent no longer sees its oldest messages.", NoticeCode.OMITTED
)
SHORTENED_NOTICE = Notice(
    "A message was too long for the model, so the agent sees a shortened version of it.", NoticeCode.SHORTENED
)

log = logging.getLogger(__name__)


class OverflowHandler:
    """Makes the request of one turn smaller."""

    def __init__(
        self,
        rules: CompactionRules,
        compactor: Compactor,
        *,
        build_request: Callable[[], Awaitable[AgentRequest]],
        get_input_seq: Callable[[], int],
        send_notice: Callable[[Notice], None],
        on_shortened: Callable[[], None],
    ) -> None:
        self._rules = rules
        self._compactor = compactor
        self._build_request = build_request
        self._get_input_seq = get_input_seq
        self._send_notice = send_notice
        self._can_summarize = rules.enabled
        self._on_shortened = on_shortened
        self._max_tokens: int | None = None  # of the messages, once they are shortened

    async def iterate_requests(self) -> AsyncGenerator[AgentRequest, None]:
        """Yield smaller and smaller requests for a conversation that was too long for the model."""
        messages = (await self._build_request()).messages
        tokens = count_tokens(messages)
        new_tokens = count_tokens(messages[_find_last_question(messages) :])
        enough_tokens = max(2 * (tokens - new_tokens), MIN_CONTEXT_TOKENS)  # for all messages before the last question
        while (max_tokens := (self._max_tokens or tokens) // 2) > enough_tokens:
            self._max_tokens = max_tokens
            yield await self._build_shortened()
        for exchanges in sorted({self._rules.keep_exchanges, 1, 0}, reverse=True):
            if await self._make_room(exchanges):
                yield await self._build_shortened()
        messages = (await self._build_request()).messages
        max_tokens = min(self._max_tokens or count_tokens(messages), count_tokens(messages))
        message_count, has_grown = len(messages), False
        while has_grown or max_tokens > MIN_CONTEXT_TOKENS:
            # After the model has accepted a request and called more tools, the same length is enough again.
            max_tokens = max_tokens if has_grown else max_tokens // 2
            self._max_tokens = max_tokens
            yield await self._build_shortened()
            count_now = len((await self._build_request()).messages)
            has_grown, message_count = count_now > message_count, count_now

    async def _make_room(self, exchanges: int) -> bool:
        """Let a summary, or nothing, replace the messages before the last exchanges; False if there are none."""
        input_seq = self._get_input_seq()
        if self._can_summarize:
            try:
                await self._compactor.compact(None, input_seq, exchanges=exchanges)
            except NothingToDo:
                return False
            except (AgentError, InvalidInput) as error:
                log.warning("turn_summary_failed", extra={"error": str(error)})
                self._can_summarize = False  # it would fail again, and cost again
            else:
                self._send_notice(SUMMARIZED_NOTICE)
                return True
        try:
            await self._compactor.omit(input_seq, exchanges=exchanges)
        except NothingToDo:
            return False
        self._send_notice(OMITTED_NOTICE)
        return True

    async def _build_shortened(self) -> AgentRequest:
        request = await self._build_request()
        if self._max_tokens is None:
            return request
        self._on_shortened()
        return replace(request, messages=shorten_messages(request.messages, self._max_tokens))


def _find_last_question(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the index of the last message of a person."""
    return next((index for index in reversed(range(len(messages))) if messages[index]["role"] == "user"), 0)

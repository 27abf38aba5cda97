"""Temporary conversations: a question with all messages so far, answered as a stream; nothing of it is stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi.responses import StreamingResponse
from pydantic import Field

from palaver.agent.base import Notice, ReasoningDelta, TextDelta
from palaver.core.text import make_json_storable
from palaver.core.texts import current_language, translate_all
from palaver.inbox.temporary import (
    MAX_CONVERSATION_CHARS,
    MAX_MESSAGES,
    TemporaryEvent,
    TemporaryMessage,
    TemporaryQuestion,
)
from palaver.turns.answer_end import AnswerEnded
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.routes.live import EventStream, encode_event
from palaver.web.state import RequestModel, State

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

router = make_router("temporary", "/api/temporary", responses=error_responses(401, 429))

_STREAM_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Server-sent events: `text`, `reasoning`, `notice`, and `end` as the last one.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "event": {"type": "string", "enum": ["text", "reasoning", "notice", "end"]},
                        "data": {"type": "string", "description": "JSON."},
                    },
                }
            }
        },
    }
}


class TemporaryMessageIn(RequestModel):
    """One message of a temporary conversation."""

    role: Literal["user", "assistant"]
    content: str = Field(max_length=MAX_CONVERSATION_CHARS)
    interrupted: bool = Field(False, description="For an answer: it was stopped before it was complete.")


class TemporaryQuestionIn(RequestModel):
    """A temporary conversation, whose last message is to be answered."""

    messages: Annotated[list[TemporaryMessageIn], Field(min_length=1, max_length=MAX_MESSAGES)]
    model: str | None = Field(None, max_length=200, description="None: that of the profile, or the default.")
    profile: str | None = Field(None, max_length=200)
    personality: str | None = Field(None, max_length=200)


@router.post("/answers", response_class=StreamingResponse, responses=_STREAM_RESPONSE)
async def answer_temporary_question(state: State, caller: Caller, body: TemporaryQuestionIn) -> EventStream:
    """Answer the last message of a temporary conversation.

    Nothing that was said is stored, logged or found by searches: you send all messages with each question, and keep the
    answer yourself. The agent has no tools and no memory here. Only usage is recorded, without texts. To stop the
    answer, close the connection.
    """
    question = TemporaryQuestion(
        messages=[
            TemporaryMessage(role=each.role, text=each.content, is_interrupted=each.interrupted)
            for each in body.messages
        ],
        **body.model_dump(exclude={"messages"}),
    )
    events = await state.gateway.temporary_chats.ask(caller.person, question)
    return EventStream(_encode_events(events), state, caller)


async def _encode_events(events: AsyncGenerator[TemporaryEvent, None]) -> AsyncGenerator[bytes, None]:
    language = current_language.get()
    try:
        async for event in events:
            name, data = _describe_event(event)
            yield encode_event(name, json.dumps(make_json_storable(translate_all(data, language))))
    finally:
        await events.aclose()


def _describe_event(event: TemporaryEvent) -> tuple[str, dict[str, Any]]:
    match event:
        case TextDelta(text):
            return "text", {"text": text}
        case ReasoningDelta(text):
            return "reasoning", {"text": text}
        case Notice(text, code, facts):
            return "notice", {"text": text, "code": code, "facts": dict(facts)}
        case AnswerEnded():
            usage = event.usage
            return "end", {
                "state": event.state.value,
                "error": event.error or None,
                "facts": dict(event.facts),
                "usage": {
                    "model": usage.model,
                    "input_tokens": usage.input_tokens,
                    "output_tokens": usage.output_tokens,
                    "cost_usd": None if usage.cost is None else str(usage.cost),
                },
            }

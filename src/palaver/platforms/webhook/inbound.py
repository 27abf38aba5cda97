"""Turns the body of a verified request into a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from palaver.core.source import ChatType, Platform, SessionSource
from palaver.inbox import MAX_MESSAGE_CHARS
from palaver.sessions.inbound import Inbound

if TYPE_CHECKING:
    from palaver.sessions.platform_updates import AnyUpdate

DEFAULT_CONVERSATION = "default"
DEFAULT_USER_ID = "default"  # of the account without a name


class WebhookPayload(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    conversation: str = Field(DEFAULT_CONVERSATION, min_length=1, max_length=100)  # a name, within this webhook only

    @field_validator("conversation")
    @classmethod
    def _check_conversation(cls, value: str) -> str:
        if not value.isprintable() or value != value.strip():
            raise ValueError("a conversation has a name without control characters, and without spaces around it")
        return value


class PayloadRefused(Exception):
    """The body is not what a webhook takes."""


def parse_payload(body: bytes) -> WebhookPayload:
    """Read a body. Raises PayloadRefused, which says what is wrong."""
    try:
        return WebhookPayload.model_validate_json(body)
    except ValidationError as errors:
        first: Any = errors.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PayloadRefused(f"{where}: {first['msg']}" if where else str(first["msg"])) from None


def make_message(payload: WebhookPayload, message_id: str, *, account: str, user_name: str) -> AnyUpdate:
    """Return the message of a caller. The caller names a conversation of its own, never another caller's."""
    source = SessionSource(
        Platform.WEBHOOK,
        payload.conversation,
        chat_name=payload.conversation,
        chat_type=ChatType.DM,
        user_id=account or DEFAULT_USER_ID,
        user_name=user_name,
        account=account,
    )
    return Inbound(source=source, content=payload.text, message_id=message_id)

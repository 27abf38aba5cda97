"""What is said in a conversation and what else happens there, as it goes out and comes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field

from palaver.domain.inbound import ReplyTo
from palaver.domain.turn import BusyPolicy
from palaver.web.schemas import In, Key, Out, Time, clean, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.domain.delivery import DeliveryStatus
    from palaver.domain.events import Event
    from palaver.domain.ids import PersonId
    from palaver.domain.inbound import Receipt
    from palaver.domain.message import Message
    from palaver.domain.session_summary import Excerpt
    from palaver.domain.turn import Turn

Content = str | list[dict[str, Any] | str]
RoleOut = Literal["system", "user", "assistant", "tool"]


class AuthorOut(Out):
    """Who said it, where several people speak."""

    name: str
    id: str | None = None


class MessageOut(Out):
    """What was said, in the shape chat models use; what does not apply is null."""

    role: RoleOut
    content: str | list[Any] | None
    author: AuthorOut | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    reasoning: str | None = None
    interrupted: bool = False
    is_error: bool = False
    duration_ms: int | None = Field(
        None, description="How long the tool took; of the message that ends an answer, how long the agent worked on it."
    )
    answers: int | None = Field(None, description="The number of the message that it answers.")


class PersonRef(Out):
    """Who did something."""

    id: str
    name: str


class EventOut(Out):
    """One line of a conversation's log."""

    seq: int
    kind: str
    at: Time
    hidden: bool = Field(description="A message that was taken back; it is kept.")
    person: PersonRef | None
    message: MessageOut | None = Field(description="For kind `message`.")
    facts: dict[str, Any] = Field(description="For every other kind.")


class EventsOut(Out):
    """A part of a log, oldest first."""

    events: list[EventOut]
    more_before: bool
    more_after: bool


class MessageIn(In):
    """Something to say."""

    content: Content = Field(description="Text, or parts in the shape chat models use.")
    key: Key = Field(description="Your own name for this message: sent twice with the same key, it is one message.")
    busy: BusyPolicy | None = Field(None, description="What happens to it while the agent is answering.")
    attachments: Annotated[list[str], Field(max_length=20)] = Field(
        default_factory=list, description="Ids of files that were uploaded before."
    )
    reply: ReplyTo = Field(
        ReplyTo.HERE,
        description="Where the answer is read: here alone, or also where the conversation takes place (`reachable`).",
    )


class ReceiptOut(Out):
    """What became of a message or a command. When you read it, all of it is durable."""

    outcome: Literal["accepted", "queued", "collected", "steered", "interrupting", "command", "duplicate", "refused"]
    session_id: str | None
    turn_id: str | None
    seq: int | None = Field(description="The message's number in the log.")
    ahead: int = Field(description="Turns that come first in the same conversation.")
    reply: str | None = Field(description="What the gateway itself says, in Markdown.")
    facts: dict[str, Any]


class TurnOut(Out):
    """One run of the agent."""

    id: str
    state: Literal["queued", "running", "done", "failed", "interrupted"]
    kind: Literal["answer", "compact"]
    input_seq: int
    attempt: int
    steers: bool = Field(description="Given to the answer before it at its next step, if that has one.")
    error: str | None
    created_at: Time
    ended_at: Time | None
    goes_to: str | None = Field(description="The platform that its answer is sent to; null: it is read here.")
    quotes: list[int] = Field(description="Messages that are quoted before the answer, for those who read it there.")


class DeliveryOut(Out):
    """An answer that is sent to where people read it."""

    id: str
    turn_id: str
    input_seq: int = Field(description="The message that is answered.")
    quotes: list[int] = Field(description="Messages that are quoted before the answer.")
    platform: str
    state: Literal["pending", "sending", "sent", "uncertain", "failed"]
    error: str | None = Field(description="Why it failed, is uncertain, or is tried again.")
    created_at: Time = Field(description="The moment of the answer.")
    ended_at: Time | None


class DeliveriesOut(Out):
    """Deliveries of a conversation, oldest first."""

    deliveries: list[DeliveryOut]


def events_out(excerpt: Excerpt) -> EventsOut:
    """A part of a log as it goes out."""
    return EventsOut(
        events=[event_out(event, excerpt.names) for event in excerpt.events],
        more_before=excerpt.more_before,
        more_after=excerpt.more_after,
    )


def event_out(event: Event, names: Mapping[PersonId, str]) -> EventOut:
    """A line of a log as it goes out."""
    person = None
    if event.person_id is not None:
        person = PersonRef(id=event.person_id, name=names.get(event.person_id, ""))
    return EventOut(
        seq=event.seq,
        kind=event.kind.value,
        at=event.at,
        hidden=event.hidden,
        person=person,
        message=None if event.message is None else message_out(event.message),
        facts=clean(dict(event.facts)),
    )


def message_out(message: Message) -> MessageOut:
    """A message as it goes out."""
    extra = message.extra
    author = None
    if message.author is not None:
        author = AuthorOut(name=shown(message.author.name), id=message.author.id)
    answered, took = extra.get("answers"), extra.get("duration_ms")
    return MessageOut(
        role=cast("RoleOut", message.role),  # checked when it was stored
        content=clean(list(message.content) if isinstance(message.content, tuple) else message.content),
        author=author,
        tool_calls=clean(list(extra["tool_calls"])) if extra.get("tool_calls") else None,
        tool_call_id=_optional(extra.get("tool_call_id")),
        tool_name=_optional(extra.get("tool_name")),
        reasoning=_optional(extra.get("reasoning")),
        interrupted=bool(extra.get("interrupted")),
        is_error=bool(extra.get("is_error")),
        duration_ms=took if isinstance(took, int) else None,
        answers=answered if isinstance(answered, int) else None,
    )


def receipt_out(receipt: Receipt) -> ReceiptOut:
    """What became of a message, as it goes out."""
    return ReceiptOut(
        outcome=receipt.outcome.value,
        session_id=receipt.session_id,
        turn_id=receipt.turn_id,
        seq=receipt.seq,
        ahead=receipt.ahead,
        reply=None if receipt.reply is None else shown(receipt.reply),
        facts=clean(receipt.facts or {}),
    )


def turn_out(turn: Turn) -> TurnOut:
    """A run of the agent as it goes out."""
    return TurnOut(
        id=turn.id,
        state=turn.state.value,
        kind=turn.kind.value,
        input_seq=turn.input_seq,
        attempt=turn.attempt,
        steers=turn.steers,
        error=turn.error,
        created_at=turn.created_at,
        ended_at=turn.ended_at,
        goes_to=None if turn.goes_to is None else str(turn.goes_to),
        quotes=list(turn.quotes),
    )


def delivery_out(delivery: DeliveryStatus) -> DeliveryOut:
    """How a delivery stands, as it goes out."""
    return DeliveryOut(
        id=delivery.id,
        turn_id=delivery.turn_id,
        input_seq=delivery.input_seq,
        quotes=list(delivery.quotes),
        platform=str(delivery.platform),
        state=delivery.state.value,
        error=None if delivery.error is None else shown(delivery.error),
        created_at=delivery.created_at,
        ended_at=delivery.ended_at,
    )


def _optional(value: object) -> str | None:
    return shown(value) if isinstance(value, str) else None

"""JSON schemas of messages, events, turns and deliveries, and the conversion from domain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from palaver.sessions.inbound import ReplyTo
from palaver.sessions.turn import BusyPolicy
from palaver.web.state import (
    IdempotencyKey,
    RequestModel,
    ResponseModel,
    ShortText,
    Time,
    replace_surrogates,
    to_utf8_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.core.ids import PersonId
    from palaver.sessions.delivery import DeliveryStatus
    from palaver.sessions.events import Event
    from palaver.sessions.inbound import Receipt
    from palaver.sessions.model import TranscriptPage
    from palaver.sessions.turn import Turn

Content = str | list[dict[str, Any] | str]
RoleOut = Literal["system", "user", "assistant", "tool"]
OutcomeOut = Literal[
    "accepted",
    "queued",
    "merged",
    "steered",
    "interrupting",
    "command",
    "duplicate",
    "rejected",
    "recorded",
    "ignored",
]


class AuthorOut(ResponseModel):
    """Who wrote a message in a conversation with several people."""

    name: str
    id: str | None = None


class QuotedMessageOut(ResponseModel):
    """What another person has said in the chat."""

    author: str | None = None
    text: str = ""


class SentByOut(ResponseModel):
    """A job, or the agent at the request of a person in another conversation."""

    kind: Literal["job", "agent"]
    name: str = Field(description="The name of the job, or of the person who asked the agent.")
    job_id: str | None
    run_id: str | None
    session_id: str | None = Field(description="The conversation of the job's run, or in which the agent was asked.")


class MessageOut(ResponseModel):
    """A message in the format that chat models use."""

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
        None,
        description="For a tool result: how long the tool took. For the last message of an answer: how long the agent"
        " took to answer.",
    )
    answers_seq: int | None = Field(None, description="The number of the message that this one answers.")
    edited: bool = Field(
        False, description="Its author has changed it on the platform. `message_edited` events have the texts before."
    )
    sent_at: Time | None = Field(None, description="When it was sent, as the platform says.")
    context: list[QuotedMessageOut] | None = Field(
        None, description="What was said in the group before it, and not to the agent. The agent sees it as a quote."
    )
    replied_message: QuotedMessageOut | None = Field(None, description="The message that it replies to.")
    sent_by: SentByOut | None = Field(None, description="Who sent it here, if it is neither a message nor an answer.")


class EventPersonOut(ResponseModel):
    """The person who caused an event."""

    id: str
    name: str


class VersionOut(ResponseModel):
    """Which version of a message is shown. A version is a message with everything that followed it."""

    number: int = Field(description="Of the version that is shown, from 1.")
    count: int = Field(description="How many versions there are.")
    has_edits: bool = Field(description="The message was edited; otherwise only its answer was regenerated.")


class EventOut(ResponseModel):
    """One entry in a conversation's log."""

    seq: int = Field(description="The event's number in the log.")
    kind: str
    at: Time
    hidden: bool = Field(description="It was hidden by an undo, an edit or another version. It is not deleted.")
    person: EventPersonOut | None
    message: MessageOut | None = Field(description="Only for kind `message`.")
    facts: dict[str, Any] = Field(description="Details, for all other kinds.")
    version: VersionOut | None = Field(
        None, description="For a person's message that has several versions. Not on the live stream."
    )


class EventsOut(ResponseModel):
    """A page of a conversation's log, oldest first."""

    events: list[EventOut]
    has_more_before: bool
    has_more_after: bool


class MessageIn(RequestModel):
    """A message to send."""

    content: Content = Field(
        description="Text, or a list of parts: text, `{type: text, text}`, or a file you uploaded, `{type: attachment,"
        " id}`."
    )
    key: IdempotencyKey = Field(
        description="Your own id for this message. Sending it again with the same key has no effect."
    )
    busy_policy: BusyPolicy | None = Field(
        None, description="What to do if the agent is still answering another message."
    )
    attachment_ids: Annotated[list[ShortText], Field(max_length=20)] = Field(
        default_factory=list, description="Ids of uploaded files to attach."
    )
    reply_to: ReplyTo = Field(
        ReplyTo.SESSION,
        description="`session`: the answer only appears in the conversation. `origin`: it is also sent to the chat that"
        " the conversation comes from, if that is `reachable`.",
    )


class ReceiptOut(ResponseModel):
    """What happened to a message or command. When you receive this, everything in it is stored durably."""

    outcome: OutcomeOut
    session_id: str | None
    turn_id: str | None
    seq: int | None = Field(description="The message's number in the log.")
    turns_ahead: int = Field(description="How many turns of the same conversation come first.")
    reply: str | None = Field(description="Palaver's own reply to a command or refused message, in Markdown.")
    facts: dict[str, Any] = Field(description="The result of a command, for programs.")


class TurnOut(ResponseModel):
    """A turn: one run of the agent."""

    id: str
    state: Literal["queued", "running", "done", "failed", "interrupted"]
    kind: Literal["answer", "compact"]
    input_seq: int = Field(description="The number of the message that this turn answers.")
    attempt: int
    is_steering: bool = Field(description="The message is passed to the running turn at its next step, if it has one.")
    error: str | None
    created_at: Time
    ended_at: Time | None
    delivers_to: str | None = Field(
        description="The platform that the answer is delivered to; null if it only appears in the conversation."
    )
    quoted_seqs: list[int] = Field(description="Messages to quote above the answer where it is delivered.")


class DeliveryOut(ResponseModel):
    """An answer, or a message that a job or the agent sent, on its way to a chat platform."""

    id: str
    turn_id: str | None = Field(description="Only for answers.")
    input_seq: int | None = Field(description="The number of the message that is answered. Only for answers.")
    message_seq: int | None = Field(description="The number of the message itself, if it is not an answer.")
    quoted_seqs: list[int] = Field(description="Messages quoted above the answer.")
    platform: str
    state: Literal["pending", "sending", "sent", "uncertain", "failed"]
    error: str | None = Field(description="Why it failed, is uncertain or will be retried.")
    created_at: Time = Field(description="When the answer was finished.")
    ended_at: Time | None


class DeliveriesOut(ResponseModel):
    """A page of a conversation's deliveries, oldest first."""

    deliveries: list[DeliveryOut]
    total: int = Field(description="How many deliveries the conversation has in all.")
    next_cursor: str | None = Field(
        description="Pass this as `cursor` to get the deliveries before these; null if there are none."
    )


def to_events_out(page: TranscriptPage) -> EventsOut:
    return EventsOut(
        events=[_to_page_event(event, page) for event in page.events],
        has_more_before=page.has_more_before,
        has_more_after=page.has_more_after,
    )


def _to_page_event(event: Event, page: TranscriptPage) -> EventOut:
    shown, info = to_event_out(event, page.person_names), page.versions.get(event.seq)
    if info is None:
        return shown
    version = VersionOut(number=info.number, count=info.count, has_edits=info.has_edits)
    return shown.model_copy(update={"version": version})


def to_event_out(event: Event, names: Mapping[PersonId, str]) -> EventOut:
    return EventOut.model_validate(event.to_dict(names))


def to_receipt_out(receipt: Receipt) -> ReceiptOut:
    return ReceiptOut(
        outcome=receipt.outcome.value,
        session_id=receipt.session_id,
        turn_id=receipt.turn_id,
        seq=receipt.seq,
        turns_ahead=receipt.turns_ahead,
        reply=None if receipt.reply is None else to_utf8_text(receipt.reply),
        facts=replace_surrogates(receipt.facts or {}),
    )


def to_turn_out(turn: Turn) -> TurnOut:
    return TurnOut(
        id=turn.id,
        state=turn.state.value,
        kind=turn.kind.value,
        input_seq=turn.input_seq,
        attempt=turn.attempt,
        is_steering=turn.is_steering,
        error=turn.error,
        created_at=turn.created_at,
        ended_at=turn.ended_at,
        delivers_to=None if turn.delivers_to is None else str(turn.delivers_to),
        quoted_seqs=list(turn.quoted_seqs),
    )


def to_delivery_out(delivery: DeliveryStatus) -> DeliveryOut:
    return DeliveryOut(
        id=delivery.id,
        turn_id=delivery.turn_id,
        input_seq=delivery.input_seq,
        message_seq=delivery.message_seq,
        quoted_seqs=list(delivery.quoted_seqs),
        platform=str(delivery.platform),
        state=delivery.state.value,
        error=delivery.error,
        created_at=delivery.created_at,
        ended_at=delivery.ended_at,
    )

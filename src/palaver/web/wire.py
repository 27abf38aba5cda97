"""The shapes of the API: what goes out and what comes in, and how values of the domain become the former.

Always true: names are in snake_case, times in ISO 8601 and UTC, ids are text, money is decimal text. A key that has
nothing to say is null, never missing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints

from palaver.domain.text import storable
from palaver.domain.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.domain.events import Event
    from palaver.domain.ids import PersonId
    from palaver.domain.inbound import Receipt
    from palaver.domain.message import Message
    from palaver.domain.overview import Excerpt, Overview
    from palaver.domain.session import Project, SearchHit
    from palaver.domain.spending import Report, Spent
    from palaver.domain.turn import Turn

MOST_SEQ = 2**53  # the largest number that every client can write

Time = Annotated[datetime, PlainSerializer(lambda moment: moment.astimezone(UTC), when_used="json")]
Key = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
Seq = Annotated[int, Field(ge=0, le=MOST_SEQ)]


class Out(BaseModel):
    """What goes out."""

    model_config = ConfigDict(frozen=True)


class In(BaseModel):
    """What comes in; a key that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# ---- conversations ---------------------------------------------------------------------------------------


class PlaceOut(Out):
    """Where a conversation takes place."""

    platform: str
    chat_name: str | None
    user_name: str | None


class UsageOut(Out):
    """What a conversation used, and what that cost in US dollars; null when nobody knows."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: str | None
    cost_status: Literal["unknown", "estimated", "actual"]
    unpriced_turns: int


class SessionOut(Out):
    """A conversation, as the one who asks sees it."""

    id: str = Field(examples=["20261115_081200_1a2b3c4d"])
    title: str | None
    name: str = Field(description="What to call it: its title, or where it takes place.")
    preview: str
    platform: str
    chat_type: Literal["dm", "group", "channel", "thread"]
    shared: bool = Field(description="Several people speak here.")
    source: PlaceOut
    message_count: int
    created_at: Time
    active_at: Time | None = Field(description="Null until something is said; only then do lists show it.")
    ended_at: Time | None
    pinned: bool
    archived: bool
    project_id: str | None
    parent_id: str | None = Field(description="What it was forked from.")
    model: str | None = Field(description="Used last.")
    chosen_model: str | None = Field(description="For this conversation alone; null: the default.")
    busy_policy: BusyPolicy | None = Field(description="For this conversation alone; null: as the settings say.")
    running: bool = Field(description="An answer is being given.")
    queued: int = Field(description="Messages that wait for an answer.")
    last_seq: int = Field(description="The number of the last event in its log.")
    read_seq: int = Field(description="The last one that you have seen.")
    context_tokens: int = Field(description="How full the model's context was the last time.")
    usage: UsageOut
    owner: str | None = Field(description="Whose it is; only where everybody's were asked for.")


class SessionsOut(Out):
    """A page of conversations, newest first."""

    sessions: list[SessionOut]
    cursor: str | None = Field(description="Continues the list; null at its end. A page may be short before that.")


class SessionIn(In):
    """A new conversation."""

    title: str | None = None
    project: str | None = Field(None, description="One of your projects, by id or name.")
    model: str | None = Field(None, description="Instead of the default.")


class SessionPatch(In):
    """What is to change; what is left out stays."""

    title: str | None = Field(None, description="Null takes it away.")
    pinned: bool = False
    archived: bool = False
    project: str | None = Field(None, description="By id or name; null takes it out of any.")
    model: str | None = Field(None, description="Null is the default.")
    busy: BusyPolicy | None = Field(None, description="Null is what the settings say.")


class ForkIn(In):
    """Where a copy ends, and what it is called."""

    at: Seq | None = Field(None, description="Up to and including the turn of this message; null: everything.")
    title: str | None = None


class EditIn(In):
    """What is said instead of an earlier message, in a copy of all that came before it."""

    at: Seq
    content: Content
    key: Key
    busy: BusyPolicy | None = None


class EditOut(Out):
    """The copy, and what became of the message."""

    session: SessionOut
    receipt: ReceiptOut


class StopIn(In):
    """What to stop."""

    queued: bool = Field(False, description="Also drop what waits.")
    key: Key | None = None


class UndoIn(In):
    """How much to take back."""

    turns: Annotated[int, Field(ge=1, le=1000)] = 1
    key: Key | None = None


class CompressIn(In):
    """What a summary must not lose."""

    focus: Annotated[str, StringConstraints(max_length=500)] | None = None
    key: Key | None = None


class CommandIn(In):
    """Nothing but a key: the same one twice is done once."""

    key: Key | None = None


class ReadIn(In):
    """How far somebody has read."""

    seq: Seq


class ReadOut(Out):
    """How far that is now; it never goes back."""

    read_seq: int


# ---- messages and events ---------------------------------------------------------------------------------

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
    error: str | None
    created_at: Time
    ended_at: Time | None


# ---- the other nouns -------------------------------------------------------------------------------------


class HitOut(Out):
    """A message that was found."""

    session_id: str
    title: str | None
    seq: int
    at: Time
    role: str
    snippet: str
    marks: list[tuple[int, int]] = Field(description="Where the words stand in the snippet: from, to (exclusive).")
    position: int = Field(description="Orders hits in the whole store.")


class HitsOut(Out):
    """What was found, newest first."""

    hits: list[HitOut]
    cursor: int | None = Field(description="Continues the search as `before`; null at its end.")


class ProjectOut(Out):
    """A folder for conversations."""

    id: str
    name: str
    colour: str | None
    session_count: int
    created_at: Time


class ProjectsOut(Out):
    """Your projects by name."""

    projects: list[ProjectOut]


class ProjectIn(In):
    """A new project."""

    name: str
    colour: str | None = Field(None, examples=["#3b82f6"])


class ProjectPatch(In):
    """What is to change; what is left out stays."""

    name: str | None = None
    colour: str | None = None


class ModelsOut(Out):
    """Which models a conversation may choose."""

    models: list[str]
    default: str
    description: str = Field(description="Which agent answers, and why.")


class CommandOut(Out):
    """A slash command."""

    name: str
    usage: str
    summary: str


class CommandsOut(Out):
    """The slash commands that you may use."""

    commands: list[CommandOut]


class RunIn(In):
    """A slash command to carry out."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000)] = Field(examples=["/new Trip to Lisbon"])
    key: Key
    session_id: str | None = Field(None, description="The conversation it is about.")


class SpentOut(Out):
    """What one group used."""

    group: str | None = Field(description="A day, a model, a platform, or an id; null: what belongs to none.")
    label: str
    turns: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: str | None
    unpriced_turns: int


class UsageReportOut(Out):
    """What was used, by group, and in all."""

    rows: list[SpentOut]
    total: SpentOut


class HealthOut(Out):
    """Whether it works."""

    status: Literal["ok"]
    version: str


for _model in (EditIn, EditOut):
    _model.model_rebuild()


# ---- from the domain -------------------------------------------------------------------------------------


def session_out(overview: Overview, *, with_owner: bool = False) -> SessionOut:
    """A conversation as it goes out."""
    session, used, place = overview.session, overview.session.usage, overview.session.origin
    return SessionOut(
        id=session.id,
        title=session.title,
        name=_text(session.display_name),
        preview=session.preview,
        platform=str(session.platform),
        chat_type=session.chat_type.value,
        shared=session.shared,
        source=PlaceOut(
            platform=str(place.platform),
            chat_name=None if place.chat_name is None else _text(place.chat_name),
            user_name=None if place.user_name is None else _text(place.user_name),
        ),
        message_count=session.message_count,
        created_at=session.created_at,
        active_at=session.active_at,
        ended_at=session.ended_at,
        pinned=session.pinned,
        archived=session.archived,
        project_id=session.project_id,
        parent_id=session.parent_id,
        model=session.model,
        chosen_model=overview.chosen_model,
        busy_policy=overview.busy,
        running=overview.running,
        queued=overview.queued,
        last_seq=overview.last_seq,
        read_seq=overview.read_seq,
        context_tokens=session.last_prompt_tokens,
        usage=UsageOut(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_read_tokens=used.cache_read_tokens,
            cache_write_tokens=used.cache_write_tokens,
            reasoning_tokens=used.reasoning_tokens,
            cost_usd=money(used.cost),
            cost_status=used.cost_status.value,
            unpriced_turns=used.unpriced_turns,
        ),
        owner=overview.owner if with_owner else None,
    )


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
        author = AuthorOut(name=_text(message.author.name), id=message.author.id)
    answered = extra.get("answers")
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
        reply=None if receipt.reply is None else _text(receipt.reply),
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
        error=turn.error,
        created_at=turn.created_at,
        ended_at=turn.ended_at,
    )


def hit_out(hit: SearchHit, marked: Sequence[tuple[int, int]], snippet: str) -> HitOut:
    """A message that was found, as it goes out."""
    return HitOut(
        session_id=hit.session_id,
        title=hit.title,
        seq=hit.seq,
        at=hit.at,
        role=hit.message.role,
        snippet=snippet,
        marks=list(marked),
        position=hit.position,
    )


def project_out(project: Project) -> ProjectOut:
    """A project as it goes out."""
    return ProjectOut(
        id=project.id,
        name=project.name,
        colour=project.colour,
        session_count=project.session_count,
        created_at=project.created_at,
    )


def report_out(report: Report) -> UsageReportOut:
    """What was used, as it goes out."""
    return UsageReportOut(rows=[spent_out(row) for row in report.rows], total=spent_out(report.total))


def spent_out(spent: Spent) -> SpentOut:
    """What one group used, as it goes out."""
    return SpentOut(
        group=spent.group,
        label=_text(spent.label),
        turns=spent.turns,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cache_read_tokens=spent.cache_read_tokens,
        cache_write_tokens=spent.cache_write_tokens,
        reasoning_tokens=spent.reasoning_tokens,
        cost_usd=money(spent.cost),
        unpriced_turns=spent.unpriced_turns,
    )


def money(amount: Decimal | None) -> str | None:
    """An amount of US dollars as plain decimal text."""
    return None if amount is None else f"{amount:f}"


def clean(value: Any) -> Any:
    """JSON-ready data as UTF-8 can carry it: halves of characters, which a log keeps exactly, are replaced."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [clean(each) for each in value]
    if isinstance(value, dict):
        return {_text(str(key)): clean(each) for key, each in value.items()}
    return value


def _text(text: str) -> str:
    return text if text.isascii() else storable(text)


def _optional(value: object) -> str | None:
    return _text(value) if isinstance(value, str) else None

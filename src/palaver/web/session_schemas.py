"""Conversations, as they go out and come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from palaver.domain.turn import BusyPolicy
from palaver.web.message_schemas import Content, ReceiptOut
from palaver.web.schemas import Counted, In, Key, Out, Seq, Time, counted, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.domain.session_summary import Overview


class PlaceOut(Out):
    """Where a conversation takes place."""

    platform: str
    chat_name: str | None
    user_name: str | None


class UsageOut(Counted):
    """What a conversation used, and what that cost in US dollars; null when nobody knows."""

    cost_status: Literal["unknown", "estimated", "actual"]


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
    toolsets_off: list[str] = Field(description="Toolsets that are switched off here, by name.")
    running: bool = Field(description="An answer is being given.")
    queued: int = Field(description="Messages that wait for an answer.")
    last_seq: int = Field(description="The number of the last event in its log.")
    read_seq: int = Field(description="The last one that you have seen.")
    context_tokens: int = Field(description="What the last answer was given; 0: not known, as after a summary.")
    usage: UsageOut
    reachable: bool = Field(description="Answers can be sent to where it takes place: a message may ask for that.")
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
    key: Key | None = Field(None, description="Your own name for it: with the same key twice it is one conversation.")


class SessionPatch(In):
    """What is to change; what is left out stays."""

    title: str | None = Field(None, description="Null takes it away.")
    pinned: bool = False
    archived: bool = False
    project: str | None = Field(None, description="By id or name; null takes it out of any.")
    model: str | None = Field(None, description="Null is the default.")
    busy: BusyPolicy | None = Field(None, description="Null is what the settings say.")
    toolsets: Annotated[dict[str, bool], Field(max_length=100)] | None = Field(
        None,
        description="Toolsets by name, to be switched on or off; the others stay. Null: all that the operator allows.",
    )


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
    attachments: Annotated[list[str], Field(max_length=20)] = Field(
        default_factory=list, description="Ids of files that go along: those of the earlier message, or others."
    )


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


def session_out(overview: Overview, connected: Collection[str], *, with_owner: bool = False) -> SessionOut:
    """A conversation as it goes out, on a server that these platforms are connected to."""
    session, used, place = overview.session, overview.session.usage, overview.session.origin
    return SessionOut(
        id=session.id,
        title=session.title,
        name=shown(session.display_name),
        preview=session.preview,
        platform=str(session.platform),
        chat_type=session.chat_type.value,
        shared=session.shared,
        source=PlaceOut(
            platform=str(place.platform),
            chat_name=None if place.chat_name is None else shown(place.chat_name),
            user_name=None if place.user_name is None else shown(place.user_name),
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
        toolsets_off=list(overview.toolsets_off),
        running=overview.running,
        queued=overview.queued,
        last_seq=overview.last_seq,
        read_seq=overview.read_seq,
        context_tokens=session.last_prompt_tokens,
        usage=UsageOut(cost_status=used.cost_status.value, **counted(used)),
        reachable=overview.takes_place and session.platform in connected,
        owner=overview.owner if with_owner else None,
    )

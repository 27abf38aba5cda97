"""JSON schemas of conversations, and the conversion from domain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from palaver.sessions.model import MAX_VERSIONS
from palaver.sessions.turn import BusyPolicy
from palaver.web.message_schemas import Content, ReceiptOut
from palaver.web.state import IdempotencyKey, RequestModel, ResponseModel, Seq, ShortText, Time, UsageCounts

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.sessions.model import SessionSummary


class SourceOut(ResponseModel):
    """The chat that a conversation comes from."""

    platform: str
    chat_name: str | None
    user_name: str | None


class SessionUsageOut(UsageCounts):
    """Tokens that a conversation used, and their cost."""

    cost_status: Literal["unknown", "estimated", "actual"]


class SessionOut(ResponseModel):
    """A conversation, as you see it."""

    id: str = Field(examples=["20261115_081200_1a2b3c4d"])
    title: str | None = Field(description="The title that a person chose; unique for its owner.")
    auto_title: str | None = Field(
        description="The first words, or a model's title after the first answer. Null before the first words."
    )
    display_name: str = Field(
        description="What to call the conversation: its title, its automatic title or the name of its chat."
    )
    preview: str
    platform: str
    chat_type: Literal["dm", "group", "channel", "thread"]
    shared: bool = Field(description="Several people take part.")
    source: SourceOut
    message_count: int
    tool_call_count: int = Field(description="How many tool calls the agent has made here, including undone ones.")
    is_first_contact: bool = Field(
        description="It is the first conversation with its person or, if several people take part, in its chat."
    )
    created_at: Time
    active_at: Time | None = Field(
        description="When it was last active; null while it is empty. Lists leave empty conversations out."
    )
    ended_at: Time | None
    end_reason: Literal["idle", "daily", "manual", "forced", "switched", "restored"] | None = Field(
        description="Why it has ended: `idle` and `daily` by the reset policy, the others because its chat moved on."
    )
    pinned: bool
    archived: bool
    project_id: str | None
    parent_id: str | None = Field(description="The conversation that this one was forked from.")
    model: str | None = Field(description="The model that answered last.")
    model_provider: str | None = Field(description="The provider of the model that answered last; null if unknown.")
    chosen_model: str | None = Field(
        description="The model chosen for this conversation; null for that of its profile, or else the default."
    )
    profile: str | None = Field(
        description="The name of the profile chosen for this conversation; null for the default."
    )
    personality: str | None = Field(description="The name of the personality chosen for this conversation.")
    workspace: str | None = Field(description="The folder or topic of this conversation, which the agent is told.")
    busy_policy: BusyPolicy | None = Field(
        description="The busy policy chosen for this conversation; null for the server's setting."
    )
    disabled_toolsets: list[str] = Field(description="Names of the toolsets that are turned off in this conversation.")
    running: bool = Field(description="The agent is responding.")
    queued: int = Field(description="How many messages are queued.")
    last_seq: int = Field(description="The number of the last event in the log.")
    read_seq: int = Field(description="The number of the last event that you have read.")
    context_tokens: int = Field(
        description="How many tokens the model received for the last answer; 0 if unknown, for example after a"
        " compaction."
    )
    usage: SessionUsageOut
    reachable: bool = Field(description="Answers can be delivered to the chat that the conversation comes from.")
    owner_name: str | None = Field(description="The name of the person it belongs to; only in requests with `all`.")


class SessionsOut(ResponseModel):
    """A page of conversations, newest first."""

    sessions: list[SessionOut]
    next_cursor: str | None = Field(
        description="Pass this to get the next page; null on the last page. Any page may have fewer than `limit` items."
    )


class NewSessionIn(RequestModel):
    """A new conversation."""

    title: ShortText | None = None
    project: ShortText | None = Field(None, description="One of your projects, by id or name.")
    model: ShortText | None = Field(None, description="The model to use; null for the default.")
    profile: ShortText | None = Field(None, description="The name of the profile to use; null for the default.")
    personality: ShortText | None = Field(None, description="The name of the personality to use.")
    workspace: ShortText | None = Field(None, description="A folder or topic that the agent is told: one line of text.")
    key: IdempotencyKey | None = Field(
        None, description="Your own id for this request. Repeating it with the same key returns the same conversation."
    )


class SessionChangesIn(RequestModel):
    """Changes to a conversation. Fields that you leave out stay as they are."""

    title: ShortText | None = Field(None, description="Null removes the title.")
    pinned: bool = False
    archived: bool = False
    project: ShortText | None = Field(
        None, description="By id or name. Null removes the conversation from its project."
    )
    model: ShortText | None = Field(None, description="Null resets to the default.")
    profile: ShortText | None = Field(None, description="Null resets to the default.")
    personality: ShortText | None = Field(None, description="Null removes the personality.")
    workspace: ShortText | None = Field(None, description="Null removes the workspace.")
    busy_policy: BusyPolicy | None = Field(None, description="Null resets to the server's setting.")
    toolsets: Annotated[dict[ShortText, bool], Field(max_length=100)] | None = Field(
        None,
        description="Turns toolsets on or off, by name; others stay as they are. Null turns all allowed ones on.",
    )


class ForkIn(RequestModel):
    """Where to branch off, and the title of the new conversation."""

    up_to_seq: Seq | None = Field(
        None, description="Copy everything up to the turn of this message, inclusive; null copies everything."
    )
    title: ShortText | None = None


class EditIn(RequestModel):
    """A new version of an earlier message."""

    seq: Seq = Field(description="The number of the message to replace.")
    content: Content
    key: IdempotencyKey
    busy_policy: BusyPolicy | None = None
    attachment_ids: Annotated[list[ShortText], Field(max_length=20)] = Field(
        default_factory=list, description="Ids of files to attach: those of the earlier message or others."
    )
    branch: bool = Field(
        False,
        description="Send it in a new conversation, with a copy of everything before it. Otherwise it replaces the"
        " message in place, and the other version is kept.",
    )


class EditOut(ResponseModel):
    """The conversation that the message was sent in, and what happened to it."""

    session: SessionOut
    receipt: ReceiptOut


class StopIn(RequestModel):
    """What to stop."""

    clear_queue: bool = Field(False, description="Also clear the queue.")
    key: IdempotencyKey | None = None


class UndoIn(RequestModel):
    """How many turns to undo."""

    turns: Annotated[int, Field(ge=1, le=1000)] = 1
    key: IdempotencyKey | None = None


class CompactIn(RequestModel):
    """How to summarize."""

    focus: Annotated[str, StringConstraints(max_length=500)] | None = Field(
        None, description="What the summary should keep in particular."
    )
    key: IdempotencyKey | None = None


class ActionIn(RequestModel):
    """An action without parameters."""

    key: IdempotencyKey | None = Field(
        None, description="Your own id for this request. Repeating it with the same key has no effect."
    )


class RetryIn(ActionIn):
    """Which answer to regenerate."""

    seq: Seq | None = Field(None, description="The number of the message to ask again; null: the last one.")


class ChooseVersionIn(ActionIn):
    """Which version to show."""

    seq: Seq = Field(description="The number of the message whose versions these are.")
    version: Annotated[int, Field(ge=1, le=MAX_VERSIONS)] = Field(description="The number of the version, from 1.")


class MarkReadIn(RequestModel):
    """How far you have read."""

    seq: Seq = Field(description="The number of the last event that you have read.")


class ReadPositionOut(ResponseModel):
    """How far you have read; this number never goes down."""

    read_seq: int


def to_session_out(summary: SessionSummary, connected: Collection[str], *, with_owner: bool = False) -> SessionOut:
    """Convert a conversation; `connected` are the platforms that this server can deliver answers to."""
    session = summary.session
    return SessionOut.model_validate(
        session.to_dict()
        | {
            "chosen_model": summary.chosen_model,
            "profile": summary.profile,
            "personality": summary.personality,
            "workspace": summary.workspace,
            "busy_policy": summary.busy_policy,
            "disabled_toolsets": list(summary.disabled_toolsets),
            "running": summary.running,
            "queued": summary.queued,
            "last_seq": summary.last_seq,
            "read_seq": summary.read_seq,
            "reachable": summary.has_delivery_address and session.platform in connected,
            "owner_name": summary.owner_name if with_owner else None,
        }
    )

"""Request bodies of conversations."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from palaver.sessions.inbound import ReplyTo
from palaver.sessions.model import MAX_VERSIONS
from palaver.sessions.turn import BusyPolicy
from palaver.turns.commands.history import MAX_FOCUS_CHARS, MAX_UNDO_TURNS
from palaver.web.state import IdempotencyKey, RequestModel, Seq, ShortText

Content = str | list[dict[str, Any] | str]
AttachmentIds = Annotated[list[ShortText], Field(max_length=20)]


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
    attachment_ids: AttachmentIds = Field(default_factory=list, description="Ids of uploaded files to attach.")
    reply_to: ReplyTo = Field(
        ReplyTo.SESSION,
        description="`session`: the answer only appears in the conversation. `origin`: it is also sent to the chat that"
        " the conversation comes from, if that is `reachable`.",
    )


class ForkIn(RequestModel):
    """The message to branch off at, and the title of the new conversation."""

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
    attachment_ids: AttachmentIds = Field(
        default_factory=list, description="Ids of files to attach: those of the earlier message or others."
    )
    branch: bool = Field(
        False,
        description="Send it in a new conversation, with a copy of everything before it. Otherwise it replaces the"
        " message in place, and the other version is kept.",
    )


class StopIn(RequestModel):
    """Options for stopping the answer."""

    clear_queue: bool = Field(False, description="Also clear the queue.")
    key: IdempotencyKey | None = None


class UndoIn(RequestModel):
    """The number of turns to undo."""

    turns: Annotated[int, Field(ge=1, le=MAX_UNDO_TURNS)] = 1
    key: IdempotencyKey | None = None


class CompactIn(RequestModel):
    """Options for the summary."""

    focus: Annotated[str, StringConstraints(max_length=MAX_FOCUS_CHARS)] | None = Field(
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
    """The last event that you have read."""

    seq: Seq = Field(description="The number of the last event that you have read.")

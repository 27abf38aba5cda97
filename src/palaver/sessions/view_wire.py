"""The JSON of projects, shares, turns and receipts: for the API and `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from palaver.core.wire import Doc, Time, TypedDict, build_json

if TYPE_CHECKING:
    from palaver.sessions.share import Share


class NamedPersonJson(TypedDict):
    """A person: the id, and a name to show."""

    id: str
    name: str


class ProjectJson(TypedDict):
    """A project: a folder for conversations."""

    id: str
    name: str
    color: str | None
    session_count: int
    created_at: Time
    instructions: Annotated[str | None, Doc("What the agent is told in your own conversations of this project.")]


class ShareJson(TypedDict):
    """A shared copy of a conversation."""

    id: str
    session_id: str
    person: Annotated[NamedPersonJson, Doc("The person who shares it.")]
    title: str | None
    message_count: int
    created_at: Time
    expires_at: Annotated[Time | None, Doc("From then on the link says that it has expired; null: never.")]
    secret: Annotated[str, Doc("Opens the copy.")]
    path: Annotated[
        str,
        Doc(
            "The path of the page that shows it. The secret comes after `#`, which browsers do not send to any server."
        ),
    ]


class UndoJson(TypedDict):
    """The result of an undo or a redo."""

    session_id: str
    turns: int
    messages: int
    prompt: str


class TurnJson(TypedDict):
    """A turn: one run of the agent."""

    id: str
    state: Literal["queued", "running", "done", "failed", "interrupted"]
    kind: Literal["answer", "compact"]
    input_seq: Annotated[int, Doc("The number of the message that this turn answers.")]
    attempt: int
    is_steering: Annotated[bool, Doc("The message is passed to the running turn at its next step, if it has one.")]
    error: str | None
    created_at: Time
    ended_at: Time | None
    delivers_to: Annotated[
        str | None, Doc("The platform that the answer is delivered to; null if it only appears in the conversation.")
    ]
    quoted_seqs: Annotated[list[int], Doc("Messages to quote above the answer where it is delivered.")]


class ReceiptJson(TypedDict):
    """What happened to a message or command. When you receive this, everything in it is stored durably."""

    outcome: Literal[
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
    session_id: str | None
    turn_id: str | None
    seq: Annotated[int | None, Doc("The message's number in the log.")]
    turns_ahead: Annotated[int, Doc("How many turns of the same conversation come first.")]
    reply: Annotated[str | None, Doc("Palaver's own reply to a command or refused message, in Markdown.")]
    facts: Annotated[dict[str, Any], Doc("The result of a command, for programs.")]


def share_to_json(share: Share, base_path: str = "") -> ShareJson:
    """Convert a share; `base_path` is the path below which the page is served."""
    person = NamedPersonJson(id=share.person_id, name=share.person_name)
    return build_json(ShareJson, share, person=person, path=base_path + share.path)

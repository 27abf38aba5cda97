"""The shapes that `--json` prints: stable keys, times in ISO 8601 and UTC, nothing left out.

A key that has nothing to say is null, never missing, so that a program can rely on every key. Times have
always the same length, so they sort as text. Money is text, because a float would round it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from palaver.domain.account import Member
    from palaver.domain.events import Event
    from palaver.domain.memory import Known
    from palaver.domain.message import Message
    from palaver.domain.session import Project, SearchHit, Session, Undone


class UsageJson(TypedDict):
    """What a conversation used and what that cost."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: str | None
    cost_status: str
    cost_source: str | None
    unpriced_turns: int


class SessionJson(TypedDict):
    """A conversation as lists show it."""

    id: str
    title: str | None
    name: str
    preview: str
    platform: str
    chat_type: str
    key: str
    source: dict[str, str | None]
    shared: bool
    pinned: bool
    archived: bool
    project_id: str | None
    parent_id: str | None
    message_count: int
    created_at: str
    active_at: str | None
    last_message_at: str | None
    last_human_at: str | None
    start_reason: str
    ended_at: str | None
    end_reason: str | None
    model: str | None
    provider: str | None
    last_prompt_tokens: int
    usage: UsageJson


class EventJson(TypedDict):
    """One line of a conversation's log."""

    seq: int
    kind: str
    at: str
    hidden: bool
    person_id: str | None
    message: dict[str, Any] | None
    facts: dict[str, Any]


class HitJson(TypedDict):
    """A message that was found."""

    session_id: str
    title: str | None
    seq: int
    at: str
    position: int
    snippet: str
    message: dict[str, Any]


class ProjectJson(TypedDict):
    """A project."""

    id: str
    name: str
    colour: str | None
    session_count: int
    created_at: str


class MemoryJson(TypedDict):
    """Something that is remembered."""

    id: str
    text: str
    asked_by: str | None
    created_at: str
    shared: bool
    others: list[str]
    other_count: int


class PersonJson(TypedDict):
    """Somebody this gateway knows, and how they sign in."""

    id: str
    name: str
    role: str
    platforms: list[str]
    password: bool
    passkeys: int
    seen_at: str | None
    created_at: str


class UndoneJson(TypedDict):
    """What an undo or a redo did."""

    session_id: str
    turns: int
    messages: int
    prompt: str


def session_json(session: Session) -> SessionJson:
    """A conversation as data."""
    return {
        "id": session.id,
        "title": session.title,
        "name": session.display_name,
        "preview": session.preview,
        "platform": str(session.platform),
        "chat_type": session.chat_type.value,
        "key": session.key,
        "source": session.origin.to_dict(),
        "shared": session.shared,
        "pinned": session.pinned,
        "archived": session.archived,
        "project_id": session.project_id,
        "parent_id": session.parent_id,
        "message_count": session.message_count,
        "created_at": _time(session.created_at),
        "active_at": _time_or_none(session.active_at),
        "last_message_at": _time_or_none(session.last_message_at),
        "last_human_at": _time_or_none(session.last_human_at),
        "start_reason": session.start_reason.value,
        "ended_at": _time_or_none(session.ended_at),
        "end_reason": session.end_reason and session.end_reason.value,
        "model": session.model,
        "provider": session.provider,
        "last_prompt_tokens": session.last_prompt_tokens,
        "usage": _usage(session),
    }


def event_json(event: Event) -> EventJson:
    """A line of the log as data."""
    return {
        "seq": event.seq,
        "kind": event.kind.value,
        "at": _time(event.at),
        "hidden": event.hidden,
        "person_id": event.person_id,
        "message": None if event.message is None else _message(event.message),
        "facts": dict(event.facts),
    }


def hit_json(hit: SearchHit) -> HitJson:
    """A message that was found as data."""
    return {
        "session_id": hit.session_id,
        "title": hit.title,
        "seq": hit.seq,
        "at": _time(hit.at),
        "position": hit.position,
        "snippet": hit.snippet,
        "message": _message(hit.message),
    }


def project_json(project: Project) -> ProjectJson:
    """A project as data."""
    return {
        "id": project.id,
        "name": project.name,
        "colour": project.colour,
        "session_count": project.session_count,
        "created_at": _time(project.created_at),
    }


def memory_json(known: Known) -> MemoryJson:
    """Something that is remembered as data."""
    return {
        "id": known.memory.id,
        "text": known.memory.text,
        "asked_by": known.asked_by,
        "created_at": _time(known.memory.created_at),
        "shared": known.shared,
        "others": list(known.others),
        "other_count": known.other_count,
    }


def person_json(member: Member) -> PersonJson:
    """Somebody as data."""
    ways = member.ways
    return {
        "id": member.person.id,
        "name": member.person.name,
        "role": member.person.role.value,
        "platforms": [str(each) for each in member.platforms],
        "password": ways is not None and ways.password,
        "passkeys": 0 if ways is None else ways.passkeys,
        "seen_at": _time_or_none(member.seen_at),
        "created_at": _time(member.person.created_at),
    }


def undone_json(session: Session, undone: Undone) -> UndoneJson:
    """What an undo or a redo did as data."""
    return {
        "session_id": session.id,
        "turns": undone.turns,
        "messages": undone.messages,
        "prompt": undone.prompt,
    }


def _usage(session: Session) -> UsageJson:
    used = session.usage
    return {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "cache_write_tokens": used.cache_write_tokens,
        "reasoning_tokens": used.reasoning_tokens,
        "cost_usd": None if used.cost is None else f"{used.cost:f}",
        "cost_status": used.cost_status.value,
        "cost_source": used.cost_source,
        "unpriced_turns": used.unpriced_turns,
    }


def _message(message: Message) -> dict[str, Any]:
    return {**message.to_dict(), "platform_message_id": message.platform_message_id}


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _time_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else _time(moment)

"""The JSON of sessions, usage, events, messages and search hits: one set of keys for the API, `--json` and exports.

Always true: every key is there, null if it has no value. Times are in ISO 8601 and UTC and all have the same length,
so they sort as text. Money is text, because a float would round it.

`--json` and exports contain this data as it is. The API's schemas declare the part of it that a caller may see and add
fields that depend on the caller; they leave out the ids that platforms use for chats and people.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict

from palaver.sessions.sent_message import find_sent_by

if TYPE_CHECKING:
    from decimal import Decimal

    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event
    from palaver.sessions.message import Message
    from palaver.sessions.model import SearchHit, Session
    from palaver.sessions.usage import UsageRow, UsageTotals


class UsageJson(TypedDict):
    """Tokens and their cost."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: str | None
    unpriced_turns: int


class SessionUsageJson(UsageJson):
    """Tokens and cost of a session, and how reliable the cost is."""

    cost_status: str
    cost_source: str | None


class SessionJson(TypedDict):
    id: str
    title: str | None
    auto_title: str | None
    display_name: str
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
    tool_call_count: int
    created_at: str
    active_at: str | None
    last_message_at: str | None
    last_human_at: str | None
    start_reason: str
    previous_had_messages: bool
    is_first_contact: bool
    ended_at: str | None
    end_reason: str | None
    model: str | None
    model_provider: str | None
    context_tokens: int
    usage: SessionUsageJson


class EventPersonJson(TypedDict):
    """The person who caused an event."""

    id: str
    name: str


class EventJson(TypedDict):
    """One event of a session's log."""

    seq: int
    kind: str
    at: str
    hidden: bool
    person: EventPersonJson | None
    message: dict[str, Any] | None
    facts: dict[str, Any]


class HitJson(TypedDict):
    """A message found by a search."""

    session_id: str
    title: str | None
    seq: int
    at: str
    role: str
    snippet: str
    highlights: list[tuple[int, int]]  # start and end (exclusive) of the parts of the snippet that match
    archived: bool  # the session
    message: dict[str, Any]


def session_to_json(session: Session) -> SessionJson:
    return {
        "id": session.id,
        "title": session.title,
        "auto_title": session.auto_title,
        "display_name": session.display_name,
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
        "tool_call_count": session.tool_call_count,
        "created_at": format_time(session.created_at),
        "active_at": format_optional_time(session.active_at),
        "last_message_at": format_optional_time(session.last_message_at),
        "last_human_at": format_optional_time(session.last_human_at),
        "start_reason": session.start_reason.value,
        "previous_had_messages": session.previous_had_messages,
        "is_first_contact": session.is_first_contact,
        "ended_at": format_optional_time(session.ended_at),
        "end_reason": session.end_reason and session.end_reason.value,
        "model": session.model,
        "model_provider": session.model_provider,
        "context_tokens": session.last_prompt_tokens,
        "usage": session_usage_to_json(session.usage),
    }


def session_usage_to_json(usage: UsageTotals) -> SessionUsageJson:
    return {**usage_to_json(usage), "cost_status": usage.cost_status.value, "cost_source": usage.cost_source}


def usage_to_json(usage: UsageTotals | UsageRow) -> UsageJson:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost_usd": _format_usd(usage.cost),
        "unpriced_turns": usage.unpriced_turns,
    }


def event_to_json(event: Event, person_names: Mapping[PersonId, str]) -> EventJson:
    person: EventPersonJson | None = None
    if event.person_id is not None:
        person = {"id": event.person_id, "name": person_names.get(event.person_id, "")}
    return {
        "seq": event.seq,
        "kind": event.kind.value,
        "at": format_time(event.at),
        "hidden": event.hidden,
        "person": person,
        "message": None if event.message is None else message_to_json(event.message),
        "facts": dict(event.facts),
    }


def message_to_json(message: Message) -> dict[str, Any]:
    """Convert a message; keys that Palaver does not know are included as they were stored."""
    extra, author, content = message.extra, message.author, message.content
    answered_seq, duration_ms = extra.get("answers"), extra.get("duration_ms")
    sent_by = find_sent_by(extra)
    data = {
        "role": message.role,
        "content": list(content) if isinstance(content, tuple) else content,
        "author": None if author is None else {"name": author.name, "id": author.id},
        "tool_calls": list(extra["tool_calls"]) if extra.get("tool_calls") else None,
        "tool_call_id": _get_text(extra, "tool_call_id"),
        "tool_name": _get_text(extra, "tool_name"),
        "reasoning": _get_text(extra, "reasoning"),
        "interrupted": bool(extra.get("interrupted")),
        "is_error": bool(extra.get("is_error")),
        "duration_ms": duration_ms if isinstance(duration_ms, int) else None,
        "answers_seq": answered_seq if isinstance(answered_seq, int) else None,
        "platform_message_id": message.platform_message_id,
        "edited": extra.get("edited") is True,
        "sent_at": _get_time(extra.get("sent_at")),
        "context": _get_quotes(extra.get("context")),
        "replied_message": _get_quote(extra.get("replied_message")),
        "sent_by": None if sent_by is None else sent_by.to_dict(),
    }
    return data | {key: value for key, value in extra.items() if key not in data and key != "answers"}


def hit_to_json(hit: SearchHit) -> HitJson:
    return {
        "session_id": hit.session_id,
        "title": hit.title,
        "seq": hit.seq,
        "at": format_time(hit.at),
        "role": hit.message.role,
        "snippet": hit.snippet.text,
        "highlights": hit.snippet.highlights,
        "archived": hit.archived,
        "message": message_to_json(hit.message),
    }


def _get_quotes(value: object) -> list[dict[str, Any]] | None:
    """Return what was said in a group before a message; None if a program uses the key for something else."""
    quotes = [_get_quote(entry) for entry in value] if isinstance(value, list | tuple) else []
    return [quote for quote in quotes if quote is not None] or None


def _get_quote(value: object) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    author, text = value.get("author"), value.get("text")
    is_valid = isinstance(text, str) and (author is None or isinstance(author, str))
    return dict(value) if is_valid else None


def _get_time(value: object) -> str | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if moment is None or moment.tzinfo is None else format_time(moment)


def _get_text(extra: Mapping[str, Any], key: str) -> str | None:
    value = extra.get(key)
    return value if isinstance(value, str) else None


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def format_optional_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)


def _format_usd(amount: Decimal | None) -> str | None:
    """Format an amount as plain decimal text, without an exponent."""
    return None if amount is None else f"{amount:f}"

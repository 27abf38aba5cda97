"""Tools to look into earlier conversations: whatever the asker may see, and nothing else.

What may be seen is decided by whom the conversations are asked from, in their queries; nothing here widens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from palaver.agent.base import Tool
from palaver.agent.tools.arguments import DATA, Arguments, as_data, schema, told
from palaver.domain.context import quoted
from palaver.domain.search_text import parse_query, snippet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from palaver.domain.events import Event
    from palaver.domain.ids import SessionId
    from palaver.domain.message import Message
    from palaver.domain.session import SearchHit, Session

TOOLSET = "history"
MOST_HITS = 20
MOST_MESSAGES = 50
LONGEST_MESSAGE = 4000
LONGEST_RESULT = 500
_QUESTIONS = 20  # messages that may have come since the question, which finds itself and is no answer


class Conversations(Protocol):
    """What one asker may see."""

    def search(self, text: str, *, limit: int) -> Awaitable[Sequence[SearchHit]]:
        """The newest messages with these words."""
        ...

    def find(self, text: str) -> Awaitable[Session]:
        """One conversation by id, by the beginning of its id, or by title."""
        ...

    def load(self, session_id: str, *, before: int | None, limit: int | None) -> Awaitable[Sequence[Event]]:
        """The last visible messages before a place, oldest first."""
        ...


def history_tools(
    conversations: Conversations, *, here: SessionId | None = None, input_seq: int | None = None
) -> tuple[Tool, ...]:
    """The tools of this set, for a question that is message `input_seq` of the conversation `here`."""

    async def search(given: Mapping[str, Any]) -> str:
        arguments = Arguments(given, "query", "limit")
        query, limit = arguments.text("query"), arguments.number("limit", most=MOST_HITS) or 8
        with told():
            hits = await conversations.search(query, limit=limit + _QUESTIONS)
        return _found([hit for hit in hits if not is_question(hit)], query, limit, here)

    def is_question(hit: SearchHit) -> bool:
        """Whether it is the question itself, or what was said after it."""
        return hit.session_id == here and input_seq is not None and hit.seq >= input_seq

    async def read(given: Mapping[str, Any]) -> str:
        arguments = Arguments(given, "id", "around", "limit")
        wanted, around = arguments.text("id"), arguments.number("around")
        limit = arguments.number("limit", most=MOST_MESSAGES) or 20
        with told():
            session = await conversations.find(wanted)
            before = None if around is None else around + limit // 2 + 1
            messages = await conversations.load(session.id, before=before, limit=limit)
        return _read(session, messages)

    return (
        Tool(
            name="search_conversations",
            description=(
                "Search the earlier conversations that may be told here for words, newest first. Also finds what is no"
                ' longer before you of this conversation. Every word must occur; "a phrase", begin* and -without work.'
            ),
            parameters=schema(
                ["query"],
                query={"type": "string", "description": "the words to look for; few and distinctive ones find most"},
                limit={"type": "integer", "minimum": 1, "maximum": MOST_HITS, "description": "how many; 8 by default"},
            ),
            run=search,
            toolset=TOOLSET,
        ),
        Tool(
            name="read_conversation",
            description="Read messages of an earlier conversation: the last ones, or those around a message.",
            parameters=schema(
                ["id"],
                id={"type": "string", "description": "the id of the conversation, as a search gave it, or its title"},
                around={"type": "integer", "minimum": 1, "description": "the number of a message, without the #"},
                limit={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MOST_MESSAGES,
                    "description": "how many messages; 20 by default",
                },
            ),
            run=read,
            toolset=TOOLSET,
        ),
    )


# ---- what was found --------------------------------------------------------------------------------------------


def _found(hits: Sequence[SearchHit], query: str, limit: int, here: SessionId | None) -> str:
    if not hits:
        return "Nothing was found. Every word must occur in one message: try fewer or other words."
    more = " There are more; other words narrow it down." if len(hits) > limit else ""
    shown = hits[:limit]
    lines = [_hit(hit, query, here) for hit in shown]
    return "\n".join([f"{len(shown)} found, newest first.{more} {DATA}", *lines])


def _hit(hit: SearchHit, query: str, here: SessionId | None) -> str:
    title = quoted(hit.title) if hit.title else "untitled"
    place = f"{title}, this conversation" if hit.session_id == here else title
    words = quoted(snippet(hit.message.text, parse_query(query), marks=("", "")))
    return f"- {hit.session_id} ({place}) #{hit.seq}, {hit.at:%Y-%m-%d}, {_speaker(hit.message)}: {words}"


# ---- what was read ---------------------------------------------------------------------------------------------


def _read(session: Session, messages: Sequence[Event]) -> str:
    title = quoted(session.title) if session.title else "untitled"
    head = f"Conversation {session.id} ({title}), {session.message_count} messages in all."
    if not messages:
        return f"{head} There are none at this place."
    lines = [_line(event, event.message) for event in messages if event.message is not None]
    if len(messages) < session.message_count:
        lines.append(f"These are #{messages[0].seq} to #{messages[-1].seq}; give the number `around` which to read on.")
    return "\n".join([f"{head} {DATA}", *lines])


def _line(event: Event, message: Message) -> str:
    words = as_data(message.text, LONGEST_RESULT if message.role == "tool" else LONGEST_MESSAGE)
    used = " (used tools)" if message.extra.get("tool_calls") else ""
    return f"#{event.seq} {event.at:%Y-%m-%d %H:%M} {_speaker(message)}{used}: {words}"


def _speaker(message: Message) -> str:
    if message.role == "user" and message.author is not None and message.author.name:
        return f"user {quoted(message.author.name)}"
    return message.role

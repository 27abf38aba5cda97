"""Tools to search and read earlier conversations: those that the person who asks may see, and no others.

The caller passes a view whose queries decide what is visible; this module never widens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from palaver.agent.base import Tool
from palaver.agent.tool_arguments import DATA_NOTICE, Arguments, build_schema, quote_data, translate_errors
from palaver.agent.toolsets import HISTORY_TOOLSET
from palaver.sessions.context import quote_chat_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from palaver.core.ids import SessionId
    from palaver.sessions.events import Event
    from palaver.sessions.message import Message
    from palaver.sessions.model import SearchHit, SearchHits, Session


MAX_HITS = 20
MAX_MESSAGES = 50
MAX_MESSAGE_CHARS = 4000
MAX_TOOL_RESULT_CHARS = 500
INDEXING_NOTICE = "\nSome messages are not indexed yet, so they may be missing here. Tell the person if that matters."
_MAX_NEWER_MESSAGES = 20  # hits from the question on are dropped, so a search asks for this many more


class Conversations(Protocol):
    """The conversations that one person may see."""

    def search(self, text: str, *, limit: int) -> Awaitable[SearchHits]:
        """Find the newest messages with these words."""
        ...

    def find(self, text: str) -> Awaitable[Session]:
        """Find a conversation by id, by the beginning of its id, or by title."""
        ...

    def load_messages(self, session_id: str, *, before: int | None, limit: int | None) -> Awaitable[Sequence[Event]]:
        """Load the last visible messages before a number in the log, oldest first."""
        ...


def make_history_tools(
    conversations: Conversations, *, session_id: SessionId | None = None, input_seq: int | None = None
) -> tuple[Tool, ...]:
    """Make the tools of the history toolset for a question, which is message `input_seq` of the session."""

    async def search(values: Mapping[str, Any]) -> str:
        arguments = Arguments(values, "query", "limit")
        query, limit = arguments.get_text("query"), arguments.get_integer("limit", maximum=MAX_HITS) or 8
        with translate_errors():
            hits = await conversations.search(query, limit=limit + _MAX_NEWER_MESSAGES)
        earlier = [hit for hit in hits if not is_question_or_newer(hit)]
        return _format_hits(earlier, limit, session_id) + (INDEXING_NOTICE if hits.is_indexing else "")

    def is_question_or_newer(hit: SearchHit) -> bool:
        return hit.session_id == session_id and input_seq is not None and hit.seq >= input_seq

    async def read(values: Mapping[str, Any]) -> str:
        arguments = Arguments(values, "id", "around", "limit")
        id_or_title, around = arguments.get_text("id"), arguments.get_integer("around")
        limit = arguments.get_integer("limit", maximum=MAX_MESSAGES) or 20
        with translate_errors():
            session = await conversations.find(id_or_title)
            before = None if around is None else around + limit // 2 + 1
            messages = await conversations.load_messages(session.id, before=before, limit=limit)
        return _format_conversation(session, messages)

    return (
        Tool(
            name="search_conversations",
            description=(
                "Search earlier conversations that may be shared here, newest first. Also finds messages of this"
                " conversation that you no longer see. A message must contain every word;"
                ' "a phrase", begin* and -without work.'
            ),
            parameters=build_schema(
                ["query"],
                query={"type": "string", "description": "the words to search for; a few distinctive words work best"},
                limit={"type": "integer", "minimum": 1, "maximum": MAX_HITS, "description": "how many; 8 by default"},
            ),
            run=search,
            toolset=HISTORY_TOOLSET,
        ),
        Tool(
            name="read_conversation",
            description="Read messages of an earlier conversation: the last ones, or those around a message.",
            parameters=build_schema(
                ["id"],
                id={"type": "string", "description": "the id of the conversation from a search, or its title"},
                around={"type": "integer", "minimum": 1, "description": "the number of a message, without the #"},
                limit={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_MESSAGES,
                    "description": "how many messages; 20 by default",
                },
            ),
            run=read,
            toolset=HISTORY_TOOLSET,
        ),
    )


# ---- results of search_conversations ---------------------------------------------------------------------------


def _format_hits(hits: Sequence[SearchHit], limit: int, session_id: SessionId | None) -> str:
    if not hits:
        return "Nothing found. One message must contain every word: try fewer or other words."
    more = " There are more; use other words to narrow it down." if len(hits) > limit else ""
    lines = [_format_hit(hit, session_id) for hit in hits[:limit]]
    return "\n".join([f"{len(lines)} found, newest first.{more} {DATA_NOTICE}", *lines])


def _format_hit(hit: SearchHit, session_id: SessionId | None) -> str:
    title = quote_chat_text(hit.title) if hit.title else "untitled"
    place = f"{title}, this conversation" if hit.session_id == session_id else title
    snippet = quote_chat_text(hit.snippet.text)
    return f"- {hit.session_id} ({place}) #{hit.seq}, {hit.at:%Y-%m-%d}, {_format_speaker(hit.message)}: {snippet}"


# ---- results of read_conversation ------------------------------------------------------------------------------


def _format_conversation(session: Session, messages: Sequence[Event]) -> str:
    title = quote_chat_text(session.shown_title) if session.shown_title else "untitled"
    head = f"Conversation {session.id} ({title}), {session.message_count} messages in all."
    if not messages:
        return f"{head} There are none here."
    lines = [_format_message(event, event.message) for event in messages if event.message is not None]
    if len(messages) < session.message_count:
        lines.append(f"These are #{messages[0].seq} to #{messages[-1].seq}; use `around` to read other messages.")
    return "\n".join([f"{head} {DATA_NOTICE}", *lines])


def _format_message(event: Event, message: Message) -> str:
    text = quote_data(message.text, MAX_TOOL_RESULT_CHARS if message.role == "tool" else MAX_MESSAGE_CHARS)
    used_tools = " (used tools)" if message.extra.get("tool_calls") else ""
    return f"#{event.seq} {event.at:%Y-%m-%d %H:%M} {_format_speaker(message)}{used_tools}: {text}"


def _format_speaker(message: Message) -> str:
    if message.role == "user" and message.author is not None and message.author.name:
        return f"user {quote_chat_text(message.author.name)}"
    return message.role

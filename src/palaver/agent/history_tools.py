"""Tools to search and read earlier conversations: those that the person who asks may see, and no others.

The caller passes a view whose queries decide what is visible; this module never widens it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from palaver.agent.base import ToolFailed
from palaver.agent.tool_arguments import DATA_NOTICE, define_tool, integer_argument, quote_data, text_argument
from palaver.agent.toolsets import HISTORY_TOOLSET
from palaver.core.dataclass import dataclass
from palaver.sessions.context import quote_chat_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.agent.base import Tool
    from palaver.core.ids import SessionId
    from palaver.sessions.events import Event
    from palaver.sessions.message import Message
    from palaver.sessions.model import SearchHit, Session
    from palaver.sessions.view import AsyncSessionView


MAX_HITS = 20
MAX_MESSAGES = 50
MAX_MESSAGE_CHARS = 4000
MAX_TOOL_RESULT_CHARS = 500
MAX_READ_RESULT_CHARS = 10_000  # of a result in one call
INDEXING_NOTICE = "\nSome messages are not indexed yet, so they may be missing here. Tell the person if that matters."
_MAX_NEWER_MESSAGES = 20  # hits from the question on are dropped, so a search asks for this many more


@dataclass(frozen=True, slots=True)
class SearchArguments:
    query: str = text_argument("the words to search for; a few distinctive words work best")
    limit: int = integer_argument("how many; 8 by default", default=8, maximum=MAX_HITS)


@dataclass(frozen=True, slots=True)
class ReadArguments:
    id: str = text_argument("the id of the conversation from a search, or its title")
    around: int | None = integer_argument("the number of a message, without the #")
    limit: int = integer_argument("how many messages; 20 by default", default=20, maximum=MAX_MESSAGES)


@dataclass(frozen=True, slots=True)
class ResultArguments:
    number: int | None = integer_argument("the number of the result, as the text in its place says")
    offset: int = integer_argument("how many characters to skip; 0 by default", default=0, minimum=0)
    limit: int = integer_argument(
        f"how many characters; {MAX_READ_RESULT_CHARS} by default",
        default=MAX_READ_RESULT_CHARS,
        maximum=MAX_READ_RESULT_CHARS,
    )


def make_history_tools(
    conversations: AsyncSessionView, *, session_id: SessionId | None = None, input_seq: int | None = None
) -> tuple[Tool, ...]:
    """Make the tools of the history toolset for a question, which is message `input_seq` of the session."""

    @define_tool(
        "Search earlier conversations that may be shared here, newest first. Also finds messages of this conversation"
        ' that you no longer see. A message must contain every word; "a phrase", begin* and -without work.',
        SearchArguments,
        toolset=HISTORY_TOOLSET,
    )
    async def search_conversations(arguments: SearchArguments) -> str:
        hits = await conversations.search(arguments.query, limit=arguments.limit + _MAX_NEWER_MESSAGES)
        question_seq = inf if input_seq is None else input_seq
        earlier = [hit for hit in hits if hit.session_id != session_id or hit.seq < question_seq]
        return _format_hits(earlier, arguments.limit, session_id) + (INDEXING_NOTICE if hits.is_indexing else "")

    @define_tool(
        "Read messages of an earlier conversation: the last ones, or those around a message.",
        ReadArguments,
        toolset=HISTORY_TOOLSET,
    )
    async def read_conversation(arguments: ReadArguments) -> str:
        session = await conversations.find(arguments.id)
        before = None if arguments.around is None else arguments.around + arguments.limit // 2 + 1
        messages = await conversations.load_messages(session.id, before=before, limit=arguments.limit)
        return _format_conversation(session, messages)

    @define_tool(
        "Read again the result of a tool in this conversation that is left out because it is old. A long one has"
        " several parts: continue at the offset that the previous part names.",
        ResultArguments,
        toolset=HISTORY_TOOLSET,
    )
    async def read_tool_result(arguments: ResultArguments) -> str:
        number = arguments.number or 0
        newest = () if session_id is None else await conversations.load_messages(session_id, before=number + 1, limit=1)
        message = next((event.message for event in newest if event.seq == number), None)
        if message is None or message.role != "tool":
            raise ToolFailed("There is no result of a tool with this number in this conversation.")
        return _format_result(message.text, arguments.offset, arguments.limit)

    return search_conversations, read_conversation, read_tool_result


def _format_result(text: str, offset: int, limit: int) -> str:
    end = min(offset + limit, len(text))
    more = f" Continue with offset {end}." if end < len(text) else ""
    return f"[Characters {min(offset, end)} to {end} of {len(text)}.{more}]\n{text[offset:end]}"


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

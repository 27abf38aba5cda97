"""`/memory`: what the agent remembers, for the person who asks, where they ask.

In a direct message it is about everything that the person may know; in a shared chat, about that chat only. In a
person's own lane in a group it is refused, because the others there would read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.commands.command import (
    READ_AND_WRITE,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    read_action,
    write_action,
)
from palaver.commands.context import make_public_chat_error
from palaver.commands.reply_text import escape_markdown, format_age, format_code, quote_text, shorten_text
from palaver.core.texts import join_texts, say
from palaver.memory.model import MemoryEntry, MemoryOrigin
from palaver.memory.service import MemoryOperations

if TYPE_CHECKING:
    from palaver.commands.context import CommandContext
    from palaver.core.operation import TransactionRunner

MAX_LISTED_MEMORIES = 20
_MAX_LISTED_CHARS = 300  # of one memory
_USAGE = say(
    "memory.usage",
    "Use `/memory`, `/memory find words`, `/memory add text`, `/memory edit id text` or `/memory forget id`.",
)
_ORIGINS = {
    MemoryOrigin.AGENT: say("memory.saved_by_agent", "saved by the agent"),
    MemoryOrigin.LEARNED: say("memory.learned", "learned by the agent"),
}


@read_action("memory")
def list_memories(context: CommandContext, *, query: str = "") -> CommandReply:
    page = _open_memories(context).list(query, limit=MAX_LISTED_MEMORIES)
    data = {"memories": [_build_memory_data(entry) for entry in page], "learn": context.rules.memory.learn}
    if not page:
        found = say("memory.none", "There are no memories yet.")
        if query:
            found = say("memory.no_match", "No memories match {query}.", query=format_code(shorten_text(query, 60)))
        return CommandReply(text=found + say("memory.add", " Save one with `/memory add text`."), data=data)
    text = say(
        "memory.list",
        "Memories:\n\n{list}\n\nUse `/memory edit id text` or `/memory forget id` to change them.",
        list=join_texts("\n", ("- " + _format_entry(context, entry) for entry in page)),
    )
    if page.cursor is not None:
        text += say("memory.more", " Only the newest are shown; use `/memory find words` to search all.")
    if context.rules.memory.learn:
        text += say("memory.learns", " The agent also learns facts when a conversation ends.")
    return CommandReply(text=text, data=data)


@write_action("memory")
def add_memory(context: CommandContext, *, text: str) -> CommandReply:
    session_id = None if context.session_row is None else context.session_row.session.id
    entry = _open_memories(context).remember(text, session_id=session_id)
    text, memory_id = _quote(entry), format_code(entry.memory.id)
    reply = say("memory.saved", "Saved only for you: {text} ({id}).", text=text, id=memory_id)
    if entry.shared:
        reply = say("memory.saved_shared", "Saved for everybody in this chat: {text} ({id}).", text=text, id=memory_id)
    return CommandReply(text=reply, data={"memory": _build_memory_data(entry)})


@write_action("memory")
def edit_memory(context: CommandContext, *, memory_id: str, text: str) -> CommandReply:
    entry = _open_memories(context).update(memory_id, text)
    reply = say("memory.changed", "Changed to: {text}.", text=_quote(entry))
    return CommandReply(text=reply, data={"memory": _build_memory_data(entry)})


@write_action("memory")
def forget_memory(context: CommandContext, *, memory_id: str) -> CommandReply:
    entry = _open_memories(context).forget(memory_id)
    reply = say("memory.forgotten", "Forgotten: {text}.", text=_quote(entry))
    return CommandReply(text=reply, data={"memory": _build_memory_data(entry)})


def _open_memories(context: CommandContext) -> MemoryOperations[TransactionRunner]:
    """Return the memories of the person; refuse where people read the reply who may not know them."""
    if context.scope.is_personal_lane_in_group:
        raise make_public_chat_error("memory")
    return context.view.part(MemoryOperations)


def _format_entry(context: CommandContext, entry: MemoryEntry) -> str:
    memory = entry.memory
    text = escape_markdown(shorten_text(" ".join(memory.text.split()), _MAX_LISTED_CHARS))
    origin: str = _ORIGINS[memory.origin] if memory.origin in _ORIGINS else _describe_author(context, entry)
    details = [origin, format_age(memory.created_at, context.now)]
    if entry.shared and context.scope.audience_no is None:
        details.append(say("memory.shared", "shared"))
    return f"{format_code(memory.id)} {text} (" + join_texts(", ", details) + ")"


def _describe_author(context: CommandContext, entry: MemoryEntry) -> str:
    if entry.memory.person_id == context.person_id:
        return say("memory.by_you", "written by you")
    author = escape_markdown(entry.author_name or say("text.someone", "someone"))
    return say("memory.by", "written by {author}", author=author)


def _quote(entry: MemoryEntry) -> str:
    return quote_text(shorten_text(" ".join(entry.memory.text.split()), _MAX_LISTED_CHARS))


def _build_memory_data(entry: MemoryEntry) -> dict[str, object]:
    memory = entry.memory
    return {
        "id": memory.id,
        "text": memory.text,
        "origin": memory.origin.value,
        "created_at": memory.created_at.isoformat(),
        "shared": entry.shared,
        "session_id": entry.session_id,
    }


def _parse_memory(text: str) -> CommandCall:
    verb, _, rest = text.partition(" ")
    verb, rest = verb.lower(), rest.strip()
    if not rest and verb in {"", "list"}:
        return list_memories.call()
    if rest and verb == "find":
        return list_memories.call(query=rest)
    if rest and verb == "add":
        return add_memory.call(text=rest)
    memory_id, _, new_text = rest.partition(" ")
    if verb == "edit" and new_text.strip():
        return edit_memory.call(memory_id=memory_id, text=new_text.strip())
    if verb == "forget" and memory_id and not new_text:
        return forget_memory.call(memory_id=memory_id)
    raise BadArguments(_USAGE)


MEMORY = Command(
    name="memory",
    scopes=READ_AND_WRITE,
    usage="[add text | edit id text | forget id | find words]",
    summary="Show and change what the agent remembers",
    help=(
        "Without arguments, lists the newest memories: your own in a direct message, those of the chat in a shared"
        " chat. In a group where everybody has a conversation of their own, use it in a direct message. Everyone who"
        " can see a shared memory can change it for all of them."
    ),
    example="/memory add My cat is called Ada.",
    aliases=("memories",),
    parse=_parse_memory,
)

"""`/memory`: what the agent remembers, for the person who asks, where they ask.

In a direct message it is about everything that the person may know; in a shared chat, about that chat only. In a
person's own lane in a group it is refused, because the others there would read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.commands.command import READ_AND_WRITE, BadArguments, Command, CommandReply, read_action, write_action
from palaver.commands.reply_text import escape_markdown, format_age, format_code, shorten_text
from palaver.core.errors import NotAllowed
from palaver.memory.model import MemoryOrigin
from palaver.memory.service import MemoryOperations

if TYPE_CHECKING:
    from palaver.commands.command import CommandCall
    from palaver.commands.context import CommandContext
    from palaver.memory.model import MemoryEntry

MAX_LISTED_MEMORIES = 20
_MAX_LISTED_CHARS = 300  # of one memory
_USAGE = "Use `/memory`, `/memory find words`, `/memory add text`, `/memory edit id text` or `/memory forget id`."
_ORIGINS = {
    MemoryOrigin.PERSON: "written by {author}",
    MemoryOrigin.AGENT: "saved by the agent",
    MemoryOrigin.LEARNED: "learned by the agent",
}


@read_action("memory")
def list_memories(context: CommandContext, *, query: str = "") -> CommandReply:
    _require_readers(context)
    page = context.view.part(MemoryOperations).list(query, limit=MAX_LISTED_MEMORIES)
    data = {"memories": [_build_memory_data(entry) for entry in page], "learn": context.rules.memory.learn}
    if not page:
        found = f"No memories match {format_code(shorten_text(query, 60))}." if query else "There are no memories yet."
        return CommandReply(text=f"{found} Save one with `/memory add text`.", data=data)
    lines = "\n".join(f"- {_format_entry(context, entry)}" for entry in page)
    more = " Only the newest are shown; use `/memory find words` to search all." if page.cursor is not None else ""
    text = f"Memories:\n\n{lines}\n\nUse `/memory edit id text` or `/memory forget id` to change them.{more}"
    return CommandReply(text=f"{text}{_describe_learning(context)}", data=data)


@write_action("memory")
def add_memory(context: CommandContext, *, text: str) -> CommandReply:
    _require_readers(context)
    session_id = None if context.session_row is None else context.session_row.session.id
    entry = context.view.part(MemoryOperations).remember(text, session_id=session_id)
    audience = "for everybody in this chat" if entry.shared else "only for you"
    reply = f"Saved {audience}: {_quote(entry)} ({format_code(entry.memory.id)})."
    return CommandReply(text=reply, data={"memory": _build_memory_data(entry)})


@write_action("memory")
def edit_memory(context: CommandContext, *, memory_id: str, text: str) -> CommandReply:
    _require_readers(context)
    entry = context.view.part(MemoryOperations).update(memory_id, text)
    return CommandReply(text=f"Changed to: {_quote(entry)}.", data={"memory": _build_memory_data(entry)})


@write_action("memory")
def forget_memory(context: CommandContext, *, memory_id: str) -> CommandReply:
    _require_readers(context)
    entry = context.view.part(MemoryOperations).forget(memory_id)
    return CommandReply(text=f"Forgotten: {_quote(entry)}.", data={"memory": _build_memory_data(entry)})


def _require_readers(context: CommandContext) -> None:
    """Refuse where people read the reply who may not know the memories."""
    if context.scope.is_personal_lane_in_group:
        raise NotAllowed("Other people read this chat. Use /memory in a direct message.")


def _format_entry(context: CommandContext, entry: MemoryEntry) -> str:
    memory = entry.memory
    author = "you" if memory.person_id == context.person_id else escape_markdown(entry.author_name or "someone")
    origin = _ORIGINS[memory.origin].format(author=author)
    text = escape_markdown(shorten_text(" ".join(memory.text.split()), _MAX_LISTED_CHARS))
    shared = ", shared" if entry.shared and context.scope.audience_no is None else ""
    return f"{format_code(memory.id)} {text} ({origin}, {format_age(memory.created_at, context.now)}{shared})"


def _quote(entry: MemoryEntry) -> str:
    return f"“{escape_markdown(shorten_text(' '.join(entry.memory.text.split()), _MAX_LISTED_CHARS))}”"


def _describe_learning(context: CommandContext) -> str:
    return " The agent also learns facts when a conversation ends." if context.rules.memory.learn else ""


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

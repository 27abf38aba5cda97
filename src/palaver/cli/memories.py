"""`palaver memories`: what the agent was asked to remember."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from palaver.cli import options as lookup, output
from palaver.cli.options import NounGroup, confirm_or_exit, open_view, yes_option
from palaver.cli.output import Column
from palaver.core.errors import NotFound
from palaver.core.invocation import format_command
from palaver.core.operation import iterate_pages
from palaver.memory.model import MemoryEntry, MemoryOrigin, build_memory_key
from palaver.memory.service import MemoryOperations
from palaver.memory.wire import memory_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.sessions.view import SessionView


def _describe_origin(entry: MemoryEntry) -> str:
    match entry.memory.origin:
        case MemoryOrigin.PERSON:
            return entry.author_name or "someone"
        case MemoryOrigin.AGENT:
            return "agent"
        case MemoryOrigin.LEARNED:
            return "agent (learned)"


def _describe_audience(entry: MemoryEntry) -> str:
    if not entry.shared:
        return "only you"
    return f"you and {output.format_count(entry.other_count, 'other')}" if entry.other_count else "a shared chat"


_COLUMNS: tuple[Column[MemoryEntry], ...] = (
    Column("ID", lambda each: each.memory.id, style="dim"),
    Column("SAVED", lambda each: each.memory.created_at),
    Column("BY", _describe_origin),
    Column("VISIBLE TO", _describe_audience),
    Column("TEXT", lambda each: each.memory.text, fills_width=True),
)


@click.group(cls=NounGroup)
def memories() -> None:
    """Manage what the agent remembers.

    You see your private memories and the memories of chats you take part in.
    """


@memories.command("list")
@click.argument("words", nargs=-1)
@click.option(
    "--origin", type=click.Choice([each.value for each in MemoryOrigin]), help="Only memories of this origin."
)
def list_memories(words: tuple[str, ...], origin: str | None) -> None:
    """List memories, newest first.

    With WORDS, only memories that contain all of them.
    """
    query = " ".join(words)
    with open_view() as view:
        found = list(_iterate_memories(view, query, None if origin is None else MemoryOrigin(origin)))
    if query or origin is not None:
        empty = f"No memories match {lookup.quote(query)}." if query else "No memories of this origin."
    else:
        command = format_command("memories remember TEXT")
        empty = f"No memories yet. Ask the agent to remember something, or use `{command}`."
    output.print_list({"memories": [memory_to_json(entry) for entry in found]}, _COLUMNS, found, empty)


@memories.command()
@click.argument("text")
def remember(text: str) -> None:
    """Save a private memory."""
    with open_view() as view:
        entry = view.part(MemoryOperations).remember(text)
    output.print_result(
        {"memory": memory_to_json(entry)}, f"Saved {lookup.quote(entry.memory.text)} ({entry.memory.id})."
    )


@memories.command()
@click.argument("memory")
@click.argument("text")
def edit(memory: str, text: str) -> None:
    """Change a memory for everybody who can see it.

    MEMORY is its id or its full text; TEXT is the new text.
    """
    with open_view() as view:
        entry = view.part(MemoryOperations).update(_find_memory(view, memory).memory.id, text)
    output.print_result(
        {"memory": memory_to_json(entry)}, f"Changed {entry.memory.id} to {lookup.quote(entry.memory.text)}."
    )


@memories.command()
@click.argument("memory")
@yes_option
def forget(memory: str, yes: bool) -> None:
    """Delete a memory for everybody who can see it.

    MEMORY is its id or its full text. Asks for confirmation first.
    """
    with open_view() as view:
        found = _find_memory(view, memory)
        text = lookup.quote(found.memory.text)
        confirm_or_exit(f"Delete the memory {text} (visible to: {_describe_audience(found)})?", skip=yes)
        deleted = view.part(MemoryOperations).forget(found.memory.id)
    output.print_result(
        {"deleted": memory_to_json(deleted)}, f"Deleted the memory {lookup.quote(deleted.memory.text)}."
    )


def _iterate_memories(view: SessionView, query: str = "", origin: MemoryOrigin | None = None) -> Iterator[MemoryEntry]:
    return iterate_pages(partial(view.part(MemoryOperations).list, query, origin=origin))


def _find_memory(view: SessionView, text: str) -> MemoryEntry:
    for entry in _iterate_memories(view):
        if entry.memory.id == text or build_memory_key(entry.memory.text) == build_memory_key(text):
            return entry
    command = format_command("memories list")
    raise NotFound(f"No memory has the id or the exact text {lookup.quote(text)}. See `{command}`.")

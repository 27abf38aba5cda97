"""`palaver memories`: what the agent was asked to remember, from the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from palaver.cli import json_output, lookup, output
from palaver.cli.options import as_json_option, ask_first, view_of, yes_option
from palaver.cli.output import Column
from palaver.domain.errors import NotFound
from palaver.domain.memory import memory_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.domain.memory import Known
    from palaver.services.view import SessionView

_COLUMNS = (
    Column("ID", style="dim"),
    Column("WHEN"),
    Column("KNOWN TO"),
    Column("TEXT", rest=True),
)


@click.group()
def memories() -> None:
    """What the agent was asked to remember.

    Yours alone, and what is remembered where you take part.
    """


@memories.command("list")
@click.argument("words", nargs=-1)
@as_json_option
@click.pass_context
def list_memories(ctx: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """List what is remembered, newest first.

    With WORDS, what has all of them.
    """
    query = " ".join(words)
    with view_of(ctx) as view:
        found = list(_all(view, query))
    now = datetime.now(UTC)
    if as_json:
        output.say_json({"memories": [json_output.memory_json(each) for each in found]})
    elif found:
        output.say_table(_COLUMNS, [_row(each, now) for each in found])
    elif query:
        click.echo(f"nothing that is remembered has the words {lookup.quoted(query)}")
    else:
        click.echo("nothing is remembered yet; tell the agent to, or `palaver memories remember TEXT`")


@memories.command()
@click.argument("text")
@as_json_option
@click.pass_context
def remember(ctx: click.Context, text: str, as_json: bool) -> None:
    """Remember something for yourself alone."""
    with view_of(ctx) as view:
        made = view.remember(text)
    if as_json:
        output.say_json({"memory": json_output.memory_json(made)})
    else:
        click.echo(f"remembered {lookup.quoted(made.memory.text)} ({made.memory.id})")


@memories.command()
@click.argument("memory")
@yes_option
@as_json_option
@click.pass_context
def forget(ctx: click.Context, memory: str, yes: bool, as_json: bool) -> None:
    """Forget something, for all who know it.

    MEMORY is its id or its text. You are asked first.
    """
    with view_of(ctx) as view:
        found = _meant(view, memory)
        ask_first(f"Forget {lookup.quoted(found.memory.text)}? (known to {_circle(found)})", yes=yes)
        gone = view.forget_memory(found.memory.id)
    if as_json:
        output.say_json({"forgotten": json_output.memory_json(gone)})
    else:
        click.echo(f"forgot {lookup.quoted(gone.memory.text)}")


def _all(view: SessionView, query: str = "") -> Iterator[Known]:
    page = view.memories(query)
    yield from page
    while page.cursor is not None:
        page = view.memories(query, cursor=page.cursor)
        yield from page


def _meant(view: SessionView, text: str) -> Known:
    for each in _all(view):
        if each.memory.id == text or memory_key(each.memory.text) == memory_key(text):
            return each
    raise NotFound(f"nothing is remembered that has this id or says just this: {lookup.quoted(text)}")


def _row(known: Known, now: datetime) -> tuple[str, ...]:
    memory = known.memory
    return (memory.id, output.ago(memory.created_at, now), _circle(known), output.line(memory.text))


def _circle(known: Known) -> str:
    if not known.shared:
        return "you alone"
    return output.plural(known.other_count, "other") if known.other_count else "a shared place"

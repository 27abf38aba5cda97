"""Options that several commands share, and opening the store for the person at the terminal.

That person runs the gateway on their own machine: they are its owner and see everybody's conversations, unless
they ask for their own with `--mine`. Commands ask them before they delete anything.

An argument names a session by its id, the beginning of its id, or its title; a project or a person by name or id. If
nothing or more than one matches, the error suggests similar names among those that this person may see.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from palaver.cli.output import clean_line, truncate_text
from palaver.core.errors import (
    AmbiguousMatch,
    InvalidTitle,
    NotFound,
    ProjectNotFound,
    SessionNotFound,
    UpgradeRequired,
)
from palaver.core.invocation import format_command
from palaver.people.model import Member, normalize_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from palaver.config import Settings
    from palaver.sessions.model import Project, Session
    from palaver.sessions.store import SessionStore
    from palaver.sessions.view import SessionView

MAX_SESSIONS_COMPARED = 200  # the newest sessions, when looking for similar names
MAX_SUGGESTIONS = 3
MAX_QUOTED_COLUMNS = 60
T = TypeVar("T")
_F = TypeVar("_F", bound="Callable[..., Any]")


def _flag_of_context(name: str, help_text: str) -> Callable[[_F], _F]:
    """Make a flag that is no argument of the command: what it switches asks the current context for it."""

    def remember(ctx: click.Context, _option: click.Parameter, is_set: bool) -> None:
        ctx.meta[f"palaver.{name}"] = is_set or ctx.meta.get(f"palaver.{name}", False)

    return click.option(f"--{name}", is_flag=True, expose_value=False, callback=remember, help=help_text)


json_option = _flag_of_context("json", "Print JSON.")
mine_option = _flag_of_context("mine", "Only conversations you own or take part in, not everybody's.")
yes_option = click.option("--yes", is_flag=True, help="Skip the confirmation.")
session_argument = click.argument("session")
platform_option = click.option(
    "--platform", metavar="PLATFORM", help="Only from this platform, such as telegram; local is the terminal."
)
_DAY = click.DateTime(["%Y-%m-%d"])


def _add_local_zone(_ctx: click.Context, _option: click.Parameter, day: datetime | None) -> datetime | None:
    return None if day is None else day.astimezone()


after_option = click.option(
    "--after", type=_DAY, metavar="DATE", callback=_add_local_zone, help="Only from this day (2026-01-31) or later."
)
before_option = click.option(
    "--before", type=_DAY, metavar="DATE", callback=_add_local_zone, help="Only from before this day (2026-01-31)."
)


class NounCommand(click.Command):
    """A command about a noun: each of them can print JSON."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        json_option(self)


class NounGroup(click.Group):
    command_class = NounCommand


def load_cli_settings() -> Settings:
    """Load the settings from the folder given with --home, or from the default one."""
    from palaver.config import load_settings

    home: Path | None = click.get_current_context().find_root().obj
    return load_settings(os.environ, home)


def open_store(settings: Settings) -> SessionStore:
    """Open the store for a command; if it has to be upgraded first, ask the person at the terminal."""
    from palaver import app
    from palaver.core.engines.base import Upgrade
    from palaver.core.errors import UpgradeRequired

    try:
        return app.open_store(settings)
    except UpgradeRequired as error:
        if not is_interactive():
            raise
        confirm_upgrade(error, skip=False)
        return app.open_store(settings, upgrade=Upgrade.ALONE)


def confirm_upgrade(error: UpgradeRequired, *, skip: bool) -> None:
    """Explain why the database has to be upgraded, and ask; the command ends if the answer is no."""
    if not skip and is_interactive():
        click.echo(str(error), err=True)
    confirm_or_exit("Upgrade the database now?", skip=skip, canceled="Canceled. Nothing was changed.")


def load_current_settings() -> Settings:
    """Load the settings with those of the database, for a command that does not open the store otherwise."""
    from palaver.app import load_stored_settings

    settings = load_cli_settings()
    with open_store(settings) as store:
        return load_stored_settings(store, settings).settings


@contextmanager
def open_view() -> Iterator[SessionView]:
    """Open the store and yield the owner's view of it: everything, or with --mine only their own sessions."""
    with open_store(load_cli_settings()) as store:
        yield store.seen_by(store.get_owner().principal, everything=not wants_mine())


def run_async(run: Callable[[], Awaitable[T]]) -> T:
    import asyncio

    async def wait() -> T:
        return await run()

    return asyncio.run(wait())


def wants_mine() -> bool:
    return bool(click.get_current_context().meta.get("palaver.mine"))


def confirm_or_exit(question: str, *, skip: bool, canceled: str = "Canceled. Nothing was deleted.") -> None:
    """Ask a yes/no question, and end the command with exit code 1 if the answer is no."""
    if skip:
        return
    check_can_confirm()
    try:
        confirmed = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)  # ends the line of the question
        raise
    if not confirmed:
        click.echo(canceled, err=True)
        click.get_current_context().exit(1)


def check_can_confirm() -> None:
    if not is_interactive():
        raise click.UsageError("This needs a confirmation, but stdin is not a terminal. Use --yes to skip it.")


def is_interactive() -> bool:
    """Return whether stdin is a terminal, so that a command can ask questions."""
    return sys.stdin is not None and sys.stdin.isatty()


# ---- finding what an argument names ------------------------------------------------------------------------


def find_session(view: SessionView, text: str) -> Session:
    """Find a session by id, beginning of its id, or title; raises with suggestions if there is no single match."""
    try:
        return view.find(text)
    except AmbiguousMatch as error:
        raise _make_ambiguous_session(view, text, error) from None
    except (SessionNotFound, InvalidTitle):  # a text that is no valid title is no session's title
        raise _make_session_not_found(view, text) from None


def find_project(view: SessionView, text: str) -> Project:
    """Find a project by name or id; raises with suggestions if there is none."""
    projects = view.projects.list()
    name = text.strip().casefold()
    for project in projects:
        if text == project.id or name == project.name.casefold():
            return project
    similar = find_similar_names(text, [project.name for project in projects])
    names = ", ".join(quote(project.name) for project in projects[:5])
    command = format_command("projects create NAME")
    otherwise = f"You have {names}." if names else f"You have no projects yet. Create one with `{command}`."
    hint = format_suggestions(map(quote, similar)) or otherwise
    raise ProjectNotFound(f"No project named {quote(text)}. {hint}", project=text, suggestions=similar)


def find_person(members: Sequence[Member], text: str) -> Member:
    """Find a person by name or id; if several share the name, prefer the one who can sign in."""
    name = normalize_name(text)
    matches = [member for member in members if text == member.person.id or name == normalize_name(member.person.name)]
    matches = [member for member in matches if member.sign_in_methods is not None] or matches
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = [member.person.id for member in matches]
        raise AmbiguousMatch(
            f"Several people are named {quote(text)}. Use an id instead: {', '.join(ids)}.", matches=ids
        )
    similar = find_similar_names(text, [member.person.name for member in members])
    hint = format_suggestions(map(quote, similar)) or f"See `{format_command('people list')}`."
    raise NotFound(f"No person named {quote(text)}. {hint}", person=text, suggestions=similar)


def describe_session(session: Session) -> str:
    """Return the title in quotes, or the id of an untitled session, for use in a sentence."""
    return quote(session.shown_title) if session.shown_title else f"untitled conversation {session.id}"


def quote(text: str) -> str:
    return f"'{truncate_text(clean_line(text), MAX_QUOTED_COLUMNS)}'"


def format_suggestions(names: Iterable[str]) -> str:
    """Ask whether one of these was meant; empty if there is none."""
    choices = " or ".join(names)
    return f"Did you mean {choices}?" if choices else ""


def find_similar_names(text: str, names: Iterable[str]) -> list[str]:
    """Find names that contain the text, then names that differ from it by a typo."""
    from difflib import get_close_matches

    text = text.casefold().strip()
    by_folded_name = {name.casefold(): name for name in names if name}
    containing = [name for folded, name in by_folded_name.items() if len(text) >= 2 and text in folded]
    close = [by_folded_name[folded] for folded in get_close_matches(text, by_folded_name, MAX_SUGGESTIONS, 0.6)]
    return list(dict.fromkeys([*containing, *close]))[:MAX_SUGGESTIONS]


def _make_session_not_found(view: SessionView, text: str) -> SessionNotFound:
    recent = view.list(limit=MAX_SESSIONS_COMPARED)
    by_name = {session.shown_title: session for session in reversed(recent) if session.shown_title}
    by_name |= {session.id: session for session in recent}
    similar = {by_name[name].id: by_name[name] for name in find_similar_names(text, by_name)}
    hint = format_suggestions(
        f"{quote(session.shown_title)} ({session.id})" if session.shown_title else session.id
        for session in similar.values()
    )
    otherwise = f"See `{format_command('sessions list')}`." if recent else "There are no conversations yet."
    suggestions = [{"id": session.id, "title": session.shown_title} for session in similar.values()]
    return SessionNotFound(
        f"No conversation matches {quote(text)}. {hint or otherwise}", text=text, suggestions=suggestions
    )


def _make_ambiguous_session(view: SessionView, text: str, error: AmbiguousMatch) -> AmbiguousMatch:
    ids = error.facts.get("matches")
    matches = [view.get(str(session_id)) for session_id in (ids if isinstance(ids, list | tuple) else ())]
    lines = [
        f"{session.id}  {quote(session.shown_title or session.preview or session.display_name)}" for session in matches
    ]
    return AmbiguousMatch(
        "\n".join([f"Several conversation ids start with {quote(text)}. Type more of the id:", *lines]),
        text=text,
        matches=[session.id for session in matches],
    )

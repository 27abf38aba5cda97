"""Finding the session, project or person that an argument names, with suggestions when that fails.

A session is named by its id, the beginning of its id, or its title; a project or a person by name or id. If
nothing or more than one matches, the error suggests similar names among those that this person may see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.cli.output import clean_line, truncate_text
from palaver.core.errors import AmbiguousMatch, InvalidTitle, NotFound, ProjectNotFound, SessionNotFound
from palaver.core.invocation import format_command
from palaver.people.account import normalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.people.account import Member
    from palaver.sessions.model import Project, Session
    from palaver.sessions.view import SessionView

MAX_SESSIONS_COMPARED = 200  # the newest sessions, when looking for similar names
MAX_SUGGESTIONS = 3
MAX_QUOTED_COLUMNS = 60


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
    raise _make_project_not_found(projects, text)


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
    message = f"No person named {quote(text)}. "
    message += (
        f"Did you mean {' or '.join(map(quote, similar))}?" if similar else f"See `{format_command('people list')}`."
    )
    raise NotFound(message, person=text, suggestions=similar)


def describe_session(session: Session) -> str:
    """Return the title in quotes, or the id of an untitled session, for use in a sentence."""
    return quote(session.shown_title) if session.shown_title else f"untitled conversation {session.id}"


def quote(text: str) -> str:
    return f"'{truncate_text(clean_line(text), MAX_QUOTED_COLUMNS)}'"


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
    message = f"No conversation matches {quote(text)}. "
    if similar:
        message += f"Did you mean {' or '.join(_format_suggestion(session) for session in similar.values())}?"
    elif recent:
        message += f"See `{format_command('sessions list')}`."
    else:
        message += "There are no conversations yet."
    suggestions = [{"id": session.id, "title": session.shown_title} for session in similar.values()]
    return SessionNotFound(message, text=text, suggestions=suggestions)


def _format_suggestion(session: Session) -> str:
    return f"{quote(session.shown_title)} ({session.id})" if session.shown_title else session.id


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


def _make_project_not_found(projects: Sequence[Project], text: str) -> ProjectNotFound:
    similar = find_similar_names(text, [project.name for project in projects])
    message = f"No project named {quote(text)}. "
    if similar:
        message += f"Did you mean {' or '.join(map(quote, similar))}?"
    elif projects:
        message += f"You have {', '.join(quote(project.name) for project in projects[:5])}."
    else:
        command = format_command("projects create NAME")
        message += f"You have no projects yet. Create one with `{command}`."
    return ProjectNotFound(message, project=text, suggestions=similar)

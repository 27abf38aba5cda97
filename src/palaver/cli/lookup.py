"""Finding what a person means, and helping when nothing or too much fits.

A session is named by its id, the beginning of its id, or its title; a project or a person by name or id. When that
fails, the error names what comes nearest among what this person sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.cli.output import fit, line
from palaver.domain.account import name_key
from palaver.domain.errors import Ambiguous, InvalidTitle, NoSuchProject, NoSuchSession, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.domain.account import Member
    from palaver.domain.session import Project, Session
    from palaver.services.view import SessionView

RECENT = 200  # sessions among which the nearest is looked for
MOST = 3  # suggestions
LONGEST = 60  # characters of a title in a sentence


def find_session(view: SessionView, text: str) -> Session:
    """The one conversation that is meant."""
    try:
        return view.find(text)
    except Ambiguous as error:
        raise _several(view, text, error) from None
    except (NoSuchSession, InvalidTitle):  # what cannot be a title is nobody's title
        raise _none(view, text) from None


def find_project(view: SessionView, text: str) -> Project:
    """The one project that is meant."""
    known = view.projects()
    wanted = text.strip().casefold()
    for project in known:
        if text == project.id or wanted == project.name.casefold():
            return project
    raise _no_project(known, text)


def find_person(known: Sequence[Member], text: str) -> Member:
    """The one person who is meant; of several with a name, the one who can sign in by it."""
    wanted = name_key(text)
    found = [each for each in known if text == each.person.id or wanted == name_key(each.person.name)]
    able = [each for each in found if each.ways is not None] or found
    if len(able) == 1:
        return able[0]
    if able:
        ids = [each.person.id for each in able]
        raise Ambiguous(f"several people are called {quoted(text)}; name one by id: {', '.join(ids)}", matches=ids)
    likely = nearest(text, [each.person.name for each in known])
    message = f"nobody here is called {quoted(text)}"
    message += f"; did you mean {' or '.join(map(quoted, likely))}?" if likely else "; `palaver people list` shows them"
    raise NotFound(message, person=text, suggestions=likely)


def called(session: Session) -> str:
    """A conversation in a sentence: its title in quotes, or where it takes place."""
    return quoted(session.title) if session.title else f"the untitled conversation {session.id}"


def quoted(text: str) -> str:
    """A name in a sentence."""
    return f"'{fit(line(text), LONGEST)}'"


def nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """The names that come nearest: those that contain the text, then those that differ by a slip."""
    from difflib import get_close_matches

    wanted = wanted.casefold().strip()
    folded = {name.casefold(): name for name in names if name}
    inside = [name for key, name in folded.items() if len(wanted) >= 2 and wanted in key]
    close = [folded[key] for key in get_close_matches(wanted, folded, MOST, 0.6)]
    return list(dict.fromkeys([*inside, *close]))[:MOST]


def _none(view: SessionView, text: str) -> NoSuchSession:
    recent = view.list(limit=RECENT)
    by_name = {session.title: session for session in reversed(recent) if session.title}
    by_name |= {session.id: session for session in recent}
    likely = {by_name[name].id: by_name[name] for name in nearest(text, by_name)}
    message = f"no session matches {quoted(text)}"
    if likely:
        message += f"; did you mean {' or '.join(_suggested(session) for session in likely.values())}?"
    elif recent:
        message += "; `palaver sessions list` shows what there is"
    else:
        message += "; there are no conversations yet"
    suggestions = [{"id": session.id, "title": session.title} for session in likely.values()]
    return NoSuchSession(message, text=text, suggestions=suggestions)


def _suggested(session: Session) -> str:
    return f"{quoted(session.title)} ({session.id})" if session.title else session.id


def _several(view: SessionView, text: str, error: Ambiguous) -> Ambiguous:
    matches = [view.get(str(each)) for each in _listed(error.facts.get("matches"))]
    lines = [f"{each.id}  {quoted(each.title or each.preview or each.display_name)}" for each in matches]
    return Ambiguous(
        "\n".join([f"several sessions begin with {quoted(text)}; write more of the id, as in", *lines]),
        text=text,
        matches=[each.id for each in matches],
    )


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _no_project(known: Sequence[Project], text: str) -> NoSuchProject:
    likely = nearest(text, [project.name for project in known])
    message = f"there is no project {quoted(text)}"
    if likely:
        message += f"; did you mean {' or '.join(map(quoted, likely))}?"
    elif known:
        message += f"; you have {', '.join(quoted(project.name) for project in known[:5])}"
    else:
        message += "; you have none yet, `palaver projects create NAME` makes one"
    return NoSuchProject(message, project=text, suggestions=likely)

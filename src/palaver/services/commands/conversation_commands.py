"""Commands that begin, name, find again and branch conversations."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.domain.errors import NoSuchSession, NothingToDo
from palaver.services.commands.base import BadArguments, Command, Reply
from palaver.services.commands.command_context import begun, go_to, left_behind, reminder, visible
from palaver.services.commands.reply_text import ago, code, count, named, titled, words
from palaver.storage import lanes, session_settings, sessions, turns

if TYPE_CHECKING:
    from palaver.domain.session import Session
    from palaver.services.commands.base import CommandContext
    from palaver.storage.session_rows import SessionRow

MOST_CHOICES = 10
FEW_TITLED = 5  # so few that untitled conversations are offered too
_LOOKED_THROUGH = 100
_NO_TITLE = "-"


# ---- beginning ---------------------------------------------------------------------------------------------


def _new(asked: CommandContext) -> Reply:
    lane = lanes.current(asked.tx, asked.key)
    fresh = lane if lane is not None and _is_fresh(asked, lane) else None
    if fresh is not None and asked.found is not None and fresh.no == asked.found.no:
        return _already_new(asked, fresh)
    if lane is None and not asked.arguments:
        return Reply(text="Nothing has been said here yet: whatever you say next begins a conversation.")
    session = _titled(asked, fresh or _begin(asked), asked.arguments or None)
    called = f": {titled(session.title)}" if session.title else ""
    text = f"A new conversation begins{called}."
    if asked.found is not None:
        text += _kept(asked, asked.found, left=lane is not None and lane.no == asked.found.no)
    return Reply(text=text, session_id=session.id, facts=_facts(session))


def _begin(asked: CommandContext) -> SessionRow:
    entry = lanes.reset(asked.tx, asked.key, asked.at)
    if entry is None:
        return begun(replace(asked, found=None))
    return sessions.get(asked.tx, entry.session_id)


def _reset(asked: CommandContext) -> Reply:
    if asked.arguments:
        raise BadArguments("/reset takes no title. `/new title` begins a conversation with one.")
    return _new(asked)


def _is_fresh(asked: CommandContext, found: SessionRow) -> bool:
    """Whether nothing has ever been said in it."""
    return found.session.active_at is None and not turns.open_in(asked.tx, found.no).any


def _already_new(asked: CommandContext, found: SessionRow) -> Reply:
    if not asked.arguments:
        return Reply(text="This conversation is new already: nothing has been said in it.", session_id=found.session.id)
    session = _titled(asked, found, asked.arguments)
    text = f"This conversation was new already; it is called {titled(session.title or '')} now."
    text += f" {code(f'/title {found.session.title or _NO_TITLE}')} takes that back."
    return Reply(text=text, session_id=session.id, facts=_facts(session))


def _titled(asked: CommandContext, found: SessionRow, title: str | None) -> Session:
    """A conversation that has just begun in this lane, with a title."""
    if title is None:
        return found.session
    return sessions.rename(asked.tx, found, title, asked.at, asked.person_id)


def _kept(asked: CommandContext, old: SessionRow, *, left: bool) -> str:
    """What becomes of the conversation before; it is named only to those who may see it."""
    try:
        before = named(asked.view.get(old.session.id))
    except NoSuchSession:
        return " The one before is kept." + left_behind(asked, old)
    back = "/restore" if left else code(f"/resume {old.session.id}")
    return f" The one before, {before}, is kept: {back} goes back to it." + left_behind(asked, old)


# ---- titles ------------------------------------------------------------------------------------------------


def _title(asked: CommandContext) -> Reply:
    if not asked.arguments:
        session = visible(asked).session
        called = f"is called {titled(session.title)}" if session.title else "has no title"
        text = f"This conversation ({code(session.id)}) {called}. `/title text` names it."
        return Reply(text=text, facts=_facts(session))
    found = begun(asked)
    was = found.session.title
    title = None if asked.arguments == _NO_TITLE else asked.arguments
    session = sessions.rename(asked.tx, found, title, asked.at, asked.person_id)
    if session.title == was:
        return Reply(text="Nothing has changed: " + (f"it is called {titled(was)}." if was else "it has no title."))
    back = code(f"/title {was or _NO_TITLE}")
    if session.title is None:
        text = f"This conversation has no title any more. {back} gives it back."
    else:
        before = f"; it was {titled(was)}" if was else ""
        text = f"This conversation is called {titled(session.title)} now{before}. {back} takes that back."
    return Reply(text=text, session_id=session.id, facts=_facts(session) | {"was": was})


# ---- finding again -----------------------------------------------------------------------------------------


def _resume(asked: CommandContext) -> Reply:
    choices = _choices(asked)
    if not asked.arguments:
        return _offered(asked, choices)
    session = _meant(asked, choices)
    target = sessions.get(asked.tx, session.id)
    if asked.found is not None and asked.found.no == target.no:
        return Reply(text=f"You are in {named(session)} already.", session_id=session.id, facts=_facts(session))
    old = lanes.current(asked.tx, asked.key)
    go_to(asked, target)
    size, last = count(session.message_count, "message"), ago(session.active_at, asked.now)
    text = f"Back in {named(session)} ({size}, the last {last})."
    if old is not None:
        text += " /restore goes back to where you were." + left_behind(asked, old)
    return Reply(text=text + reminder(asked, session), session_id=session.id, facts=_facts(session))


def _choices(asked: CommandContext) -> list[Session]:
    """What `/resume` offers: titled conversations, and others when those are few; not the present one."""
    here = asked.found.session.id if asked.found else None
    recent = [session for session in asked.view.list(limit=_LOOKED_THROUGH) if session.id != here]
    choices = [session for session in recent if session.title][:MOST_CHOICES]
    if len(choices) < FEW_TITLED:
        choices += [session for session in recent if not session.title][: MOST_CHOICES - len(choices)]
    return choices


def _offered(asked: CommandContext, choices: list[Session]) -> Reply:
    if not choices:
        return Reply(text="There is no other conversation to go back to here.", facts={"sessions": []})
    lines = [
        f"{number}. {named(session)}, {ago(session.active_at, asked.now)}" for number, session in enumerate(choices, 1)
    ]
    text = "Conversations to go back to:\n\n" + "\n".join(lines)
    text += "\n\n`/resume 1` takes the first of them; a title or an id does as well. /sessions lists more."
    return Reply(text=text, facts={"sessions": [_facts(session) for session in choices]})


def _meant(asked: CommandContext, choices: list[Session]) -> Session:
    """The conversation that the arguments name: by its place in the list, by id, by title."""
    given = asked.arguments
    if given.isdecimal() and len(given) <= 2 and 1 <= int(given) <= len(choices):
        return choices[int(given) - 1]
    try:
        return asked.view.find(given)
    except NoSuchSession:
        near = difflib.get_close_matches(given, [session.title or "" for session in choices], 1)
        hint = f"Did you mean {titled(near[0])}?" if near else "/sessions lists them."
        raise NoSuchSession(f"None of your conversations here matches “{words(given)}”. {hint}", text=given) from None


# ---- branching ---------------------------------------------------------------------------------------------


def _branch(asked: CommandContext) -> Reply:
    found = visible(asked)
    if not found.session.message_count:
        raise NothingToDo("There is nothing to branch from: this conversation is empty.")
    copy = _copied(asked, found)
    title = asked.arguments or (found.session.title and sessions.next_title(asked.tx, copy, found.session.title))
    session = _titled(asked, copy, title or None)
    session_settings.inherit(asked.tx, found.no, copy.no, asked.at, asked.person_id)
    go_to(asked, copy)
    called = titled(session.title) if session.title else "a conversation without a title"
    text = f"From here on this is {called}, a copy of {named(found.session)}, which stays as it is."
    text += " /restore goes back to it." + left_behind(asked, found)
    return Reply(text=text, session_id=session.id, facts=_facts(session) | {"parent": found.session.id})


def _copied(asked: CommandContext, found: SessionRow) -> SessionRow:
    """A copy for those who will speak in it: in a place that several people share, for them all."""
    if asked.config.is_shared(asked.source):
        return sessions.fork(asked.tx, found, None, asked.at, person_id=asked.person_id, audience_no=found.audience_no)
    return sessions.get(asked.tx, asked.view.fork(found.session.id).id)


def _facts(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": session.title,
        "preview": session.preview,
        "active_at": session.active_at and session.active_at.isoformat(),
    }


NEW = Command(
    name="new",
    usage="[title]",
    summary="begin a new conversation",
    help="The present conversation is kept whole; /restore or /resume goes back to it. A title can be given at once.",
    example="/new Trip to Lisbon",
    run=_new,
)
RESET = Command(
    name="reset",
    summary="begin afresh, without a title",
    help="The same as /new without a title. Nothing is deleted: /restore goes back.",
    example="/reset",
    run=_reset,
)
RESUME = Command(
    name="resume",
    usage="[title | number | id]",
    summary="go back to an earlier conversation",
    help=(
        "Alone it lists what can be resumed; a number means that place in the list as it stands now. A title means the"
        " newest of its line: `My Project` finds `My Project #3`, and `My Project #1` the first. An id or the beginning"
        " of one does as well. Where several people share a conversation, only those of that place are found."
    ),
    example="/resume Trip to Lisbon",
    run=_resume,
)
TITLE = Command(
    name="title",
    usage="[text | -]",
    summary="name this conversation",
    help="Alone it shows the title and the id; `-` takes the title away. No two conversations are called the same.",
    example="/title Trip to Lisbon",
    run=_title,
)
BRANCH = Command(
    name="branch",
    usage="[title]",
    summary="go on in a copy of this conversation",
    help="The original stays as it is. Without a title the copy takes the next of its line: `My Project #2`.",
    example="/branch Lisbon by train",
    aliases=("fork",),
    run=_branch,
)

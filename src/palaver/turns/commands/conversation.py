"""Commands that start, rename, resume and branch conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.commands.command import (
    READ_AND_WRITE,
    WRITE,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    parse_choice,
    read_action,
    write_action,
)
from palaver.commands.context import (
    CommandContext,
    describe_last_exchange,
    describe_open_turns,
    enter_lane,
    switch_lane,
)
from palaver.commands.reply_text import (
    count_messages,
    describe_undo,
    format_age,
    format_code,
    format_session_name,
    format_title,
    quote_command,
    quote_text,
    write_command,
)
from palaver.core.errors import NothingToDo, SessionNotFound
from palaver.core.texts import join_texts, say
from palaver.delivery import notices
from palaver.memory.model import MemoryTurnKind
from palaver.memory.queue import queue_memory_turn
from palaver.people.model import Action
from palaver.sessions import (
    lanes_table as lanes,
    settings_table as session_settings,
    table as sessions,
    turns_table as turns,
)

if TYPE_CHECKING:
    from palaver.sessions.model import Session
    from palaver.sessions.table import SessionRow

MAX_CHOICES = 10  # of /resume
MIN_TITLED_CHOICES = 5  # with fewer, untitled conversations are listed too
_MAX_LISTED_SESSIONS = 100
_NO_TITLE = "-"


# ---- starting ----------------------------------------------------------------------------------------------


@write_action("new")
def start_session(context: CommandContext, *, title: str | None = None) -> CommandReply:
    lane_row = lanes.find_current_session(context.tx, context.lane_key)
    empty_row, current_row = None, context.session_row
    if lane_row is not None and lane_row.session.active_at is None:
        empty_row = None if turns.load_open(context.tx, lane_row.no).is_busy else lane_row
    if empty_row is not None and current_row is not None and empty_row.no == current_row.no:
        return _stay_in_empty_session(context, empty_row, title)
    if lane_row is None and title is None:
        text = say("new.nothing_yet", "There are no messages here yet. Your next message starts a conversation.")
        return CommandReply(text=text)
    session = _set_title(context, empty_row or _start_on_lane(context), title)
    text = say("new.started", "New conversation.")
    if session.title:
        text = say("new.started_with_title", "New conversation: {title}.", title=format_title(session.title))
    if current_row is not None:
        is_on_lane = lane_row is not None and lane_row.no == current_row.no
        text += _describe_previous(context, current_row, is_on_lane=is_on_lane)
    return CommandReply(text=text, session_id=session.id, data=build_session_data(session))


def _start_on_lane(context: CommandContext) -> SessionRow:
    learn_from_left(context, lanes.find_current_session(context.tx, context.lane_key))
    entry = lanes.reset_session(context.tx, context.lane_key, context.now_micros)
    return enter_lane(context) if entry is None else sessions.get(context.tx, entry.session_id)


def learn_from_left(context: CommandContext, row: SessionRow | None) -> None:
    """Let the agent learn from a session that the lane leaves because a person wants it to, if there was one."""
    if row is not None:
        queue_memory_turn(context.tx, context.rules, row.no, MemoryTurnKind.LEFT, context.now_micros)


def _stay_in_empty_session(context: CommandContext, row: SessionRow, title: str | None) -> CommandReply:
    if title is None:
        text = say("new.already", "This conversation is already new and empty.")
        return CommandReply(text=text, session_id=row.session.id)
    session = _set_title(context, row, title)
    title = format_title(session.title or "")
    text = say("new.renamed", "This conversation was already new and is now called {title}.", title=title)
    text += describe_undo(f"title {row.session.title or _NO_TITLE}")
    return CommandReply(text=text, session_id=session.id, data=build_session_data(session))


def _set_title(context: CommandContext, row: SessionRow, title: str | None) -> Session:
    """Give a title to a session that was just started; None leaves it without one."""
    if title is None:
        return row.session
    return sessions.rename(context.tx, row, title, context.now_micros, context.person_id)


def _describe_previous(context: CommandContext, row: SessionRow, *, is_on_lane: bool) -> str:
    """Say how to get back to the previous conversation; its name is shown only to people with access to it."""
    try:
        name = format_session_name(context.view.get(row.session.id))
    except SessionNotFound:
        return say("new.previous_saved", " The previous conversation is saved.") + describe_open_turns(context, row)
    command = write_command("restore") if is_on_lane else quote_command(f"resume {row.session.id}")
    text = say(
        "new.previous", " The previous one, {name}, is saved. Use {command} to go back.", name=name, command=command
    )
    return text + describe_open_turns(context, row)


# ---- titles ------------------------------------------------------------------------------------------------


@read_action("title")
def show_title(context: CommandContext) -> CommandReply:
    session = context.require_session().session
    text = say("title.none", "This conversation has no title ({id}).", id=format_code(session.id))
    if session.shown_title:
        title = format_title(session.shown_title)
        text = say("title.is", "This conversation is called {title} ({id}).", title=title, id=format_code(session.id))
    text += say("title.usage", " To rename it, use `/title text`.")
    return CommandReply(text=text, data=build_session_data(session))


@write_action("title")
def set_title(context: CommandContext, *, title: str | None) -> CommandReply:
    """Rename the session; None removes its title."""
    row = context.require_or_start_session(Action.RENAME)
    previous = row.session.title
    session = sessions.rename(context.tx, row, title, context.now_micros, context.person_id)
    if session.title == previous:
        text = say("title.still_none", "No change: this conversation has no title.")
        if previous:
            title = format_title(previous)
            text = say("title.same", "No change: the title is already {title}.", title=title)
        return CommandReply(text=text)
    if session.title is None:
        text = say("title.removed", "Title removed.")
    elif previous:
        text = say(
            "title.changed",
            "Renamed to {title} (was {previous}).",
            title=format_title(session.title),
            previous=format_title(previous),
        )
    else:
        text = say("title.set", "Renamed to {title}.", title=format_title(session.title))
    text += describe_undo(f"title {previous or _NO_TITLE}")
    data = build_session_data(session) | {"previous_title": previous}
    return CommandReply(text=text, session_id=session.id, data=data)


# ---- resuming ----------------------------------------------------------------------------------------------


@read_action("resume")
def list_resumable_sessions(context: CommandContext) -> CommandReply:
    choices = _list_choices(context)
    if not choices:
        text = say("resume.no_others", "There are no other conversations to resume here.")
        return CommandReply(text=text, data={"sessions": []})
    lines = [
        f"{number}. " + format_session_name(session) + ", " + format_age(session.active_at, context.now)
        for number, session in enumerate(choices, 1)
    ]
    text = say(
        "resume.choices",
        "Conversations you can resume:\n\n{list}\n\nUse `/resume 1` for the first. A title or an id works too. Use"
        " /sessions to list more.",
        list=join_texts("\n", lines),
    )
    return CommandReply(text=text, data={"sessions": [build_session_data(session) for session in choices]})


@write_action("resume")
def resume_session(context: CommandContext, *, target: str) -> CommandReply:
    """Put the lane on an earlier session, given by its number in the list of choices, its id or its title."""
    session = _find_choice(context, target)
    row = sessions.get(context.tx, session.id)
    name, data = format_session_name(session), build_session_data(session)
    if context.session_row is not None and context.session_row.no == row.no:
        text = say("resume.already", "You're already in {name}.", name=name)
        return CommandReply(text=text, session_id=session.id, data=data)
    previous_row = lanes.find_current_session(context.tx, context.lane_key)
    learn_from_left(context, previous_row)
    switch_lane(context, row)
    if not session.shared:
        notices.announce_move(context.tx, row.no, context.source, context.lane_key, context.now_micros)
    size, age = count_messages(session.message_count), format_age(session.active_at, context.now)
    text = say("resume.done", "Back in {name} ({size}, last active {age}).", name=name, size=size, age=age)
    if previous_row is not None:
        text += say("resume.previous", " Use /restore to return to the previous one.")
        text += describe_open_turns(context, previous_row)
    return CommandReply(text=text + describe_last_exchange(context, row), session_id=session.id, data=data)


def _list_choices(context: CommandContext) -> list[Session]:
    """List sessions with a chosen title, and others if those are few; without the current one."""
    current_id = context.session_row.session.id if context.session_row else None
    recent = [session for session in context.view.list(limit=_MAX_LISTED_SESSIONS) if session.id != current_id]
    choices = [session for session in recent if session.title][:MAX_CHOICES]
    if len(choices) < MIN_TITLED_CHOICES:
        choices += [session for session in recent if not session.title][: MAX_CHOICES - len(choices)]
    return choices


def _find_choice(context: CommandContext, target: str) -> Session:
    choices = _list_choices(context)
    if target.isdecimal() and len(target) <= 2 and 1 <= int(target) <= len(choices):
        return choices[int(target) - 1]
    try:
        return context.view.find(target)
    except SessionNotFound:
        from difflib import get_close_matches

        similar = get_close_matches(target, [session.shown_title or "" for session in choices], 1)
        hint = say("resume.list", "Use /sessions to list them.")
        if similar:
            hint = say("resume.similar", "Did you mean {title}?", title=format_title(similar[0]))
        problem = say(
            "resume.not_found", "No conversation here matches {target}. {hint}", target=quote_text(target), hint=hint
        )
        raise SessionNotFound(problem, text=target) from None


# ---- branching ---------------------------------------------------------------------------------------------


@write_action("branch", changes_many_events=True)
def branch_session(context: CommandContext, *, title: str | None = None) -> CommandReply:
    row = context.require_session(Action.FORK)
    if not row.session.message_count:
        raise NothingToDo.say("branch.empty", "There's nothing to branch from: this conversation has no messages.")
    # For the people who will write in it: in a shared chat, all of them.
    is_shared = context.config.is_shared(context.source)
    audience_no = row.audience_no if is_shared else context.scope.find_fork_audience(context.tx, row)
    copy = sessions.fork(
        context.tx, row, None, context.now_micros, person_id=context.person_id, audience_no=audience_no
    )
    session = copy.session if title is None else _set_title(context, copy, title)
    session_settings.copy_settings(context.tx, row.no, copy.no, context.now_micros, context.person_id)
    learn_from_left(context, lanes.find_current_session(context.tx, context.lane_key))
    switch_lane(context, copy)
    name: str = say("branch.untitled", "an untitled conversation")
    if session.shown_title:
        name = format_title(session.shown_title)
    text = say(
        "branch.done",
        "You're now in {name}, a copy of {original}. The original hasn't changed. Use /restore to go back to it.",
        name=name,
        original=format_session_name(row.session),
    )
    text += describe_open_turns(context, row)
    data = build_session_data(session) | {"parent_id": row.session.id}
    return CommandReply(text=text, session_id=session.id, data=data)


def build_session_data(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": session.title,
        "preview": session.preview,
        "active_at": session.active_at and session.active_at.isoformat(),
    }


# ---- the commands ------------------------------------------------------------------------------------------


def _parse_reset(text: str) -> CommandCall:
    if text:
        raise BadArguments.say("reset.no_title", "`/reset` doesn't take a title. Use `/new title` instead.")
    return start_session.call()


NEW = Command(
    name="new",
    scopes=CommandScopes(write=WRITE),
    usage="[title]",
    summary="Start a new conversation",
    help="The current conversation is saved. Use /restore or /resume to go back to it.",
    example="/new Trip to Lisbon",
    parse=lambda text: start_session.call(title=text or None),
)
RESET = Command(
    name="reset",
    scopes=CommandScopes(write=WRITE),
    summary="Start over",
    help="Same as /new without a title. Nothing is deleted: use /restore to go back.",
    example="/reset",
    parse=_parse_reset,
)
RESUME = Command(
    name="resume",
    scopes=READ_AND_WRITE,
    usage="[title | number | id]",
    summary="Go back to an earlier conversation",
    help=(
        "Without arguments, lists the conversations you can resume. A number picks one from that list. A title finds"
        " the newest with that title: `My Project` finds `My Project #3`, and `My Project #1` finds the first. An id,"
        " or the beginning of one, works too. In a shared chat, only its own conversations are found."
    ),
    example="/resume Trip to Lisbon",
    parse=lambda text: resume_session.call(target=text) if text else list_resumable_sessions.call(),
)
TITLE = Command(
    name="title",
    scopes=READ_AND_WRITE,
    usage="[text | -]",
    summary="Rename this conversation",
    help="Without arguments, shows the title and id. `-` removes the title. Each title can be used only once.",
    example="/title Trip to Lisbon",
    parse=parse_choice(show_title, lambda title: set_title.call(title=title), _NO_TITLE),
)
BRANCH = Command(
    name="branch",
    scopes=CommandScopes(write=WRITE),
    usage="[title]",
    summary="Continue in a copy of this conversation",
    help="The original doesn't change. Without a title, the copy gets the next number: `My Project #2`.",
    example="/branch Lisbon by train",
    aliases=("fork",),
    parse=lambda text: branch_session.call(title=text or None),
)

"""Commands that take back: turns, moves of the lane, summaries. Nothing they hide is ever deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession, NothingToRestore, NothingToUndo, TooLittle
from palaver.domain.turn import TurnKind
from palaver.services.commands.base import BadArguments, Command, Reply
from palaver.services.commands.command_context import check_bare, check_free, event_at, newest_first, reminder, visible
from palaver.services.commands.reply_text import count, named, quoted
from palaver.storage import append, compactions, lanes, turns
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from palaver.domain.events import Event
    from palaver.domain.session import Undone
    from palaver.services.commands.base import CommandContext
    from palaver.storage.session_rows import SessionRow

MOST_TURNS = 1000
LEAST_TO_COMPRESS = 6  # messages
LONGEST_FOCUS = 500


# ---- turns -------------------------------------------------------------------------------------------------


def _undo(asked: CommandContext) -> Reply:
    turns_back = _number(asked)
    found = visible(asked)
    check_free(asked, found)
    undone = asked.view.undo(found.session.id, turns_back)
    text = f"Undone: {_extent(undone)}"
    if undone.turns < turns_back:
        text += " There were no more."
    text += " /redo brings this back, as long as nothing else is said."
    return Reply(text=text, facts={"turns": undone.turns, "messages": undone.messages, "prompt": undone.prompt})


def _extent(undone: Undone) -> str:
    turns_, messages = count(undone.turns, "turn"), count(undone.messages, "message")
    return f"{turns_}, {messages}, from {quoted(undone.prompt)} on."


def _number(asked: CommandContext) -> int:
    given = asked.arguments or "1"
    if not (given.isdecimal() and len(given) <= 4 and 1 <= int(given) <= MOST_TURNS):
        raise BadArguments(f"How many turns? `/undo` takes a number from 1 to {MOST_TURNS}, as in `/undo 2`.")
    return int(given)


def _redo(asked: CommandContext) -> Reply:
    check_bare(asked, "redo")
    found = visible(asked)
    check_free(asked, found)
    redone = asked.view.redo(found.session.id)
    text = f"Back again: {_extent(redone)} /undo hides this again."
    return Reply(text=text, facts={"turns": redone.turns, "messages": redone.messages, "prompt": redone.prompt})


def _retry(asked: CommandContext) -> Reply:
    check_bare(asked, "retry")
    found = visible(asked)
    check_free(asked, found)
    question = _last_question(asked, found)
    if question is None or question.message is None:
        raise NothingToUndo("There is no message here that could be asked again.")
    asked.view.undo(found.session.id)
    seq = append.append(
        asked.tx, found.session.id, [question.message], asked.at, human=True, person_id=question.person_id
    )
    wanted = turns.TurnRequest(
        session_no=found.no,
        input_seq=seq,
        person_id=asked.person_id,
        address=asked.address,
        reply_to=asked.reply_to,
    )
    turn_id = turns.enqueue(asked.tx, wanted, asked.at)
    text = f"Asking again: {quoted(question.message.text)}. /stop ends this; the former answer is hidden, not deleted."
    return Reply(text=text, turn_id=turn_id, facts={"seq": seq})


def _last_question(asked: CommandContext, found: SessionRow) -> Event | None:
    messages = newest_first(asked, found.session)
    return next((event for event in messages if event.message is not None and event.message.role == "user"), None)


# ---- moves and summaries -----------------------------------------------------------------------------------


def _restore(asked: CommandContext) -> Reply:
    check_bare(asked, "restore")
    moved_at = lanes.last_move(asked.tx, asked.key)
    compaction = compactions.current(asked.tx, asked.found.no) if asked.found else None
    if asked.found is not None and compaction is not None:
        noted = event_at(asked, asked.found, compaction.seq)
        if moved_at is None or noted is None or to_micros(noted.at) >= moved_at:
            return _expanded(asked)
    return _moved_back(asked)


def _expanded(asked: CommandContext) -> Reply:
    found = visible(asked)
    check_free(asked, found)
    compaction = compactions.expand(asked.tx, found.no, asked.at, asked.person_id)
    text = f"The summary of {count(compaction.messages, 'message')} is taken back. "
    earlier = compactions.current(asked.tx, found.no)
    if earlier is None:
        text += "The agent sees everything as it was said. /compress makes another."
    else:
        text += f"The one before it holds again, of {count(earlier.messages, 'message')}; /restore takes that back too."
    return Reply(text=text, facts={"expanded": compaction.seq})


def _moved_back(asked: CommandContext) -> Reply:
    entry = lanes.restore(asked.tx, asked.key, asked.at, asked.person_id)
    try:
        session = asked.view.get(entry.session_id)
    except NoSuchSession:
        raise NothingToRestore from None  # what is not theirs looks like what is not there
    text = f"Back in {named(session)}."
    if asked.found is not None and asked.found.session.message_count:
        text += f" The conversation that went on meanwhile is kept: `/resume {asked.found.session.id}` goes back to it."
    return Reply(
        text=text + reminder(asked, session), session_id=session.id, facts={"id": session.id, "title": session.title}
    )


def _compress(asked: CommandContext) -> Reply:
    focus = asked.arguments
    if len(focus) > LONGEST_FOCUS:
        raise BadArguments(f"A focus has {LONGEST_FOCUS} characters at most; this one has {len(focus)}.")
    found = visible(asked)
    check_free(asked, found)
    compaction = compactions.current(asked.tx, found.no)
    last = asked.view.load(found.session.id, limit=LEAST_TO_COMPRESS)
    whole = [event for event in last if compaction is None or event.seq >= compaction.kept_from]
    if len(whole) < LEAST_TO_COMPRESS:
        since = "since the last summary" if compaction else "in this conversation"
        raise TooLittle(
            f"There is too little to compress: {count(len(whole), 'message')} {since};"
            f" it takes {LEAST_TO_COMPRESS} or more.",
            limit=LEAST_TO_COMPRESS,
        )
    wanted = turns.TurnRequest(
        session_no=found.no,
        input_seq=last[-1].seq,
        kind=TurnKind.COMPACT,
        person_id=asked.person_id,
        address=asked.address,
        reply_to=asked.reply_to,
        facts={"focus": focus} if focus else None,
    )
    turn_id = turns.enqueue(asked.tx, wanted, asked.at)
    text = "I am summing up what was said so far" + (f", with an eye on {quoted(focus)}" if focus else "")
    text += ", and will say when it is done. Nothing is deleted, and /restore takes it back."
    return Reply(text=text, turn_id=turn_id, facts={"focus": focus or None})


UNDO = Command(
    name="undo",
    usage="[n]",
    summary="take back the last turn, or the last n",
    help="A turn is what you said and all that was answered. It is hidden, not deleted: /redo brings it back.",
    example="/undo 2",
    run=_undo,
)
REDO = Command(
    name="redo",
    summary="bring back what /undo hid",
    help="Several undos are brought back one after the other, until something else is said.",
    example="/redo",
    run=_redo,
)
RETRY = Command(
    name="retry",
    summary="ask the last message again",
    help="The last answer is hidden and the same message is asked once more. Not while the agent is answering.",
    example="/retry",
    run=_retry,
)
RESTORE = Command(
    name="restore",
    summary="take back the last reset, move or summary",
    help=(
        "Whatever came last: a conversation that began by itself or by /new, a /resume, a /branch, or a /compress."
        " Repeated, the one before it."
    ),
    example="/restore",
    run=_restore,
)
COMPRESS = Command(
    name="compress",
    usage="[focus]",
    summary="let a summary stand for the older messages",
    help=(
        "The agent then sees a summary instead of the older messages, and the last exchanges whole. You still see and"
        " search everything. A focus says what the summary must not lose. /restore takes it back."
    ),
    example="/compress the prices we agreed on",
    aliases=("compact",),
    run=_compress,
)

"""Commands that undo: exchanges, moves of the lane, summaries. What they hide is never deleted."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from palaver.commands.command import (
    WRITE,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    parse_no_arguments,
    parse_number,
    write_action,
)
from palaver.commands.context import CommandContext, build_arrival, describe_last_exchange, find_event
from palaver.commands.reply_text import count_messages, format_session_name, quote_command, quote_text
from palaver.core.clock import to_micros
from palaver.core.errors import NothingToCompact, NothingToRestore, SessionNotFound
from palaver.core.texts import say, say_count
from palaver.people.model import Action
from palaver.sessions import (
    lanes_table as lanes,
    log_table as events,
    turns_table as turns,
    versions_table as compactions,
)
from palaver.sessions.turn import TurnKind
from palaver.turns.commands.conversation import learn_from_left

if TYPE_CHECKING:
    from palaver.sessions.model import SessionEntry, UndoResult

MAX_UNDO_TURNS = 1000
MIN_MESSAGES_TO_COMPACT = 6
MAX_FOCUS_CHARS = 500


# ---- exchanges ---------------------------------------------------------------------------------------------


@write_action("undo", changes_many_events=True)
def undo_turns(context: CommandContext, *, turns: int = 1) -> CommandReply:
    row = context.require_idle_session(Action.UNDO)
    undone = events.undo_turns(context.tx, row.no, turns, context.now_micros, context.person_id)
    text = say("undo.done", "Undone: {what}", what=_describe_result(undone))
    if undone.turns < turns:
        text += say("undo.no_more", " There were no more.")
    text += say("undo.redo", " Use /redo to bring it back, until the next message.")
    return CommandReply(text=text, data=asdict(undone))


@write_action("redo", changes_many_events=True)
def redo_turns(context: CommandContext) -> CommandReply:
    row = context.require_idle_session(Action.UNDO)
    redone = events.redo_turns(context.tx, row.no, context.now_micros, context.person_id)
    text = say("redo.done", "Redone: {what} Use /undo to hide it again.", what=_describe_result(redone))
    return CommandReply(text=text, data=asdict(redone))


def _describe_result(result: UndoResult) -> str:
    return say(
        "undo.what",
        "{exchanges} ({messages}), starting with {prompt}.",
        exchanges=say_count("undo.exchanges", result.turns, "{count} exchange", "{count} exchanges"),
        messages=count_messages(result.messages),
        prompt=quote_text(result.prompt),
    )


# ---- moves and summaries -----------------------------------------------------------------------------------


@write_action("restore")
def restore_session(context: CommandContext) -> CommandReply:
    """Revert what came last: the end of the lane's session by its reset policy, its last summary or its last move."""
    lane_row, row = lanes.find_current_session(context.tx, context.lane_key), context.session_row
    if lane_row is not None and row is not None and lane_row.no == row.no:
        expired = lanes.continue_expired_session(context.tx, build_arrival(context), context.person_id)
        if expired is not None:
            return _enter_restored(context, expired)
    moved_at = lanes.find_last_move_time(context.tx, context.lane_key)
    compaction = compactions.find_current(context.tx, row.no) if row else None
    if row is not None and compaction is not None:
        event = find_event(context, row, compaction.seq)
        if moved_at is None or event is None or to_micros(event.at) >= moved_at:
            return _remove_summary(context)
    entry = lanes.restore_session(context.tx, context.lane_key, context.now_micros, context.person_id)
    if lane_row is not None and lane_row.session.id != entry.session_id:
        learn_from_left(context, lane_row)
    return _enter_restored(context, entry)


def _remove_summary(context: CommandContext) -> CommandReply:
    row = context.require_idle_session()
    compaction = compactions.undo_last(context.tx, row.no, context.now_micros, context.person_id)
    text: str = ""
    if not compaction.omitted_count:
        messages = count_messages(compaction.message_count)
        text = say("restore.summary_removed", "Removed the summary of {messages}. ", messages=messages)
    earlier = compactions.find_current(context.tx, row.no)
    if earlier is None:
        text += say("restore.all_seen", "The agent sees all messages again. Use /compress to create a new summary.")
    else:
        text += say(
            "restore.earlier_summary",
            "The agent now sees the earlier summary of {messages}. Use /restore to remove that too.",
            messages=count_messages(earlier.message_count),
        )
    return CommandReply(text=text, data={"removed_summary_seq": compaction.seq})


def _enter_restored(context: CommandContext, entry: SessionEntry) -> CommandReply:
    try:
        row = context.scope.get_session_row(context.tx, entry.session_id, Action.READ)
    except SessionNotFound:
        raise NothingToRestore from None  # a session without access looks like one that doesn't exist
    text = say("restore.done", "Back in {name}.", name=format_session_name(row.session))
    left = context.session_row
    if left is not None and left.no != row.no and left.session.message_count:
        command = quote_command(f"resume {left.session.id}")
        text += say(
            "restore.other", " The other conversation is saved. Use {command} to return to it.", command=command
        )
    return CommandReply(
        text=text + describe_last_exchange(context, row),
        session_id=row.session.id,
        data={"id": row.session.id, "title": row.session.title},
    )


@write_action("compress")
def compact_session(context: CommandContext, *, focus: str | None = None) -> CommandReply:
    """Queue a turn that replaces the older messages with a summary, for the agent."""
    if focus is not None and len(focus) > MAX_FOCUS_CHARS:
        raise BadArguments.say(
            "compress.focus_too_long",
            "The focus can have up to {limit} characters; yours has {length}.",
            limit=MAX_FOCUS_CHARS,
            length=len(focus),
        )
    row = context.require_idle_session()
    compaction = compactions.find_last_summary(context.tx, row.no)
    last = events.list_messages(context.tx, row.no, limit=MIN_MESSAGES_TO_COMPACT)
    uncompacted = [event for event in last if compaction is None or not compaction.covers(event.seq)]
    if len(uncompacted) < MIN_MESSAGES_TO_COMPACT:
        since = say("compress.in_all", "in this conversation")
        if compaction:
            since = say("compress.since", "since the last summary")
        problem = say(
            "compress.too_short",
            "Not enough to summarize: {messages} {since}, at least {limit} needed.",
            messages=count_messages(len(uncompacted)),
            since=since,
            limit=MIN_MESSAGES_TO_COMPACT,
        )
        raise NothingToCompact(problem, limit=MIN_MESSAGES_TO_COMPACT)
    request = turns.TurnRequest(
        session_no=row.no,
        input_seq=last[-1].seq,
        kind=TurnKind.COMPACT,
        person_id=context.person_id,
        address=context.address,
        reply_to=context.reply_to,
        facts={"focus": focus} if focus else None,
    )
    turn_id = turns.enqueue(context.tx, request, context.now_micros)
    about = say("compress.focus", " with a focus on {focus}", focus=quote_text(focus)) if focus else ""
    text = say(
        "compress.started",
        "Summarizing the conversation{about}… I'll tell you when it's done. Use /restore to revert it.",
        about=about,
    )
    return CommandReply(text=text, turn_id=turn_id, data={"focus": focus})


# ---- the commands ------------------------------------------------------------------------------------------


def _parse_undo(text: str) -> CommandCall:
    turns = parse_number(text or "1", minimum=1, maximum=MAX_UNDO_TURNS)
    if turns is None:
        raise BadArguments.say(
            "undo.bad_number",
            "How many exchanges? Use a number from 1 to {limit}, as in `/undo 2`.",
            limit=str(MAX_UNDO_TURNS),
        )
    return undo_turns.call(turns=turns)


UNDO = Command(
    name="undo",
    scopes=CommandScopes(write=WRITE),
    usage="[n]",
    summary="Undo the last exchange, or the last n",
    help="An exchange is your message and everything that answered it. It's hidden, not deleted: /redo brings it back.",
    example="/undo 2",
    parse=_parse_undo,
)
REDO = Command(
    name="redo",
    scopes=CommandScopes(write=WRITE),
    summary="Bring back what /undo hid",
    help="Use it again to bring back earlier exchanges. It works until the next message.",
    example="/redo",
    parse=parse_no_arguments(redo_turns),
)
RESTORE = Command(
    name="restore",
    scopes=CommandScopes(write=WRITE),
    summary="Go back to the previous conversation, or remove the last summary",
    help=(
        "Reverts whatever came last: an automatic restart, /new, /resume, /branch or /compress. Use it again to go"
        " further back."
    ),
    example="/restore",
    parse=parse_no_arguments(restore_session),
)
COMPRESS = Command(
    name="compress",
    scopes=CommandScopes(write=WRITE),
    usage="[focus]",
    summary="Summarize older messages for the agent",
    help=(
        "The agent then sees a summary of the older messages and the latest exchanges in full. You still see and search"
        " everything. The focus says what the summary has to keep. Use /restore to revert it."
    ),
    example="/compress the prices we agreed on",
    aliases=("compact",),
    parse=lambda text: compact_session.call(focus=text or None),
)

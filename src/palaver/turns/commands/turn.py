"""Commands about what the agent is doing: stopping it, and the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.commands.command import BadArguments, Command, CommandReply, MessageCall, read_action, write_action
from palaver.commands.context import find_event
from palaver.commands.reply_text import format_age, format_count, quote_text
from palaver.commands.scopes import READ, TALK, WRITE, CommandScopes
from palaver.sessions import turns_table as turns
from palaver.sessions.turn import BusyPolicy, StopRequest, TurnKind, TurnState

if TYPE_CHECKING:
    from palaver.commands.command import CommandCall
    from palaver.commands.context import CommandContext
    from palaver.sessions.session_rows import SessionRow
    from palaver.sessions.turn import Turn

_CLEARED_ERROR = "Removed from the queue before it started."


@write_action("stop")
def stop_run(context: CommandContext, *, clear_queue: bool = False) -> CommandReply:
    """Ask the running turn to stop; with `clear_queue`, drop the turns that wait as well."""
    row = context.require_session()
    stopped_turn_id = turns.request_stop(context.tx, row.no, StopRequest.STOP, context.person_id)
    cleared = _drop_queued_turns(context, row) if clear_queue else 0
    queued = turns.summarize_open(context.tx, row.no).queued_count
    sentences = ["Stopping. What was written so far is kept." if stopped_turn_id else "Nothing is running here."]
    if cleared:
        sentences.append(_describe_cleared(cleared))
    if queued:
        messages = format_count(queued, "message")
        sentences.append(f"{messages} still queued, to be answered next. Use `/stop all` to clear the queue.")
    data = {"stopped_turn_id": stopped_turn_id, "cleared": cleared}
    return CommandReply(text=" ".join(sentences), turn_id=stopped_turn_id, data=data)


@read_action("queue")
def list_queue(context: CommandContext) -> CommandReply:
    row = context.require_session()
    queued = [turn for _, turn in turns.list_open(context.tx, row.no) if turn.state is TurnState.QUEUED]
    if not queued:
        return CommandReply(
            text="The queue is empty. Use `/queue text` to queue a message.", data={"queued_turn_ids": []}
        )
    lines = [f"{number}. {_describe_queued(context, row, turn)}" for number, turn in enumerate(queued, 1)]
    text = "Queued:\n\n" + "\n".join(lines) + "\n\nUse `/queue clear` to clear the queue."
    return CommandReply(text=text, data={"queued_turn_ids": [turn.id for turn in queued]})


@write_action("queue")
def clear_queue(context: CommandContext) -> CommandReply:
    cleared = _drop_queued_turns(context, context.require_session())
    text = _describe_cleared(cleared) if cleared else "The queue is already empty."
    return CommandReply(text=text, data={"cleared": cleared})


def _drop_queued_turns(context: CommandContext, row: SessionRow) -> int:
    return turns.cancel_queued(context.tx, row.no, context.now_micros, _CLEARED_ERROR)


def _describe_cleared(count: int) -> str:
    messages = format_count(count, "queued message")
    return f"Cleared {messages}. You still see them here, unanswered. Use /retry to ask the last one again."


def _describe_queued(context: CommandContext, row: SessionRow, turn: Turn) -> str:
    age = format_age(turn.created_at, context.now)
    if turn.kind is TurnKind.COMPACT:
        return f"a summary, requested {age}"
    event = find_event(context, row, turn.input_seq)
    return f"{quote_text(event.message.text if event and event.message else '')}, {age}"


# ---- the commands ------------------------------------------------------------------------------------------


def _parse_stop(text: str) -> CommandCall:
    if text.lower() not in {"", "all"}:
        raise BadArguments("Use `/stop` to stop the current answer, or `/stop all` to clear the queue as well.")
    return stop_run.call(clear_queue=bool(text))


def _parse_queue(text: str) -> CommandCall | MessageCall:
    if not text:
        return list_queue.call()
    if text.lower() == "clear":
        return clear_queue.call()
    return MessageCall("queue", text, BusyPolicy.QUEUE)


def _parse_steer(text: str) -> MessageCall:
    if not text:
        raise BadArguments("Add a message: `/steer text`. The agent gets it after its next tool call.")
    return MessageCall("steer", text, BusyPolicy.STEER)


STOP = Command(
    name="stop",
    scopes=CommandScopes(write=TALK),
    usage="[all]",
    summary="Stop the current answer",
    help="What was written so far is kept. Queued messages are answered next. `all` also clears the queue.",
    example="/stop all",
    parse=_parse_stop,
)
QUEUE = Command(
    name="queue",
    scopes=CommandScopes(read=READ, write=WRITE, run=TALK),
    usage="[text | clear]",
    summary="Queue a message, or list the queue",
    help=(
        "Without arguments, lists the queued messages. With text, queues it as a message, whatever /busy says. `clear`"
        " clears the queue."
    ),
    example="/queue And then translate it",
    parse=_parse_queue,
)
STEER = Command(
    name="steer",
    scopes=CommandScopes(run=TALK),
    usage="text",
    summary="Tell the agent something while it's working",
    help="The agent gets it after its next tool call. If nothing is running, it's an ordinary message.",
    example="/steer Only look at this year",
    parse=_parse_steer,
)

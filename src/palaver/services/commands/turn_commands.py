"""Commands about what the agent is doing: stopping it, and what waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.turn import StopRequest, TurnKind, TurnState
from palaver.services.commands.base import BadArguments, Command, Reply
from palaver.services.commands.command_context import event_at, visible
from palaver.services.commands.reply_text import ago, count, quoted
from palaver.storage import turns

if TYPE_CHECKING:
    from palaver.domain.turn import Turn
    from palaver.services.commands.base import CommandContext
    from palaver.storage.session_rows import SessionRow

CLEAR = "clear"  # the one thing after /queue that is not a message
_ALL = "all"
_DROPPED = "It was dropped before it began."
_STAY = "What was said stays in the conversation; /retry asks the last message again."


def _stop(asked: CommandContext) -> Reply:
    what = asked.arguments.lower()
    if what not in {"", _ALL}:
        raise BadArguments("`/stop` ends the answer that is being given; `/stop all` also drops what waits.")
    found = visible(asked)
    stopped = turns.wish(asked.tx, found.no, StopRequest.STOP)
    dropped = turns.drop_queued(asked.tx, found.no, asked.at, _DROPPED) if what == _ALL else 0
    waiting = turns.open_in(asked.tx, found.no).queued
    said = ["Stopping; what was answered so far is kept." if stopped else "Nothing is running here."]
    if dropped:
        said.append(f"Dropped: {count(dropped, 'waiting message')}. {_STAY}")
    if waiting:
        said.append(f"Waiting: {count(waiting, 'message')}, answered next. `/stop all` drops what waits.")
    return Reply(text=" ".join(said), turn_id=stopped, facts={"stopped": stopped, "dropped": dropped})


def _queue(asked: CommandContext) -> Reply:
    what = asked.arguments.lower()
    if what not in {"", CLEAR}:
        raise BadArguments("`/queue` shows what waits, `/queue clear` drops it, `/queue text` sends a message to wait.")
    found = visible(asked)
    if what == CLEAR:
        dropped = turns.drop_queued(asked.tx, found.no, asked.at, _DROPPED)
        text = f"Dropped: {count(dropped, 'waiting message')}. {_STAY}" if dropped else "Nothing was waiting here."
        return Reply(text=text, facts={"dropped": dropped})
    waiting = [turn for _, turn in turns.open_turns(asked.tx, found.no) if turn.state is TurnState.QUEUED]
    if not waiting:
        return Reply(
            text="Nothing waits here. `/queue text` sends a message that waits its turn.", facts={"waiting": []}
        )
    lines = [f"{number}. {_waits(asked, found, turn)}" for number, turn in enumerate(waiting, 1)]
    text = "Waiting here:\n\n" + "\n".join(lines) + "\n\n`/queue clear` drops them."
    return Reply(text=text, facts={"waiting": [turn.id for turn in waiting]})


def _waits(asked: CommandContext, found: SessionRow, turn: Turn) -> str:
    since = ago(turn.created_at, asked.now)
    if turn.kind is TurnKind.COMPACT:
        return f"a summary, asked for {since}"
    event = event_at(asked, found, turn.input_seq)
    return f"{quoted(event.message.text if event and event.message else '')}, {since}"


def _steer(_asked: CommandContext) -> Reply:
    raise BadArguments("What is the agent to know? `/steer text` tells it while it works, after its next tool call.")


STOP = Command(
    name="stop",
    usage="[all]",
    summary="end the answer that is being given",
    help="What was answered so far is kept. What waits goes on, unless `all` is said.",
    example="/stop all",
    run=_stop,
)
QUEUE = Command(
    name="queue",
    usage="[text | clear]",
    summary="send a message that waits its turn, or see what waits",
    help="Alone it lists what waits; `clear` drops that. With a text it is a message that waits, whatever /busy says.",
    example="/queue And then translate it",
    run=_queue,
)
STEER = Command(
    name="steer",
    usage="text",
    summary="tell the agent something while it works",
    help="It is given to the running agent after its next tool call. When nothing runs, it is an ordinary message.",
    example="/steer Only look at this year",
    run=_steer,
)

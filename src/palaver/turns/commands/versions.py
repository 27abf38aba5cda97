"""Commands about answers: regenerate, edit in place, list and choose versions, stop, and the queue.

The version before it is hidden, never deleted. What was sent to a chat stays there: the reply says what is in effect.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from palaver.commands.command import (
    READ,
    TALK,
    WRITE,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    MessageCall,
    parse_no_arguments,
    parse_number,
    read_action,
    write_action,
)
from palaver.commands.context import CommandContext, find_event
from palaver.commands.reply_text import (
    AGENT,
    YOU,
    count_messages,
    format_age,
    format_message,
    quote_command,
    quote_text,
)
from palaver.core.errors import InvalidInput, NotAllowed, NothingToDo, NothingToUndo
from palaver.core.texts import Text, join_texts, say, say_count
from palaver.media import table as attachments
from palaver.media.attachments import find_attachments
from palaver.people.model import Action
from palaver.sessions import (
    log_table as events,
    message_edits,
    message_table as message_log,
    table as sessions,
    turns_table as turns,
    versions_table as versions,
)
from palaver.sessions.message import MAX_MESSAGE_CHARS, Message, describe_too_long, join_text_parts
from palaver.sessions.model import MAX_VERSIONS, Version, VersionInfo
from palaver.sessions.speech import add_attachments
from palaver.sessions.turn import BusyPolicy, StopRequest, Turn, TurnKind, TurnState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, TurnId
    from palaver.sessions.events import Event
    from palaver.sessions.table import SessionRow


_MAX_QUOTE_CHARS: Final = 160
_STEPS: Final = {"next": 1, "›": 1, ">": 1, "previous": -1, "prev": -1, "‹": -1, "<": -1}
_CLEARED_ERROR = "Removed from the queue before it started."


# ---- new versions ------------------------------------------------------------------------------------------


@write_action("retry", changes_many_events=True)
def retry_turn(context: CommandContext, *, seq: int | None = None) -> CommandReply:
    """Ask a message again in place: the last one, or the one with this number. The version before it is kept."""
    row = context.require_idle_session(Action.UNDO)
    question = find_last_question(context.tx, row.no) if seq is None else _find_question(context, row, seq)
    if question is None or question.message is None:
        raise NothingToUndo.say("retry.nothing", "There's no message here to retry.")
    sessions.reopen(context.tx, row.no, context.now_micros, context.person_id)
    place, now = message_edits.MessagePlace(row.no, question.seq), context.now_micros
    is_edit = message_edits.revert_late_edit(context.tx, place, now)
    info = versions.start_version(context.tx, row.no, question.seq, now, context.person_id, is_edit=is_edit)
    turn_id, new_seq = _ask(context, row, question.message, question.person_id)
    text = say(
        "retry.started",
        "Asking again: {message}. The previous answer is hidden, not deleted: use {command} to go back to it, /stop to"
        " cancel.",
        message=quote_text(question.message.text),
        command=quote_command("version previous"),
    )
    return CommandReply(text=text, turn_id=turn_id, data={"seq": new_seq, **_build_info_data(info)})


@write_action("retry", changes_many_events=True)
def edit_message(
    context: CommandContext, *, seq: int, content: str | Sequence[Any], attachment_ids: Sequence[str] = ()
) -> CommandReply:
    """Send another version of one's own message in its place. The version before it is kept."""
    row = context.require_idle_session(Action.UNDO)
    question = _find_question(context, row, seq)
    if question is None or question.message is None:
        raise InvalidInput(
            say("edit.not_found", "There is no message number {seq} to edit here.", seq=str(seq)), seq=seq
        )
    if question.person_id != context.person_id and (question.person_id is not None or row.session.shared):
        raise NotAllowed.say(
            "edit.not_yours", "You can edit only your own messages. Send yours in a new branch instead."
        )
    text = content if isinstance(content, str) else join_text_parts(content)
    if len(text) > MAX_MESSAGE_CHARS:
        raise InvalidInput(describe_too_long(len(text)), limit=MAX_MESSAGE_CHARS)
    files = find_attachments(context.tx, context.person_id, content, attachment_ids)
    sessions.reopen(context.tx, row.no, context.now_micros, context.person_id)
    attachments.use_in_session(context.tx, row.no, [no for no, _ in files])
    info = versions.start_version(context.tx, row.no, seq, context.now_micros, context.person_id, is_edit=True)
    message = replace(
        question.message,
        content=add_attachments(content, [file for _, file in files]),
        platform_message_id=context.reply_to,
        extra={key: value for key, value in question.message.extra.items() if key not in {"edited", "sent_at"}},
    )
    turn_id, new_seq = _ask(context, row, message, context.person_id)
    reply = say(
        "edit.done",
        "Sent as version {number} of your message. The other version is hidden, not deleted.",
        number=info.number,
    )
    return CommandReply(text=reply, turn_id=turn_id, data={"seq": new_seq, **_build_info_data(info)})


def _ask(context: CommandContext, row: SessionRow, message: Message, person_id: PersonId | None) -> tuple[TurnId, int]:
    """Append the message of a new version, directly after the event that has started it, and queue its turn."""
    seq = message_log.append_messages(
        context.tx, row.session.id, [message], context.now_micros, from_human=True, person_id=person_id
    )
    request = turns.TurnRequest(
        session_no=row.no,
        input_seq=seq,
        person_id=context.person_id,
        address=context.address,
        reply_to=context.reply_to,
    )
    return turns.enqueue(context.tx, request, context.now_micros), seq


def find_last_question(tx: Transaction, session_no: int) -> Event | None:
    messages = events.iterate_newest_messages(tx, session_no)
    return next((event for event in messages if event.message is not None and event.message.role == "user"), None)


def _find_question(context: CommandContext, row: SessionRow, seq: int) -> Event | None:
    """Return a visible message of a person by its number."""
    event = next(iter(events.list_events_at(context.tx, row.no, [seq])), None)
    is_question = event is not None and event.message is not None and event.message.role == "user" and not event.hidden
    return event if is_question else None


# ---- choosing ----------------------------------------------------------------------------------------------


@read_action("versions")
def list_versions(context: CommandContext) -> CommandReply:
    """List the versions of the last message that has several."""
    row = context.require_session()
    info = _get_info(context, row, None)
    listed = versions.list_versions(context.tx, row.no, info)
    lines = [_format_version(version, has_edits=info.has_edits) for version in listed]
    head = say("versions.head", "Version {number} of {total} is in use:", number=info.number, total=info.count)
    if len(listed) < info.count:
        head += say("versions.newest", " (the newest {listed})", listed=len(listed))
    foot = say("versions.choose", "Use `/version 1`, `/version next` or `/version previous`.")
    documents = [
        {
            "version": version.number,
            "is_chosen": version.is_chosen,
            "question": quote_text(version.question, _MAX_QUOTE_CHARS),
            "answer": quote_text(version.answer, _MAX_QUOTE_CHARS) if version.answer else None,
        }
        for version in listed
    ]
    data = {**_build_info_data(info), "list": documents}
    return CommandReply(text=join_texts("\n\n", [head, join_texts("\n", lines), foot]), data=data)


@write_action("version", changes_many_events=True)
def choose_version(
    context: CommandContext, *, number: int | None = None, step: int = 0, seq: int | None = None
) -> CommandReply:
    """Choose a version by its number, or the next or previous one, of a message or of the last one with versions."""
    row = context.require_idle_session(Action.UNDO)
    info = _get_info(context, row, seq)
    wanted = info.number + step if number is None else number
    if number is None and not 1 <= wanted <= info.count:
        problem = say("version.is_first", "This is already the first of {total} versions.", total=info.count)
        if step > 0:
            problem = say("version.is_last", "This is already the last of {total} versions.", total=info.count)
        raise NothingToDo(problem)
    chosen = versions.choose_version(context.tx, row.no, info.group, wanted, context.now_micros, context.person_id)
    version = versions.load_chosen(context.tx, row.no, chosen)
    text = say(
        "version.done",
        "Version {number} of {total} is now in use. The conversation continues from it.",
        number=chosen.number,
        total=chosen.count,
    )
    text += "\n\n" + format_message(YOU, version.question, _MAX_QUOTE_CHARS)
    if version.answer:
        text += "\n>\n" + format_message(AGENT, version.answer, _MAX_QUOTE_CHARS)
    return CommandReply(text=text, data={"seq": version.seq, **_build_info_data(chosen)})


def _get_info(context: CommandContext, row: SessionRow, seq: int | None) -> VersionInfo:
    if seq is not None:
        info = versions.find_info(context.tx, row.no, seq)
        problem = say("version.none", "There are no other versions of this message. Use /retry to make one.")
    else:
        info = versions.find_last_info(context.tx, row.no)
        problem = say(
            "version.none_lately", "There are no other versions of the last messages here. Use /retry to make one."
        )
    if info is None:
        raise NothingToDo(problem)
    return info


def _format_version(version: Version, *, has_edits: bool) -> str:
    text: str = f"{version.number}. "
    if version.is_chosen:
        text += say("versions.in_use", "**in use** ")
    if has_edits:
        text += quote_text(version.question, _MAX_QUOTE_CHARS) + " – "
    if version.answer:
        return text + quote_text(version.answer, _MAX_QUOTE_CHARS)
    return text + say("versions.no_answer", "(no answer)")


def _build_info_data(info: VersionInfo) -> dict[str, Any]:
    return {"version": info.number, "versions": info.count}


# ---- stopping and the queue ----------------------------------------------------------------------------------


@write_action("stop")
def stop_run(context: CommandContext, *, clear_queue: bool = False) -> CommandReply:
    """Ask the running turn to stop; with `clear_queue`, drop the turns that wait as well."""
    row = context.require_session()
    stopped_turn_id = turns.request_stop(context.tx, row.no, StopRequest.STOP, context.person_id)
    cleared = turns.cancel_queued(context.tx, row.no, context.now_micros, _CLEARED_ERROR) if clear_queue else 0
    queued = turns.load_open(context.tx, row.no).queued_count
    sentences = [say("stop.nothing", "Nothing is running here.")]
    if stopped_turn_id:
        sentences = [say("stop.done", "Stopping. What was written so far is kept.")]
    if cleared:
        sentences.append(_describe_cleared(cleared))
    if queued:
        sentences.append(
            say(
                "stop.queued",
                "{messages} still queued, to be answered next. Use `/stop all` to clear the queue.",
                messages=count_messages(queued),
            )
        )
    data = {"stopped_turn_id": stopped_turn_id, "cleared": cleared}
    return CommandReply(text=join_texts(" ", sentences), turn_id=stopped_turn_id, data=data)


@read_action("queue")
def list_queue(context: CommandContext) -> CommandReply:
    row = context.require_session()
    queued = [turn for _, turn in turns.list_open(context.tx, row.no) if turn.state is TurnState.QUEUED]
    if not queued:
        text = say("queue.empty", "The queue is empty. Use `/queue text` to queue a message.")
        return CommandReply(text=text, data={"queued_turn_ids": []})
    lines = [f"{number}. " + _describe_queued(context, row, turn) for number, turn in enumerate(queued, 1)]
    text = say(
        "queue.list", "Queued:\n\n{list}\n\nUse `/queue clear` to clear the queue.", list=join_texts("\n", lines)
    )
    return CommandReply(text=text, data={"queued_turn_ids": [turn.id for turn in queued]})


@write_action("queue")
def clear_queue(context: CommandContext) -> CommandReply:
    cleared = turns.cancel_queued(context.tx, context.require_session().no, context.now_micros, _CLEARED_ERROR)
    text = _describe_cleared(cleared) if cleared else say("queue.already_empty", "The queue is already empty.")
    return CommandReply(text=text, data={"cleared": cleared})


def _describe_cleared(count: int) -> Text:
    return say_count(
        "queue.cleared",
        count,
        "Cleared {count} queued message. You still see them here, unanswered. Use /retry to ask the last one again.",
        "Cleared {count} queued messages. You still see them here, unanswered. Use /retry to ask the last one again.",
    )


def _describe_queued(context: CommandContext, row: SessionRow, turn: Turn) -> str:
    age = format_age(turn.created_at, context.now)
    if turn.kind is TurnKind.COMPACT:
        return say("queue.summary", "a summary, requested {age}", age=age)
    event = find_event(context, row, turn.input_seq)
    return quote_text(event.message.text if event and event.message else "") + ", " + age


# ---- the commands ------------------------------------------------------------------------------------------


def _parse_version(text: str) -> CommandCall:
    step = _STEPS.get(text.lower())
    if step is not None:
        return choose_version.call(step=step)
    number = parse_number(text, minimum=1, maximum=MAX_VERSIONS)
    if number is None:
        raise BadArguments.say(
            "version.which", "Which version? Use `/version 1`, `/version next` or `/version previous`."
        )
    return choose_version.call(number=number)


RETRY = Command(
    name="retry",
    scopes=CommandScopes(write=WRITE),
    summary="Regenerate the last answer",
    help=(
        "Asks your last message again. The previous answer is kept as a version: /version goes back to it. Not"
        " available while the agent is responding."
    ),
    example="/retry",
    parse=parse_no_arguments(retry_turn),
)
VERSIONS = Command(
    name="versions",
    scopes=CommandScopes(read=READ),
    summary="List the versions of the last answer",
    help="Lists the versions of the last message that was regenerated or edited, and which one is in use.",
    example="/versions",
    parse=parse_no_arguments(list_versions),
)
VERSION = Command(
    name="version",
    scopes=CommandScopes(write=WRITE),
    usage="number | next | previous",
    summary="Go to another version of the last answer",
    help=(
        "Everything that followed that version comes back with it, and the agent sees that version only. Messages"
        " that were already sent to a chat stay there. Not available while the agent is responding."
    ),
    example="/version 1",
    parse=_parse_version,
)


def _parse_stop(text: str) -> CommandCall:
    if text.lower() not in {"", "all"}:
        raise BadArguments.say(
            "stop.usage", "Use `/stop` to stop the current answer, or `/stop all` to clear the queue as well."
        )
    return stop_run.call(clear_queue=bool(text))


def _parse_queue(text: str) -> CommandCall | MessageCall:
    if not text:
        return list_queue.call()
    if text.lower() == "clear":
        return clear_queue.call()
    return MessageCall("queue", text, BusyPolicy.QUEUE)


def _parse_steer(text: str) -> MessageCall:
    if not text:
        raise BadArguments.say(
            "steer.usage", "Add a message: `/steer text`. The agent gets it after its next tool call."
        )
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

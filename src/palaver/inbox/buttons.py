"""Buttons under our messages: each runs the command that the person could have typed.

A button is data that comes back from a platform, so it is trusted with nothing: who pressed it decides what is allowed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.accounts import access
from palaver.accounts.commands import LINK, link_account
from palaver.commands.runner import CommandRejected
from palaver.core.clock import to_micros
from palaver.core.errors import NotAllowed, NothingToDo, SessionNotFound
from palaver.core.ids import SessionId
from palaver.core.text import strip_markdown
from palaver.delivery.notices import send_notice_to_address
from palaver.inbox.receipts import find_duplicate, save_receipt
from palaver.jobs import table as jobs
from palaver.jobs.commands import JOBS, confirm_job, reject_job
from palaver.sessions import log_table as events, table as sessions, turns_table as turns
from palaver.sessions.inbound import Inbound, Outcome, Receipt, find_delivery_address, parse_button
from palaver.sessions.turn import TurnState
from palaver.turns.commands.versions import retry_turn, stop_run

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.agent.current import CurrentSettings
    from palaver.commands.command import CommandCall
    from palaver.commands.runner import CommandRunner
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from palaver.sessions.inbound import ButtonPressed
    from palaver.sessions.table import SessionRow

_NO_ACCESS: Final = "You don't have access to this agent."
_NOT_YOURS: Final = "This button belongs to a conversation that you don't have access to."
_OUTDATED: Final = "The conversation has continued since. Send your message again instead."
_ENDED: Final = "This answer is already complete."
_NOT_YOUR_JOB: Final = "Only the person who asked for this job can decide."
_OLD_QUESTION: Final = "This was decided, or the agent has changed it since. Answer the newest question instead."
_UNKNOWN: Final = "This button no longer works."
_LAST_MESSAGES_READ: Final = 50


class ButtonHandler:
    """Runs the command of a button that was pressed, inside a transaction."""

    def __init__(self, commands: CommandRunner, settings: CurrentSettings) -> None:
        self._commands = commands
        self._settings = settings

    def press(self, tx: Transaction, press: ButtonPressed, now: datetime) -> Receipt:
        """Run the command and record the press. Raises `CommandRejected` if it can't be carried out; then roll back."""
        speaker = access.find_speaker(tx, press.source, self._settings.rules)
        if speaker is None or not speaker.can_speak or speaker.person is None:
            raise CommandRejected(NotAllowed(_NO_ACCESS))
        record = build_press_record(press)
        duplicate = find_duplicate(tx, record)
        if duplicate is not None:
            return duplicate
        call, row = _find_call(tx, press, speaker.person)
        command = Inbound(source=press.source, content="")
        receipt = self._commands.run(tx, command, call, speaker.person, row, now)
        if call.command in {JOBS.name, LINK.name}:
            line = (receipt.reply or "").partition("\n\n")[0]  # the details are in the question
            receipt = replace(receipt, reply=strip_markdown(line))
            _send_line(tx, press, line, to_micros(now))
        save_receipt(tx, record, receipt, to_micros(now))
        return receipt


def _send_line(tx: Transaction, press: ButtonPressed, line: str, now: int) -> None:
    """Let the chat keep what was decided: platforms show the reply to a press only for a moment."""
    address = find_delivery_address(press.source)
    if address is not None:
        send_notice_to_address(tx, str(address), line, now, reply_to=press.message_id)


def build_press_record(press: ButtonPressed) -> Inbound:
    """Build the message under which a press is known when it comes again."""
    return Inbound(source=press.source, content="", message_id=f"press:{press.press_id}")


def record_rejection(tx: Transaction, press: ButtonPressed, rejected: CommandRejected, now: int) -> Receipt:
    """Record a press that had no effect."""
    record = build_press_record(press)
    facts = {**rejected.error.facts, "error": rejected.error.code}
    receipt = Receipt(outcome=Outcome.REJECTED, reply=str(rejected.error), facts=facts)
    duplicate = find_duplicate(tx, record)
    if duplicate is None:
        save_receipt(tx, record, receipt, now)
    return duplicate or receipt


def _find_call(tx: Transaction, press: ButtonPressed, person: Person) -> tuple[CommandCall, SessionRow | None]:
    action, subject = parse_button(press.data)
    if action in {"link-confirm", "link-cancel"}:
        return link_account.call(code=action.removeprefix("link-"), asked=subject), None
    if action in {"confirm", "reject"}:
        return _find_decision(tx, action, subject, person), None
    if action in {"stop", "retry"}:
        turn = turns.find(tx, subject)
        if turn is None:
            raise CommandRejected(NothingToDo(_UNKNOWN))
        row = _get_session(tx, turn.session_id, person)
        if action == "stop":
            if turn.state is not TurnState.RUNNING:
                raise CommandRejected(NothingToDo(_ENDED))
            return stop_run.call(), row
        _check_last_question(tx, row, turn.input_seq)
        return retry_turn.call(), row
    session_id, _, seq = subject.rpartition(":")
    if action != "rerun" or not seq.isdecimal() or len(seq) > 18:
        raise CommandRejected(NothingToDo(_UNKNOWN))
    row = _get_session(tx, session_id, person)
    _check_last_question(tx, row, int(seq))
    return retry_turn.call(), row


def _find_decision(tx: Transaction, action: str, subject: str, person: Person) -> CommandCall:
    """Return the call that confirms or rejects what the agent has proposed; only the job's person may decide."""
    job_id, _, asked_at = subject.partition(":")
    job_row = jobs.find_by_id(tx, job_id)
    if job_row is None:
        raise CommandRejected(NothingToDo(_UNKNOWN))
    if job_row.job.person_id != person.id:
        raise CommandRejected(NotAllowed(_NOT_YOUR_JOB))
    if job_row.job.asked_at is None or asked_at != str(to_micros(job_row.job.asked_at)):
        raise CommandRejected(NothingToDo(_OLD_QUESTION))
    return (confirm_job if action == "confirm" else reject_job).call(job=job_id)


def _get_session(tx: Transaction, session_id: str, person: Person) -> SessionRow:
    try:
        return sessions.get_visible(tx, SessionId(session_id), person.id)
    except SessionNotFound:
        raise CommandRejected(NotAllowed(_NOT_YOURS)) from None


def _check_last_question(tx: Transaction, row: SessionRow, seq: int) -> None:
    """Reject a button of a message that is no longer the last one of its conversation: `retry` asks the last one."""
    if find_last_question(tx, row.no) != seq:
        raise CommandRejected(NothingToDo(_OUTDATED))


def find_last_question(tx: Transaction, session_no: int) -> int | None:
    """Return the number of the last message that a person sent in a session."""
    newest = events.list_messages(tx, session_no, limit=_LAST_MESSAGES_READ)
    questions = [event.seq for event in newest if event.message is not None and event.message.role == "user"]
    return questions[-1] if questions else None

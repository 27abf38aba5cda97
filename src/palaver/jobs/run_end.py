"""Ends runs of jobs, in the transaction that ends their turn: state, result, output to all targets, alerts.

A run is done if the agent has answered. It has failed if it could not, if its answer is empty, if it was stopped or
took too long, or if the agent itself reported a failure. An answer of `[SILENT]` is kept in the run's conversation and
not sent.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.errors import InvalidInput, NotFound
from palaver.delivery.chat_posts import ChatPost, make_file_address, post_to_chat
from palaver.delivery.reachable_chats import Origin, resolve_chat
from palaver.jobs import alerts, runs_table as job_runs, table as jobs
from palaver.jobs.fields import is_own_conversation
from palaver.jobs.model import NO_ACCESS_REASON, SILENT_ANSWER, JobResult, JobRunState
from palaver.people.model import Role
from palaver.sessions.sent_message import SenderKind, SentBy
from palaver.sessions.speech import find_attachment_ids
from palaver.sessions.turn import InterruptReason, TurnState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.delivery.reachable_chats import ReachableChat
    from palaver.jobs.model import Job, JobRun
    from palaver.jobs.runs_table import RunRow
    from palaver.jobs.table import JobRow
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.message import Message


MAX_FOLDER_NAME_CHARS: Final = 40
EMPTY_ANSWER_REASON: Final = "The agent gave no answer."
UNKNOWN_REASON: Final = "The run did not complete."
NOT_STARTED_REASON: Final = "The run could not be started."
DELETED_REASON: Final = "Its conversation was deleted before the run had ended."
MAX_ORPHANS: Final = 20  # ended in one transaction


def deliver_output(
    tx: Transaction,
    config: GatewayConfig,
    job_row: JobRow,
    run_row: RunRow,
    text: str,
    attachment_ids: Sequence[str],
    turn_no: int | None,
    now: int,
) -> dict[str, str]:
    """Post the output to every target of the job; return why nothing could be sent, by target.

    Two targets that are the same place get one message. What the person may not send to any more gets none.
    """
    job, run = job_row.job, run_row.run
    sent_by = SentBy(kind=SenderKind.JOB, name=job.name, job_id=job.id, run_id=run.id, session_id=run.session_id)
    post = ChatPost(
        text=text,
        sent_by=sent_by,
        attachment_ids=attachment_ids,
        turn_no=turn_no,
        session_no=run_row.session_no,
        file_address=make_file_address(make_folder_name(job), format_slot(run)),
    )
    origin = Origin(job.origin, job_row.origin_session_no)
    errors: dict[str, str] = {}
    places: set[object] = set()
    for target in job.targets:
        if is_own_conversation(target, origin):
            continue
        try:
            chat = resolve_chat(tx, job_row.principal, target, config, now, origin=origin)
        except (InvalidInput, NotFound) as error:
            errors[target] = str(error)
            continue
        place = _identify_place(chat)
        if place not in places:
            places.add(place)
            post_to_chat(tx, config, chat, post, now)
    return errors


def _identify_place(chat: ReachableChat) -> tuple[str, object]:
    return chat.kind.value, chat.session_no if chat.address is None else str(chat.address)


def make_folder_name(job: Job) -> str:
    """Return the name of the folder with a job's files: its name made safe, and its id."""
    safe = re.sub(r"[^a-z0-9]+", "-", job.name.casefold()).strip("-")[:MAX_FOLDER_NAME_CHARS].strip("-")
    return f"{safe or 'job'}-{job.id}"


def format_slot(run: JobRun) -> str:
    """Return the name of a run's file: the time of its slot in UTC."""
    slot = run.slot
    text = slot.strftime("%Y-%m-%dT%H-%M-%S")
    return f"{text}.{slot.microsecond:06d}Z" if slot.microsecond else f"{text}Z"


# ---- ending runs ------------------------------------------------------------------------------------------------

# Causes that are a person's doing, who need not be told.
PERSONAL_CAUSES: Final = frozenset({InterruptReason.STOPPED.value, InterruptReason.NEW_MESSAGE.value})
# In other words than in a conversation: in a run, no person is there who could continue.
_INTERRUPT_REASONS: Final[Mapping[str, str]] = {
    InterruptReason.STOPPED: "It was stopped.",
    InterruptReason.SERVER_CRASHED: (
        "Palaver stopped while a tool was running, so we don't know if the tool finished. The run was not repeated."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    """How the turn of a run has ended."""

    run_id: str
    turn_no: int
    state: TurnState
    error: str | None  # for people to read
    facts: Mapping[str, object]  # `code` of a failure, `reason` of an interruption
    messages: Sequence[Message]  # that it has added to the conversation


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    cause: str


def finish_job_run(tx: Transaction, config: GatewayConfig, turn: EndedTurn, now: int) -> None:
    """End the run of a turn that has just ended. Nothing happens if the job was deleted or the run has ended."""
    run_row = job_runs.find_run(tx, turn.run_id)
    if run_row is None or run_row.run.state.has_ended or run_row.turn_no != turn.turn_no:
        return
    job_runs.lock_job(tx, run_row.job_no)
    job_row = jobs.find_by_no(tx, run_row.job_no)
    if job_row is None:
        return
    failure = _find_failure(turn, run_row)
    if job_row.person_role is Role.GUEST:  # what it found out is for people who have access
        failure = _Failure(NO_ACCESS_REASON, InterruptReason.STOPPED.value)
    if failure is None:
        _complete(tx, config, job_row, run_row, turn, now)
    else:
        _fail(tx, config, job_row, run_row, failure, now)


def fail_unstarted_run(tx: Transaction, config: GatewayConfig, run_id: str, now: int) -> None:
    """End a queued run that could not be started because of a mistake of ours."""
    run_row = job_runs.find_run(tx, run_id)
    if run_row is None or run_row.run.state is not JobRunState.QUEUED:
        return
    job_runs.lock_job(tx, run_row.job_no)
    job_row = jobs.find_by_no(tx, run_row.job_no)
    if job_row is not None:
        _fail(tx, config, job_row, run_row, _Failure(NOT_STARTED_REASON, "not_started"), now)


def end_orphaned_runs(tx: Transaction, config: GatewayConfig, now: int) -> int:
    """End the runs whose turn was taken out of the queue or deleted with its conversation; return how many."""
    ended = 0
    for orphan in job_runs.list_orphans(tx, MAX_ORPHANS):
        reason = DELETED_REASON if orphan.is_turn_gone else orphan.turn_error or UNKNOWN_REASON
        job_runs.lock_job(tx, orphan.row.job_no)
        job_row = jobs.find_by_no(tx, orphan.row.job_no)
        if job_row is not None:
            _fail(tx, config, job_row, orphan.row, _Failure(reason, InterruptReason.STOPPED.value), now)
            ended += 1
    return ended


def is_silent(text: str) -> bool:
    """Whether an answer says that there is nothing to send."""
    return text.strip().removesuffix(".").rstrip() == SILENT_ANSWER


def _find_failure(turn: EndedTurn, run_row: RunRow) -> _Failure | None:
    if turn.state is TurnState.INTERRUPTED:
        cause = str(turn.facts.get("reason") or "interrupted")
        return _Failure(_INTERRUPT_REASONS.get(cause) or turn.error or UNKNOWN_REASON, cause)
    if turn.state is not TurnState.DONE:
        reason = turn.error or UNKNOWN_REASON
        return _Failure(reason, str(turn.facts.get("code") or _make_digest(reason)))
    if run_row.reported_failure is not None:
        return _Failure(run_row.reported_failure, f"reported {_make_digest(run_row.reported_failure)}")
    if not _get_answer(turn) and not _list_attachments(turn):
        return _Failure(EMPTY_ANSWER_REASON, "empty_answer")
    return None


def _get_answer(turn: EndedTurn) -> str:
    """Return the text of the final answer; what the agent said before it used tools stays in the conversation."""
    last = turn.messages[-1] if turn.messages else None
    return last.text.strip() if last is not None and last.role == "assistant" else ""


def _list_attachments(turn: EndedTurn) -> list[str]:
    answers = (message for message in turn.messages if message.role == "assistant")
    return [attachment_id for message in answers for attachment_id in find_attachment_ids(message.content)]


def _complete(
    tx: Transaction, config: GatewayConfig, job_row: JobRow, run_row: RunRow, turn: EndedTurn, now: int
) -> None:
    text = _get_answer(turn)
    result = JobResult.SILENT if is_silent(text) else JobResult.ANSWER
    job_runs.end_run(tx, run_row.no, JobRunState.DONE, now, result=result)
    if result is JobResult.ANSWER:
        target_errors = deliver_output(tx, config, job_row, run_row, text, _list_attachments(turn), turn.turn_no, now)
        if target_errors:
            job_runs.set_target_errors(tx, run_row.no, target_errors)
            cause = f"targets {_make_digest(' '.join(sorted(target_errors)))}"
            alerts.handle_unreachable_targets(tx, config, job_row, run_row, target_errors, cause, now)
            return
    alerts.handle_success(tx, config, job_row, run_row, now)


def _fail(
    tx: Transaction, config: GatewayConfig, job_row: JobRow, run_row: RunRow, failure: _Failure, now: int
) -> None:
    job_runs.end_run(tx, run_row.no, JobRunState.FAILED, now, reason=failure.reason, cause=failure.cause)
    if failure.cause not in PERSONAL_CAUSES:
        alerts.handle_failure(tx, config, job_row, run_row, failure.reason, failure.cause, now)


def _make_digest(reason: str) -> str:
    """Return a code that is the same for equal reasons; numbers such as times and ids do not count."""
    return hashlib.sha256(re.sub(r"\d+", "0", reason).encode()).hexdigest()[:12]

"""Ends runs of jobs, in the transaction that ends their turn: state, result, output to all targets, alerts.

A run is done if the agent has answered. It has failed if it could not, if its answer is empty, if it was stopped or
took too long, or if the agent itself reported a failure. An answer of `[SILENT]` is kept in the run's conversation and
not sent.

People who get the answers are told of the first failure; of those after it only the job's person is told.

Also tells people of missed runs: one notice for all that Palaver missed while it did not run. Whether a person is to be
told is recorded with the run. The notice is queued later, in the transaction that takes the record back, so it is sent
once, whatever happens in between.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from palaver.commands.reply_text import escape_markdown
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, NotFound
from palaver.core.source import ChatType
from palaver.core.texts import chat_language, edit_text, join_texts, say, translate
from palaver.delivery.chat_posts import ChatPost, make_file_address, post_to_chat
from palaver.delivery.notices import notify_person, send_notice_to_address
from palaver.delivery.reachable_chats import ChatKind, ReachableChats
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.fields import get_origin, is_own_conversation
from palaver.jobs.model import (
    ALERT_AFTER_FAILURES,
    MAX_JOB_NAME_CHARS,
    NO_ACCESS_REASON,
    PAUSE_AFTER_FAILURES,
    SILENT_ANSWER,
    Job,
    JobResult,
    JobRun,
    JobRunKind,
    JobRunState,
    JobState,
)
from palaver.jobs.schedule import load_zone
from palaver.people.model import Role
from palaver.sessions.context import clean_chat_text
from palaver.sessions.gateway_config import MACHINE_PLATFORMS
from palaver.sessions.sent_message import SenderKind, SentBy
from palaver.sessions.speech import find_attachment_ids
from palaver.sessions.turn import InterruptReason, TurnState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.delivery.reachable_chats import ReachableChat
    from palaver.jobs.runs_table import RunRow
    from palaver.jobs.table import JobRow
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.message import Message


MAX_REASON_CHARS: Final = 300
NOTICE_WAIT: Final = timedelta(hours=6)  # if the next run is sooner, its person is not told of a missed one
MAX_RUNS_PER_NOTICE: Final = 500
MAX_LISTED_JOBS: Final = 10
MAX_FOLDER_NAME_CHARS: Final = 40
MAX_ORPHANS: Final = 20  # ended in one transaction
EMPTY_ANSWER_REASON: Final = say("run.no_answer", "The agent gave no answer.")
UNKNOWN_REASON: Final = say("run.incomplete", "The run did not complete.")
NOT_STARTED_REASON: Final = say("run.not_started", "The run could not be started.")
DELETED_REASON: Final = say("run.session_deleted", "Its conversation was deleted before the run had ended.")
# Causes that are a person's doing, who need not be told.
PERSONAL_CAUSES: Final = frozenset({InterruptReason.STOPPED.value, InterruptReason.NEW_MESSAGE.value})
# In other words than in a conversation: in a run, no person is there who could continue.
_INTERRUPT_REASONS: Final[Mapping[str, str]] = {
    InterruptReason.STOPPED: say("run.stopped", "It was stopped."),
    InterruptReason.SERVER_CRASHED: (
        say(
            "run.tool_interrupted",
            "Palaver stopped while a tool was running, so we don't know if the tool finished. The run was not"
            " repeated.",
        )
    ),
}


def notify(
    tx: Transaction,
    config: GatewayConfig,
    texts: Sequence[tuple[JobRow, str]],
    now: int,
    *,
    summary: str | None = None,
    session_no: int | None = None,
) -> None:
    """Send a notice about jobs to their person's own chat; only if they have none, to the groups where they were made.

    In a group it names no job that was made elsewhere: other people read it. In the person's own chat, `summary` stands
    for several texts.
    """
    first_row, first_text = texts[0]
    own_chat = next((row.job.origin for row, _ in texts if row.job.origin.chat_type is ChatType.DM), None)
    send = partial(notify_person, tx, config, first_row.job.person_id, now=now, session_no=session_no)
    if not send(summary or first_text, preferred=own_chat) and own_chat is None:
        for row, text in texts:
            send(text, preferred=row.job.origin)


def format_name(job: Job) -> str:
    """Write the name of a job as it can be sent to a chat."""
    return f'"{escape_markdown(clean_chat_text(job.name, MAX_JOB_NAME_CHARS), MAX_JOB_NAME_CHARS)}"'


def format_time(job: Job, moment: datetime) -> str:
    """Write a time by the wall clock of a job."""
    try:
        return f"{moment.astimezone(load_zone(job.timezone)):%Y-%m-%d %H:%M} ({job.timezone})"
    except InvalidInput:  # the zone is no longer known: a run must be able to end nevertheless
        return f"{moment:%Y-%m-%d %H:%M} (UTC)"


def starts_with_name(text: str, name: str) -> bool:
    """Whether an answer says itself which job it is from: its first line begins with the name, as a title does."""
    first_line = text.lstrip('*#_ \t\n"“„').casefold()[: len(name) + 1]
    return first_line.startswith(name.casefold()) and not first_line[len(name.casefold()) :].isalnum()


# ---- missed runs ------------------------------------------------------------------------------------------------


def should_tell(next_slot: datetime | None, now: datetime) -> bool:
    """Whether a person is told of a missed run: if the next one is far away, or there is none."""
    return next_slot is None or next_slot - now >= NOTICE_WAIT


def send_missed_notice(tx: Transaction, config: GatewayConfig, now: int) -> bool:
    """Tell one person of everything that their jobs missed; False if no person is left to tell."""
    run_rows = job_runs.list_untold(tx, MAX_RUNS_PER_NOTICE)
    if not run_rows:
        return False
    job_runs.set_untold(tx, [run_row.no for run_row in run_rows], is_untold=False)
    first_runs: dict[int, JobRun] = {}
    for run_row in run_rows:
        first_runs.setdefault(run_row.job_no, run_row.run)
    found = [(jobs.find_by_no(tx, job_no), run) for job_no, run in first_runs.items()]
    missed = [(row, run) for row, run in found if row is not None]
    if missed and missed[0][0].person_role is not Role.GUEST:
        texts = [(row, _format_missed(row.job, run)) for row, run in missed]
        notify(tx, config, texts, now, summary=_format_all_missed(missed) if len(missed) > 1 else None)
    return True


def _format_missed(job: Job, run: JobRun) -> str:
    return say(
        "job.missed",
        "The job {name} did not run at {time}. {reason} {next}",
        name=format_name(job),
        time=format_time(job, run.slot),
        reason=run.reason,
        next=_format_next(job),
    )


def _format_all_missed(missed: Sequence[tuple[JobRow, JobRun]]) -> str:
    lines = [
        say(
            "job.missed_one",
            "- {name} at {time}. {next}",
            name=format_name(row.job),
            time=format_time(row.job, run.slot),
            next=_format_next(row.job),
        )
        for row, run in missed[:MAX_LISTED_JOBS]
    ]
    left = len(missed) - MAX_LISTED_JOBS
    lines += [say("job.missed_more", "- and {more} more", more=left)] if left > 0 else []
    heading = say("job.missed_several", "{number} of your jobs did not run:", number=len(missed))
    reason = say(
        "job.missed_because",
        "Palaver was not running, or too many other runs were waiting. `/jobs` lists your jobs.",
    )
    return join_texts("\n\n", (heading, join_texts("\n", lines), reason))


def _format_next(job: Job) -> str:
    if job.next_slot is not None:
        return say("job.next_run", "Next run: {time}.", time=format_time(job, job.next_slot))
    if job.state == "paused":
        return say("job.is_paused", "It is paused.")
    return say("job.not_again", "It does not run again.")


# ---- ending runs ------------------------------------------------------------------------------------------------


def make_folder_name(job: Job) -> str:
    """Return the name of the folder with a job's files: its name made safe, and its id."""
    safe = re.sub(r"[^a-z0-9]+", "-", job.name.casefold()).strip("-")[:MAX_FOLDER_NAME_CHARS].strip("-")
    return f"{safe or 'job'}-{job.id}"


def make_file_name(run: JobRun) -> str:
    """Return the name of a run's file: the time of its slot in UTC."""
    slot = run.slot
    text = slot.strftime("%Y-%m-%dT%H-%M-%S")
    return f"{text}.{slot.microsecond:06d}Z" if slot.microsecond else f"{text}Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTurn:
    run_id: str
    turn_no: int
    state: TurnState
    error: str | None  # for people to read
    facts: Mapping[str, object]  # `code` of a failure, `reason` of an interruption
    messages: Sequence[Message]  # that it has added to the conversation


class Failure(NamedTuple):
    reason: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """Ends one run of a job that is locked."""

    tx: Transaction
    config: GatewayConfig
    job_row: JobRow
    run_row: RunRow
    now: int

    def complete(self, turn: EndedTurn) -> None:
        text = _get_answer(turn)
        result = JobResult.SILENT if is_silent(text) else JobResult.ANSWER
        job_runs.end_run(self.tx, self.run_row.no, JobRunState.DONE, self.now, result=result)
        attachment_ids, is_answer = _list_attachments(turn), result is JobResult.ANSWER
        target_errors = self.deliver_output(text, attachment_ids, turn.turn_no) if is_answer else {}
        if target_errors:
            self._handle_unreachable_targets(target_errors)
        else:
            self._forget_failures()

    def fail(self, failure: Failure) -> None:
        job_runs.end_run(
            self.tx, self.run_row.no, JobRunState.FAILED, self.now, reason=failure.reason, cause=failure.cause
        )
        if failure.cause not in PERSONAL_CAUSES:
            self._count_failure(failure)

    def _count_failure(self, failure: Failure) -> None:
        """Count a failed run; tell the person if they should know, and pause a job that keeps failing."""
        job, alerted_cause = self.job_row.job, self.job_row.alerted_cause
        name, what = format_name(job), escape_markdown(failure.reason, MAX_REASON_CHARS)
        if self.run_row.run.kind is JobRunKind.MANUAL:  # a person waits for it; it says nothing about the schedule
            self._notify(
                say("job.manual_failed", "The job {name} that you started has failed: {reason}", name=name, reason=what)
            )
            return
        count = job.failure_count + 1
        is_last = job.state is JobState.ENDED
        should_tell = failure.cause != alerted_cause and (count >= ALERT_AFTER_FAILURES or is_last)
        if count >= PAUSE_AFTER_FAILURES and job.state is JobState.ACTIVE:
            should_tell = True
            pause_reason = say(
                "job.failed_in_row",
                "It failed {times} times in a row. The last time: {reason}",
                times=count,
                reason=edit_text(failure.reason, lambda text: text[:MAX_REASON_CHARS]),
            )
            jobs.set_state(self.tx, self.job_row.no, JobState.PAUSED, pause_reason, None, self.now)
            text = say(
                "job.paused_after_failures",
                "The job {name} failed {times} times in a row, so I paused it. The last time: {reason}\n\nResume it"
                " with `/jobs resume {id}`.",
                name=name,
                times=count,
                reason=what,
                id=job.id,
            )
        elif is_last:
            text = say(
                "job.last_failed", "The job {name} has failed, and does not run again: {reason}", name=name, reason=what
            )
        else:
            text = say(
                "job.failed",
                "The job {name} failed {times} times in a row: {reason}",
                name=name,
                times=count,
                reason=what,
            )
            if job.next_slot is not None:
                text += "\n\n" + _format_next(job)
        if count == 1 and not should_tell:
            text = say(
                "job.first_failed",
                "The job {name} has failed: {reason} {next}",
                name=name,
                reason=what,
                next=_format_next(job),
            )
        is_told = count == 1 and self._tell_first_failure(text)
        if should_tell and not is_told:
            self._notify(text)
        jobs.set_failures(self.tx, self.job_row.no, count, failure.cause if should_tell else alerted_cause)

    def _forget_failures(self) -> None:
        """Forget earlier failures; tell the person if they were told of one."""
        if self.job_row.alerted_cause is not None:
            self._notify(say("job.works_again", "The job {name} works again.", name=format_name(self.job_row.job)))
        if self.job_row.alerted_cause is not None or self.job_row.job.failure_count:
            jobs.set_failures(self.tx, self.job_row.no, 0, None)

    def deliver_output(self, text: str, attachment_ids: Sequence[str], turn_no: int | None) -> dict[str, str]:
        """Post the output to every target of the job; return why nothing could be sent, by target.

        Two targets that are the same place get one message. What the person may not send to any more gets none.
        """
        chats, errors = self._find_chats(self._make_reachable())
        job = self.job_row.job
        post = self._make_post(text, attachment_ids, turn_no)
        if not starts_with_name(text, job.name):
            post = replace(post, heading=say("job.heading", "**Job {name}**", name=format_name(job)))
        for chat in chats:
            post_to_chat(self.tx, self.config, chat, post, self.now)
        return errors

    def _make_post(self, text: str, attachment_ids: Sequence[str] = (), turn_no: int | None = None) -> ChatPost:
        job, run = self.job_row.job, self.run_row.run
        return ChatPost(
            text=text,
            sent_by=SentBy(kind=SenderKind.JOB, name=job.name, job_id=job.id, run_id=run.id, session_id=run.session_id),
            attachment_ids=attachment_ids,
            turn_no=turn_no,
            session_no=self.run_row.session_no,
            file_address=make_file_address(make_folder_name(job), make_file_name(run)),
        )

    def _make_reachable(self) -> ReachableChats:
        origin = get_origin(self.job_row)
        return ReachableChats(self.tx, self.job_row.principal, self.config, self.now, origin=origin)

    def _find_chats(self, reachable: ReachableChats) -> tuple[list[ReachableChat], dict[str, str]]:
        """Return the places that the targets of the job lead to, each once, and why a target leads nowhere."""
        origin = get_origin(self.job_row)
        chats: dict[object, ReachableChat] = {}
        errors: dict[str, str] = {}
        for target in self.job_row.job.targets:
            if is_own_conversation(target, origin):
                continue
            try:
                chat = reachable.resolve(target)
            except (InvalidInput, NotFound) as error:
                errors[target] = error.text
                continue
            place = chat.kind, chat.session_no if chat.address is None else str(chat.address)
            chats.setdefault(place, chat)
        return [*chats.values()], errors

    def _tell_first_failure(self, text: str) -> bool:
        """Tell the readers of the answers of a failure; return whether the job's person reads it in a chat.

        Others who read along are not told the reason: it may be about the person's budget, for example.
        """
        job, is_person_told, reachable = self.job_row.job, False, self._make_reachable()
        for chat in self._find_chats(reachable)[0]:
            if chat.kind is ChatKind.LOCAL or (chat.source and chat.source.platform in MACHINE_PLATFORMS):
                continue
            if not reachable.is_read_by_others(chat):
                shown = text
                is_person_told = is_person_told or chat.address is not None
            else:
                name, following = format_name(job), _format_next(job)
                shown = say("job.no_answer", "The job {name} has failed this time. {next}", name=name, next=following)
            if chat.address is not None:
                send_notice_to_address(self.tx, str(chat.address), shown, self.now, session_no=self.run_row.session_no)
            else:
                post = self._make_post(translate(shown, chat_language.name))
                post_to_chat(self.tx, self.config, chat, post, self.now)
        return is_person_told

    def _handle_unreachable_targets(self, target_errors: Mapping[str, str]) -> None:
        """Tell the person once that the answers of a job cannot be sent to some of its targets."""
        job_runs.set_target_errors(self.tx, self.run_row.no, target_errors)
        cause = f"targets {_make_digest(' '.join(sorted(target_errors)))}"
        if cause != self.job_row.alerted_cause:
            errors = ("- " + escape_markdown(error, MAX_REASON_CHARS) for error in target_errors.values())
            text = say(
                "job.not_sent",
                "The job {name} has run, but its answer could not be sent everywhere:\n\n{list}",
                name=format_name(self.job_row.job),
                list=join_texts("\n", errors),
            )
            self._notify(text)
        jobs.set_failures(self.tx, self.job_row.no, 0, cause)

    def _notify(self, text: str) -> None:
        notify(self.tx, self.config, [(self.job_row, text)], self.now, session_no=self.run_row.session_no)


def _lock_run(tx: Transaction, config: GatewayConfig, run_row: RunRow, now: int) -> RunEnd | None:
    """Lock the job of a run; None if it was deleted."""
    job_row = jobs.lock(tx, run_row.job_no)
    return None if job_row is None else RunEnd(tx=tx, config=config, job_row=job_row, run_row=run_row, now=now)


def finish_job_run(tx: Transaction, config: GatewayConfig, turn: EndedTurn, now: int) -> None:
    """End the run of a turn that has just ended. Nothing happens if the job was deleted or the run has ended."""
    run_row = job_runs.find_run(tx, turn.run_id)
    if run_row is None or run_row.run.state.has_ended or run_row.turn_no != turn.turn_no:
        return
    end = _lock_run(tx, config, run_row, now)
    if end is None:
        return
    failure = _find_failure(turn, run_row)
    if end.job_row.person_role is Role.GUEST:  # what it found out is for people who have access
        failure = Failure(NO_ACCESS_REASON, InterruptReason.STOPPED.value)
    if failure is None:
        end.complete(turn)
    else:
        end.fail(failure)


def fail_unstarted_run(tx: Transaction, config: GatewayConfig, run_id: str, now: int) -> None:
    """End a queued run that could not be started because of a mistake of ours."""
    run_row = job_runs.find_run(tx, run_id)
    if run_row is None or run_row.run.state is not JobRunState.QUEUED:
        return
    end = _lock_run(tx, config, run_row, now)
    if end is not None:
        end.fail(Failure(NOT_STARTED_REASON, "not_started"))


def end_orphaned_runs(tx: Transaction, config: GatewayConfig, now: int) -> int:
    """End the runs whose turn was taken out of the queue or deleted with its conversation; return how many."""
    ended = 0
    for run_row, turn_error, is_turn_gone in job_runs.list_orphans(tx, MAX_ORPHANS):
        reason = DELETED_REASON if is_turn_gone else turn_error or UNKNOWN_REASON
        end = _lock_run(tx, config, run_row, now)
        if end is not None:
            end.fail(Failure(reason, InterruptReason.STOPPED.value))
            ended += 1
    return ended


def is_silent(text: str) -> bool:
    """Whether an answer says that there is nothing to send."""
    return text.strip().removesuffix(".").rstrip() == SILENT_ANSWER


def _find_failure(turn: EndedTurn, run_row: RunRow) -> Failure | None:
    if turn.state is TurnState.INTERRUPTED:
        cause = str(turn.facts.get("reason") or "interrupted")
        return Failure(_INTERRUPT_REASONS.get(cause) or turn.error or UNKNOWN_REASON, cause)
    if turn.state is not TurnState.DONE:
        reason = turn.error or UNKNOWN_REASON
        return Failure(reason, str(turn.facts.get("code") or _make_digest(reason)))
    if run_row.reported_failure is not None:
        return Failure(run_row.reported_failure, f"reported {_make_digest(run_row.reported_failure)}")
    if not _get_answer(turn) and not _list_attachments(turn):
        return Failure(EMPTY_ANSWER_REASON, "empty_answer")
    return None


def _get_answer(turn: EndedTurn) -> str:
    """Return the text of the final answer; what the agent said before it used tools stays in the conversation."""
    last = turn.messages[-1] if turn.messages else None
    return last.text.strip() if last is not None and last.role == "assistant" else ""


def _list_attachments(turn: EndedTurn) -> list[str]:
    answers = (message for message in turn.messages if message.role == "assistant")
    return [attachment_id for message in answers for attachment_id in find_attachment_ids(message.content)]


def _make_digest(reason: str) -> str:
    """Return a code that is the same for equal reasons; numbers such as times and ids do not count."""
    return hashlib.sha256(re.sub(r"\d+", "0", reason).encode()).hexdigest()[:12]

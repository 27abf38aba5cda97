"""The run of a job that a turn works on: who it acts for, and what the agent is told.

Always true: equal runs give equal bytes, so the text is the same during a run. Names are inside double quotes that
they cannot break out of, and ids of chats are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, NothingToDo
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.model import SILENT_ANSWER, Job, JobRun, JobRunKind
from palaver.sessions.context import quote_chat_text
from palaver.sessions.targets import parse_target
from palaver.sessions.turn import JOB_RUN_KEY

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.jobs.table import JobRow
    from palaver.people.model import Principal
    from palaver.sessions.turn_leases import TurnLease


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRun:
    """A run of a job, and the job as it is now."""

    job_row: JobRow
    run: JobRun

    @property
    def principal(self) -> Principal:
        return self.job_row.principal


def is_job_run(lease: TurnLease) -> bool:
    return JOB_RUN_KEY in lease.facts


def load_active_run(tx: Transaction, lease: TurnLease) -> ActiveRun | None:
    """Load the run that a turn belongs to; None if it belongs to none.

    Raises NothingToDo if the job was deleted: its run must not go on with the rights of its person.
    """
    if not is_job_run(lease):
        return None
    run_row = job_runs.find_run(tx, str(lease.facts[JOB_RUN_KEY]))
    job_row = None if run_row is None else jobs.find_by_no(tx, run_row.job_no)
    if run_row is None or job_row is None:
        raise NothingToDo.say("run.job_deleted", "The job was deleted.")
    return ActiveRun(job_row=job_row, run=run_row.run)


def build_job_run_prompt(job: Job, person_name: str, run: JobRun) -> str:
    person = _quote_name(person_name) or "its person"
    time = f"{run.slot.astimezone(ZoneInfo(job.timezone)):%A, %Y-%m-%d %H:%M} ({job.timezone})"
    when = f"scheduled for {time}" if run.kind is JobRunKind.SCHEDULED else f"started by hand at {time}"
    outputs = [f"- {_describe_target(target, job.origin)}" for target in job.targets]
    lines = [
        "# This is an unattended run of a job",
        "",
        f"- Job: {quote_chat_text(job.name)}, on behalf of {person}, {when}.",
        "- The user message is the job's task. No person is here: don't ask questions, and don't wait for an answer or"
        " an approval. Tools that you don't have were not granted to this job.",
        "- Your last answer is the output of this run. Write it so that it is understood on its own.",
        f"- If there is nothing to report, answer exactly {SILENT_ANSWER}: then nothing is sent.",
        "- If you can't do the task, call `report_failure` with the reason instead of answering as if it was done.",
        "",
        *(["The output is sent to:", *outputs] if outputs else ["The output is kept in this conversation only."]),
    ]
    return "\n".join(lines) + "\n"


def _describe_target(text: str, origin: SessionSource) -> str:
    try:
        target = parse_target(text)
    except InvalidInput:  # the grammar has changed since the job was made
        return "a place that no longer exists"
    if target.kind == "origin":
        name = _quote_name(origin.chat_name or "")
        return f"the conversation where the job was made: {origin.platform.label}{f' {name}' if name else ''}"
    if target.kind == "local":
        return "a file on the machine that runs Palaver"
    if target.kind == "home":
        return f"the home channel of {target.platform.label}"
    return f"a chat on {target.platform.label}"


def _quote_name(name: str) -> str:
    """Quote a name; empty for one without letters, which may be a phone number that the agent must not see."""
    return quote_chat_text(name) if any(map(str.isalpha, name)) else ""

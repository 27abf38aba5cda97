"""Asking a person to confirm a job that the agent has proposed, and recording what they decide.

The question is an event in the log of the conversation, where the page and the terminal show it, and in a chat a notice
with buttons. Both are stored together with the proposal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.commands.reply_text import escape_markdown, format_code, quote_command
from palaver.core.texts import Text, change_text, join_texts, say
from palaver.delivery import table as deliveries
from palaver.jobs import table as jobs
from palaver.jobs.descriptions import MONTHS, NO_RUN, NONE, WEEKDAYS
from palaver.jobs.model import MAX_JOB_NAME_CHARS, JobFields, JobProposal, format_cost_per_day, list_labeled_fields
from palaver.sessions import log_table as events
from palaver.sessions.context import clean_chat_text
from palaver.sessions.delivery import Button, DeliveryKind
from palaver.sessions.events import EventKind

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.jobs.table import JobRow
    from palaver.sessions.turn_leases import TurnLease


MAX_SHOWN_PROMPT_CHARS = 1500  # in a chat
MAX_PLACE_CHARS = 100
_NO_CHAT = say("proposal.no_chat", "no chat")


def ask_person(tx: Transaction, job_no: int, proposal: JobProposal, lease: TurnLease, now: int) -> None:
    """Ask the person of a turn to confirm what the agent has proposed in it; the same twice in a turn is asked once."""
    if not proposal.is_new and jobs.was_proposed_in_turn(tx, job_no, lease):
        return
    jobs.mark_proposed(tx, job_no, lease.session_no, now)
    facts = {**proposal.build_facts(), "input_seq": lease.input_seq}
    events.append_event(tx, lease.session_no, EventKind.JOB_PROPOSED, now, lease.person_id, **facts)
    if lease.address is None:
        return
    subject = f"{proposal.job_id}:{now}"  # the button of an old question must not confirm what was proposed later
    buttons = (
        Button(say("button.confirm", "Confirm"), f"confirm:{subject}"),
        Button(say("button.reject", "Reject"), f"reject:{subject}"),
    )
    deliveries.enqueue(
        tx,
        lease.address,
        format_question(proposal),
        now,
        kind=DeliveryKind.NOTICE,
        session_no=lease.session_no,
        reply_to=lease.reply_to,
        buttons=buttons,
    )


def record_decision(tx: Transaction, job_row: JobRow, person_id: PersonId, now: int, *, is_confirmed: bool) -> None:
    """Record what a person has decided about a job or a change of it, in the conversation where they were asked.

    Call it before a rejected job is deleted.
    """
    session_no = jobs.find_session_no(tx, job_row.no)
    jobs.mark_decided(tx, job_row.no)
    if session_no is None:
        return
    kind = EventKind.JOB_CONFIRMED if is_confirmed else EventKind.JOB_REJECTED
    events.append_event(tx, session_no, kind, now, person_id, job_id=job_row.job.id, name=job_row.job.name)


def format_question(proposal: JobProposal) -> str:
    job, preview = proposal.fields, proposal.preview
    name = escape_markdown(clean_chat_text(job.name), MAX_JOB_NAME_CHARS)
    confirm, reject = (quote_command(f"jobs {verb} {clean_chat_text(job.name)}") for verb in ("confirm", "reject"))
    times = [format_next_time(slot) for slot in preview.next_slots]
    repeat = "" if job.runs_left is None else f", {job.runs_left}×"
    prompt = escape_markdown(job.prompt, MAX_SHOWN_PROMPT_CHARS) + _describe_rest(job)
    question = say("proposal.create", "**Create the job “{name}”?**", name=name)
    until = say("proposal.not_running", "It does not run until you confirm: {command}.", command=confirm)
    if proposal.is_change:
        question = say("proposal.change", "**Change the job “{name}”?**", name=name)
        until = say("proposal.stays", "The job stays as it is until you confirm: {command}.", command=confirm)
    lines = [
        question,
        say("proposal.runs", "- Runs {schedule}", schedule=escape_markdown(preview.words, 300) + repeat),
        say("proposal.next", "- Next: {times}", times=join_texts(", ", times) or NO_RUN),
        say("proposal.targets", "- Sends to: {places}", places=join_texts(", ", _list_places(proposal)) or _NO_CHAT),
        say("proposal.tools", "- Tools: {names}", names=", ".join(map(format_code, job.toolsets)) or NONE),
        *("- " + label + ": " + escape_markdown(value, MAX_PLACE_CHARS) for label, value in list_labeled_fields(job)),
        say("proposal.cost", "- Estimated cost: {cost}", cost=format_cost_per_day(preview.cost_per_day)),
        say("proposal.prompt", "- Task: {prompt}", prompt=prompt),
        "",
        until + say("proposal.drop", " To drop it: {command}.", command=reject),
    ]
    return join_texts("\n", lines)


def format_next_time(slot: datetime) -> Text:
    """`Tue Nov 17, 07:00`."""
    return say(
        "proposal.time",
        "{weekday} {month} {day}, {time}",
        weekday=WEEKDAYS[slot.weekday()],
        month=MONTHS[slot.month - 1],
        day=slot.day,
        time=f"{slot:%H:%M}",
    )


def _list_places(proposal: JobProposal) -> list[str]:
    """Name the places that the job sends to, so that people recognize them."""
    return [
        say("proposal.this_chat", "this chat")
        if target.name == "origin" and not proposal.is_change
        else escape_markdown(change_text(target.words, clean_chat_text), MAX_PLACE_CHARS)
        + f" ({format_code(target.name)})"
        for target in proposal.preview.targets
    ]


def _describe_rest(job: JobFields) -> str:
    """Say how to read a task that is too long for the question."""
    if len(job.prompt) <= MAX_SHOWN_PROMPT_CHARS:
        return ""
    command = quote_command(f"jobs show {clean_chat_text(job.name)}")
    return say("proposal.rest", " ({length} characters in all: {command})", length=len(job.prompt), command=command)

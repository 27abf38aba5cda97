"""Sends the output of a run to every target of its job, inside the transaction that ends the run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from palaver.core.errors import InvalidInput, NotFound
from palaver.delivery.chat_posts import ChatPost, make_file_address, post_to_chat
from palaver.delivery.reachable_chats import Origin, resolve_chat
from palaver.jobs.targets import is_own_conversation
from palaver.sessions.sent_message import SenderKind, SentBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.delivery.reachable_chats import ReachableChat
    from palaver.jobs.model import Job, JobRun
    from palaver.jobs.runs_table import RunRow
    from palaver.jobs.table import JobRow
    from palaver.sessions.gateway_config import GatewayConfig

MAX_FOLDER_NAME_CHARS: Final = 40


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

"""Who may have and change jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput, NotAllowed, NotFound, OwnerRequired
from palaver.delivery.reachable_chats import Origin
from palaver.jobs.model import JobState
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import table as sessions

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.core.source import SessionSource
    from palaver.jobs.model import Job
    from palaver.jobs.table import JobRow
    from palaver.people.model import Person, Principal


def check_can_manage_all(principal: Principal) -> None:
    """Raise OwnerRequired unless this principal may see and manage the jobs of all people."""
    if principal.role is not Role.OWNER or principal.job_id is not None:
        raise OwnerRequired("Only an owner can view and manage the jobs of other people.")


def check_not_job(principal: Principal) -> None:
    if principal.job_id is not None:
        raise NotAllowed("A job can't make or change jobs.")


def check_role(role: Role) -> None:
    if role is Role.GUEST:
        raise NotAllowed("Guests can't have jobs. Ask an owner to make you a member.")


def get_person(tx: Transaction, person_id: PersonId) -> Person:
    row = people.find_by_id(tx, person_id)
    if row is None:
        raise NotFound("This account is closed.")
    return row.person


def get_job_person(tx: Transaction, principal: Principal) -> Person:
    """Return the person for whom a job is made."""
    check_not_job(principal)
    person = get_person(tx, principal.person_id)
    check_role(person.role)
    return person


def make_origin(tx: Transaction, person: Person, source: SessionSource, session_id: str | None) -> Origin:
    session_no = None if session_id is None else sessions.get_visible(tx, session_id, person.id).no
    return Origin(source, session_no)


def get_origin(job_row: JobRow) -> Origin:
    return Origin(job_row.job.origin, job_row.origin_session_no)


def has_proposal(job: Job) -> bool:
    """Whether the job, or a change of it, waits for the confirmation of its person."""
    return job.state is JobState.PROPOSED or job.proposed_change is not None


def check_confirmed(job: Job) -> None:
    if job.state is JobState.PROPOSED:
        raise InvalidInput(
            f"The job {job.name!r} waits for your confirmation. Confirm or reject it first.", job=job.name
        )

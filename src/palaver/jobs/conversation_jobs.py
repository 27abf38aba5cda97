"""The jobs that the agent may list, propose, change and pause for a person in one conversation.

Where other people read the answers, only the jobs that were made in that chat exist.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.agent.toolsets import is_personal_lane_in_group
from palaver.core.clock import Clock, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Engine, Read, Transaction, Write
from palaver.core.errors import NotAllowed, NotFound
from palaver.core.operation import TransactionRunner
from palaver.core.source import PLATFORMS_WITHOUT_CHATS, SessionSource
from palaver.jobs import table as jobs
from palaver.jobs.fields import JobEnvironment, list_grantable_toolsets
from palaver.jobs.proposals import ask_person
from palaver.jobs.service import Jobs
from palaver.people import table as people
from palaver.sessions import lanes_table as lanes, turn_leases
from palaver.sessions.conversations import build_person_source
from palaver.sessions.delivery import Address
from palaver.sessions.target_resolution import hide_chat_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.jobs.model import JobDetails, JobDraft, JobProposal, JobSummary
    from palaver.people.model import Principal
    from palaver.sessions.table import SessionRow
    from palaver.sessions.turn_leases import TurnLease


@dataclass(frozen=True, slots=True)
class ConversationJobs:
    """The jobs of a principal, as far as one conversation may know them."""

    engine: Engine
    clock: Clock
    environment: JobEnvironment
    principal: Principal
    session_row: SessionRow
    lease: TurnLease | None = None  # None: jobs can only be listed

    @property
    def grantable_toolsets(self) -> Sequence[str]:
        return list_grantable_toolsets(self.environment, self.principal.role)

    async def list_jobs(self) -> Sequence[JobSummary]:
        return await self.engine.arun(Read(lambda tx: self._get_jobs(tx).list(self.principal)))

    async def pause(self, job: str) -> JobDetails:
        def run(tx: Transaction) -> JobDetails:
            self._check_lease(tx)
            return self._get_jobs(tx).pause(self.principal, job)

        return await self.engine.arun(Write(run))

    async def propose(self, draft: JobDraft) -> JobProposal:
        """Store a new job that waits for the person, and ask them."""
        await self.environment.prices.load([self.environment.agent.model])

        session_id = self.session_row.session.id
        return await self._propose(
            lambda tx, jobs: jobs.propose(self.principal, draft, self._find_source(tx), session_id=session_id)
        )

    async def propose_change(self, job: str, draft: JobDraft) -> JobProposal:
        """Store a change of a job that waits for the person, and ask them."""
        details = await self.engine.arun(Read(lambda tx: self._get_jobs(tx).get(self.principal, job)))
        await self.environment.prices.load([details.preview.used_model])

        return await self._propose(lambda _tx, jobs: jobs.propose_change(self.principal, job, draft))

    async def _propose(self, propose: Callable[[Transaction, Jobs[TransactionRunner]], JobProposal]) -> JobProposal:
        def run(tx: Transaction) -> JobProposal:
            lease = self._check_lease(tx)
            proposal = propose(tx, self._get_jobs(tx))
            job_row = jobs.get_any(tx, proposal.job_id)
            ask_person(tx, job_row.no, proposal, lease, to_micros(self.clock.now()))
            return proposal

        proposal = await self.engine.arun(Write(run))
        targets = tuple(hide_chat_id(target, self.environment.redactor) for target in proposal.fields.targets)
        preview = replace(proposal.preview, fields=replace(proposal.fields, targets=targets))
        return replace(proposal, preview=preview)

    def _check_lease(self, tx: Transaction) -> TurnLease:
        if self.lease is None:
            raise NotAllowed("Jobs can only be changed during an answer.")
        turn_leases.check_lease(tx, self.lease)
        return self.lease

    def _get_jobs(self, tx: Transaction) -> Jobs[TransactionRunner]:
        session = self.session_row.session
        is_read_by_others = session.shared or is_personal_lane_in_group(session)
        only_chat = self._find_source(tx) if is_read_by_others else None
        return Jobs(TransactionRunner(tx), self.environment, self.clock, only_chat=only_chat)

    def _find_source(self, tx: Transaction) -> SessionSource:
        """Return where the message that is answered came from: the place that a job calls its origin."""
        session, address = self.session_row.session, self.lease.address if self.lease else None
        if address is not None:
            sources = (source for _, source in lanes.list_on_session(tx, self.session_row.no))
            return next((each for each in sources if str(Address.from_source(each)) == address), session.origin)
        if self.lease is None or session.origin.platform in PLATFORMS_WITHOUT_CHATS:
            return session.origin
        person_row = people.find_by_id(tx, self.principal.person_id)
        if person_row is None:
            raise NotFound("This account is closed.")
        return replace(build_person_source(person_row.person), chat_id=session.id)  # asked on the page

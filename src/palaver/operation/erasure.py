"""Erases people: everything that a person wrote, uploaded, set up or is named by, in small steps.

The first transaction takes all access away and stores an erasure. The rest is done in bounded transactions, between
which other people's messages are stored. A process that dies leaves the erasure where it was: erasing the person again
goes on, and so does the cleanup of every server.

Always true: only an owner erases people; the person at the terminal, and the last owner, are never erased; after the
first transaction, a late write in the person's name finds nothing to write to. When the erasure has ended, no row and
no file has anything that the person wrote or is known by, and the totals of the usage are what they were.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import NotAllowed, NotFound
from palaver.core.ids import PersonId
from palaver.core.source import Platform
from palaver.core.text import is_storable
from palaver.operation import person_erasure, shared_erasure
from palaver.people import erasures_table as erasures, table as people
from palaver.people.erasures_table import ErasedPerson, ErasureReport, ErasureRow
from palaver.people.model import Person, Principal, Role, check_is_owner
from palaver.people.person_data import ErasureStep
from palaver.transfer.uploads import UPLOADS_FOLDER, ImportUploads

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore

BATCH_PAUSE_SECONDS: Final = 0.002  # after each transaction, so that those of others come in between

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """A person who would be erased, with counts of what would be deleted."""

    person_id: PersonId
    name: str
    report: ErasureReport


class Erasures:
    def __init__(self, store: SessionStore, attachments: Attachments, outputs: Path | None = None) -> None:
        self._store = store
        self._engine = store.engine
        self._attachments = attachments
        self._outputs = outputs

    async def preview(self, principal: Principal, person_id: str) -> ErasurePreview:
        check_is_owner(principal)

        def describe(tx: Transaction) -> tuple[Person, ErasedPerson, ErasureReport]:
            person = _get_erasable(tx, person_id)
            erased = person_erasure.describe_person(tx, person.id)
            return person, erased, person_erasure.count_own(tx, erased)

        person, erased, report = await self._engine.arun(Read(describe))
        shared_sessions: set[int] = set()
        position: int | None = 0
        while position is not None:
            start = position
            count, found, position = await self._engine.arun(
                Read(lambda tx, start=start: shared_erasure.count_shared_messages(tx, erased, start))  # type: ignore[misc]
            )
            shared_sessions |= found
            report = report.add(shared_messages=count)
        return ErasurePreview(person.id, person.name, report.add(shared_conversations=len(shared_sessions)))

    async def erase(self, principal: Principal, person_id: str) -> ErasureReport:
        """Erase a person, or go on with it; returns the report when everything is gone."""
        check_is_owner(principal)
        now = to_micros(self._store.clock.now())

        def begin(tx: Transaction) -> str:
            begun = erasures.find_of_person(tx, person_id) if is_storable(person_id) else None
            if begun is None:
                person = _get_erasable(tx, person_id)
                begun = erasures.find_of_person(tx, person.id)
            if begun is not None:
                return begun.id
            erased = person_erasure.describe_person(tx, person.id)
            return erasures.add(tx, erased, person_erasure.begin(tx, erased, now), now).id

        erasure_id = await self._engine.arun(Write(begin, frees_space=True))
        crash_point("erase.started")
        log.info("erasure_started", extra={"erasure": erasure_id})
        return await self._finish(erasure_id)

    async def finish_all(self) -> int:
        """Go on with the erasures that have not ended; return how many there were."""
        open_ids = await self._engine.arun(Read(erasures.list_open))
        for erasure_id in open_ids:
            await self._finish(erasure_id)
        return len(open_ids)

    async def find_begun(self, principal: Principal, name: str) -> PersonId | None:
        """Return the person of this name or id whose erasure has begun and not ended: lists no longer have them."""
        check_is_owner(principal)

        def find(tx: Transaction) -> PersonId | None:
            for erasure_id in erasures.list_open(tx):
                row = erasures.find_open(tx, erasure_id)
                if row is not None and name.casefold() in {text.casefold() for text in row.person.names}:
                    return PersonId(row.person.person_ids[0])
            is_person = is_storable(name) and people.find_by_id(tx, PersonId(name)) is not None
            return PersonId(name) if is_person else None

        return await self._engine.arun(Read(find))

    async def _finish(self, erasure_id: str) -> ErasureReport:
        while (row := await self._engine.arun(Read(lambda tx: erasures.find_open(tx, erasure_id)))) is not None:
            if row.person.pending_hashes:
                await self._delete_bytes(row)
            if row.step is ErasureStep.PERSON:
                await asyncio.to_thread(self._delete_outputs, row.person)
            await self._advance(row)
            await asyncio.sleep(BATCH_PAUSE_SECONDS)
        report = await self._engine.arun(Read(lambda tx: erasures.load_report(tx, erasure_id)))
        log.info("erasure_ended", extra={"erasure": erasure_id, **(report or ErasureReport()).to_dict()})
        return report or ErasureReport()

    async def _advance(self, seen: ErasureRow) -> None:
        """Do one batch, unless another process has done it meanwhile."""
        found: tuple[list[int], int | None] = [], None
        if seen.step is ErasureStep.SHARED and seen.session_no is None:  # a long read, in which no writer waits
            found = await self._engine.arun(
                Read(lambda tx: shared_erasure.find_sessions(tx, seen.person, seen.position))
            )
        now = to_micros(self._store.clock.now())

        def run(tx: Transaction) -> None:
            row = erasures.lock_open(tx, seen.id)
            if row is not None and replace(row, report=seen.report) == seen:
                _do_batch(tx, row, found, now)

        crash_point("erase.before_batch")
        await self._engine.arun(Write(run, frees_space=True))
        crash_point("erase.batch_stored")

    async def _delete_bytes(self, row: ErasureRow) -> None:
        """Delete the bytes of files whose rows are gone, then forget their hashes."""
        crash_point("erase.before_file_deletion")
        hashes = row.person.pending_hashes
        await asyncio.to_thread(self._attachments.delete_unused_hashes, hashes)

        def forget(tx: Transaction) -> None:
            current = erasures.lock_open(tx, row.id)
            if current is not None:
                left = tuple(each for each in current.person.pending_hashes if each not in hashes)
                erasures.save(tx, replace(current, person=replace(current.person, pending_hashes=left)))

        await self._engine.arun(Write(forget, frees_space=True))

    def _delete_outputs(self, person: ErasedPerson) -> None:
        """Delete the files that the person has uploaded to import them, and the saved output of their jobs."""
        if self._outputs is None:
            return
        ImportUploads(self._outputs.parent / UPLOADS_FOLDER, self._store.clock).delete_for(person.person_ids)
        if not self._outputs.is_dir():
            return
        for job_id in person.folders:
            for folder in self._outputs.glob(f"*-{job_id}"):
                shutil.rmtree(folder, ignore_errors=True)


def _do_batch(tx: Transaction, row: ErasureRow, found: tuple[list[int], int | None], now: int) -> None:
    if row.step is ErasureStep.PERSON:
        if person_erasure.delete_person(tx, row.person):
            erasures.end(tx, row, now)
    elif row.step is ErasureStep.SHARED:
        erasures.save(tx, _erase_shared(tx, row, found, now))
    else:
        erasures.save(tx, person_erasure.STEPS[row.step](tx, row))


def _erase_shared(tx: Transaction, row: ErasureRow, found: tuple[list[int], int | None], now: int) -> ErasureRow:
    """Work on one conversation of others, or go on to the next in which the person was found, or to the next logs."""
    if row.session_no is not None:
        return shared_erasure.erase_batch(tx, row, now)
    session_nos, position = found
    if session_nos:  # the logs are read again from the same position, until nothing is found there
        return shared_erasure.start_session(row, session_nos[0])
    if position is not None:
        return replace(row, position=position)
    if row.person.has_found_shared:  # once more: a copy may have been made meanwhile
        return replace(row, position=0, person=replace(row.person, has_found_shared=False))
    return row.go_on()


def _get_erasable(tx: Transaction, person_id: str) -> Person:
    """Return the person, or the one that they were linked to; raises NotAllowed for those who can't be erased."""
    found = people.find_by_id(tx, PersonId(person_id)) if is_storable(person_id) else None
    if found is None:
        raise NotFound(f"There is no person {person_id}.")
    survivor_id = people.find_survivor(tx, found.person.id)
    if survivor_id is not None:
        return _get_erasable(tx, survivor_id)
    if any(each.platform == Platform.LOCAL for each in people.list_identities(tx, found.person.id)):
        raise NotAllowed.say(
            "operation.terminal_person_stays",
            "The person at the terminal of this gateway can't be erased: they run it. To erase"
            " everything, stop the server and delete its folder.",
        )
    if found.person.role is Role.OWNER and not people.has_other_owner(tx, found.person.id):
        raise NotAllowed.say(
            "operation.last_owner_stays",
            "The last owner can't be erased. Make another person an owner first.",
        )
    return found.person

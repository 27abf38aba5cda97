"""Imports that people make for themselves on the page: upload, check, confirm, import.

The work is done by the server, whether or not the page stays open. Always true: nothing is imported before its owner
has confirmed it; an import that a stopped server has left unfinished goes on at the next start, which changes nothing
that is there already.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import compute_pause
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read
from palaver.core.errors import NotAllowed, NotFound, PalaverError, StoreError
from palaver.core.fair_slots import FairSlots
from palaver.core.ids import PersonId
from palaver.core.texts import say, store_text
from palaver.people import table as people
from palaver.people.model import Principal, Role
from palaver.transfer.imported import ImportReader, InvalidImport
from palaver.transfer.readers import find_manifest, open_reader
from palaver.transfer.uploads import ImportUploads, Upload, extract_member, recognize_format, translate_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from palaver.sessions.store import SessionStore
    from palaver.transfer.importer import Importer

MAX_RUNNING: Final = 2  # checks and imports at the same time, of all people; of one person, one
SLICE_SECONDS: Final = 0.004  # of work before a pause: about as long as a request takes

log = logging.getLogger(__name__)


class _ImportStopped(Exception):
    """The server stops, and the import goes on at its next start; or its file was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalImport:
    """An upload, and how far its check or import has come."""

    upload: Upload
    progress: int  # conversations


class PersonalImports:
    def __init__(
        self,
        store: SessionStore,
        make_importer: Callable[[], Importer],
        uploads: ImportUploads,
        get_max_bytes: Callable[[], int],
    ) -> None:
        self._engine = store.engine
        self._make_importer = make_importer  # when there is something to import: few servers do that
        self._uploads = uploads
        self._get_max_bytes = get_max_bytes
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._progress: dict[str, int] = {}
        self._is_stopping = False
        self._changes = asyncio.Lock()  # one change of an upload's state at a time
        self._slots = FairSlots(MAX_RUNNING, per_key=1)
        self._deleted: set[str] = set()  # uploads whose task has not noticed it yet

    @property
    def max_bytes(self) -> int:
        return self._get_max_bytes()

    async def upload(self, principal: Principal, name: str | None, chunks: AsyncIterator[bytes]) -> PersonalImport:
        """Receive a file and start to check it."""
        if principal.role is Role.GUEST:
            raise NotAllowed.say(
                "transfer.no_guests",
                "Guests can't import conversations. Ask an owner to make you a member.",
            )
        upload = await self._uploads.receive(principal.person_id, name, chunks, self.max_bytes)
        self._start(upload)
        return self._describe(upload)

    async def list(self, principal: Principal) -> list[PersonalImport]:
        uploads = await asyncio.to_thread(self._uploads.list_for, principal.person_id)
        return [self._describe(upload) for upload in uploads]

    async def get(self, principal: Principal, upload_id: str) -> PersonalImport:
        return self._describe(await asyncio.to_thread(self._uploads.get, principal.person_id, upload_id))

    async def confirm(self, principal: Principal, upload_id: str) -> PersonalImport:
        """Import a file that was checked. Confirming it again changes nothing."""
        async with self._changes:
            upload = await asyncio.to_thread(self._uploads.get, principal.person_id, upload_id)
            if upload.state in {"importing", "done"}:
                return self._describe(upload)
            if upload.state != "ready":
                raise InvalidImport("This file can't be imported: it is still being checked, or has an error.")
            upload = replace(upload, state="importing")
            await asyncio.to_thread(self._uploads.save, upload)
            crash_point("upload.confirmed")
            self._start(upload)
        return self._describe(upload)

    async def delete(self, principal: Principal, upload_id: str) -> None:
        """Delete an uploaded file, or the result of an import. What was imported stays."""
        async with self._changes:
            upload = await asyncio.to_thread(self._uploads.get, principal.person_id, upload_id)
            if upload.state == "importing":
                raise InvalidImport("This file is being imported. Wait until that has ended.")
            if upload.id in self._tasks:
                self._deleted.add(upload.id)
            await asyncio.to_thread(self._uploads.delete, upload)

    def _describe(self, upload: Upload) -> PersonalImport:
        return PersonalImport(upload=upload, progress=self._progress.get(upload.id, 0))

    async def start(self) -> None:
        """Go on with what a stopped server has left unfinished."""
        for upload in await asyncio.to_thread(lambda: list(self._uploads.list_all())):
            if upload.state in {"checking", "importing"}:
                self._start(upload)

    async def stop(self) -> None:
        """Stop after the conversation that is being imported."""
        self._is_stopping = True
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _start(self, upload: Upload) -> None:
        task = asyncio.create_task(self._run(upload), name=f"palaver-import-{upload.id}")
        self._tasks[upload.id] = task
        task.add_done_callback(lambda task: self._forget(upload.id, task))

    def _forget(self, upload_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(upload_id) is task:  # else it was confirmed as soon as its check had ended
            del self._tasks[upload_id]
            self._progress.pop(upload_id, None)
            self._deleted.discard(upload_id)

    async def _run(self, upload: Upload) -> None:
        """Check or import a file, and store what came of it."""
        try:
            with translate_errors():
                async with self._slots.hold(upload.person_id):
                    self._stop_if_asked(upload.id)
                    ended = await self._work(upload)
        except _ImportStopped:
            return
        except PalaverError as error:
            ended = _fail(upload, error.code, error.text, error.facts, error.describe_class())
        except Exception as error:
            log.exception("import_failed", extra={"upload": upload.id, "format": upload.format})
            message = say(
                "import.internal_error",
                "Internal error in Palaver ({error}). See its log for details.",
                error=type(error).__name__,
            )
            ended = _fail(upload, "internal_error", message, {})
        try:
            async with self._changes:
                if upload.id in self._deleted:
                    return
                await asyncio.to_thread(self._save_if_present, ended)
        except NotFound:  # its owner was erased
            return
        except StoreError as error:
            log.error("import_not_stored", extra={"upload": upload.id, "error": str(error)})
        log.info("import_step_ended", extra={"upload": upload.id, "state": ended.state, "format": ended.format})

    def _save_if_present(self, upload: Upload) -> None:
        """Store the new state, unless the owner has deleted the upload meanwhile."""
        self._uploads.get(PersonId(upload.person_id), upload.id)
        self._uploads.save(upload)

    async def _work(self, upload: Upload) -> Upload:
        person_id = PersonId(upload.person_id)
        row = await self._engine.arun(Read(lambda tx: people.find_by_id(tx, person_id)))
        if row is None:
            await asyncio.to_thread(self._uploads.delete, upload)
            raise _ImportStopped
        is_check = upload.state == "checking"
        if is_check:
            found = await asyncio.to_thread(recognize_format, self._uploads.get_path(upload), upload.name)
            upload = replace(upload, format=found)
        reader = await asyncio.to_thread(self._open_reader, upload)
        try:
            if is_check:
                upload = replace(upload, total=await asyncio.to_thread(reader.count_conversations))
            report = await self._make_importer().import_for_person(
                row.person.principal,
                reader,
                dry_run=is_check,
                on_progress=lambda count: self._report(upload.id, count),
                on_entry=_WorkSlices().end_step,
            )
        finally:
            await asyncio.to_thread(reader.close)
        return replace(upload, state="ready" if is_check else "done", report=report.to_dict())

    def _open_reader(self, upload: Upload) -> ImportReader:
        manifest = find_manifest(upload.format or "")
        if manifest.pattern is None:
            raise InvalidImport("This kind of file can't be imported on the page.")
        path = self._uploads.get_path(upload)
        if manifest.archive_member is not None:
            extracted = self._uploads.get_extracted_path(upload)
            if extracted.exists() and upload.state == "checking":
                extracted.unlink()  # a check that was interrupted may have left a part of it
            if extracted.exists() or extract_member(path, manifest.archive_member, extracted, self.max_bytes):
                path = extracted
        return open_reader(manifest.name, path)

    def _report(self, upload_id: str, count: int) -> None:
        self._stop_if_asked(upload_id)
        self._uploads.check_space()
        self._progress[upload_id] = count

    def _stop_if_asked(self, upload_id: str) -> None:
        if self._is_stopping or upload_id in self._deleted:
            raise _ImportStopped


class _WorkSlices:
    """Lets an import pause after every few milliseconds of work, also in the middle of a conversation."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def end_step(self) -> None:
        worked = time.perf_counter() - self._started
        if worked >= SLICE_SECONDS:
            time.sleep(compute_pause(worked))
            self._started = time.perf_counter()


def _fail(upload: Upload, code: str, message: str, facts: Any, kind: str = "") -> Upload:
    known = {name: value for name, value in facts.items() if isinstance(value, str | int | float) and name != "path"}
    texts = {"message": store_text(message), "kind": store_text(kind)}  # the kind introduces a message without a code
    return replace(upload, state="failed", error={"code": code, "facts": known, **texts})

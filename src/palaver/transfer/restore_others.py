"""Steps of an import from Palaver's own format: memories, jobs and home channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.errors import InvalidInput
from palaver.core.source import Platform
from palaver.core.sources import decode_source
from palaver.core.text import make_name_key
from palaver.jobs import table as jobs
from palaver.jobs.model import JobState
from palaver.jobs.schedule import load_zone, read_schedule
from palaver.memory import table as memories
from palaver.memory.model import MemoryOrigin, build_memory_key
from palaver.transfer.export_records import HOME_CHANNEL_FIELDS, JOB_FIELDS, MEMORY_FIELDS, InvalidRecord, decode_fields
from palaver.transfer.import_rows import find_value, has_row, insert_row, insert_row_if_new
from palaver.transfer.restore_people import PERSON, find_owner

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.transfer.own_format import Record
    from palaver.transfer.restore_people import AudienceDirectory
    from palaver.transfer.write_queue import Batch, Step


def make_memory_step(record: Record, audiences: AudienceDirectory) -> Step:
    """Return the step that adds a memory, unless its audience has it already."""
    columns = dict(zip([each.name for each in MEMORY_FIELDS], decode_fields(MEMORY_FIELDS, record), strict=True))
    if columns["origin"] not in set(MemoryOrigin):
        raise InvalidRecord(f"origin: {columns['origin'][:40]!r} is not allowed", key="origin")
    text_key = build_memory_key(columns["text"])
    ref = audiences.check(record)

    def run(tx: Transaction, batch: Batch) -> None:
        audience_no = audiences.resolve(tx, batch, ref)
        memories.lock(tx, audience_no)
        same = {"audience_no": audience_no, "text_key": text_key}
        if has_row(tx, "memory", "id", columns["id"]) or find_value(tx, "memory", "id", same) is not None:
            batch.add_outcome("unchanged")
            return
        person_id = columns["person_id"] and (batch.get(PERSON, columns["person_id"]) or columns["person_id"])
        insert_row(tx, "memory", columns | same | {"person_id": person_id})
        batch.add_outcome("memories")

    return run


def make_job_step(record: Record) -> Step:
    """Return the step that adds a job, unless it is here already; an active one stays active."""
    columns = dict(zip([each.name for each in JOB_FIELDS], decode_fields(JOB_FIELDS, record), strict=True))
    if columns["state"] not in set(JobState):
        raise InvalidRecord(f"state: {columns['state'][:40]!r} is not allowed", key="state")
    if (columns["state"] == JobState.ACTIVE) != (columns["next_slot"] is not None):
        raise InvalidRecord("next_slot: a job has it if, and only if, it is active", key="next_slot")
    if not isinstance(record.get("targets"), list) or not isinstance(record.get("toolsets"), list):
        raise InvalidRecord("targets and toolsets are lists", key="targets")
    try:
        read_schedule(columns["schedule"])
        load_zone(columns["timezone"])
        decode_source(columns["origin"])
    except (InvalidInput, ValueError, KeyError, OSError) as error:
        raise InvalidRecord(f"schedule: {error}", key="schedule") from None
    session_ids = {
        "origin_session_no": record.get("origin_session"),
        "proposed_session_no": record.get("proposed_session"),
    }

    def run(tx: Transaction, batch: Batch) -> None:
        person_id = find_owner(tx, batch, columns["person_id"])
        if person_id is None or has_row(tx, "job", "id", columns["id"]):
            batch.add_outcome("unchanged")
            return
        tx.lock_name(f"palaver jobs {person_id}")
        name = jobs.find_free_name(columns["name"], jobs.list_name_keys(tx, person_id))
        nos = {
            column: None if session_id is None else find_value(tx, "session", "no", {"id": session_id})
            for column, session_id in session_ids.items()
        }
        insert_row(tx, "job", columns | nos | {"person_id": person_id, "name": name, "name_key": make_name_key(name)})
        batch.add_outcome("jobs")
        if columns["state"] == JobState.ACTIVE:
            batch.add_outcome(f"The job “{name}” is active here. Pause it where it comes from, or it runs twice.")

    return run


def make_home_channel_step(record: Record) -> Step:
    """Return the step that sets the home channel of a platform, unless it has one."""
    names = [each.name for each in HOME_CHANNEL_FIELDS]
    columns = dict(zip(names, decode_fields(HOME_CHANNEL_FIELDS, record), strict=True))
    Platform(columns["platform"])
    decode_source(columns["source"])

    def run(tx: Transaction, batch: Batch) -> None:
        set_by = columns["set_by"] and batch.get(PERSON, columns["set_by"])
        is_new = insert_row_if_new(tx, "home_channel", columns | {"set_by": set_by})
        batch.add_outcome("home_channels" if is_new else "unchanged")

    return run

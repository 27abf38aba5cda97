"""Steps of an import from Palaver's own format: people, their accounts and audiences, projects.

Nothing of one person is given to another: a person of the file is the one here with the same id, else the one with the
same account, else a new one. Only a store without people gets owners from a file; elsewhere they come in as members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.core.errors import InvalidInput
from palaver.core.ids import PersonId
from palaver.core.source import Platform, decode_source
from palaver.core.text import make_name_key
from palaver.core.titles import clean_title
from palaver.jobs import table as jobs
from palaver.jobs.model import JobState
from palaver.jobs.schedule import load_zone, read_schedule
from palaver.memory import table as memories
from palaver.memory.model import MemoryOrigin, build_memory_key
from palaver.people import table as people
from palaver.people.model import Role
from palaver.prompts import table as saved_prompts
from palaver.transfer import import_rows
from palaver.transfer.export_records import (
    AUDIENCE_FIELDS,
    HOME_CHANNEL_FIELDS,
    IDENTITY_FIELDS,
    JOB_FIELDS,
    MEMBER_FIELDS,
    MEMORY_FIELDS,
    PERSON_FIELDS,
    PROJECT_FIELDS,
    SAVED_PROMPT_FIELDS,
    SENDER_ID_FIELDS,
    InvalidRecord,
    check_text,
    decode_fields,
)
from palaver.transfer.import_rows import find_value, has_row, insert_row, insert_row_if_new

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.transfer.own_format import Record
    from palaver.transfer.report import Batch, Step


AUDIENCE, PERSON, PROJECT = "audience", "person", "project"  # what later steps look up
REMEMBERED = frozenset({AUDIENCE, PERSON, PROJECT})


class AudienceDirectory:
    """The audiences of a file, which are made when the first thing that belongs to them is written."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}

    def add(self, record: Record) -> None:
        ref = record.get("ref")
        if type(ref) is not int:
            raise InvalidRecord("ref is missing", key="ref")
        decode_fields(AUDIENCE_FIELDS, record)
        for member in get_list(record, "members"):
            decode_fields(MEMBER_FIELDS, member)
            check_text("person", member.get("person"))
        self._records[ref] = record

    def check(self, record: Mapping[str, Any]) -> int:
        """Return the ref of the audience that a record belongs to."""
        ref = record.get("audience")
        if type(ref) is not int or ref not in self._records:
            raise InvalidRecord(f"audience: there is no audience {ref!r} in this file", key="audience")
        return ref

    def resolve(self, tx: Transaction, batch: Batch, ref: int) -> int:
        """Return the number of an audience here: the owner's, one that is here already, or a new one."""
        known = batch.get(AUDIENCE, ref)
        if known is not None:
            return int(known)
        record = self._records[ref]
        number = self._find(tx, batch, record)
        if number is None:
            number = self.create(tx, batch, ref)
        batch.set(AUDIENCE, ref, number)
        return number

    def _find(self, tx: Transaction, batch: Batch, record: Record) -> int | None:
        owner = record.get("owner")
        if owner is not None:
            found = people.find_by_id(tx, owner) or people.find_by_id(tx, batch.get(PERSON, owner) or owner)
            if found is not None:
                return found.audience_no
        for anchor, table, column in (("session", "session", "id"), ("memory", "memory", "id")):
            if anchor in record and (no := find_value(tx, table, "audience_no", {column: record[anchor]})) is not None:
                return int(no)
        if "lane" in record and owner is None:
            no = find_value(tx, "lane", "audience_no", {"key": record["lane"], "shared": 1})
            return None if no is None else int(no)
        return None

    def create(self, tx: Transaction, batch: Batch, ref: int) -> int:
        """Create an audience, with those of its members who are here."""
        record = self._records[ref]
        (created_at,) = decode_fields(AUDIENCE_FIELDS, record)
        audience_no = people.create_audience(tx, created_at)
        batch.set(AUDIENCE, ref, audience_no)
        self.join_members(tx, batch, ref, audience_no)
        return audience_no

    def join_members(self, tx: Transaction, batch: Batch, ref: int, audience_no: int) -> None:
        for member in get_list(self._records[ref], "members"):
            person_id = batch.get(PERSON, member["person"])
            if person_id is not None:
                people.join_audience(tx, audience_no, person_id, decode_fields(MEMBER_FIELDS, member)[0])


def make_person_step(record: Record, audiences: AudienceDirectory) -> Step:
    """Return the step that finds or adds a person."""
    columns = dict(zip([each.name for each in PERSON_FIELDS], decode_fields(PERSON_FIELDS, record), strict=True))
    role = _check_role(columns["role"])
    ref = audiences.check(record) if "audience" in record else None
    merged_into = None if record.get("merged_into") is None else check_text("merged_into", record["merged_into"])
    accounts = [_read_account(each) for each in get_list(record, "accounts")]

    def run(tx: Transaction, batch: Batch) -> None:
        file_id = columns["id"]
        existing = _find_person(tx, file_id, accounts)
        if existing is not None:
            batch.set(PERSON, file_id, existing)
            batch.add_outcome("unchanged")
            return
        batch.set(PERSON, file_id, file_id)
        audience_no = people.create_audience(tx, columns["created_at"])
        survivor = None if merged_into is None else batch.get(PERSON, merged_into)
        values = columns | {"audience_no": audience_no, "merged_into": survivor}
        if role is Role.OWNER and _has_other_owner(tx, batch):
            values["role"] = Role.MEMBER.value
            batch.add_outcome(f"{columns['name']!r} was an owner there, and is a member here.")
        insert_row(tx, "person", values)
        if ref is not None:
            batch.set(AUDIENCE, ref, audience_no)
            audiences.join_members(tx, batch, ref, audience_no)
        else:
            people.join_audience(tx, audience_no, file_id, columns["created_at"])
        for identity, sender_ids in accounts:
            if insert_row_if_new(tx, "identity", identity | {"person_id": file_id}):
                for sender_id in sender_ids:
                    main = {"platform": identity["platform"], "main_id": identity["account"]}
                    insert_row_if_new(tx, "sender_id", sender_id | main)
        batch.add_outcome("people")

    return run


def _find_person(tx: Transaction, person_id: str, accounts: Sequence[tuple[dict[str, Any], Any]]) -> str | None:
    if has_row(tx, "person", "id", person_id):
        return person_id
    for identity, _ in accounts:
        found = people.find_by_account(tx, identity["platform"], identity["account"])
        if found is not None:
            return found.person.id
    return None


def _has_other_owner(tx: Transaction, batch: Batch) -> bool:
    """Whether this store has an owner who is not from the file."""
    return any(batch.get(PERSON, owner) != owner for owner in import_rows.list_owner_ids(tx))


def _read_account(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    identity = dict(zip([each.name for each in IDENTITY_FIELDS], decode_fields(IDENTITY_FIELDS, record), strict=True))
    names = [each.name for each in SENDER_ID_FIELDS]
    sender_ids = [
        dict(zip(names, decode_fields(SENDER_ID_FIELDS, each), strict=True)) for each in get_list(record, "sender_ids")
    ]
    return identity, sender_ids


def _check_role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise InvalidRecord(f"role: {text!r} is not allowed ({', '.join(Role)})", key="role") from None


def make_project_step(record: Record) -> Step:
    """Return the step that finds or adds a project of a person."""
    columns = dict(zip([each.name for each in PROJECT_FIELDS], decode_fields(PROJECT_FIELDS, record), strict=True))
    columns["name"] = clean_title(columns["name"])
    columns["name_key"] = columns["name"].casefold()
    file_person = check_text("person", record.get("person"))

    def run(tx: Transaction, batch: Batch) -> None:
        person_id = find_owner(tx, batch, file_person)
        if person_id is None:
            return
        existing = find_value(tx, "project", "no", {"id": columns["id"], "person_id": person_id}) or find_value(
            tx, "project", "no", {"person_id": person_id, "name_key": columns["name_key"]}
        )
        if existing is not None:
            batch.set(PROJECT, columns["id"], existing)
            batch.add_outcome("unchanged")
        elif not has_row(tx, "project", "id", columns["id"]):
            batch.set(PROJECT, columns["id"], insert_row(tx, "project", columns | {"person_id": person_id}, "no"))
            batch.add_outcome("projects")

    return run


def make_saved_prompt_step(record: Record) -> Step:
    """Return the step that adds a saved prompt of a person, unless they have one with its id or name."""
    values = decode_fields(SAVED_PROMPT_FIELDS, record)
    columns = dict(zip([each.name for each in SAVED_PROMPT_FIELDS], values, strict=True))
    columns |= saved_prompts.clean_fields({name: columns[name] for name in saved_prompts.PROMPT_FIELDS})
    file_person = check_text("person", record.get("person"))

    def run(tx: Transaction, batch: Batch) -> None:
        person_id = find_owner(tx, batch, file_person)
        if person_id is None:
            return
        same_name = {"person_id": person_id, "name_key": columns["name_key"]}
        if has_row(tx, "saved_prompt", "id", columns["id"]) or find_value(tx, "saved_prompt", "id", same_name):
            batch.add_outcome("unchanged")
        else:
            insert_row(tx, "saved_prompt", columns | {"person_id": person_id})
            batch.add_outcome("saved_prompts")

    return run


def find_owner(tx: Transaction, batch: Batch, file_id: str) -> PersonId | None:
    """Return who owns here what belongs to a person of the file: they may have linked their accounts since."""
    person_id = batch.get(PERSON, file_id)
    return None if person_id is None else import_rows.find_merged_survivor(tx, person_id) or PersonId(person_id)


def get_list(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return a list of objects inside a record."""
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InvalidRecord(f"{key}: not a list of objects", key=key)
    return value


# --------------------------------------------------------------------------------------------------
# Steps of an import from Palaver's own format: memories, jobs and home channels.


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

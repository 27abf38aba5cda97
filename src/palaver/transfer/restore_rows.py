"""Steps of an import from Palaver's own format: people with their accounts and audiences, and rows that tables declare.

Nothing of one person is given to another: a person of the file is the one here with the same id, else the one with the
same account, else a new one. Only a store without people gets owners from a file; elsewhere they come in as members.
A row that is here with the same key stays as it is. A row of a person who is not in the file is left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
from palaver.core.source import Platform, decode_source
from palaver.core.text import make_name_key
from palaver.core.titles import clean_title
from palaver.jobs import table as jobs
from palaver.jobs.model import JobState
from palaver.jobs.schedule import load_zone, read_schedule
from palaver.memory import table as memories
from palaver.memory.model import build_memory_key
from palaver.people import table as people
from palaver.people.access_table import SENDER_ID_EXPORT
from palaver.people.model import Role
from palaver.prompts import table as saved_prompts
from palaver.prompts.model import PROMPT_FIELDS
from palaver.sessions.lanes_table import MOVE_EXPORT
from palaver.transfer.import_rows import find_session_no, find_value, insert_row, insert_row_if_new, list_owner_ids
from palaver.transfer.own_format import EXPORTED_TABLES, InvalidRecord, Record, check_text, decode_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.transfer.report import Batch, Step

AUDIENCE, PERSON, PROJECT = "audience", "person", "project"  # what later steps look up
Columns = dict[str, Any]


def get_list(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InvalidRecord(f"{key}: not a list of objects", key=key)
    return value


def get_optional_text(record: Mapping[str, Any], key: str) -> str | None:
    return None if record.get(key) is None else check_text(key, record[key])


class AudienceDirectory:
    """The audiences of a file, which are made when the first thing that belongs to them is written."""

    def __init__(self) -> None:
        self._records: dict[int, Record] = {}

    def add(self, record: Record) -> None:
        ref = record.get("ref")
        if type(ref) is not int:
            raise InvalidRecord("ref is missing", key="ref")
        decode_columns(people.AUDIENCE_FIELDS, record)
        for member in get_list(record, "members"):
            decode_columns(people.MEMBER_EXPORT.fields, member)
            check_text("person", member.get("person"))
        self._records[ref] = record

    def check(self, record: Mapping[str, Any]) -> int:
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
            columns = decode_columns(people.AUDIENCE_FIELDS, record)
            number = people.create_audience(tx, columns["created_at"])
            self.join_members(tx, batch, ref, number)
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
            shared: int | None = find_value(tx, "lane", "audience_no", {"key": record["lane"], "shared": 1})
            return shared
        return None

    def join_members(self, tx: Transaction, batch: Batch, ref: int, audience_no: int) -> None:
        """Let those of the members who are here join an audience."""
        for member in get_list(self._records[ref], "members"):
            person_id = batch.get(PERSON, member["person"])
            if person_id is not None:
                joined = decode_columns(people.MEMBER_EXPORT.fields, member)
                people.join_audience(tx, audience_no, person_id, joined["joined_at"])


def make_person_step(record: Record, audiences: AudienceDirectory) -> Step:
    columns = decode_columns(people.PERSON_EXPORT.fields, record)
    ref = audiences.check(record) if "audience" in record else None
    merged_into = get_optional_text(record, "merged_into")
    accounts = [_read_account(each) for each in get_list(record, "accounts")]

    def run(tx: Transaction, batch: Batch) -> None:
        file_id = columns["id"]
        existing = _find_person(tx, file_id, accounts)
        if existing is not None:
            batch.set(PERSON, file_id, existing)
            batch.report.count("unchanged")
            return
        batch.set(PERSON, file_id, file_id)
        audience_no = people.create_audience(tx, columns["created_at"])
        survivor = None if merged_into is None else batch.get(PERSON, merged_into)
        values = columns | {"audience_no": audience_no, "merged_into": survivor}
        is_from_file = (batch.get(PERSON, owner) == owner for owner in list_owner_ids(tx))
        if columns["role"] == Role.OWNER and not all(is_from_file):
            values["role"] = Role.MEMBER.value
            batch.report.notes.add(f"{columns['name']!r} was an owner there, and is a member here.")
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
        batch.report.count("people")

    return run


def _find_person(tx: Transaction, person_id: str, accounts: Sequence[tuple[dict[str, Any], Any]]) -> str | None:
    if find_value(tx, "person", "id", {"id": person_id}) is not None:
        return person_id
    for identity, _ in accounts:
        found = people.find_by_account(tx, identity["platform"], identity["account"])
        if found is not None:
            return found.person.id
    return None


def _read_account(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    sender_ids = [decode_columns(SENDER_ID_EXPORT.fields, each) for each in get_list(record, "sender_ids")]
    return decode_columns(people.IDENTITY_EXPORT.fields, record), sender_ids


def make_step(record: Record, audiences: AudienceDirectory) -> Step:
    """Return the step that adds the row of a record, unless it is here already."""
    exported = EXPORTED_TABLES[record["type"]]
    columns = decode_columns(exported.fields, record)
    if exported.table in _CHECKS:
        _CHECKS[exported.table](columns)
    ref = audiences.check(record) if exported.needs_audience else None
    file_person = columns.get("person_id") if ref is None else None
    if "person" in exported.references:
        file_person = check_text("person", record.get("person"))
    sessions = {f"{name}_no": get_optional_text(record, name) for name in exported.references if "session" in name}
    finish = _make_finish(record)

    def run(tx: Transaction, batch: Batch) -> None:
        values = columns | {name: find_session_no(tx, session_id) for name, session_id in sessions.items()}
        if ref is not None:
            values["audience_no"] = audiences.resolve(tx, batch, ref)
        if file_person is not None:
            person_id = batch.get(PERSON, file_person)
            if person_id is None:
                return
            values["person_id"] = people.find_survivor(tx, person_id) or person_id  # they may have linked accounts
        if exported.table in _PREPARE:
            _PREPARE[exported.table](tx, batch, values)
        unique = [names for names in ((exported.key,), exported.unique) if names]
        same = ({name: values[name] for name in names} for names in unique)
        is_here = any(find_value(tx, exported.table, "1", keys) is not None for keys in same)
        is_new = not is_here and insert_row_if_new(tx, exported.table, values)
        batch.report.count(exported.report_kind if is_new else "unchanged")
        finish(tx, batch, values, is_new)

    return run


def _clean_name(columns: Columns) -> None:
    columns["name"] = clean_title(columns["name"])
    columns["name_key"] = columns["name"].casefold()


def _check_job(columns: Columns) -> None:
    if (columns["state"] == JobState.ACTIVE) != (columns["next_slot"] is not None):
        raise InvalidRecord("next_slot: a job has it if, and only if, it is active", key="next_slot")
    try:
        has_lists = all(isinstance(json.loads(columns[name]), list) for name in ("targets", "toolsets"))
        read_schedule(columns["schedule"])
        load_zone(columns["timezone"])
        decode_source(columns["origin"])
    except (InvalidInput, ValueError, KeyError, OSError) as error:
        raise InvalidRecord(f"schedule: {error}", key="schedule") from None
    if not has_lists:
        raise InvalidRecord("targets and toolsets are lists", key="targets")


_CHECKS: Final[Mapping[str, Callable[[Columns], object]]] = {
    "project": _clean_name,
    "saved_prompt": lambda columns: columns.update(
        saved_prompts.clean_fields({name: columns[name] for name in PROMPT_FIELDS})
    ),
    "memory": lambda columns: columns.update(text_key=build_memory_key(columns["text"])),
    "job": _check_job,
    "lane": lambda columns: decode_source(columns["source"]),
    "home_channel": lambda columns: (Platform(columns["platform"]), decode_source(columns["source"])),
}


def _prepare_memory(tx: Transaction, batch: Batch, values: Columns) -> None:
    memories.lock(tx, values["audience_no"])
    if values["person_id"] is not None:
        values["person_id"] = batch.get(PERSON, values["person_id"]) or values["person_id"]


def _prepare_job(tx: Transaction, _batch: Batch, values: Columns) -> None:
    tx.lock_name(f"palaver jobs {values['person_id']}")
    values["name"] = jobs.find_free_name(values["name"], jobs.list_name_keys(tx, values["person_id"]))
    values["name_key"] = make_name_key(values["name"])


_PREPARE: Final[Mapping[str, Callable[[Transaction, Batch, Columns], None]]] = {
    "memory": _prepare_memory,
    "job": _prepare_job,
    "home_channel": lambda _tx, batch, values: values.update(
        set_by=values["set_by"] and batch.get(PERSON, values["set_by"])
    ),
}


def _make_finish(record: Record) -> Callable[[Transaction, Batch, Columns, bool], None]:
    match record["type"]:
        case "project":
            return _remember_project
        case "job":
            return _warn_of_active_job
        case "lane":
            moves = [
                (
                    decode_columns(MOVE_EXPORT.fields, each),
                    check_text("from", each.get("from")),
                    check_text("to", each.get("to")),
                )
                for each in get_list(record, "moves")
            ]
            return lambda tx, _batch, values, is_new: _add_moves(tx, values["key"], moves) if is_new else None
    return lambda _tx, _batch, _values, _is_new: None


def _remember_project(tx: Transaction, batch: Batch, values: Columns, _is_new: bool) -> None:
    """Remember the number of a project for its sessions: the same one, or the person's project of the same name."""
    same = ({"person_id": values["person_id"], name: values[name]} for name in ("id", "name_key"))
    number = next(filter(None, (find_value(tx, "project", "no", keys) for keys in same)), None)
    batch.set(PROJECT, values["id"], number)


def _warn_of_active_job(_tx: Transaction, batch: Batch, values: Columns, is_new: bool) -> None:
    if is_new and values["state"] == JobState.ACTIVE:
        name = values["name"]
        batch.report.notes.add(f"The job “{name}” is active here. Pause it where it comes from, or it runs twice.")


def _add_moves(tx: Transaction, lane_key: str, moves: list[tuple[Columns, str, str]]) -> None:
    for columns, from_id, to_id in moves:
        numbers = {"from_session_no": find_session_no(tx, from_id), "to_session_no": find_session_no(tx, to_id)}
        if None not in numbers.values():
            insert_row(tx, "lane_move", columns | numbers | {"lane_key": lane_key})

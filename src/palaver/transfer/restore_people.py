"""Steps of an import from Palaver's own format: people with their accounts and audiences.

Nothing of one person is given to another: a person of the file is the one here with the same id, else the one with the
same account, else a new one. Only a store without people gets owners from a file; elsewhere they come in as members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.core.ids import PersonId
from palaver.people import table as people
from palaver.people.access_table import SENDER_ID_EXPORT
from palaver.people.model import Role
from palaver.transfer import import_rows
from palaver.transfer.export_records import InvalidRecord, check_text, decode_columns
from palaver.transfer.import_rows import find_value, has_row, insert_row, insert_row_if_new

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.transfer.own_format import Record
    from palaver.transfer.report import Batch, Step


AUDIENCE, PERSON, PROJECT = "audience", "person", "project"  # what later steps look up


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
    """Return the step that finds or adds a person."""
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
        if columns["role"] == Role.OWNER and _has_other_owner(tx, batch):
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
    if has_row(tx, "person", "id", person_id):
        return person_id
    for identity, _ in accounts:
        found = people.find_by_account(tx, identity["platform"], identity["account"])
        if found is not None:
            return found.person.id
    return None


def _has_other_owner(tx: Transaction, batch: Batch) -> bool:
    """Return whether this store has an owner who is not from the file."""
    return any(batch.get(PERSON, owner) != owner for owner in import_rows.list_owner_ids(tx))


def _read_account(record: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    sender_ids = [decode_columns(SENDER_ID_EXPORT.fields, each) for each in get_list(record, "sender_ids")]
    return decode_columns(people.IDENTITY_EXPORT.fields, record), sender_ids


def find_owner(tx: Transaction, batch: Batch, file_id: str) -> PersonId | None:
    """Return who owns here what belongs to a person of the file: they may have linked their accounts since."""
    person_id = batch.get(PERSON, file_id)
    return None if person_id is None else people.find_survivor(tx, PersonId(person_id)) or PersonId(person_id)


def get_list(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InvalidRecord(f"{key}: not a list of objects", key=key)
    return value


def get_optional_text(record: Mapping[str, Any], key: str) -> str | None:
    return None if record.get(key) is None else check_text(key, record[key])

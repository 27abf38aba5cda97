"""Steps of an import from Palaver's own format: rows that their tables declare, such as projects, memories and jobs.

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
from palaver.prompts import table as saved_prompts
from palaver.prompts.model import PROMPT_FIELDS
from palaver.sessions.lanes_table import MOVE_EXPORT
from palaver.transfer.export_records import EXPORTED_TABLES, InvalidRecord, check_text, decode_columns
from palaver.transfer.import_rows import find_session_no, find_value, has_row, insert_row, insert_row_if_new
from palaver.transfer.restore_people import PERSON, PROJECT, AudienceDirectory, find_owner, get_list, get_optional_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.core.engines.base import Transaction
    from palaver.transfer.own_format import Record
    from palaver.transfer.report import Batch, Step

Columns = dict[str, Any]


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
            values["person_id"] = find_owner(tx, batch, file_person)
            if values["person_id"] is None:
                return
        if exported.table in _PREPARE:
            _PREPARE[exported.table](tx, batch, values)
        same = {name: values[name] for name in exported.unique}
        is_here = has_row(tx, exported.table, exported.key, values[exported.key]) or (
            bool(same) and find_value(tx, exported.table, "1", same) is not None
        )
        is_new = not is_here and insert_row_if_new(tx, exported.table, values)
        batch.report.count(exported.report_kind if is_new else "unchanged")
        finish(tx, batch, values, is_new)

    return run


# ---- checking a record ---------------------------------------------------------------------------------------


def _clean_name(columns: Columns) -> None:
    columns["name"] = clean_title(columns["name"])
    columns["name_key"] = columns["name"].casefold()


def _clean_prompt(columns: Columns) -> None:
    columns |= saved_prompts.clean_fields({name: columns[name] for name in PROMPT_FIELDS})


def _add_text_key(columns: Columns) -> None:
    columns["text_key"] = build_memory_key(columns["text"])


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


def _check_home_channel(columns: Columns) -> None:
    Platform(columns["platform"])
    decode_source(columns["source"])


_CHECKS: Final[Mapping[str, Callable[[Columns], object]]] = {
    "project": _clean_name,
    "saved_prompt": _clean_prompt,
    "memory": _add_text_key,
    "job": _check_job,
    "lane": lambda columns: decode_source(columns["source"]),
    "home_channel": _check_home_channel,
}


# ---- before and after a row is added -------------------------------------------------------------------------


def _prepare_memory(tx: Transaction, batch: Batch, values: Columns) -> None:
    memories.lock(tx, values["audience_no"])
    if values["person_id"] is not None:
        values["person_id"] = batch.get(PERSON, values["person_id"]) or values["person_id"]


def _prepare_job(tx: Transaction, _batch: Batch, values: Columns) -> None:
    tx.lock_name(f"palaver jobs {values['person_id']}")
    values["name"] = jobs.find_free_name(values["name"], jobs.list_name_keys(tx, values["person_id"]))
    values["name_key"] = make_name_key(values["name"])


def _prepare_home_channel(_tx: Transaction, batch: Batch, values: Columns) -> None:
    values["set_by"] = values["set_by"] and batch.get(PERSON, values["set_by"])


_PREPARE: Final[Mapping[str, Callable[[Transaction, Batch, Columns], None]]] = {
    "memory": _prepare_memory,
    "job": _prepare_job,
    "home_channel": _prepare_home_channel,
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
    for name in ("id", "name_key"):
        number = find_value(tx, "project", "no", {"person_id": values["person_id"], name: values[name]})
        if number is not None:
            batch.set(PROJECT, values["id"], number)
            return


def _warn_of_active_job(_tx: Transaction, batch: Batch, values: Columns, is_new: bool) -> None:
    if is_new and values["state"] == JobState.ACTIVE:
        name = values["name"]
        batch.report.notes.add(f"The job “{name}” is active here. Pause it where it comes from, or it runs twice.")


def _add_moves(tx: Transaction, lane_key: str, moves: list[tuple[Columns, str, str]]) -> None:
    for columns, from_id, to_id in moves:
        numbers = {"from_session_no": find_session_no(tx, from_id), "to_session_no": find_session_no(tx, to_id)}
        if None not in numbers.values():
            insert_row(tx, "lane_move", columns | numbers | {"lane_key": lane_key})

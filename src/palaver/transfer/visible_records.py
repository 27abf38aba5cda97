"""Which records of an export a person may have who does not see everything.

An export of a conversation that several people share names who takes part in it. The accounts of the others, how far
they have read and the projects into which they have sorted it are theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from palaver.core.ids import PersonId
    from palaver.transfer.own_format import Record


def keep_visible_records(records: Iterable[Record], person_id: PersonId) -> Iterator[Record]:
    """Yield the records of an export without what belongs to other people only."""
    own_projects: set[Any] = set()
    for record in records:
        match record["type"]:
            case "project" | "saved_prompt" if record.get("person") != person_id:
                continue
            case "project":
                own_projects.add(record["id"])
                yield record
            case "person" if record["id"] != person_id and record.get("merged_into") != person_id:
                yield {key: value for key, value in record.items() if key != "accounts"}
            case "session":
                yield _keep_own_details(record, person_id, own_projects)
            case _:
                yield record


def _keep_own_details(record: Record, person_id: PersonId, own_projects: set[Any]) -> Record:
    kept = dict(record)
    if kept.get("project") not in own_projects:
        kept.pop("project", None)
    marks = [mark for mark in kept.pop("read_marks", ()) if mark.get("person") == person_id]
    return kept | ({"read_marks": marks} if marks else {})

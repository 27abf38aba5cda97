"""Reads whole rows for an export in Palaver's own format, in pages of bounded size.

The order is the same after an import into an empty store, where rows get new numbers in the order of the file. Nothing
that proves who a person is leaves here: no passwords, tokens, codes or secrets of links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.core.engines.base import Row, Transaction, build_placeholders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.people.person_data import ExportedTable

# An import that was interrupted has left a session that is not complete, and so has a deletion that goes on.
_IS_COMPLETE = """s.is_deleted = 0 AND NOT EXISTS
    (SELECT 1 FROM imported_item i WHERE i.state = 'writing' AND i.session_id = s.id)"""
_IS_REFERENCED = """(EXISTS (SELECT 1 FROM person p WHERE p.audience_no = a.no)
    OR EXISTS (SELECT 1 FROM session s WHERE s.audience_no = a.no AND s.is_deleted = 0)
    OR EXISTS (SELECT 1 FROM lane l WHERE l.audience_no = a.no)
    OR EXISTS (SELECT 1 FROM memory m WHERE m.audience_no = a.no))"""


class ExportedRow(NamedTuple):
    values: Row  # of its fields
    references: dict[str, Any]
    position: Row  # to read on after it


def list_rows(
    tx: Transaction,
    exported: ExportedTable,
    condition: str,
    params: Sequence[object],
    after: Row | None = None,
    limit: int = 2**31,
) -> list[ExportedRow]:
    """List the rows of a table `t` that fulfil a condition, in the order of their export."""
    order = ", ".join(f"t.{name}" for name in exported.order)
    columns = [*(f"t.{field.name}" for field in exported.fields), *exported.references.values(), order]
    if after is not None:
        condition += f" AND ({order}) > ({build_placeholders(len(after), first=len(params) + 1)})"
        params = [*params, *after]
    sql = f"""SELECT {", ".join(columns)} FROM {exported.table} t WHERE {condition} AND {exported.only}
        ORDER BY {order} LIMIT {limit}"""
    rows = tx.fetch_all(sql, *params)
    count, end = len(exported.fields), len(exported.fields) + len(exported.references)
    return [
        ExportedRow(row[:count], dict(zip(exported.references, row[count:end], strict=True)), row[end:]) for row in rows
    ]


class AudienceRow(NamedTuple):
    no: int
    created_at: int
    session_id: str | None  # its oldest session
    lane_key: str | None  # its first lane
    memory_id: str | None  # its first memory
    owner_id: str | None  # the person whose own audience it is

    @property
    def sort_key(self) -> tuple[object, ...]:
        """The order of audiences in every export, also after an import."""
        return (self.owner_id or "", f"{self.created_at:020}", self.session_id, self.lane_key, self.memory_id)

    @property
    def anchors(self) -> dict[str, str | None]:
        """By what an import recognizes an audience in a store that has it already."""
        return {"owner": self.owner_id, "session": self.session_id, "lane": self.lane_key, "memory": self.memory_id}


def list_audiences(tx: Transaction, after: int, limit: int) -> list[AudienceRow]:
    sql = f"""SELECT a.no, a.created_at, (SELECT s.id FROM session s WHERE s.audience_no = a.no ORDER BY s.id LIMIT 1),
        (SELECT MIN(l.key) FROM lane l WHERE l.audience_no = a.no),
        (SELECT m.id FROM memory m WHERE m.audience_no = a.no ORDER BY m.id LIMIT 1),
        (SELECT MIN(p.id) FROM person p WHERE p.audience_no = a.no)
        FROM audience a WHERE a.no > $1 AND {_IS_REFERENCED} ORDER BY a.no LIMIT $2"""
    rows = tx.fetch_all(sql, after, limit)
    return [AudienceRow(*row) for row in rows]


def list_session_nos(tx: Transaction, after: int, limit: int) -> list[Row]:
    """List the numbers of all complete sessions, oldest first."""
    return tx.fetch_all(f"SELECT no FROM session s WHERE no > $1 AND {_IS_COMPLETE} ORDER BY no LIMIT $2", after, limit)


def list_audience_sessions(tx: Transaction, audience_no: int, after: str, limit: int) -> list[Row]:
    """List the ids and numbers of the complete sessions of an audience by id."""
    sql = f"SELECT id, no FROM session s WHERE audience_no = $1 AND id > $2 AND {_IS_COMPLETE} ORDER BY id LIMIT $3"
    return tx.fetch_all(sql, audience_no, after, limit)


def list_attachment_ids(tx: Transaction, session_no: int) -> list[str]:
    sql = """SELECT a.id FROM attachment_use u JOIN attachment a ON a.no = u.attachment_no WHERE u.session_no = $1
        ORDER BY a.id"""
    rows = tx.fetch_all(sql, session_no)
    return [attachment_id for (attachment_id,) in rows]

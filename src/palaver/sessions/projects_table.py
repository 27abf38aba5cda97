"""Projects: a person's folders for their conversations.

A project with many conversations is deleted in pieces, so that no other writer waits for long: first it disappears, in
one short transaction, then its conversations leave it piece by piece. A process that dies leaves the rest to the
cleanup of any server.

Always true: a project that has disappeared is found by nothing that looks for projects or for that of a conversation.
"""

from __future__ import annotations

import re
from typing import Final

from palaver.core.columns import Columns
from palaver.core.engines.base import Transaction, fetch_value
from palaver.core.errors import InvalidInput, ProjectNameTaken, ProjectNotFound
from palaver.core.ids import PersonId, ProjectId, new_project_id
from palaver.core.text import is_storable
from palaver.core.titles import clean_title
from palaver.people.person_data import ErasureStep, ExportedTable, FieldKind, Moved, PersonColumn, make_fields
from palaver.sessions.model import Project, clean_project_instructions

SESSIONS_PER_PIECE: Final = 300  # a project with up to so many is deleted at once
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")


_COLUMNS = Columns(
    Project,
    session_count="(SELECT COUNT(*) FROM session s WHERE s.project_no = p.no AND s.active_at IS NOT NULL)",
)
_SELECT = f"SELECT p.no, {_COLUMNS.format_select('p')} FROM project p"


def list_projects(tx: Transaction, person_id: PersonId) -> list[Project]:
    rows = tx.fetch_all(f"{_SELECT} WHERE p.person_id = $1 AND p.is_deleted = 0 ORDER BY p.name_key", person_id)
    return [_COLUMNS.decode(row[1:]) for row in rows]


def get_by_id(tx: Transaction, project_id: str) -> tuple[int, Project]:
    """Return the number of any person's project, and the project."""
    return _get(tx, project_id, "p.id = $1")


def get_by_id_or_name(tx: Transaction, person_id: PersonId, text: str) -> tuple[int, Project]:
    """Return the number of one of a person's projects, and the project."""
    condition = "(p.id = $1 OR p.name_key = $2) AND p.person_id = $3"
    return _get(tx, text, condition, text.strip().casefold(), person_id)


def _get(tx: Transaction, text: str, condition: str, *params: object) -> tuple[int, Project]:
    row = is_storable(text) and tx.fetch_one(f"{_SELECT} WHERE {condition} AND p.is_deleted = 0", text, *params)
    if not row:
        raise ProjectNotFound(f"Project {text!r} not found.", project=text)
    no, *columns = row
    return no, _COLUMNS.decode(columns)


def find_id(tx: Transaction, person_id: PersonId, name: str) -> tuple[int, ProjectId] | None:
    """Find the number and the id of a person's project by its name, without counting its conversations."""
    sql = "SELECT no, id FROM project WHERE person_id = $1 AND name_key = $2"
    return tx.fetch_one(sql, person_id, name.casefold())


def create(tx: Transaction, person_id: PersonId, name: str, color: str | None, now: int) -> Project:
    clean = _clean_free_name(tx, person_id, name)
    project_id = new_project_id()
    sql = "INSERT INTO project (id, person_id, name, name_key, color, created_at) VALUES ($1, $2, $3, $4, $5, $6)"
    tx.execute(sql, project_id, person_id, clean, clean.casefold(), _check_color(color), now)
    return get_by_id_or_name(tx, person_id, project_id)[1]


def update(
    tx: Transaction,
    person_id: PersonId,
    text: str,
    name: str | None,
    color: str | None,
    instructions: str | None = None,
) -> Project:
    """Change the name, color or instructions of a project (None: it stays; empty instructions: without any)."""
    no, project = get_by_id_or_name(tx, person_id, text)
    clean = project.name if name is None else _clean_free_name(tx, person_id, name, except_no=no)
    tx.execute(
        "UPDATE project SET name = $2, name_key = $3, color = COALESCE($4, color), instructions = $5 WHERE no = $1",
        no,
        clean,
        clean.casefold(),
        _check_color(color),
        project.instructions if instructions is None else clean_project_instructions(instructions),
    )
    return get_by_id_or_name(tx, person_id, project.id)[1]


def delete(tx: Transaction, person_id: PersonId, text: str) -> Project:
    """Delete a project and return it; its conversations stay, in no project."""
    no, project = get_by_id_or_name(tx, person_id, text)
    if tx.fetch_one("SELECT 1 FROM session WHERE project_no = $1 LIMIT 1 OFFSET $2", no, SESSIONS_PER_PIECE) is None:
        tx.execute("DELETE FROM project WHERE no = $1", no)
    else:  # two spaces: no name that a person types has them
        sql = "UPDATE project SET is_deleted = 1, id = $2, name = '', name_key = $3, instructions = NULL WHERE no = $1"
        tx.execute(sql, no, f"deleted-{no}", f"deleted  {no}")
    return project


def delete_piece(tx: Transaction, project_no: int) -> None:
    """Let the next conversations leave a project that has disappeared; when none are left, delete it."""
    if tx.fetch_one(f"SELECT 1 FROM project WHERE no = $1 AND is_deleted = 1 {tx.for_update}", project_no) is None:
        return  # another process was faster
    sql = "UPDATE session SET project_no = NULL WHERE no IN (SELECT no FROM session WHERE project_no = $1 LIMIT $2)"
    left = tx.execute(sql, project_no, SESSIONS_PER_PIECE)
    if left < SESSIONS_PER_PIECE:
        tx.execute("DELETE FROM project WHERE no = $1", project_no)


def load_instructions(tx: Transaction, session_no: int, person_id: PersonId | None) -> str | None:
    """Return the instructions of a session's project if it is this person's."""
    sql = """SELECT p.instructions FROM session s JOIN project p ON p.no = s.project_no
        WHERE s.no = $1 AND p.person_id = $2 AND p.is_deleted = 0"""
    return fetch_value(tx, sql, session_no, person_id)


def _clean_free_name(tx: Transaction, person_id: PersonId, name: str, except_no: int = 0) -> str:
    clean = clean_title(name)
    sql = "SELECT name FROM project WHERE person_id = $1 AND name_key = $2 AND no <> $3"
    existing = fetch_value(tx, sql, person_id, clean.casefold(), except_no)
    if existing is not None:
        raise ProjectNameTaken(f"You already have a project named {existing!r}. Choose another name.", name=clean)
    return clean


def _check_color(color: str | None) -> str | None:
    if color is not None and not _COLOR.fullmatch(color):
        raise InvalidInput(f"color: {color!r} is not allowed. Write it like #3b82f6.", color=color)
    return color


PERSON_DATA: Final = (
    PersonColumn(
        "project",
        merge=Moved(has_unique_names=True),
        erase=ErasureStep.PROJECTS,
        batch_key="no",
        count="projects",
        belonging="projects",
        belonging_only="is_deleted = 0",
    ),
)
EXPORT: Final = ExportedTable(
    table="project",
    fields=(
        *make_fields("id! name! color"),
        *make_fields("created_at!", FieldKind.TIME),
        *make_fields("instructions"),
    ),
    references={"person": "t.person_id"},
    order=("created_at", "id"),
    only="t.is_deleted = 0",
    unique=("person_id", "name_key"),
    report_kind="projects",
)

"""Projects: a person's folders for their conversations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput, NoSuchProject, ProjectTaken
from palaver.domain.ids import ProjectId, new_project_id
from palaver.domain.session import Project
from palaver.domain.text import is_storable
from palaver.domain.titles import clean_title
from palaver.storage.timestamps import from_micros

if TYPE_CHECKING:
    from palaver.domain.ids import PersonId
    from palaver.storage.engines.base import Row, Transaction

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_SELECT = """SELECT p.id, p.name, p.colour, p.created_at,
    (SELECT COUNT(*) FROM session s WHERE s.project_no = p.no AND s.active_at IS NOT NULL), p.no FROM project p"""


def listed(tx: Transaction, person_id: PersonId) -> list[Project]:
    """A person's projects by name."""
    rows = tx.all(f"{_SELECT} WHERE p.person_id = $1 ORDER BY p.name_key", person_id)
    return [_project(row) for row in rows]


def get(tx: Transaction, project_id: str) -> tuple[int, Project]:
    """Anybody's project by its id."""
    row = is_storable(project_id) and tx.one(f"{_SELECT} WHERE p.id = $1", project_id)
    if not row:
        raise NoSuchProject(f"there is no project {project_id!r}", project=project_id)
    return row[5], _project(row)


def find(tx: Transaction, person_id: PersonId, text: str) -> tuple[int, Project]:
    """One of a person's projects by id or name."""
    row = is_storable(text) and tx.one(
        f"{_SELECT} WHERE p.person_id = $1 AND (p.id = $2 OR p.name_key = $3)",
        person_id,
        text,
        text.strip().casefold(),
    )
    if not row:
        raise NoSuchProject(f"there is no project {text!r}", project=text)
    return row[5], _project(row)


def create(tx: Transaction, person_id: PersonId, name: str, colour: str | None, now: int) -> Project:
    """A new project."""
    clean = _free_name(tx, person_id, name)
    project_id = new_project_id()
    tx.run(
        "INSERT INTO project (id, person_id, name, name_key, colour, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        project_id,
        person_id,
        clean,
        clean.casefold(),
        _checked_colour(colour),
        now,
    )
    return find(tx, person_id, project_id)[1]


def change(tx: Transaction, person_id: PersonId, text: str, name: str | None, colour: str | None) -> Project:
    """Give a project another name or colour; what is not given stays."""
    no, project = find(tx, person_id, text)
    clean = project.name if name is None else _free_name(tx, person_id, name, but=no)
    tx.run(
        "UPDATE project SET name = $2, name_key = $3, colour = COALESCE($4, colour) WHERE no = $1",
        no,
        clean,
        clean.casefold(),
        _checked_colour(colour),
    )
    return find(tx, person_id, project.id)[1]


def delete(tx: Transaction, person_id: PersonId, text: str) -> Project:
    """Delete a project; its conversations stay, outside of any."""
    no, project = find(tx, person_id, text)
    tx.run("DELETE FROM project WHERE no = $1", no)
    return project


def _free_name(tx: Transaction, person_id: PersonId, name: str, but: int = 0) -> str:
    clean = clean_title(name)
    taken = tx.one(
        "SELECT name FROM project WHERE person_id = $1 AND name_key = $2 AND no <> $3", person_id, clean.casefold(), but
    )
    if taken is not None:
        raise ProjectTaken(f"you already have a project called {taken[0]!r}; choose another name", name=clean)
    return clean


def _checked_colour(colour: str | None) -> str | None:
    if colour is not None and not _COLOUR.fullmatch(colour):
        raise InvalidInput(f"colour: {colour!r} is not allowed; write it like #3b82f6", colour=colour)
    return colour


def _project(row: Row) -> Project:
    return Project(
        id=ProjectId(row[0]), name=row[1], colour=row[2], created_at=from_micros(row[3]), session_count=row[4]
    )

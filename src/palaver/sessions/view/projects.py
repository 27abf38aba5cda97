"""A person's projects: `view.projects`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.core.engines.base import Read, Write
from palaver.core.operation import R, WriteThenWork, operation
from palaver.sessions import projects_table as projects
from palaver.sessions.deletions import build_deletion
from palaver.sessions.view.part import ViewPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Work
    from palaver.sessions.deletion_pieces import HiddenRow
    from palaver.sessions.model import Project


class ProjectOperations(ViewPart[R]):
    """The principal's own projects. An owner who sees everything still sees only their own."""

    @operation
    def list(self) -> Work[Sequence[Project]]:
        """List the projects by name."""
        return Read(lambda tx: projects.list_projects(tx, self._scope.person_id))

    @operation
    def create(self, name: str, color: str | None = None) -> Work[Project]:
        now = self._scope.now()
        return Write(lambda tx: projects.create(tx, self._scope.person_id, name, color, now))

    @operation
    def update(
        self, project: str, *, name: str | None = None, color: str | None = None, instructions: str | None = None
    ) -> Work[Project]:
        """Change the name, color or instructions of a project, given by id or name; empty instructions remove them."""
        return Write(lambda tx: projects.update(tx, self._scope.person_id, project, name, color, instructions))

    @operation
    def delete(self, project: str) -> Work[Project]:
        """Delete a project, given by id or name. Its conversations stay; many of them leave it in the cleanup."""
        return Write(lambda tx: projects.delete(tx, self._scope.person_id, project), frees_space=True)

    @operation
    def delete_completely(self, project: str) -> WriteThenWork[HiddenRow, Project]:
        """Delete a project, and return when the last of its conversations has left it, too."""
        return build_deletion(lambda tx: projects.delete(tx, self._scope.person_id, project))

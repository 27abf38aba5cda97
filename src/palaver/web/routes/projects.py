"""Projects: a person's folders for their conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Path
from pydantic import Field

from palaver.sessions.model import MAX_PROJECT_INSTRUCTION_CHARS
from palaver.web.api_route import make_router
from palaver.web.auth import OwnView
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, ResponseModel, ShortText, Time

if TYPE_CHECKING:
    from palaver.sessions.model import Project

router = make_router("projects", "/api/projects", responses=error_responses(401))


class ProjectOut(ResponseModel):
    """A project: a folder for conversations."""

    id: str
    name: str
    color: str | None
    session_count: int
    created_at: Time
    instructions: str | None = Field(description="What the agent is told in your own conversations of this project.")


class ProjectsOut(ResponseModel):
    """Your projects, sorted by name."""

    projects: list[ProjectOut]


class NewProjectIn(RequestModel):
    """A new project."""

    name: ShortText
    color: ShortText | None = Field(None, examples=["#3b82f6"])


class ProjectChangesIn(RequestModel):
    """Changes to a project. Fields that you leave out stay as they are."""

    name: ShortText | None = None
    color: ShortText | None = None
    instructions: Annotated[str, Field(max_length=MAX_PROJECT_INSTRUCTION_CHARS)] | None = Field(
        None, description="Empty: without any."
    )


ProjectId = Annotated[str, Path(description="The id of a project.", examples=["proj_1a2b3c4d"])]


@router.get("")
async def list_projects(view: OwnView) -> ProjectsOut:
    """List your projects, sorted by name."""
    return ProjectsOut(projects=[_to_project_out(each) for each in await view.projects.list()])


@router.post("", status_code=201)
async def create_project(view: OwnView, body: NewProjectIn) -> ProjectOut:
    """Create a project."""
    return _to_project_out(await view.projects.create(body.name, body.color))


@router.patch("/{project_id}", responses=error_responses(404))
async def update_project(view: OwnView, project_id: ProjectId, body: ProjectChangesIn) -> ProjectOut:
    """Change a project's name, color or instructions."""
    project = await view.projects.update(project_id, name=body.name, color=body.color, instructions=body.instructions)
    return _to_project_out(project)


@router.delete("/{project_id}", status_code=204, responses=error_responses(404))
async def delete_project(view: OwnView, project_id: ProjectId) -> None:
    """Delete a project. Its conversations stay."""
    await view.projects.delete(project_id)


def _to_project_out(project: Project) -> ProjectOut:
    return ProjectOut(
        id=project.id,
        name=project.name,
        color=project.color,
        session_count=project.session_count,
        created_at=project.created_at,
        instructions=project.instructions,
    )

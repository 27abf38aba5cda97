"""Projects: a person's folders for their conversations."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import Field

from palaver.core.wire import TypedDict, build_json
from palaver.sessions.model import MAX_PROJECT_INSTRUCTION_CHARS
from palaver.sessions.view_wire import ProjectJson
from palaver.web.api_route import make_router
from palaver.web.auth import OwnView
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, ShortText

router = make_router("projects", "/api/projects", responses=error_responses(401))


class ProjectsJson(TypedDict):
    """Your projects, sorted by name."""

    projects: list[ProjectJson]


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
async def list_projects(view: OwnView) -> ProjectsJson:
    """List your projects, sorted by name."""
    return ProjectsJson(projects=[build_json(ProjectJson, each) for each in await view.projects.list()])


@router.post("", status_code=201)
async def create_project(view: OwnView, body: NewProjectIn) -> ProjectJson:
    """Create a project."""
    return build_json(ProjectJson, await view.projects.create(body.name, body.color))


@router.patch("/{project_id}", responses=error_responses(404))
async def update_project(view: OwnView, project_id: ProjectId, body: ProjectChangesIn) -> ProjectJson:
    """Change a project's name, color or instructions."""
    project = await view.projects.update(project_id, name=body.name, color=body.color, instructions=body.instructions)
    return build_json(ProjectJson, project)


@router.delete("/{project_id}", status_code=204, responses=error_responses(404))
async def delete_project(view: OwnView, project_id: ProjectId) -> None:
    """Delete a project. Its conversations stay."""
    await view.projects.delete(project_id)

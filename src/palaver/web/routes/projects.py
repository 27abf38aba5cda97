"""Projects: a person's folders for their conversations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from palaver.web.auth import SeenBy
from palaver.web.errors import answers
from palaver.web.wire import ProjectIn, ProjectOut, ProjectPatch, ProjectsOut, project_out

router = APIRouter(prefix="/projects", tags=["projects"], responses=answers(401))

ProjectId = Annotated[str, Path(description="The id of a project.", examples=["proj_1a2b3c4d"])]


@router.get("")
async def list_projects(seen: SeenBy) -> ProjectsOut:
    """Your projects, by name."""
    return ProjectsOut(projects=[project_out(each) for each in await seen.projects()])


@router.post("", status_code=201)
async def create_project(seen: SeenBy, project: ProjectIn) -> ProjectOut:
    """A new project."""
    return project_out(await seen.create_project(project.name, project.colour))


@router.patch("/{project_id}", responses=answers(404))
async def change_project(seen: SeenBy, project_id: ProjectId, changes: ProjectPatch) -> ProjectOut:
    """Give a project another name or colour."""
    return project_out(await seen.change_project(project_id, name=changes.name, colour=changes.colour))


@router.delete("/{project_id}", status_code=204, responses=answers(404))
async def delete_project(seen: SeenBy, project_id: ProjectId) -> None:
    """Delete a project; its conversations stay."""
    await seen.delete_project(project_id)

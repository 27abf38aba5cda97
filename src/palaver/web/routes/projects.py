"""Projects: a person's folders for their conversations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from palaver.services.view import AsyncSessionView
from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.state import State
from palaver.web.wire import ProjectIn, ProjectOut, ProjectPatch, ProjectsOut, project_out

router = APIRouter(prefix="/projects", tags=["projects"], responses=answers(401))


async def _own(state: State, signed: SignedIn) -> AsyncSessionView:
    return state.gateway.store.aio.seen_by(signed.principal)


Own = Annotated[AsyncSessionView, Depends(_own)]
ProjectId = Annotated[str, Path(description="The id of a project.", examples=["proj_1a2b3c4d"])]


@router.get("")
async def list_projects(own: Own) -> ProjectsOut:
    """Your projects, by name."""
    return ProjectsOut(projects=[project_out(each) for each in await own.projects()])


@router.post("", status_code=201)
async def create_project(own: Own, project: ProjectIn) -> ProjectOut:
    """A new project."""
    return project_out(await own.create_project(project.name, project.colour))


@router.patch("/{project_id}", responses=answers(404))
async def change_project(own: Own, project_id: ProjectId, changes: ProjectPatch) -> ProjectOut:
    """Give a project another name or colour."""
    return project_out(await own.change_project(project_id, name=changes.name, colour=changes.colour))


@router.delete("/{project_id}", status_code=204, responses=answers(404))
async def delete_project(own: Own, project_id: ProjectId) -> None:
    """Delete a project; its conversations stay."""
    await own.delete_project(project_id)

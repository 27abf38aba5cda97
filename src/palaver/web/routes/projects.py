"""Projects: a person's folders for their conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from palaver.services.view import AsyncSessionView
from palaver.web.auth import SignedIn
from palaver.web.errors import answers
from palaver.web.schemas import In, Out, Time
from palaver.web.state import State

if TYPE_CHECKING:
    from palaver.domain.session import Project

router = APIRouter(prefix="/projects", tags=["projects"], responses=answers(401))


class ProjectOut(Out):
    """A folder for conversations."""

    id: str
    name: str
    colour: str | None
    session_count: int
    created_at: Time


class ProjectsOut(Out):
    """Your projects by name."""

    projects: list[ProjectOut]


class ProjectIn(In):
    """A new project."""

    name: str
    colour: str | None = Field(None, examples=["#3b82f6"])


class ProjectPatch(In):
    """What is to change; what is left out stays."""

    name: str | None = None
    colour: str | None = None


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


def project_out(project: Project) -> ProjectOut:
    """A project as it goes out."""
    return ProjectOut(
        id=project.id,
        name=project.name,
        colour=project.colour,
        session_count=project.session_count,
        created_at=project.created_at,
    )

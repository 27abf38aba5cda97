"""People: who may use this gateway, as its owner sees and changes them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from palaver.domain.account import Invitation, Member
from palaver.domain.person import Role
from palaver.services.accounts.people import People
from palaver.web.auth import Owner
from palaver.web.errors import answers
from palaver.web.routes.me import Name, WaysOut
from palaver.web.routes.sign_in import site_of
from palaver.web.schemas import In, Out, Time
from palaver.web.state import State, WebState

router = APIRouter(prefix="/people", tags=["people"], responses=answers(401, 403))


class MemberOut(Out):
    """Somebody as the owner sees them."""

    id: str
    name: str
    role: Role
    platforms: list[str] = Field(description="Where they are known.")
    ways: WaysOut | None = Field(description="How they sign in; null when they cannot.")
    seen_at: Time | None = Field(description="When one of their browsers was last here.")
    created_at: Time
    at_terminal: bool = Field(description="Whether they sit at the terminal, and so stay the owner.")


class PeopleOut(Out):
    """A page of people, those who came last first."""

    people: list[MemberOut]
    cursor: str | None


class NewPersonIn(In):
    """Somebody who is to be let in."""

    name: Name
    role: Role = Role.MEMBER


class PersonChangeIn(In):
    """What to change about somebody; what is not given stays."""

    name: Name | None = None
    role: Role | None = None


class LinkOut(Out):
    """A link that signs somebody in once; it is shown here and never again."""

    url: str = Field(description="The token stands behind the #, so that no server is sent it before it is used.")
    expires_at: Time


class InvitedOut(Out):
    """Somebody, and the link to send them."""

    person: MemberOut
    link: LinkOut


def _everybody(signed: Owner, state: State) -> People:
    return state.accounts.people_seen_by(signed.principal)


Everybody = Annotated[People, Depends(_everybody)]


@router.get("")
async def list_people(
    everybody: Everybody,
    role: Role | None = None,
    cursor: Annotated[str, Query(max_length=100)] | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> PeopleOut:
    """Everybody this gateway knows, page by page; guests are those who came from a chat and were not let in yet."""
    page = await everybody.list(role=role, limit=limit, cursor=cursor)
    return PeopleOut(people=[_member(each) for each in page], cursor=page.cursor)


@router.post("", status_code=201)
async def add_person(body: NewPersonIn, everybody: Everybody, request: Request, state: State) -> InvitedOut:
    """Let somebody in: they get a link that works once."""
    return _invited(await everybody.add(body.name, body.role), request, state)


@router.patch("/{person_id}", responses=answers(404))
async def change_person(person_id: str, body: PersonChangeIn, everybody: Everybody) -> MemberOut:
    """Give somebody another name or role; one who becomes a guest is signed out everywhere."""
    return _member(await everybody.change(person_id, name=body.name, role=body.role))


@router.delete("/{person_id}", status_code=204, responses=answers(404))
async def remove_person(person_id: str, everybody: Everybody) -> None:
    """Shut somebody out. Their conversations stay."""
    await everybody.remove(person_id)


@router.post("/{person_id}/link", status_code=201, responses=answers(404))
async def make_link(person_id: str, everybody: Everybody, request: Request, state: State) -> InvitedOut:
    """A new link that signs somebody in once; those made before are worthless from now on."""
    return _invited(await everybody.link(person_id), request, state)


def _invited(invitation: Invitation, request: Request, state: WebState) -> InvitedOut:
    url = f"{site_of(request).origin}{state.base_path}/sign-in#{invitation.secret}"
    return InvitedOut(person=_member(invitation.member), link=LinkOut(url=url, expires_at=invitation.expires_at))


def _member(member: Member) -> MemberOut:
    ways = member.ways
    return MemberOut(
        id=member.person.id,
        name=member.person.name,
        role=member.person.role,
        platforms=list(member.platforms),
        ways=None if ways is None else WaysOut(password=ways.password, passkeys=ways.passkeys),
        seen_at=member.seen_at,
        created_at=member.person.created_at,
        at_terminal=member.at_terminal,
    )

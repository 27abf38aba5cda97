"""People: the owner lists, invites, changes and removes the people who use this server."""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Query, Request
from pydantic import Field

from palaver.accounts.people import People
from palaver.core.operation import AsyncRunner
from palaver.core.text import make_storable
from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.people.erasures_table import check_typed_name
from palaver.people.model import Invitation, Role, is_loopback
from palaver.people.pairing_table import Grant
from palaver.people.wire import MemberJson, PairingRequestJson, member_to_json
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller, OwnerInBrowser, check_browser
from palaver.web.errors import error_responses
from palaver.web.routes.sign_in import get_site
from palaver.web.state import Name, RequestModel, State, WebState

router = make_router("people", "/api/people", responses=error_responses(401, 403))


class PeopleJson(TypedDict):
    """A page of people, newest first."""

    people: list[MemberJson]
    next_cursor: str | None


class NewPersonIn(RequestModel):
    """A person to invite."""

    name: Name
    role: Role = Role.MEMBER


class PersonChangesIn(RequestModel):
    """Changes to a person. Fields that you leave out stay as they are."""

    name: Name | None = None
    role: Role | None = None


class SignInLinkJson(TypedDict):
    """A link that signs a person in once. It is shown only here."""

    url: Annotated[str, Doc("The secret comes after `#`, which browsers do not send to any server.")]
    expires_at: Time
    is_local_only: Annotated[bool, Doc("Whether it works only on the machine of the server.")]


class InvitationJson(TypedDict):
    """A person, and the sign-in link to send them."""

    person: MemberJson
    link: SignInLinkJson


class PairingRequestsJson(TypedDict):
    """Requests for access, the oldest first."""

    requests: list[PairingRequestJson]


class ApprovalIn(RequestModel):
    """The access of the stranger: `member`, `guest` (only in these direct messages) or `me` (it is your account)."""

    grant: Grant


class UnlinkIn(RequestModel):
    """A chat account to take out of a person."""

    platform: Annotated[str, Field(max_length=32)]
    account: Annotated[str, Field(max_length=500)]


class ErasurePreviewJson(TypedDict):
    """The person who would be erased, and how much would go."""

    person_id: str
    name: Annotated[str, Doc("Send it back to confirm.")]
    counts: Annotated[dict[str, int], Doc("How many there are of each kind: conversations, messages, files …")]


class ErasureIn(RequestModel):
    """The name of the person, typed to confirm."""

    name: Annotated[str, Field(max_length=500)]


class ErasureJson(TypedDict):
    """A count of what was erased."""

    counts: Annotated[dict[str, int], Doc("How many there were of each kind.")]
    ended_at: Time | None


async def _get_people(caller: OwnerCaller, state: State) -> People[AsyncRunner]:
    return state.accounts.open_people(caller.principal)


AllPeople = Annotated[People[AsyncRunner], Depends(_get_people)]


@router.get("")
async def list_people(
    people: AllPeople,
    role: Role | None = None,
    cursor: Annotated[str, Query(max_length=100)] | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> PeopleJson:
    """List the people who use this server. Guests wrote in a chat and have not been let in yet."""
    page = await people.list(role=role, limit=limit, cursor=cursor)
    return PeopleJson(people=[member_to_json(each) for each in page], next_cursor=page.cursor)


@router.post("", status_code=201)
async def create_person(
    body: NewPersonIn, caller: OwnerInBrowser, people: AllPeople, request: Request, state: State
) -> InvitationJson:
    """Invite a person. The response contains a sign-in link that works once, so tokens can't do this."""
    invitation = await people.add(body.name, body.role, issued_by=caller.credential_id)
    return _to_invitation_out(invitation, request, state)


@router.get("/requests")
async def list_pairing_requests(people: AllPeople) -> PairingRequestsJson:
    """List the strangers who ask for access."""
    return PairingRequestsJson(requests=[build_json(PairingRequestJson, each) for each in await people.list_requests()])


@router.post("/requests/{request_id}/approve", responses=error_responses(404))
async def approve_pairing_request(
    request_id: str, body: ApprovalIn, caller: OwnerCaller, people: AllPeople
) -> MemberJson:
    """Give a stranger access, and tell them. Returns the person who has it now. Tokens can't give `me`."""
    if body.grant is Grant.ME:
        check_browser(caller)
    return member_to_json(await people.approve(request_id, body.grant))


@router.post("/requests/{request_id}/deny", status_code=204, responses=error_responses(404))
async def deny_pairing_request(request_id: str, people: AllPeople) -> None:
    """Deny a stranger access, and tell them. They get no new code within the hour."""
    await people.deny(request_id)


@router.post("/{person_id}/unlink", responses=error_responses(404))
async def unlink_account(person_id: str, body: UnlinkIn, people: AllPeople) -> MemberJson:
    """Take a chat account out of a person. It gets back what it had before the link; what is new since then stays."""
    return member_to_json(await people.unlink(person_id, f"{body.platform}:{body.account}"))


@router.patch("/{person_id}", responses=error_responses(404))
async def update_person(person_id: str, body: PersonChangesIn, people: AllPeople) -> MemberJson:
    """Change a person's name or role. Making someone a guest signs them out everywhere."""
    return member_to_json(await people.update(person_id, name=body.name, role=body.role))


@router.delete("/{person_id}", status_code=204, responses=error_responses(404))
async def remove_person(person_id: str, people: AllPeople) -> None:
    """Remove a person's access. Their conversations stay."""
    await people.remove(person_id)


@router.get("/{person_id}/erasure", responses=error_responses(404))
async def preview_erasure(person_id: str, caller: OwnerCaller, state: State) -> ErasurePreviewJson:
    """Count what erasing a person would delete. Nothing is changed."""
    preview = await state.erasures.preview(caller.principal, person_id)
    return build_json(ErasurePreviewJson, preview, counts=preview.report.to_dict())


@router.post("/{person_id}/erase", responses=error_responses(404))
async def erase_person(person_id: str, body: ErasureIn, caller: OwnerCaller, state: State) -> ErasureJson:
    """Erase a person everywhere. This can't be undone.

    Their messages in conversations with others become entries of kind `erased`. The response comes when everything is
    gone; if the connection breaks before, the server goes on.
    """
    preview = await state.erasures.preview(caller.principal, person_id)
    check_typed_name(body.name, make_storable(preview.name))
    erasing = asyncio.create_task(state.erasures.erase(caller.principal, preview.person_id), name="palaver-erasure")
    report = await asyncio.shield(erasing)  # not canceled: the erasure goes on even if the caller stops waiting
    return build_json(ErasureJson, report, counts=report.to_dict())


@router.post("/{person_id}/link", status_code=201, responses=error_responses(404))
async def create_sign_in_link(
    person_id: str, caller: OwnerInBrowser, people: AllPeople, request: Request, state: State
) -> InvitationJson:
    """Create a sign-in link that works once. Earlier links no longer work. Tokens can't do this."""
    invitation = await people.create_link(person_id, issued_by=caller.credential_id)
    return _to_invitation_out(invitation, request, state)


def _to_invitation_out(invitation: Invitation, request: Request, state: WebState) -> InvitationJson:
    page_url = _get_page_url_for_others(request, state)
    link = build_json(
        SignInLinkJson,
        invitation,
        url=f"{page_url}/sign-in#{invitation.secret}",
        is_local_only=is_loopback(urlsplit(page_url).hostname or ""),
    )
    return InvitationJson(person=member_to_json(invitation.member), link=link)


def _get_page_url_for_others(request: Request, state: WebState) -> str:
    """Return the URL of the page that other people can most likely reach.

    An owner on the machine of the server itself uses `localhost`, which leads others nowhere.
    """
    own_url = f"{get_site(request).origin}{state.base_path}"
    if state.public_url is not None:
        return state.public_url
    return (state.network_url or own_url) if is_loopback(request.url.hostname or "") else own_url

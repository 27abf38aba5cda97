"""Linking the signed-in person's accounts on other platforms. In a browser only: a token must not hand over a past."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from palaver.accounts.link_requests import LinkProblem, LinkResult, PendingLink
from palaver.people.model import Role
from palaver.web.api_route import make_router
from palaver.web.auth import BrowserCaller
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, ResponseModel, State, Time, to_utf8_text

router = make_router("me", "/api/me/links", responses=error_responses(401, 403))


class LinkedAccountOut(ResponseModel):
    """One of your chat accounts."""

    platform: str
    account: str
    is_linked: bool = Field(
        description="Whether it was linked to your others, and gets back what it had when unlinked."
    )


class PendingLinkOut(ResponseModel):
    """A link that waits until both sides have confirmed."""

    other_name: str
    other_platform: str
    other_account: str | None = Field(description="Only of a chat account that has sent your code.")
    is_issuer: bool = Field(description="Whether you have asked for the code.")
    is_confirmed: bool = Field(description="Whether you have confirmed.")
    is_other_confirmed: bool
    shares: dict[str, int] = Field(description="How much you share, by kind.")
    gets: dict[str, int] | None = Field(description="How much you get; null until the other side has confirmed.")
    role: Role | None = Field(description="The role of both afterwards; null until the side that has it has confirmed.")
    kept_by: str = Field(description="The name of the person with whom everything new after the link stays.")
    expires_at: Time


class LinksOut(ResponseModel):
    """Your chat accounts, and the link that waits for you."""

    accounts: list[LinkedAccountOut]
    pending: PendingLinkOut | None


class LinkCodeOut(ResponseModel):
    """A code to send with `/link` from your other account. It is shown once."""

    code: str
    expires_at: Time


class LinkCodeIn(RequestModel):
    """The code that your other account got with `/link`."""

    code: Annotated[str, Field(min_length=1, max_length=40)]


class LinkAnswerIn(RequestModel):
    """Your answer to the link that waits."""

    answer: Literal["confirm", "cancel"]


class LinkOut(ResponseModel):
    """What came of it."""

    is_linked: bool
    pending: PendingLinkOut | None
    problem: LinkProblem | None = Field(description="Why nothing came of it; `text` says it in words.")
    text: str = Field(description="The same in words, as in a chat.")


class OwnAccountIn(RequestModel):
    """One of your chat accounts."""

    platform: Annotated[str, Field(max_length=100)]
    account: Annotated[str, Field(max_length=500)]


@router.get("")
async def list_links(caller: BrowserCaller, state: State) -> LinksOut:
    """List your chat accounts, and the link that waits for your confirmation."""
    overview = await state.accounts.links.load(caller.person)
    return LinksOut(
        accounts=[
            LinkedAccountOut(platform=each.platform, account=to_utf8_text(each.account), is_linked=each.is_linked)
            for each in overview.accounts
        ],
        pending=_to_pending_out(overview.pending),
    )


@router.post("/code", status_code=201)
async def create_link_code(caller: BrowserCaller, state: State) -> LinkCodeOut:
    """Create a code, valid for 15 minutes. The one before no longer works."""
    created = await state.accounts.links.create_code(caller)
    return LinkCodeOut(code=created.code, expires_at=created.expires_at)


@router.post("")
async def use_link_code(body: LinkCodeIn, caller: BrowserCaller, state: State) -> LinkOut:
    """Ask to be linked with the code of your other account. Nothing is shared until both sides have confirmed."""
    return _to_link_out(await state.accounts.links.use(caller.person, body.code))


@router.post("/answer")
async def answer_link(body: LinkAnswerIn, caller: BrowserCaller, state: State) -> LinkOut:
    """Confirm or cancel the link that waits. When both sides have confirmed, the accounts are linked."""
    return _to_link_out(await state.accounts.links.use(caller.person, body.answer))


@router.post("/unlink", status_code=204, responses=error_responses(404))
async def unlink_own_account(body: OwnAccountIn, caller: BrowserCaller, state: State) -> None:
    """Separate one of your chat accounts. It gets back what it had before the link; what is new since then stays."""
    await state.accounts.links.unlink(caller.person, f"{body.platform}:{body.account}")


def _to_link_out(result: LinkResult) -> LinkOut:
    return LinkOut(
        is_linked=result.person is not None,
        pending=_to_pending_out(result.pending),
        problem=result.problem,
        text=to_utf8_text(result.text),
    )


def _to_pending_out(pending: PendingLink | None) -> PendingLinkOut | None:
    if pending is None:
        return None
    return PendingLinkOut(
        other_name=to_utf8_text(pending.other_name),
        other_platform=pending.other_platform,
        other_account=None if pending.other_account is None else to_utf8_text(pending.other_account),
        is_issuer=pending.is_issuer,
        is_confirmed=pending.is_confirmed,
        is_other_confirmed=pending.is_other_confirmed,
        shares=dict(pending.shares),
        gets=None if pending.gets is None else dict(pending.gets),
        role=pending.role,
        kept_by=to_utf8_text(pending.kept_by),
        expires_at=pending.expires_at,
    )

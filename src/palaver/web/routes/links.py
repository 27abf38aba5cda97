"""Linking the signed-in person's accounts on other platforms. In a browser only: a token must not hand over a past."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from palaver.accounts.link_requests import LinkProblem, LinkResult, PendingLink
from palaver.accounts.wire import LinkedAccountJson, PendingLinkJson
from palaver.core.text import make_storable
from palaver.core.wire import build_json
from palaver.web.api_route import make_router
from palaver.web.auth import BrowserCaller
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, ResponseModel, State, Time

router = make_router("me", "/api/me/links", responses=error_responses(401, 403))


class LinksOut(ResponseModel):
    """Your chat accounts, and the link that waits for you."""

    accounts: list[LinkedAccountJson]
    pending: PendingLinkJson | None


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
    pending: PendingLinkJson | None
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
        accounts=[build_json(LinkedAccountJson, each) for each in overview.accounts],
        pending=_to_pending_json(overview.pending),
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
        pending=_to_pending_json(result.pending),
        problem=result.problem,
        text=make_storable(result.text),
    )


def _to_pending_json(pending: PendingLink | None) -> PendingLinkJson | None:
    return None if pending is None else build_json(PendingLinkJson, pending)

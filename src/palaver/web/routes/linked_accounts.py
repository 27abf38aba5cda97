"""The chat accounts of the signed-in person. Linking works in a browser only: a token must not hand over a past."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from palaver.accounts.link_requests import LinkProblem, LinkResult
from palaver.accounts.wire import LinkedAccountJson, PendingLinkJson
from palaver.core.wire import Doc, Time, TypedDict, build_json
from palaver.web.api_route import make_router
from palaver.web.auth import BrowserCaller
from palaver.web.errors import error_responses
from palaver.web.state import RequestModel, State

router = make_router("me", "/api/me", responses=error_responses(401, 403))


class LinksJson(TypedDict):
    """Your chat accounts, and the link that waits for you."""

    accounts: list[LinkedAccountJson]
    pending: PendingLinkJson | None


class LinkCodeJson(TypedDict):
    """A code to send with `/link` from your other account. It is shown once."""

    code: str
    expires_at: Time


class LinkCodeIn(RequestModel):
    """The code that your other account got with `/link`."""

    code: Annotated[str, Field(min_length=1, max_length=40)]


class LinkAnswerIn(RequestModel):
    """Your answer to the link that waits."""

    answer: Literal["confirm", "cancel"]


class LinkJson(TypedDict):
    """The result of a code or an answer."""

    is_linked: bool
    pending: PendingLinkJson | None
    problem: Annotated[LinkProblem | None, Doc("Why nothing came of it; `text` says it in words.")]
    text: Annotated[str, Doc("The same in words, as in a chat.")]


class OwnAccountIn(RequestModel):
    """One of your chat accounts."""

    platform: Annotated[str, Field(max_length=100)]
    account: Annotated[str, Field(max_length=500)]


@router.get("/links")
async def list_links(caller: BrowserCaller, state: State) -> LinksJson:
    """List your chat accounts, and the link that waits for your confirmation."""
    return build_json(LinksJson, await state.accounts.links.load(caller.person))


@router.post("/links/code", status_code=201)
async def create_link_code(caller: BrowserCaller, state: State) -> LinkCodeJson:
    """Create a code, valid for 15 minutes. The one before no longer works."""
    return build_json(LinkCodeJson, await state.accounts.links.create_code(caller))


@router.post("/links")
async def use_link_code(body: LinkCodeIn, caller: BrowserCaller, state: State) -> LinkJson:
    """Ask to be linked with the code of your other account. Nothing is shared until both sides have confirmed."""
    return _to_link_json(await state.accounts.links.use(caller.person, body.code))


@router.post("/links/answer")
async def answer_link(body: LinkAnswerIn, caller: BrowserCaller, state: State) -> LinkJson:
    """Confirm or cancel the link that waits. When both sides have confirmed, the accounts are linked."""
    return _to_link_json(await state.accounts.links.use(caller.person, body.answer))


@router.post("/links/unlink", status_code=204, responses=error_responses(404))
async def unlink_own_account(body: OwnAccountIn, caller: BrowserCaller, state: State) -> None:
    """Separate one of your chat accounts. It gets back what it had before the link; what is new since then stays."""
    await state.accounts.links.unlink(caller.person, f"{body.platform}:{body.account}")


def _to_link_json(result: LinkResult) -> LinkJson:
    return build_json(LinkJson, result, is_linked=result.person is not None)

"""The JSON of linked accounts: for the API and commands."""

from __future__ import annotations

from typing import Annotated

from palaver.core.wire import Doc, Time, TypedDict
from palaver.people.model import Role


class LinkedAccountJson(TypedDict):
    """One of your chat accounts."""

    platform: str
    account: str
    is_linked: Annotated[bool, Doc("Whether it was linked to your others, and gets back what it had when unlinked.")]


class PendingLinkJson(TypedDict):
    """A link that waits until both sides have confirmed."""

    other_name: str
    other_platform: str
    other_account: Annotated[str | None, Doc("Only of a chat account that has sent your code.")]
    is_issuer: Annotated[bool, Doc("Whether you have asked for the code.")]
    is_confirmed: Annotated[bool, Doc("Whether you have confirmed.")]
    is_other_confirmed: bool
    shares: Annotated[dict[str, int], Doc("How much you share, by kind.")]
    gets: Annotated[dict[str, int] | None, Doc("How much you get; null until the other side has confirmed.")]
    role: Annotated[Role | None, Doc("The role of both afterwards; null until the side that has it has confirmed.")]
    kept_by: Annotated[str, Doc("The name of the person with whom everything new after the link stays.")]
    expires_at: Time

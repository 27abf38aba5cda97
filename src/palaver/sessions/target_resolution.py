"""Finds the chat that the agent means when it repeats a delivery target as it was shown one.

`targets` has the grammar; who may send where is decided by `delivery/reachable_chats.py`. A chat that the
agent was shown may be written as it was shown, hidden or not, in quotes or not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from palaver.core.errors import InvalidInput
from palaver.core.texts import say
from palaver.sessions.context import Redactor, format_prompt_target, needs_raw_ids, quote_chat_text
from palaver.sessions.targets import DeliveryTarget, format_chat_target, parse_target, strip_quotes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from palaver.core.source import SessionSource
    from palaver.sessions.gateway_config import HomeChannel

    Place = SessionSource | HomeChannel

P = TypeVar("P", bound="SessionSource | HomeChannel")
_HIDDEN_ID = re.compile(r"[0-9a-f]{12}")


def find_shown_place(text: str, places: Iterable[P], redactor: Redactor | None) -> P | None:
    """Return the place that was shown with exactly this text; raises InvalidInput if two chats were."""
    network, colon, chat = strip_quotes(text).partition(":")
    if not colon:
        return None
    platform, at, account = network.partition("@")
    spelled = f"{platform.strip().lower()}{at}{account.strip()}:{chat}"
    matches = {make_target(place): place for place in places if spelled in _list_spellings(place, redactor)}
    if len(matches) > 1:
        raise InvalidInput(say("target.two", "{text} matches two chats.", text=quote_chat_text(text)), target=text)
    return next(iter(matches.values()), None)


def is_hidden_chat(target: DeliveryTarget, redactor: Redactor | None) -> bool:
    """Return whether a target names its chat by a hidden id; twelve digits alone may be a real id."""
    return (
        redactor is not None
        and not needs_raw_ids(target.platform)
        and _HIDDEN_ID.fullmatch(target.chat_id) is not None
        and not target.chat_id.isdigit()
    )


def find_hidden_chat(target: DeliveryTarget, places: Iterable[P], redactor: Redactor | None) -> P | None:
    """Return a place in the chat whose hidden id a target has, whichever thread it names."""
    if redactor is None or needs_raw_ids(target.platform) or not _HIDDEN_ID.fullmatch(target.chat_id):
        return None
    candidates = [place for place in places if (place.platform, place.account) == (target.platform, target.account)]
    chat_id = redactor.find_chat_id(target.platform, target.chat_id, (place.chat_id for place in candidates))
    return next((place for place in candidates if place.chat_id == chat_id), None)


def hide_chat_id(text: str, redactor: Redactor | None) -> str:
    """Return a target as the agent is shown it; what `find_hidden_chat` finds again."""
    if redactor is None:
        return text
    try:
        target = parse_target(text)
    except InvalidInput:  # the grammar has changed since it was stored
        return "a place that no longer exists"
    if target.kind != "chat" or needs_raw_ids(target.platform):
        return text
    hidden = redactor.hide_chat_id(target.platform, target.chat_id)
    return format_chat_target(target.platform, hidden, target.thread_id, target.account)


def make_target(place: Place) -> DeliveryTarget:
    return DeliveryTarget("chat", place.platform, place.chat_id, place.thread_id, place.account)


def _list_spellings(place: Place, redactor: Redactor | None) -> set[str]:
    """Return a target in every form the agent may write it: raw or hidden, and as the prompt quotes either."""
    hiding = None if redactor is None or needs_raw_ids(place.platform) else redactor
    targets = {format_prompt_target(place, each) for each in (None, hiding)}
    in_quotes = {quote_chat_text(target)[1:-1] for target in targets}
    return targets | in_quotes | {re.sub(r"\\(.)", r"\1", text) for text in in_quotes}

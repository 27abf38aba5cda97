"""Finds the place that the agent or a job names with a delivery target, from where a conversation takes place.

`targets` has the grammar. A chat that the prompt has shown may be written as it was shown there, hidden or not.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.domain.context import format_prompt_target, quote_chat_text
from palaver.domain.errors import InvalidInput
from palaver.domain.redact import needs_raw_ids
from palaver.domain.source import Platform
from palaver.domain.targets import DeliveryTarget, parse_target, strip_quotes

if TYPE_CHECKING:
    from palaver.domain.context import SessionContext
    from palaver.domain.gateway_config import HomeChannel
    from palaver.domain.redact import Redactor
    from palaver.domain.source import SessionSource

    Place = SessionSource | HomeChannel

_HIDDEN_ID = re.compile(r"[0-9a-f]{12}")


def resolve_target(target: str, context: SessionContext, redactor: Redactor | None = None) -> DeliveryTarget:
    """Return the place that `target` names; `InvalidInput` lists the valid targets.

    Valid are `origin`, `local`, the name of a platform (its home channel) and `platform:chat[:thread]`, where the chat
    may be written as the prompt showed it, hidden or not.
    """
    text = strip_quotes(target)
    platform = _find_platform(text, context)
    if platform is not None and ":" in text and (found := _find_in_prompt(platform, text, context, redactor)):
        return found
    try:
        parsed = parse_target(text)
    except InvalidInput:
        if platform is None:
            raise _build_error(text.partition(":")[0], context, "is not a connected platform") from None
        raise _build_error(text, context, "names no chat") from None
    source = context.source
    if parsed.kind == "local" or (parsed.kind == "origin" and source.platform == Platform.LOCAL):
        return DeliveryTarget("local")
    if parsed.kind == "origin":
        return DeliveryTarget("origin", source.platform, source.chat_id, source.thread_id, source.account)
    if platform is None:
        raise _build_error(text.partition(":")[0], context, "is not a connected platform")
    if parsed.kind == "home":
        return _resolve_home(platform, context)
    return _reveal_hidden_chat(parsed, text, context, redactor)


def _find_platform(text: str, context: SessionContext) -> Platform | None:
    """Return the connected platform that a target begins with."""
    name = text.partition(":")[0].partition("@")[0].strip().lower()
    return next((each for each in _list_platforms(context) if each == name), None)


def _list_platforms(context: SessionContext) -> list[Platform]:
    """Return the platforms that can be sent to."""
    homes = {home.platform for home in context.home_channels}
    return sorted({context.source.platform, *context.connected_platforms, *homes} - {Platform.LOCAL})


def _resolve_home(platform: Platform, context: SessionContext) -> DeliveryTarget:
    for home in context.home_channels:
        if home.platform == platform:
            return _make_target(home)
    raise InvalidInput(f"{platform.label} has no home channel; {_list_valid_targets(context)}", platform=platform)


def _find_in_prompt(
    platform: Platform, text: str, context: SessionContext, redactor: Redactor | None
) -> DeliveryTarget | None:
    """Return the chat that the prompt has shown with exactly this text; raises if it has shown two."""
    redactor = None if redactor is None or needs_raw_ids(platform) else redactor
    network, _, chat = text.partition(":")
    spelled = f"{platform}{network.strip()[len(platform) :]}:{chat}"
    matches = {
        _make_target(place)
        for place in _list_places_in_prompt(platform, context)
        if spelled in _list_spellings(place, redactor)
    }
    if len(matches) > 1:
        raise _build_error(text, context, "matches two chats")
    return next(iter(matches), None)


def _list_places_in_prompt(platform: Platform, context: SessionContext) -> list[Place]:
    places: list[Place] = [home for home in context.home_channels if home.platform == platform]
    if context.source.platform == platform and context.source.chat_id:
        places.append(context.source)
    return places


def _list_spellings(place: Place, redactor: Redactor | None) -> set[str]:
    """Return a target in every form the agent may write it: raw or hidden, and as the prompt quotes either."""
    targets = {format_prompt_target(place, each) for each in (None, redactor)}
    in_quotes = {quote_chat_text(target)[1:-1] for target in targets}
    return targets | in_quotes | {re.sub(r"\\(.)", r"\1", text) for text in in_quotes}


def _reveal_hidden_chat(
    target: DeliveryTarget, text: str, context: SessionContext, redactor: Redactor | None
) -> DeliveryTarget:
    """Return the target with the real id of its chat, if it was written with a hidden one."""
    chat_ids = {place.chat_id for place in _list_places_in_prompt(target.platform, context)}
    if (
        redactor is None
        or needs_raw_ids(target.platform)
        or target.chat_id in chat_ids
        or not _HIDDEN_ID.fullmatch(target.chat_id)
    ):
        return target
    hidden = f"{target.platform}:{target.chat_id}"
    found = redactor.resolve_chat(hidden, [(target.platform, each) for each in chat_ids])
    if found is None and not target.chat_id.isdigit():  # twelve digits alone may be a real id
        raise _build_error(text, context, "is an unknown hidden id")
    return replace(target, chat_id=found or target.chat_id)


def _make_target(place: Place) -> DeliveryTarget:
    return DeliveryTarget("chat", place.platform, place.chat_id, place.thread_id, place.account)


def _build_error(text: str, context: SessionContext, problem: str) -> InvalidInput:
    return InvalidInput(f"{quote_chat_text(text)} {problem}; {_list_valid_targets(context)}", target=text)


def _list_valid_targets(context: SessionContext) -> str:
    names = ", ".join(["origin", "local", *(home.platform for home in context.home_channels)])
    platforms = ", ".join(_list_platforms(context))
    return f"valid targets: {names}" + (f", or platform:chat_id[:thread] on {platforms}" if platforms else "")

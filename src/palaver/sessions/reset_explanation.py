"""Explains automatic restarts to people: why a conversation was started by a reset policy, and who set the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.source import ChatType, Platform
from palaver.sessions import log_table as events
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS, format_profile_key
from palaver.sessions.policy import ResetPolicy, ResetReason, explain_reset

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.model import Session

_CHAT_TYPES: Final = {
    ChatType.DM: "direct messages",
    ChatType.GROUP: "groups",
    ChatType.CHANNEL: "channels",
    ChatType.THREAD: "threads",
}


def explain_automatic_start(tx: Transaction, config: GatewayConfig, session_no: int, session: Session) -> str:
    """Return the sentence that tells a person why a reset policy has started this session.

    Its log has the setting that applied then; with the present value of the setting, the sentence is more precise.
    """
    first = events.list_events(tx, session_no, limit=1)
    facts = first[0].facts if first else {}
    profile = _find_profile(facts.get("reset_setting"))
    policy = config.get_reset_policy(session.origin)
    if profile is not None:
        policy = config.reset_by_profile.get(profile, ResetPolicy())  # it may have been removed since
    return explain_reset(ResetReason(session.start_reason.value), policy, profile, facts.get("profile"))


def describe_origin(setting_key: str) -> str:
    """Say for whom a reset policy is set: for a profile, a platform, a type of chats, or by default."""
    section, _, name = setting_key.partition(".")
    if (profile := _find_profile(setting_key)) is not None:
        return f"set for the profile “{profile}”"
    if section == "reset_by_platform" and Platform(name) in MULTI_SESSION_PLATFORMS:
        return "conversations on the page and in the API never restart automatically"
    if section == "reset_by_platform":
        return f"set for {Platform(name).label}"
    return f"set for {_CHAT_TYPES[ChatType(name)]}" if section == "reset_by_type" else "default"


def _find_profile(setting_key: object) -> str | None:
    """Return the profile whose reset policy has this key; None if it is not that of a profile."""
    if not isinstance(setting_key, str) or not setting_key.startswith("profiles."):
        return None
    name = setting_key.split(".")[1]
    return name if setting_key == format_profile_key(name) else None

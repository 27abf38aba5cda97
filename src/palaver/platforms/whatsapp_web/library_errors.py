"""The errors of the library, in our own words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.texts import say
from palaver.platforms.whatsapp_web.protocol import ErrorKind, State

if TYPE_CHECKING:
    from neonize.proto import Neonize_pb2 as neonize

MAX_REASON_CHARS: Final = 200

# The first that is found in the text of an error decides. What is not recognized may have arrived.
_KINDS: Final = (
    ("websocket disconnected before message send", ErrorKind.UNCERTAIN),
    ("timed out waiting for message send", ErrorKind.UNCERTAIN),
    ("rate-overlimit", ErrorKind.RATE_LIMITED),
    ("status 429", ErrorKind.RATE_LIMITED),
    ("not participating in that group", ErrorKind.UNREACHABLE),
    ("group does not exist", ErrorKind.UNREACHABLE),
    ("item-not-found", ErrorKind.UNREACHABLE),
    ("forbidden", ErrorKind.UNREACHABLE),
    ("unknown server", ErrorKind.UNREACHABLE),
    ("no signal session established", ErrorKind.NOT_SENT),
    ("server returned error", ErrorKind.REFUSED),
    ("websocket not connected", ErrorKind.NOT_SENT),
    ("websocket disconnected before info query", ErrorKind.NOT_SENT),
    ("device list", ErrorKind.NOT_SENT),
    ("info query", ErrorKind.NOT_SENT),
    ("contain a device jid", ErrorKind.NOT_SENT),
    ("upload", ErrorKind.NOT_SENT),
    ("download", ErrorKind.NOT_SENT),
)
_DIGITS: Final = re.compile(r"\d{5,}")
OWNER_LOGOUTS: Final = {
    "LOGGED_OUT": say(
        "whatsapp_web.link_ended",
        "The link was ended on the phone (Linked devices), or the phone was not online for two weeks.",
    ),
    "MAIN_DEVICE_GONE": say(
        "whatsapp_web.account_locked",
        "WhatsApp has locked the account, or it has moved to another phone. Open WhatsApp on the"
        " phone to see what it says.",
    ),
    "UNKNOWN_LOGOUT": say(
        "whatsapp_web.link_ended_by_whatsapp",
        "WhatsApp has ended the link, possibly because it has banned the number. Open WhatsApp on the"
        " phone to see what it says.",
    ),
}
_BANS: Final = {
    "SEND_TO_TOO_MANY_PEOPLE": say(
        "whatsapp_web.ban_strangers",
        "too many messages went to people who do not have this number in their contacts",
    ),
    "BLOCKED_BY_USERS": say("whatsapp_web.ban_blocked", "too many people have blocked this number"),
    "CREATED_TOO_MANY_GROUPS": say(
        "whatsapp_web.ban_groups", "too many groups were created with people who do not have this number"
    ),
    "SENT_TOO_MANY_SAME_MESSAGE": say("whatsapp_web.ban_same_message", "the same message was sent too often"),
    "BROADCAST_LIST": say("whatsapp_web.ban_broadcast", "too many messages went to a broadcast list"),
}


def classify_error(text: str) -> ErrorKind:
    """Return what a failed request means for what was to be sent."""
    lowered = text.lower()
    return next((kind for words, kind in _KINDS if words in lowered), ErrorKind.UNCERTAIN)


def describe_library_error(text: str) -> str:
    """Return the words of the library in a line, without the numbers of people."""
    line = _DIGITS.sub("…", " ".join(text.split()))
    if "dial" in line:
        reason = line.rpartition("dial ")[2][:MAX_REASON_CHARS]
        return say(
            "whatsapp_web.unreachable",
            "WhatsApp can't be reached. Check the network connection of this machine ({reason}).",
            reason=reason,
        )
    return f"WhatsApp: {line[:MAX_REASON_CHARS]}"


def describe_ban(ban: neonize.TemporaryBan, now: datetime | None = None) -> str:
    """Return why WhatsApp has banned the number for a while, and until when."""
    code = ban.DESCRIPTOR.fields_by_name["Code"].enum_type.values_by_number.get(ban.Code)
    reason = _BANS.get(code.name if code else "", say("whatsapp_web.behaved_like_program", "it behaved like a program"))
    seconds = ban.Expire / 1_000_000_000 if ban.Expire > 10**11 else ban.Expire  # Go counts in nanoseconds
    if not 0 < seconds < timedelta(days=365).total_seconds():
        return say(
            "whatsapp_web.banned_because", "WhatsApp has banned this number for a while: {reason}.", reason=reason
        )
    until = (now or datetime.now(UTC)) + timedelta(seconds=seconds)
    return say(
        "whatsapp_web.banned_until",
        "WhatsApp has banned this number until {until}: {reason}.",
        until=f"{until:%Y-%m-%d %H:%M} UTC",
        reason=reason,
    )


def translate_failure(failure: neonize.ConnectFailure) -> tuple[State, dict[str, Any]]:
    """Return the state that follows when WhatsApp refuses the connection."""
    values = failure.DESCRIPTOR.fields_by_name["Reason"].enum_type.values_by_number
    name = values[failure.Reason].name if failure.Reason in values else "GENERIC"
    if name in OWNER_LOGOUTS:
        return State.LOGGED_OUT, {"reason": OWNER_LOGOUTS[name]}
    if name == "TEMP_BANNED":
        return State.BANNED, {"reason": say("whatsapp_web.banned", "WhatsApp has banned this number for a while.")}
    if name in {"CLIENT_OUTDATED", "BAD_USER_AGENT"}:
        return State.OUTDATED, {}
    return State.UNAVAILABLE, {
        "reason": say(
            "whatsapp_web.connection_refused",
            "WhatsApp refuses the connection for now ({reason}).",
            reason=name.lower().replace("_", " "),
        )
    }

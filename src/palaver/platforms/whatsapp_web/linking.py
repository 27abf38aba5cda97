"""Tells the owner how to link a phone, and what to do when WhatsApp refuses; remembers the latest messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from palaver.core.dataclass import dataclass
from palaver.core.errors import AccountRefused, ConnectionLost
from palaver.core.recent_entries import RecentEntries
from palaver.core.texts import join_texts, say
from palaver.delivery.model import LinkingPrompt
from palaver.platforms.whatsapp_web.inbound import is_group
from palaver.platforms.whatsapp_web.protocol import SESSION_FILE, State

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_LINKING_ROUNDS: Final = 5  # each shows codes for some minutes
LINKING_EXPIRED: Final = say(
    "whatsapp_web.linking_expired",
    "This account was not linked with a phone in time. Choose “Connect now” when you have your"
    " phone at hand: then a new code is shown.",
)
MENU: Final = say(
    "whatsapp_web.menu",
    "On your phone, open WhatsApp, then Settings on an iPhone or the menu ⋮ on Android, then"
    " Linked devices, then Link a device.",
)
ACCOUNT_FILE: Final = "account.json"  # who the linked account is
_INSTALL: Final = say(
    "whatsapp_web.install",
    "Install it with `pip install 'palaver[whatsapp-web]'`, in the same environment as Palaver,"
    " and start the server again.",
)
_LIBMAGIC: Final = say(
    "whatsapp_web.libmagic",
    "The WhatsApp library needs libmagic, which is not installed. On Debian and Ubuntu: `sudo apt"
    " install libmagic1`; on macOS: `brew install libmagic`. Then choose “Connect now”.",
)
_REFUSALS: Final = {
    State.REPLACED: say(
        "whatsapp_web.keys_in_use",
        "Another program uses the keys of this linked device, such as a second Palaver with a copy of"
        " this folder. Stop the other one, and then choose “Connect now”. If there is none, remove"
        " the device on your phone (WhatsApp, Linked devices) and link it again.",
    ),
    State.OUTDATED: say(
        "whatsapp_web.version_refused",
        "WhatsApp no longer accepts this version of the library. Install a newer one with `pip"
        " install --upgrade neonize`, and start the server again.",
    ),
    State.BANNED: say(
        "whatsapp_web.stop_for_now",
        "Stop this account for now (platforms.whatsapp-web.enabled: false), and look into WhatsApp on your phone.",
    ),
}

MAX_MESSAGES: Final = 1000
MAX_QUOTE_CHARS: Final = 300


def make_prompt(state: State, fields: Mapping[str, Any], notice: str) -> LinkingPrompt:
    """Return what the owner has to do to link their phone; `notice` says why it is needed again."""
    how = (
        say("whatsapp_web.scan_code", "Scan this code.")
        if state is State.QR_CODE
        else say("whatsapp_web.type_code", "Choose “Link with phone number instead”, and type this code.")
    )
    code = str(fields["code"])
    return LinkingPrompt(
        instructions=join_texts(" ", filter(None, [notice, MENU, how])),
        qr_text=code if state is State.QR_CODE else None,
        code=code if state is State.PAIRING_CODE else None,
        expires_at=datetime.now(UTC) + timedelta(seconds=float(fields["seconds"])),
    )


def describe_failed_start(module: str, error: str) -> str:
    """Return why the library can't be loaded, and how to fix it."""
    if "libmagic" in error.lower():
        return _LIBMAGIC
    if module:
        return say(
            "whatsapp_web.package_missing",
            "WhatsApp Web needs the Python package {module}, which can't be loaded. {fix}",
            module=module,
            fix=_INSTALL,
        )
    return say(
        "whatsapp_web.library_not_loaded",
        "The WhatsApp library can't be loaded on this machine: {error}",
        error=error[:200],
    )


def raise_refusal(state: State, reason: str) -> NoReturn:
    """Raise what the end of a connection means: whether connecting again helps, and what to do."""
    if (fix := _REFUSALS.get(state)) is not None:
        raise AccountRefused(join_texts(" ", filter(None, [reason, fix])))
    raise ConnectionLost(
        reason or say("whatsapp_web.connection_whatsapp_ended", "The connection to WhatsApp has ended.")
    )


def put_session_aside(folder: Path) -> None:
    """Make room for new keys. The old ones stay beside them, until the next time."""
    (folder / ACCOUNT_FILE).unlink(missing_ok=True)
    for ending in ("", "-wal", "-shm"):
        path = folder / f"{SESSION_FILE}{ending}"
        if path.exists():
            path.replace(folder / f"session.logged-out.db{ending}")


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message, as far as a reply or a reaction needs it."""

    sender: str
    text: str  # its beginning, which phones show in a reply
    is_own: bool  # from our number


class RecentMessages:
    """The latest messages and reactions of one account: WhatsApp wants to be told whose message is replied to.

    Only in memory: after a restart, replies in groups quote nothing.
    """

    def __init__(self) -> None:
        self._messages: RecentEntries[str, SeenMessage] = RecentEntries(MAX_MESSAGES)
        # Message and person → emoji.
        self._reactions: RecentEntries[tuple[str, str], str] = RecentEntries(MAX_MESSAGES)
        self.sent_ids: RecentEntries[str, None] = RecentEntries(MAX_MESSAGES)

    def remember_received(self, event: Mapping[str, Any]) -> None:
        if event["kind"] == "message":
            seen = SeenMessage(event["sender"], event["text"][:MAX_QUOTE_CHARS], event["is_self"])
            self._messages.remember(event["id"], seen)

    def remember_sent(self, chat: str, message_id: str, text: str) -> None:
        self.sent_ids.remember(message_id, None)
        self._messages.remember(message_id, SeenMessage(chat, text[:MAX_QUOTE_CHARS], is_own=True))

    def remember_reaction(self, event: Mapping[str, Any]) -> str | None:
        """Remember a reaction; for one that is taken back, return which it was, if that is known."""
        if event["kind"] != "reaction":
            return None
        key = (event["target"], event["sender"])
        if event["emoji"]:
            self._reactions.remember(key, event["emoji"])
            return None
        return self._reactions.pop(key, None)

    def find(self, message_id: str) -> SeenMessage | None:
        return self._messages.get(message_id)

    def find_quote(self, chat: str, message_id: str) -> dict[str, str] | None:
        """Return what a reply quotes; None if it is sent without: in a group, its author is no longer known."""
        seen = self._messages.get(message_id)
        if seen is not None:
            return {"id": message_id, "sender": seen.sender, "text": seen.text}
        return None if is_group(chat) else {"id": message_id, "sender": chat, "text": ""}

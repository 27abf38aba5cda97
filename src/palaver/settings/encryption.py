"""Encrypts secret settings, each bound to its own key: a value that is moved to another setting can't be read there.

AES-256-GCM with a random nonce for every value; the name of the setting is authenticated with it.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import PalaverError
from palaver.core.texts import say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from palaver.config.settings_key import KeyRing, SettingsKey
    from palaver.core.ids import PersonId


_NONCE_BYTES: Final = 12
_FORMAT: Final = 1
_MIN_HINT_CHARS: Final = 16  # of a shorter secret, nothing is shown
_HINT_CHARS: Final = 4


class DecryptionFailed(PalaverError):
    """This secret can't be decrypted."""

    @property
    def code(self) -> str:
        return "seal_broken"  # the name that programs know


def _decrypt(ring: KeyRing, name: str, encrypted: Mapping[str, Any]) -> Any:
    """Decrypt the value of a setting. Raises DecryptionFailed, with what to do about it."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if encrypted.get("format") != _FORMAT:
        raise DecryptionFailed.say(
            "settings.secret_of_newer_version",
            "a newer version of Palaver has encrypted it. Upgrade Palaver, or set it again.",
        )
    key = ring.find(str(encrypted.get("key")))
    if key is None:
        raise DecryptionFailed(explain_missing_key(ring))
    try:
        data = base64.b64decode(str(encrypted.get("data")), validate=True)
        return json.loads(AESGCM(key.material).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _bind(name)))
    except (InvalidTag, binascii.Error, ValueError):
        raise DecryptionFailed.say(
            "settings.secret_changed_outside", "it was changed outside of Palaver and can't be decrypted. Set it again."
        ) from None


def explain_missing_key(ring: KeyRing) -> str:
    """Say what to do if secrets were encrypted with a key that this machine does not have."""
    if ring.is_from_variable:
        return say(
            "settings.wrong_secret_key",
            "PALAVER_SECRET_KEY is not the key that it was encrypted with. Use that one, or set the secret again.",
        )
    if not ring.keys:
        return say(
            "settings.key_missing",
            "its key is missing on this machine. Copy settings.key from the home folder of the machine"
            " where it was set, or set PALAVER_SECRET_KEY, or set the secret again.",
        )
    return say(
        "settings.wrong_key_file",
        "settings.key in the home folder is not the key that it was encrypted with. Restore that"
        " file, or set the secret again.",
    )


def _bind(name: str) -> bytes:
    return b"palaver setting\0" + name.encode()


def write_plain(value: object) -> str:
    return json.dumps({"value": value}, ensure_ascii=False, sort_keys=True)


def write_encrypted(key: SettingsKey, name: str, value: object) -> str:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    data = nonce + AESGCM(key.material).encrypt(nonce, json.dumps(value).encode(), _bind(name))
    encrypted = {"format": _FORMAT, "key": key.id, "data": base64.b64encode(data).decode()}
    if isinstance(value, str) and len(value) >= _MIN_HINT_CHARS:
        encrypted["hint"] = value[-_HINT_CHARS:]
    return json.dumps({"sealed": encrypted})


def is_encrypted(text: str | None) -> bool:
    return text is not None and "sealed" in json.loads(text)


def read_value(text: str, key: str, ring: KeyRing) -> Any:
    """Return the value; an encrypted one is decrypted. Raises DecryptionFailed."""
    content = json.loads(text)
    return _decrypt(ring, key, content["sealed"]) if "sealed" in content else content["value"]


def read_or_keep_encrypted(text: str, key: str, ring: KeyRing) -> Any:
    """Return the value, or the encrypted text of one that can't be decrypted now."""
    try:
        return read_value(text, key, ring)
    except DecryptionFailed:
        return text


def read_shown(text: str | None) -> Any:
    """Return a value as the history shows it: of a secret, only that it was set, and at most its last characters."""
    if text is None:
        return None
    content = json.loads(text)
    if "sealed" not in content:
        return content["value"]
    hint = content["sealed"].get("hint")
    return say("settings.set_with_hint", "set (…{hint})", hint=hint) if hint else say("settings.set", "set")


def read_hint(text: str) -> str | None:
    """Return the last characters of a secret, if it is long enough to show them."""
    hint = json.loads(text).get("sealed", {}).get("hint")
    return None if hint is None else str(hint)


@dataclass(frozen=True, slots=True)
class ChangeItem:
    """One key of a change; None: it was, or is, not set. People see only of a secret that it is set."""

    key: str
    stored_before: str | None  # JSON
    stored_after: str | None

    @property
    def before(self) -> Any:
        return read_shown(self.stored_before)

    @property
    def after(self) -> Any:
        return read_shown(self.stored_after)

    @property
    def is_secret(self) -> bool:
        return is_encrypted(self.stored_before) or is_encrypted(self.stored_after)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """Keys that a person has changed together."""

    number: int
    changed_at: datetime
    person_id: PersonId | None
    person_name: str | None
    origin: str  # page or terminal
    undoes: int | None  # the number of the change that this one has undone
    items: tuple[ChangeItem, ...]

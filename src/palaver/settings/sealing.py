"""Encrypts secret settings, each bound to its own key: a value that is moved to another setting can't be read there.

AES-256-GCM with a random nonce for every value; the name of the setting is authenticated with it.
"""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import PalaverError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.config.settings_key import KeyRing, SettingsKey

_NONCE_BYTES: Final = 12
_FORMAT: Final = 1
_MIN_HINT_CHARS: Final = 16  # of a shorter secret, nothing is shown
_HINT_CHARS: Final = 4


class SealBroken(PalaverError):
    """This secret can't be decrypted."""


def seal(key: SettingsKey, name: str, value: object) -> dict[str, Any]:
    """Encrypt the value of a setting; the result is JSON."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    content = json.dumps(value).encode()
    data = nonce + AESGCM(key.material).encrypt(nonce, content, _bind(name))
    sealed: dict[str, Any] = {"format": _FORMAT, "key": key.id, "data": base64.b64encode(data).decode()}
    if isinstance(value, str) and len(value) >= _MIN_HINT_CHARS:
        sealed["hint"] = value[-_HINT_CHARS:]
    return sealed


def unseal(ring: KeyRing, name: str, sealed: Mapping[str, Any]) -> Any:
    """Decrypt the value of a setting. Raises SealBroken, with what to do about it."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if sealed.get("format") != _FORMAT:
        raise SealBroken("a newer version of Palaver has encrypted it. Upgrade Palaver, or set it again.")
    key = ring.find(str(sealed.get("key")))
    if key is None:
        raise SealBroken(explain_missing_key(ring))
    try:
        data = base64.b64decode(str(sealed.get("data")), validate=True)
        return json.loads(AESGCM(key.material).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _bind(name)))
    except (InvalidTag, binascii.Error, ValueError):
        raise SealBroken("it was changed outside of Palaver and can't be decrypted. Set it again.") from None


def explain_missing_key(ring: KeyRing) -> str:
    """Say what to do if secrets were encrypted with a key that this machine does not have."""
    if ring.is_from_variable:
        return "PALAVER_SECRET_KEY is not the key that it was encrypted with. Use that one, or set the secret again."
    if not ring.keys:
        return (
            "its key is missing on this machine. Copy settings.key from the home folder of the machine where it was"
            " set, or set PALAVER_SECRET_KEY, or set the secret again."
        )
    return (
        "settings.key in the home folder is not the key that it was encrypted with. Restore that file, or set the"
        " secret again."
    )


def _bind(name: str) -> bytes:
    return b"palaver setting\0" + name.encode()

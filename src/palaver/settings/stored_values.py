"""The JSON of a setting in the database: a plain value, or an encrypted one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from palaver.settings.sealing import SealBroken, unseal

if TYPE_CHECKING:
    from palaver.config.settings_key import KeyRing


def write_plain(value: object) -> str:
    return json.dumps({"value": value}, ensure_ascii=False, sort_keys=True)


def write_sealed(sealed: dict[str, Any]) -> str:
    return json.dumps({"sealed": sealed})


def is_sealed(text: str | None) -> bool:
    return text is not None and "sealed" in json.loads(text)


def read_value(text: str, key: str, ring: KeyRing) -> Any:
    """Return the value; an encrypted one is decrypted. Raises SealBroken."""
    content = json.loads(text)
    return unseal(ring, key, content["sealed"]) if "sealed" in content else content["value"]


def read_or_keep_sealed(text: str, key: str, ring: KeyRing) -> Any:
    """Return the value, or the encrypted text of one that can't be decrypted now."""
    try:
        return read_value(text, key, ring)
    except SealBroken:
        return text


def read_shown(text: str | None) -> Any:
    """Return a value as the history shows it: of a secret, only that it was set, and at most its last characters."""
    if text is None:
        return None
    content = json.loads(text)
    return describe_sealed(content["sealed"]) if "sealed" in content else content["value"]


def describe_sealed(sealed: dict[str, Any]) -> str:
    hint = sealed.get("hint")
    return f"set (…{hint})" if hint else "set"


def read_hint(text: str) -> str | None:
    """Return the last characters of a secret, if it is long enough to show them."""
    hint = json.loads(text).get("sealed", {}).get("hint")
    return None if hint is None else str(hint)

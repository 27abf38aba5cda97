"""The key with which this installation identifies itself to the push services of browsers (VAPID, RFC 8292).

Owns the file `push.key` in the home folder: a private key of the curve P-256, as its 32 bytes. It is never in the
database. Browsers are subscribed to this key, so several hosts of one installation need the same file.

Always true: the file is created once, is readable only by its owner, and is either complete or absent.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from palaver.core.errors import ConfigError
from palaver.core.secret_file import create_secret_file

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME: Final = "push.key"
KEY_BYTES: Final = 32
_CURVE_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256


def load_push_key(home: Path) -> int:
    """Return the private key from `<home>/push.key`; create the file on first use. Raises ConfigError."""
    path = home / FILE_NAME
    try:
        if not path.exists():
            number = secrets.randbelow(_CURVE_ORDER - 1) + 1
            create_secret_file(path, number.to_bytes(KEY_BYTES, "big"))
        with path.open("rb") as stream:
            key = stream.read(KEY_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path}: can't read or create the key for notifications ({error.strerror}).", file=str(path)
        ) from error
    number = int.from_bytes(key, "big")
    if len(key) != KEY_BYTES or not 1 <= number < _CURVE_ORDER:
        raise ConfigError(
            f"{path}: this is not a key for notifications. Restore the file, or delete it to create a"
            " new one; browsers then subscribe again when their page is opened.",
            file=str(path),
        )
    return number

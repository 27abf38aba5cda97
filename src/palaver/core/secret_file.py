"""The install secret: random bytes that only this installation knows, with which it hides ids.

Owns the file `secret` in the home folder; `domain.redact` uses it.

Always true: the file is created once, is readable only by its owner, and is either complete or absent, however many
processes ask for it first.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final

from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

SECRET_BYTES: Final = 32


def load_install_secret(home: Path) -> bytes:
    """Return the install secret from `<home>/secret`; create the file on first use.

    Two processes that do this at the same time get the same secret.
    """
    path = home / "secret"
    try:
        if not path.exists():
            create_secret_file(path, secrets.token_bytes(SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: can't read or create the install secret ({error.strerror})", file=str(path)
        ) from error
    if len(secret) < SECRET_BYTES:
        raise ConfigError(
            f"{path}: the install secret has {len(secret)} bytes, but it needs {SECRET_BYTES}. Restore the file, or "
            "delete it to create a new one, which changes every hidden id.",
            file=str(path),
        )
    return secret


def create_secret_file(path: Path, secret: bytes) -> None:
    """Create the file, complete or not at all, unless another process was faster."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(secret)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink(missing_ok=True)

"""The install secret: random bytes that make this installation's hidden ids its own.

Owns the file `secret` in the home folder. What is made with the secret is the business of `domain.redact`.

Always true: it is made once, readable by its owner alone, and is in its place whole or not at all, however many
processes ask for it first.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final

from palaver.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

SECRET_BYTES: Final = 32


def install_secret(home: Path) -> bytes:
    """The secret of this installation, made on first use and kept in `<home>/secret` for its owner alone.

    Two processes that ask for the first time at once get the same one.
    """
    path = home / "secret"
    try:
        if not path.exists():
            _keep(path, secrets.token_bytes(SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: the install secret: {error.strerror}", file=str(path)) from error
    if len(secret) < SECRET_BYTES:
        raise ConfigError(
            f"{path}: an install secret has at least {SECRET_BYTES} bytes, this has {len(secret)}; restore "
            "the file, or remove it and a new one is made, which changes every hidden id",
            file=str(path),
        )
    return secret


def _keep(path: Path, secret: bytes) -> None:
    """Put a secret at `path` unless somebody else was faster; it appears there whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".secret.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(secret)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)

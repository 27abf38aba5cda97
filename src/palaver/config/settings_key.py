"""The keys with which secret settings are encrypted. They are never in the database.

They are in the variable PALAVER_SECRET_KEY, or in the file `settings.key` in the home folder, which is created with the
first secret. The first key encrypts; further ones still decrypt, while secrets are re-encrypted.

Always true: the file is readable only by its owner, and complete or absent, however many processes need it at once.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import ConfigError
from palaver.core.files import create_secret_file, flush_folder, write_file_atomically
from palaver.core.texts import say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VARIABLE: Final = "PALAVER_SECRET_KEY"
FILE_NAME: Final = "settings.key"
KEY_BYTES: Final = 32
MIN_KEY_CHARS: Final = 32  # of a key in the variable
_MAX_FILE_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True, repr=False)
class SettingsKey:
    """One key; its id names it without revealing it."""

    material: bytes

    @property
    def id(self) -> str:
        return hashlib.sha256(b"palaver settings key id\0" + self.material).hexdigest()[:16]

    @classmethod
    def from_text(cls, text: str) -> SettingsKey:
        return cls(hashlib.sha256(b"palaver settings key\0" + text.encode()).digest())


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys that this process has; the first one encrypts what is new."""

    keys: tuple[SettingsKey, ...]
    is_from_variable: bool

    def find(self, key_id: str) -> SettingsKey | None:
        return next((key for key in self.keys if key.id == key_id), None)


def generate_key_text() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode().rstrip("=")


def load_key_ring(home: Path, environ: Mapping[str, str]) -> KeyRing:
    """Return the keys of this machine; none if there is no variable and no file. Raises ConfigError."""
    text = environ.get(VARIABLE, "").strip()
    if text:
        return KeyRing(_parse_keys(text.replace(",", " ").split(), VARIABLE), is_from_variable=True)
    path = home / FILE_NAME
    try:
        texts = read_key_texts(home)
    except OSError as error:
        message = say(
            "settings.key_file_unreadable",
            "{file}: can't read the key of the settings ({error}).",
            file=path,
            error=error.strerror,
        )
        raise ConfigError(message, file=str(path)) from error
    return KeyRing(_parse_keys(texts, str(path)), is_from_variable=False)


def create_key_file(home: Path) -> KeyRing:
    """Create the file with a new key, unless another process was faster; return what is in it."""
    path = home / FILE_NAME
    try:
        create_secret_file(path, f"{generate_key_text()}\n".encode())
    except OSError as error:
        raise ConfigError.say(
            "settings.key_file_not_created",
            "{file}: can't create the key of the settings ({error}).",
            file=path,
            error=error.strerror,
        ) from error
    return load_key_ring(home, {})


def read_key_texts(home: Path) -> list[str]:
    """Return the keys of the file as text; none if there is no file."""
    try:
        with (home / FILE_NAME).open("rb") as stream:
            lines = stream.read(_MAX_FILE_BYTES).decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return []
    return [line.strip() for line in lines if line.strip()]


def write_key_file(home: Path, texts: list[str]) -> None:
    """Replace the keys in the file: all of them or none, also if the process is killed. The first one encrypts."""
    path = home / FILE_NAME
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file_atomically(path, "".join(f"{text}\n" for text in texts), overwrite=True)
    flush_folder(path.parent)


def _parse_keys(texts: list[str], source: str) -> tuple[SettingsKey, ...]:
    if any(len(text) < MIN_KEY_CHARS for text in texts):
        raise ConfigError(
            say(
                "settings.key_too_short",
                "{place}: a key has at least {limit} characters without spaces. Several keys are separated by"
                " commas; the first one encrypts. Make one with `openssl rand -base64 32`.",
                place=source,
                limit=MIN_KEY_CHARS,
            ),
            source=source,
        )
    return tuple(SettingsKey.from_text(text) for text in texts)

"""Readers of the files of other programs, and of Palaver's own, by the name of their format.

A reader module is imported when its format is asked for. Each has `open_reader(path) -> ImportReader`.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from palaver.transfer.imported import InvalidImport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from palaver.transfer.imported import ImportReader

# The names that people type, and the modules.
READER_MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hermes": "hermes",
        "chatgpt": "chatgpt",
        "claude": "claude",
        "open-webui": "open_webui",
        "openclaw": "openclaw",
        "palaver": "palaver",
    }
)
_MODULES_WITH_ACCOUNTS: Final = frozenset({"open_webui"})


def open_reader(import_format: str, path: Path, account: str | None = None) -> ImportReader:
    """Open the files of a program; raises InvalidImport if they are not what the format has.

    `account` chooses one of several accounts that the files have, in formats with accounts.
    """
    name = READER_MODULES.get(import_format.replace("_", "-"))
    if name is None:
        known = ", ".join(READER_MODULES)
        raise InvalidImport(f"{import_format!r} is not a format that can be imported ({known}).", format=import_format)
    module = import_module(f"{__name__}.{name}")
    if account is None:
        return cast("ImportReader", module.open_reader(path))
    if name not in _MODULES_WITH_ACCOUNTS:
        raise InvalidImport(f"The files of {import_format} have no accounts to choose from.", format=import_format)
    return cast("ImportReader", module.open_reader(path, account))

"""Readers of the files of other programs, and of Palaver's own: which are installed, and how their files are opened.

A reader is found by its manifest; its module is loaded when its format is opened. Other packages add readers as entry
points of `palaver.importers`, as pyproject.toml does for the ones below, and may replace one of them by its name.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

from palaver.transfer.imported import ENTRY_POINT_GROUP, ImportReader, InvalidImport, ReaderManifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


log = logging.getLogger(__name__)

HERMES: Final = ReaderManifest(
    name="hermes", label="Hermes", opener=f"{__name__}.hermes:open_reader", default_path="~/.hermes"
)
# The patterns are keys that only one program's conversations have. Inside of a text, a backslash would come before the
# quotation mark.
CHATGPT: Final = ReaderManifest(
    name="chatgpt",
    label="ChatGPT",
    opener=f"{__name__}.chatgpt:open_reader",
    pattern=re.compile(rb'(?<!\\)"mapping"\s*:\s*\{'),
)
CLAUDE: Final = ReaderManifest(
    name="claude",
    label="Claude",
    opener=f"{__name__}.claude:open_reader",
    pattern=re.compile(rb'(?<!\\)"chat_messages"\s*:\s*\['),
)
OPEN_WEBUI: Final = ReaderManifest(
    name="open-webui",
    label="Open WebUI",
    opener=f"{__name__}.open_webui:open_reader",
    has_accounts=True,
    pattern=re.compile(rb'(?<!\\)"chat"\s*:\s*\{'),
)
OPENCLAW: Final = ReaderManifest(
    name="openclaw", label="OpenClaw", opener=f"{__name__}.openclaw:open_reader", default_path="~/.openclaw"
)
PALAVER: Final = ReaderManifest(
    name="palaver",
    label="Palaver",
    opener=f"{__name__}.palaver:open_reader",
    pattern=re.compile(rb'\A\s*\{[^\n]{0,200}?"format"\s*:\s*"palaver'),
    archive_member="palaver.jsonl",
)
# They are there also if the package was installed before it had these entry points.
BUILT_IN: Final = (HERMES, CHATGPT, CLAUDE, OPEN_WEBUI, OPENCLAW, PALAVER)


@cache
def get_manifests() -> Mapping[str, ReaderManifest]:
    """Return the readers that are installed, by the names of their formats."""
    return load_manifests(entry_points(group=ENTRY_POINT_GROUP))


def load_manifests(points: Iterable[EntryPoint]) -> dict[str, ReaderManifest]:
    """Return the built-in readers and those of entry points; one that cannot be loaded is logged and left out."""
    manifests = {each.name: each for each in BUILT_IN}
    replaced: set[str] = set()
    for point in points:
        try:
            manifest = point.load()
        except Exception as error:  # noqa: BLE001  (another package's mistake must not stop the import)
            _log_problem(point, f"{type(error).__name__}: {error}")
            continue
        if not isinstance(manifest, ReaderManifest):
            _log_problem(point, f"{point.value} is not a ReaderManifest")
        elif manifest.name in replaced:
            _log_problem(point, f"{manifest.name} is provided twice")
        elif manifest not in BUILT_IN:
            replaced.add(manifest.name)
            manifests[manifest.name] = manifest
    return {name: manifest for name, manifest in manifests.items() if _is_installed(manifest)}


def _log_problem(point: EntryPoint, error: str) -> None:
    package = None if point.dist is None else point.dist.name
    log.error("importer_not_loaded", extra={"entry_point": point.name, "package": package, "error": error})


def _is_installed(manifest: ReaderManifest) -> bool:
    try:
        return find_spec(manifest.opener.partition(":")[0]) is not None
    except (ImportError, ValueError):
        return False


def find_manifest(import_format: str) -> ReaderManifest:
    """Return the reader of a format; raises InvalidImport if none is installed."""
    manifests = get_manifests()
    manifest = manifests.get(import_format.replace("_", "-"))
    if manifest is None:
        known = ", ".join(manifests)
        raise InvalidImport(f"{import_format!r} is not a format that can be imported ({known}).", format=import_format)
    return manifest


def open_reader(import_format: str, path: Path, account: str | None = None) -> ImportReader:
    """Open the files of a program; raises InvalidImport if they are not what the format has.

    `account` chooses one of several accounts that the files have, in formats with accounts.
    """
    manifest = find_manifest(import_format)
    if account is not None and not manifest.has_accounts:
        raise InvalidImport(f"The files of {import_format} have no accounts to choose from.", format=import_format)
    module, _, function = manifest.opener.partition(":")
    open_files = getattr(import_module(module), function)
    return cast("ImportReader", open_files(path) if account is None else open_files(path, account))

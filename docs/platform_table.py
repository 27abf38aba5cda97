"""Write the tables of what works on which platform: `python -m docs.platform_table`.

They are made from the capabilities in the manifests of the platforms, and stand between two markers in the README and
in docs/platforms/README.md. With `--check` it only says whether they are up to date, which a test does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.core.source import BUILT_IN_PLATFORMS
from palaver.delivery.model import LengthUnit
from palaver.platforms.registry import load_manifests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from palaver.delivery.model import Capabilities
    from palaver.platforms.manifest import PlatformManifest

README = Path(__file__).parent.parent / "README.md"
PLATFORM_README = Path(__file__).parent / "platforms" / "README.md"
START = "<!-- What works where: written by `python -m docs.platform_table`. -->"
END = "<!-- End of what works where. -->"
YES, NO = "✓", "–"

Column = Callable[["Capabilities"], str]


def main() -> None:
    pages = _render_pages()
    if sys.argv[1:] == ["--check"]:
        outdated = [page for page, text in pages.items() if page.read_text(encoding="utf-8") != text]
        if outdated:
            sys.exit(f"Not up to date: {', '.join(map(str, outdated))}. Renew: python -m docs.platform_table")
        return
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")


def _render_pages() -> dict[Path, str]:
    """Return the pages that contain a table, with the tables as they should be."""
    manifests = load_manifests()
    shown = [manifests[platform] for platform in BUILT_IN_PLATFORMS if platform in manifests]
    tables = {README: [MAIN_COLUMNS], PLATFORM_README: [MAIN_COLUMNS, MORE_COLUMNS]}
    return {page: _replace_tables(page, shown, columns) for page, columns in tables.items()}


def _replace_tables(page: Path, manifests: Sequence[PlatformManifest], tables: Sequence[Mapping[str, Column]]) -> str:
    before, rest = page.read_text(encoding="utf-8").split(START)
    _, after = rest.split(END)
    folder = PLATFORM_README.parent.relative_to(page.parent)
    rendered = "\n\n".join(_render_table(manifests, columns, folder) for columns in tables)
    return f"{before}{START}\n\n{rendered}\n\n{END}{after}"


def _render_table(manifests: Sequence[PlatformManifest], columns: Mapping[str, Column], folder: Path) -> str:
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for manifest in manifests:
        link = f"[{manifest.platform.label}]({folder / f'{manifest.platform}.md'})"
        cells = [link, *(column(manifest.capabilities) for column in columns.values())]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _describe_length(capabilities: Capabilities) -> str:
    if capabilities.max_length is None:
        return "any length"
    unit = "bytes" if capabilities.length_unit is LengthUnit.BYTES else "characters"
    return f"{capabilities.max_length:,} {unit}"


def _describe_file_size(capabilities: Capabilities) -> str:
    size = capabilities.max_file_bytes
    if not size:
        return NO
    megabytes = size / 1e6 if size % 1_000_000 == 0 else size / 2**20
    return f"{megabytes / 1000:g} GB" if megabytes >= 1000 else f"{megabytes:.3g} MB"


def _describe_streaming(capabilities: Capabilities) -> str:
    ways = ["live" * capabilities.has_native_stream, "edits" * capabilities.can_edit]
    return ", ".join(filter(None, ways)) or NO


def _describe_reply_window(capabilities: Capabilities) -> str:
    window = capabilities.reply_window
    return "always" if window is None else f"for {_format_hours(window)} after a message"


def _describe_repetition(capabilities: Capabilities) -> str:
    lifetime = capabilities.key_lifetime
    return f"repeated safely for {_format_hours(lifetime)}" if lifetime else "shown as *uncertain*"


def _format_hours(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    if seconds < 3600:
        return f"{seconds / 60:g} minutes"
    return f"{seconds / 3600:g} hours"


def _mark(value: object) -> str:
    return YES if value else NO


MAIN_COLUMNS: dict[str, Column] = {
    "text": _describe_length,
    "files in": lambda can: _mark(can.receives_files),
    "files out": _describe_file_size,
    "voice notes": lambda can: _mark(can.receives_voice),
    "edits": lambda can: _mark(can.receives_edits),
    "threads": lambda can: _mark(can.has_threads),
    "buttons": lambda can: _mark(can.max_buttons),
    "streaming": _describe_streaming,
    "groups": lambda can: _mark(can.has_groups),
    "the agent can write": _describe_reply_window,
}
MORE_COLUMNS: dict[str, Column] = {
    "typing sign": lambda can: _mark(can.typing_seconds),
    "reactions": lambda can: _mark(can.can_react),
    "a send that was cut off": _describe_repetition,
}


if __name__ == "__main__":
    main()

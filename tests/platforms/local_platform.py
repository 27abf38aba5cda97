"""A platform that runs on this machine, with people on it: what tests and benchmarks of several platforms at once use.

Each platform has a subclass in its folder, `local_<name>.py`, on top of the server that stands for it in its own tests.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AsyncExitStack
    from pathlib import Path

    from palaver.core.source import Platform
    from palaver.testing import Fault

ADA = "ada"
BEN = "ben"
GROUP = "group"

_CLASSES = {
    "telegram": "LocalTelegram",
    "matrix": "LocalMatrix",
    "webhook": "LocalWebhook",
    "discord": "LocalDiscord",
    "slack": "LocalSlack",
    "whatsapp": "LocalWhatsApp",
    "whatsapp-web": "LocalWhatsAppWeb",
    "signal": "LocalSignal",
    "email": "LocalEmail",
}


class LocalPlatform(ABC):
    """Ada and Ben have a direct chat each with the agent, and are in a group with it. Use it as a context manager."""

    platform: ClassVar[Platform]
    chats: ClassVar[Sequence[str]] = (ADA, BEN, GROUP)  # a direct chat is named after its person
    faults: ClassVar[frozenset[Fault]] = frozenset()  # that pass by themselves
    hook_url: str = ""  # where it sends webhooks; set before it is used

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # for its own files

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...

    @abstractmethod
    def build_settings(self) -> dict[str, Any]:
        """Return the settings of our account, as they stand in config.yaml."""

    @abstractmethod
    async def say(self, person: str, chat: str, text: str) -> None:
        """Write a message to the agent as a person; in the group with a mention of it."""

    @abstractmethod
    async def list_answers(self, chat: str) -> Sequence[str]:
        """Return the texts of our account that people see in a chat, oldest first."""

    async def disturb(self, fault: Fault) -> None:
        """Let a fault happen once: at once, or to the next request that it can break."""
        raise NotImplementedError

    def has_pending_fault(self, fault: Fault) -> bool:
        """Whether an earlier fault still waits for a request that this one would break, too."""
        raise NotImplementedError

    def list_problems(self) -> Sequence[str]:
        """Return how our requests have broken the published types of the platform."""
        return ()


def load_local_platforms(*names: str) -> list[type[LocalPlatform]]:
    """Return these platforms; without names, all of them."""
    return [_load(name) for name in names or _CLASSES]


async def start_local_platforms(stack: AsyncExitStack, folder: Path, *names: str) -> list[LocalPlatform]:
    """Start these platforms, or all of them, until the end of the stack; each has a folder of its own."""
    platforms = []
    for each in load_local_platforms(*names):
        own_folder = folder / str(each.platform)
        own_folder.mkdir()
        platforms.append(await stack.enter_async_context(each(own_folder)))
    return platforms


def _load(name: str) -> type[LocalPlatform]:
    folder = name.replace("-", "_")
    module = importlib.import_module(f"platforms.{folder}.local_{folder}")
    return cast("type[LocalPlatform]", getattr(module, _CLASSES[name]))

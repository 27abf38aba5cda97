"""A server that is connected to several local platforms, for tests of all platforms at once."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from palaver import GatewayConfig
from palaver.gateway.account_link import ConfiguredAccount
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.registry import load_manifests
from palaver.sessions.keys import DmScope
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.web import run_web_server

from .local_platform import start_local_platforms

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from palaver.agent.base import AgentRequest
    from palaver.delivery.adapter import Adapter
    from palaver.gateway.account_runner import ConnectionTiming
    from palaver.testing import ScriptedAgent
    from support.web import WebServer

    from .local_platform import LocalPlatform

WORD = re.compile(r"\bword-[a-z0-9-]+")


def tell_everything(request: AgentRequest) -> str:
    """Answer with every word that the agent has been shown, so that nothing that it knows stays hidden."""
    return " ".join(["I know", *sorted(set(WORD.findall(f"{request.instructions} {request.messages}")))])


class Neighborhood:
    """A server that is connected to several local platforms."""

    def __init__(self, web: WebServer, platforms: Sequence[LocalPlatform]) -> None:
        self.web = web
        self.platforms = platforms

    async def say(self, local: LocalPlatform, person: str, chat: str, text: str) -> str:
        """Write a message, wait for the answer to it, and return the answer."""
        count = len(await local.list_answers(chat))
        await local.say(person, chat, text)
        return await self.wait_for_answer(local, chat, count + 1)

    @staticmethod
    async def wait_for_answer(local: LocalPlatform, chat: str, count: int) -> str:
        """Wait until a chat has so many answers, and return the last one."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while len(answers := await local.list_answers(chat)) < count:
            assert time.monotonic() < deadline, f"{local.platform} shows only {answers} in the chat {chat!r}"
            await asyncio.sleep(0.01)
        return answers[-1]


@asynccontextmanager
async def open_neighborhood(
    tmp_path: Path,
    agent: ScriptedAgent,
    *names: str,
    is_open: bool,
    dm_scope: DmScope = DmScope.CHAT,
    timing: ConnectionTiming | None = None,
) -> AsyncIterator[Neighborhood]:
    """Start the local servers of these platforms, and a server that is connected to them."""
    async with AsyncExitStack() as stack:
        platforms = await start_local_platforms(stack, tmp_path, *names)
        open_platforms = frozenset(local.platform for local in platforms) if is_open else frozenset()
        web = await stack.enter_async_context(
            run_web_server(
                f"sqlite:///{tmp_path}/palaver.db",
                tmp_path,
                agent,
                config=GatewayConfig(dm_scope=dm_scope),
                rules={"open_platforms": open_platforms, "unstreamed_platforms": open_platforms},
                timing=timing,
            )
        )
        for local in platforms:
            local.hook_url = f"{web.url}/hooks/{local.platform}"
        await web.gateway.accounts.replace_accounts([make_account(local, tmp_path) for local in platforms])
        await wait_until(lambda: len(web.gateway.accounts.list_live_adapters()) == len(platforms))
        yield Neighborhood(web, platforms)
        assert [problem for local in platforms for problem in local.list_problems()] == []


def make_account(local: LocalPlatform, tmp_path: Path) -> ConfiguredAccount:
    """Describe our account; as in production, every connection has an adapter of its own."""
    manifest = load_manifests()[local.platform]
    settings = manifest.settings.model_validate(local.build_settings())
    place = AccountPlace(account="", folder=tmp_path / f"{local.platform}-keys", webhook_url=None)

    async def create() -> Adapter:
        return manifest.create_adapter(settings, place)

    return ConfiguredAccount(platform=local.platform, account="", create=create, capabilities=manifest.capabilities)

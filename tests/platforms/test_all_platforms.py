"""All platforms at once, each on its local server: what one person says in one place never appears in another."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig
from palaver.domain.keys import DmScope
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.registry import load_manifests
from palaver.testing import ScriptedAgent
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.web import run_web_server

from .local_platform import ADA, BEN, GROUP, load_local_platforms

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    import httpx2

    from palaver.agent.base import AgentRequest
    from palaver.services.platforms.adapter import Adapter
    from support.web import WebServer

    from .local_platform import LocalPlatform

WORD = re.compile(r"\bword-[a-z0-9-]+")
CODE = re.compile(r"[0-9A-Z]{4}-[0-9A-Z]{4}")
LINKED_PLATFORMS = ("telegram", "discord", "slack", "email")

pytestmark = pytest.mark.slow


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
    tmp_path: Path, agent: ScriptedAgent, *names: str, is_open: bool, dm_scope: DmScope = DmScope.CHAT
) -> AsyncIterator[Neighborhood]:
    """Start the local servers of these platforms, and a server that is connected to them."""
    async with AsyncExitStack() as stack:
        platforms = []
        for each in load_local_platforms(*names):
            folder = tmp_path / str(each.platform)
            folder.mkdir()
            platforms.append(await stack.enter_async_context(each(folder)))
        open_platforms = frozenset(local.platform for local in platforms) if is_open else frozenset()
        web = await stack.enter_async_context(
            run_web_server(
                f"sqlite:///{tmp_path}/palaver.db",
                tmp_path,
                agent,
                adapters=[make_adapter(local, tmp_path) for local in platforms],
                config=GatewayConfig(dm_scope=dm_scope),
                rules={"open_platforms": open_platforms, "unstreamed_platforms": open_platforms},
            )
        )
        for local in platforms:
            local.hook_url = f"{web.url}/hooks/{local.platform}"
        await wait_until(lambda: len(web.gateway.accounts.list_live_adapters()) == len(platforms))
        yield Neighborhood(web, platforms)
        assert [problem for local in platforms for problem in local.list_problems()] == []


def make_adapter(local: LocalPlatform, tmp_path: Path) -> Adapter:
    manifest = load_manifests()[local.platform]
    settings = manifest.settings.model_validate(local.build_settings())
    return manifest.create(
        settings, AccountPlace(account="", folder=tmp_path / f"{local.platform}-keys", webhook_url=None)
    )


async def test_nothing_that_is_said_in_one_place_is_known_in_another(tmp_path: Path) -> None:
    async with open_neighborhood(tmp_path, ScriptedAgent(tell_everything), is_open=True) as here:
        await asyncio.gather(*(talk_everywhere(here, local) for local in here.platforms))
        for local in here.platforms:
            for chat in local.chats:
                answers = await local.list_answers(chat)
                own = f"word-{local.platform}-{chat}-"
                assert [word for word in WORD.findall(" ".join(answers)) if not word.startswith(own)] == []
                speaker = BEN if chat == GROUP else chat
                assert {f"{own}{speaker}-{number}" for number in (1, 2)} <= set(WORD.findall(answers[-1]))


async def talk_everywhere(here: Neighborhood, local: LocalPlatform) -> None:
    """Let both people write twice in every chat of a platform; in the group Ben is the last."""
    for number in (1, 2):
        for chat in local.chats:
            for person in (ADA, BEN) if chat == GROUP else (chat,):
                await here.say(local, person, chat, f"Please note word-{local.platform}-{chat}-{person}-{number}")


async def test_one_person_with_accounts_on_four_platforms_has_one_conversation(tmp_path: Path) -> None:
    agent = ScriptedAgent(tell_everything)
    async with open_neighborhood(tmp_path, agent, *LINKED_PLATFORMS, is_open=False, dm_scope=DmScope.PERSON) as here:
        owner = await here.web.sign_in()
        session_id = await here.web.create_session(owner)
        for local in here.platforms:
            code = CODE.search(await here.say(local, ADA, ADA, "hello?"))
            assert code is not None
            count = len(await local.list_answers(ADA))
            await here.web.send_message(owner, session_id, f"/link {code[0]}")
            await here.wait_for_answer(local, ADA, count + 1)
            assert CODE.search(await here.say(local, BEN, BEN, "hello?")) is not None
        await let_everybody_in(owner)

        expected = set()
        for local in here.platforms:
            expected.add(f"word-{local.platform}-{ADA}")
            assert set(WORD.findall(await here.say(local, ADA, ADA, f"Note word-{local.platform}-{ADA}"))) == expected
        for local in here.platforms:
            await here.wait_for_answer(local, BEN, 2)
            answer = await here.say(local, BEN, BEN, f"Note word-{local.platform}-{BEN}")
            assert set(WORD.findall(answer)) == {f"word-{local.platform}-{BEN}"}


async def let_everybody_in(owner: httpx2.AsyncClient) -> None:
    for request in (await owner.get("/api/people/requests")).json()["requests"]:
        response = await owner.post(f"/api/people/requests/{request['id']}/approve", json={"grant": "member"})
        assert response.is_success, response.text

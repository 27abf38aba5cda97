"""All platforms at once, each on its local server: what one person says in one place never appears in another."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from palaver.sessions.keys import DmScope
from palaver.testing import ScriptedAgent

from .local_platform import ADA, BEN, GROUP
from .neighborhood import WORD, Neighborhood, open_neighborhood, tell_everything

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from .local_platform import LocalPlatform

CODE = re.compile(r"[0-9A-Z]{4}-[0-9A-Z]{4}")
LINKED_PLATFORMS = ("telegram", "discord", "slack", "email")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "names", [LINKED_PLATFORMS, pytest.param((), marks=pytest.mark.soak)], ids=["four_platforms", "all_platforms"]
)
async def test_nothing_that_is_said_in_one_place_is_known_in_another(tmp_path: Path, names: tuple[str, ...]) -> None:
    async with open_neighborhood(tmp_path, ScriptedAgent(tell_everything), *names, is_open=True) as here:
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
            await here.web.send_message(owner, session_id, f"/pair {code[0]} me")
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

"""One person writes on Telegram, goes on in the browser and ends elsewhere: one conversation, and only theirs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import httpx2
import pytest
from playwright.async_api import expect

from browser.conftest import send_message, wait_for_answer
from palaver import GatewayConfig
from palaver.drivers.demo import DemoAgent
from palaver.platforms.loopback import LoopbackAdapter
from palaver.platforms.manifest import AccountPlace
from palaver.platforms.matrix.adapter import MatrixAdapter
from palaver.platforms.matrix.manifest import MatrixSettings
from palaver.sessions.keys import DmScope
from platforms.matrix.homeserver import Person, share_synapse
from platforms.telegram.bot_api_server import PRIVATE, BotApiServer
from platforms.telegram.conftest import make_adapter_for
from support.gateway import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from browser.conftest import Visitors
    from palaver.delivery.adapter import Adapter
    from support.web import StartWebServer, WebServer

BEN = {"id": 77, "is_bot": False, "first_name": "Ben", "username": "ben"}
BEN_CHAT = {"id": 77, "type": "private", "first_name": "Ben", "username": "ben"}
SECRET = "the blue door is open"
CODE = re.compile(r"[0-9A-Z]{4}-[0-9A-Z]{4}")


class TelegramPerson:
    """A person who writes to the bot in a private chat."""

    def __init__(self, server: BotApiServer, chat: dict[str, object], sender: dict[str, object] | None = None) -> None:
        self._server = server
        self._chat = chat
        self._fields = {} if sender is None else {"sender": sender}
        self._message_id = 0

    @property
    def texts(self) -> list[str]:
        """What the bot has written here."""
        return self._server.list_texts(self._chat_id)

    @property
    def _chat_id(self) -> int:
        return int(str(self._chat["id"]))

    async def ask(self, text: str) -> str:
        """Write a message, wait for the reply of the bot to it, and return it."""
        self._message_id += 1
        self._server.push_text(text, message_id=self._message_id, chat=self._chat, **self._fields)
        await wait_until(lambda: self._list_replies(self._message_id))
        return self._list_replies(self._message_id)[-1]

    def _list_replies(self, message_id: int) -> list[str]:
        return [
            str(message["text"])
            for (chat_id, _), message in sorted(self._server.messages.items())
            if chat_id == self._chat_id and message["asked"].get("reply_parameters", {}).get("message_id") == message_id
        ]


class LoopbackPerson:
    """A person in a private chat on the platform that is a list. Telegram allows a bot one message per second there."""

    def __init__(self, adapter: LoopbackAdapter, user: str) -> None:
        self._adapter = adapter
        self._user = user

    @property
    def texts(self) -> list[str]:
        """What was written to this person."""
        return [message.body for message in self._adapter.sent if message.address.chat_id == self._user]

    async def say(self, text: str) -> None:
        await self._adapter.say(text, user=self._user)

    async def ask(self, text: str) -> str:
        """Write a message, wait for a reply, and return it."""
        count = len(self.texts)
        await self.say(text)
        await wait_until(lambda: len(self.texts) > count)
        return self.texts[-1]

    async def wait_for_text(self, text: str) -> str:
        await wait_until(lambda: any(text in each for each in self.texts))
        return next(each for each in self.texts if text in each)


class MatrixPerson:
    """Ada in a private room on a real homeserver."""

    def __init__(self, person: Person, room: str) -> None:
        self._person = person
        self._room = room

    async def say(self, text: str) -> None:
        await self._person.say(self._room, text)

    async def wait_for_text(self, text: str) -> str:
        return str((await self._person.wait_for_text(self._room, text))["content"]["body"])


async def test_a_conversation_goes_on_from_telegram_in_the_browser_and_on_another_platform(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    loopback = LoopbackAdapter()
    async with BotApiServer() as telegram:
        web = await start_one_conversation(start_web, make_adapter_for(telegram), loopback)
        session_id = await check_one_conversation(web, visitors, telegram, LoopbackPerson(loopback, "ada"))
        await check_stranger_finds_nothing(web, LoopbackPerson(loopback, "ben"), session_id)
        assert telegram.problems == []


@pytest.mark.soak
@pytest.mark.slow
async def test_a_conversation_goes_on_from_telegram_in_the_browser_and_on_matrix(
    start_web: StartWebServer, visitors: Visitors, tmp_path: Path
) -> None:
    (tmp_path / "synapse").mkdir()
    with share_synapse() as homeserver_url:
        async with httpx2.AsyncClient(timeout=60) as http, BotApiServer() as telegram:
            bot = await Person.register(homeserver_url, http, "Palaver")
            ada = await Person.register(homeserver_url, http, "Ada")
            settings = MatrixSettings.model_validate(
                {"homeserver": bot.url, "access_token": bot.access_token, "encryption": False}
            )
            matrix = MatrixAdapter(settings, AccountPlace(account="", folder=tmp_path / "matrix", webhook_url=None))
            web = await start_one_conversation(start_web, make_adapter_for(telegram), matrix)
            room = await ada.create_room(bot.user_id, is_direct=True)
            session_id = await check_one_conversation(web, visitors, telegram, MatrixPerson(ada, room))
            await check_stranger_finds_nothing(web, TelegramPerson(telegram, BEN_CHAT, BEN), session_id)
            assert telegram.problems == []


async def start_one_conversation(start_web: StartWebServer, *adapters: Adapter) -> WebServer:
    """Start a server on which a person has one conversation everywhere, and strangers need a code."""
    return await start_web(
        DemoAgent(word_delay=0),
        adapters=adapters,
        config=GatewayConfig(dm_scope=DmScope.PERSON),
        rules={"open_platforms": frozenset()},
    )


async def check_one_conversation(
    web: WebServer, visitors: Visitors, telegram: BotApiServer, elsewhere: LoopbackPerson | MatrixPerson
) -> str:
    """Go on with one conversation in three places, and return its ID."""
    page = await visitors.visit(web)
    on_telegram = TelegramPerson(telegram, PRIVATE)

    # The owner makes both accounts theirs with a code each.
    code = CODE.search(await on_telegram.ask("hello?"))
    assert code is not None
    await send_message(page, f"/pair {code[0]} me")
    await wait_until(lambda: "now linked" in on_telegram.texts[-1])
    await elsewhere.say("hello?")
    code = CODE.search(await elsewhere.wait_for_text("code"))
    assert code is not None
    assert "linked to you now" in await on_telegram.ask(f"/pair {code[0]} me")

    assert SECRET in await on_telegram.ask(SECRET)
    row = page.locator(".session").filter(has_text=SECRET)
    await row.get_by_role("link").click()
    await expect(page.locator(".answer")).to_have_count(1)
    await send_message(page, "go on in the browser")
    await expect(page.locator(".answer")).to_have_count(2)
    await wait_for_answer(page)
    await elsewhere.say("and end elsewhere")
    await elsewhere.wait_for_text("You said: “and end elsewhere”")
    await expect(page.locator(".user-message").last).to_contain_text("and end elsewhere")
    await expect(page.locator(".answer")).to_have_count(3)
    owner = await web.sign_in()
    found = (await owner.get("/api/sessions")).json()["sessions"]
    assert [session["message_count"] for session in found if session["message_count"] > 1] == [6]
    return str(found[0]["id"])


async def check_stranger_finds_nothing(web: WebServer, ben: LoopbackPerson | TelegramPerson, session_id: str) -> None:
    """Ben has access too, and finds none of it."""
    assert CODE.search(await ben.ask("hello?")) is not None
    owner = await web.sign_in()
    (request,) = (await owner.get("/api/people/requests")).json()["requests"]
    approval = await owner.post(f"/api/people/requests/{request['id']}/approve", json={"grant": "member"})
    assert approval.is_success, approval.text
    await wait_until(lambda: "You now have access" in ben.texts[-1])
    unknown_id = "20200101_000000_00000000"
    refusal = await ben.ask(f"/resume {unknown_id}")
    assert await ben.ask(f"/resume {session_id}") == refusal.replace(unknown_id, session_id)
    for command in (
        "/sessions",
        "/search blue door",
        "/resume blue door",
        "/export",
        "/status",
        "/why",
        "/whoami",
        "/usage",
        "/platforms",
        "/handoff loopback",
    ):
        reply = await ben.ask(command)
        assert SECRET not in reply, command
        assert session_id not in reply, command

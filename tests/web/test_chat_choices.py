"""What an owner sets for a whole chat: its profile, model and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Read, Write
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import settings_table as session_settings, table as sessions
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import Inbound, Outcome
from palaver.testing import ScriptedAgent
from support.gateway import ask
from support.linked_accounts import open_web_account
from support.people import chat, group

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.sessions.inbound import Receipt
    from palaver.sessions.settings_table import SessionSettings
    from support.web import StartWebServer, WebServer

# The model is named, because other settings of the agent than before let Palaver choose one.
SETTINGS = {
    "model": "demo",
    "profiles.work.instructions": "You work.",
    "profiles.play.instructions": "You play.",
}
OWNER, CLUB = chat("olga"), group("olga", "club")


async def start_server(start_web: StartWebServer, agent: ScriptedAgent, settings: dict[str, object]) -> WebServer:
    """Start a server with these settings, where Olga is an owner on Telegram, and Ada and Bob are members."""
    web = await start_web(agent)
    owner = await web.sign_in()
    changed = await owner.patch("/api/settings", json={"set": settings})
    assert changed.is_success, changed.text

    def add_people(tx: Transaction) -> None:
        for source, role in ((OWNER, Role.OWNER), (chat("ada"), Role.MEMBER), (chat("bob"), Role.MEMBER)):
            row = people.find_or_add_by_source(tx, source, 0)
            assert row is not None
            people.set_role(tx, row.person.id, role)

    await web.gateway.store.engine.arun(Write(add_people))
    return web


@pytest.fixture
async def web(start_web: StartWebServer) -> WebServer:
    return await start_server(start_web, ScriptedAgent("Good morning."), dict(SETTINGS))


async def send(web: WebServer, source: SessionSource, text: str) -> Receipt:
    return await web.gateway.inbox.accept(Inbound(source=source, content=text))


async def load_settings(web: WebServer, session_id: str) -> SessionSettings:
    return await web.gateway.store.engine.arun(
        Read(lambda tx: session_settings.load(tx, sessions.get_no(tx, session_id)))
    )


async def test_what_an_owner_sets_for_a_chat_holds_for_everyone_there(web: WebServer) -> None:
    before = (await ask(web.gateway, group("ada"), "hello")).session_id
    reply = await send(web, CLUB, "/sethere profile Work")
    assert (reply.outcome, reply.facts) == (Outcome.COMMAND, {"profile": "work", "model": None, "toolsets": None})
    assert "**Profile of this chat**: `work`" in (reply.reply or "")
    await send(web, CLUB, "/sethere tools web")
    assert (await load_settings(web, before)).profile is None  # it holds from the next message
    assert (await ask(web.gateway, group("ada"), "again")).session_id == before
    changed = await load_settings(web, before)
    assert changed.profile == "work"
    assert "web" not in changed.disabled_toolsets
    assert {"history", "memory", "schedule", "messaging"} <= {*changed.disabled_toolsets}
    log = web.gateway.store.load_events(before)
    assert [event.facts["setting"] for event in log if event.kind is EventKind.SETTING_CHANGED] == [
        "profile",
        "toolsets",
    ]
    new = await ask(web.gateway, group("bob"), "hello")
    assert (await load_settings(web, new.session_id)).profile == "work"
    assert "**Profile of this chat**: `work`" in ((await send(web, group("bob"), "/status")).reply or "")
    assert "**Tools of this chat**: `web`" in ((await send(web, group("bob"), "/why")).reply or "")
    elsewhere = await ask(web.gateway, chat("ada"), "hello")
    assert (await load_settings(web, elsewhere.session_id)).profile is None


async def test_people_cannot_choose_what_is_set_for_their_chat(web: WebServer) -> None:
    await send(web, CLUB, "/sethere profile work")
    await send(web, CLUB, "/sethere tools none")
    session_id = (await ask(web.gateway, CLUB, "hello")).session_id
    for text in ("/profile play", "/profile default", "/tools on web"):
        refused = await send(web, CLUB, text)
        assert refused.outcome is Outcome.REJECTED
        assert (refused.reply or "").startswith("An owner has chosen the ")
    olga = await web.open_anonymous_client()
    person = await open_web_account(web.gateway, OWNER)
    issued = await (await web.sign_in()).post(f"/api/people/{person.id}/link")
    link = issued.json()["link"]["url"].partition("#")[2]
    assert (await olga.post("/api/sign-in/link", json={"token": link})).is_success
    for changes in ({"profile": "play"}, {"toolsets": {"web": True}}):
        answer = await olga.patch(f"/api/sessions/{session_id}", json=changes)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")
    assert (await olga.patch(f"/api/sessions/{session_id}", json={"title": "Club"})).is_success
    settings = await load_settings(web, session_id)
    assert settings.profile == "work"
    assert settings.disabled_toolsets
    personality = await send(web, CLUB, "/personality default")  # that is not set for the chat
    assert personality.outcome is Outcome.COMMAND


async def test_only_owners_set_it_and_only_in_chats(web: WebServer) -> None:
    refused = await send(web, group("ada"), "/sethere profile work")
    assert refused.outcome is Outcome.REJECTED
    assert "work" not in (refused.reply or "").replace("/sethere", "")
    assert not web.gateway.rules.chats
    in_terminal = await send(web, SessionSource.local_cli(), "/sethere profile work")
    assert "no chat here" in (in_terminal.reply or "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("/sethere profile nothing", "there is no 'nothing' here"),
        ("/sethere tools web teleport", "there is no 'teleport' here"),
        ("/sethere tools mcp:lab", "there is no 'mcp:lab' here"),
        ("/sethere profile", "Use `/sethere profile name`"),
        ("/sethere everything", "Use `/sethere profile name`"),
    ],
)
async def test_a_wrong_choice_changes_nothing(web: WebServer, text: str, problem: str) -> None:
    reply = await send(web, CLUB, text)
    assert problem in (reply.reply or "")
    assert not web.gateway.rules.chats


async def test_the_choices_of_a_chat_are_settings_with_history_and_undo(web: WebServer) -> None:
    await send(web, CLUB, "/sethere profile work")
    await send(web, CLUB, "/sethere profile work")  # the same again is no second change
    owner = await web.sign_in()
    settings = (await owner.get("/api/settings")).json()
    assert {each["key"]: each["value"] for each in settings["settings"]}["chats.telegram:club.profile"] == "work"
    newest, *_ = (await owner.get("/api/settings/history")).json()["changes"]
    assert newest["items"][0]["key"] == "chats.telegram:club.profile"
    await owner.post("/api/settings/undo", json={"change": newest["number"]})
    assert "Nothing is set for this chat" in ((await send(web, CLUB, "/sethere")).reply or "")
    assert (await owner.patch("/api/settings", json={"set": {"chats.telegram:club.profile": "play"}})).is_success
    assert "`play`" in ((await send(web, CLUB, "/sethere")).reply or "")
    cleared = await send(web, CLUB, "/sethere clear")
    assert (cleared.reply or "").startswith("Nothing is set for this chat anymore.")
    assert not web.gateway.rules.chats


async def test_a_setting_for_a_chat_is_checked(web: WebServer) -> None:
    owner = await web.sign_in()
    for values in (
        {"chats.telegram:club.profile": "nothing"},
        {"chats.Telegram:club.profile": "work"},
        {"chats.telegram.profile": "work"},
        {"chats.telegram:club.toolsets": ["mcp:lab"]},
    ):
        refused = await owner.patch("/api/settings", json={"set": values})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_settings"), values


async def test_a_thread_has_choices_of_its_own(web: WebServer) -> None:
    thread = SessionSource("telegram", "club", chat_type="group", user_id="olga", thread_id="7")
    await send(web, CLUB, "/sethere profile work")
    await send(web, thread, "/sethere profile play")
    in_thread, in_chat = await ask(web.gateway, thread, "hello"), await ask(web.gateway, CLUB, "hello")
    assert (await load_settings(web, in_thread.session_id)).profile == "play"
    assert (await load_settings(web, in_chat.session_id)).profile == "work"
    await send(web, thread, "/sethere clear")
    new = await send(web, thread, "/new")
    again = await ask(web.gateway, thread, "hello")
    assert new.session_id == again.session_id
    assert (await load_settings(web, again.session_id)).profile == "work"


async def test_the_model_of_a_chat_is_for_all_roles(start_web: StartWebServer) -> None:
    agent = ScriptedAgent("Good morning.")
    settings: dict[str, object] = {"models_by_role.member": ["demo"], "chats.telegram:club.model": "openai:large"}
    web = await start_server(start_web, agent, settings)
    await ask(web.gateway, group("ada"), "hello")
    assert agent.requests[-1].model == "openai:large"
    refused = await send(web, group("ada"), "/model scripted")
    assert (refused.reply or "").startswith("An owner has chosen the model for this whole chat")

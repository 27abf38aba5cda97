"""What people in chats read in the language of the gateway: replies, refusals and notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, ResetPolicy
from palaver.core.errors import AgentRejected
from palaver.core.texts import ENGLISH, chat_language
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.inbound import Inbound
from palaver.sessions.policy import ResetMode
from palaver.testing import FakeClock, ScriptedAgent
from support.gateway import get_turn, wait_for_turn, wait_until
from support.inbox import list_notices, make_dm, make_inbox, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver import SessionStore
    from palaver.agent.base import AgentRequest
    from support.gateway import StartGateway

REPLIES = [
    ("/new", "Hier gibt es noch keine Nachrichten. Deine nächste Nachricht startet einen Chat."),
    ("/resume {0}", "Hier passt kein Chat zu „{0}“. Mit /sessions listest du sie auf."),
    ("/undo many", "Wie viele Austausche? Verwende eine Zahl von 1 bis 1000, zum Beispiel `/undo 2`."),
    ("/helq", "Unbekannter Befehl `/helq`. Meintest du `/help`? Mit /help siehst du alle Befehle."),
    ("/memory add Ada {cat}", "Nur für dich gespeichert: „Ada {cat}“"),
    ("/budget", "- Heute: $0.00, 0 Token; kein Limit; beginnt neu am"),
    ("/search " + "x" * 1001, "query: Eine Suche hat höchstens 1000 Zeichen, diese hat 1001."),
    ("/jobs timezone Vienna", "timezone: 'Vienna' ist keine Zeitzone. Meintest du Europe/Vienna?"),
    ("/jobs timezone x{0}", "'x{0}' ist keine Zeitzone. Verwende einen IANA-Namen wie Europe/Berlin oder UTC."),
    ("/jobs add cron: x", "Gäste können keine Aufgaben haben. Bitte einen Besitzer, dich zum Mitglied zu machen."),
]


@pytest.fixture(autouse=True)
def _restore_language() -> Iterator[None]:
    yield
    chat_language.name = ENGLISH


@pytest.mark.parametrize(("text", "reply"), REPLIES)
async def test_a_person_in_a_chat_is_answered_in_german(store: SessionStore, text: str, reply: str) -> None:
    commands = frozenset({"new", "resume", "undo", "help", "memory", "budget", "jobs", "search"})
    inbox = make_inbox(store, language="de", guest_commands=commands)
    receipt = await say(inbox, make_dm(), text)
    assert reply in (receipt.reply or "")
    assert list_notices(store) == [receipt.reply]


async def test_help_is_german_with_the_same_commands(store: SessionStore) -> None:
    english = (await say(make_inbox(store), make_dm(), "/help")).reply or ""
    german = (await say(make_inbox(store, language="de"), make_dm(), "/help")).reply or ""
    assert "- `/new [title]` – Start a new conversation" in english
    assert "- `/new [Titel]` – Neuen Chat starten" in german
    names = [
        [line.split("`")[1].split()[0] for line in text.splitlines() if line[:2] == "- "] for text in (english, german)
    ]
    assert names[0] == names[1]


async def test_a_person_whose_program_asks_for_english_gets_english(store: SessionStore) -> None:
    inbox = make_inbox(store, language="de")
    message = Inbound(source=make_dm(), content="/new", language=ENGLISH)
    assert (await inbox.accept(message)).reply == (
        "There are no messages here yet. Your next message starts a conversation."
    )


async def test_a_stranger_gets_the_code_in_german(store: SessionStore) -> None:
    inbox = make_inbox(store, language="de", open_platforms=frozenset())
    assert "Ich kenne dich noch nicht." in ((await say(inbox, make_dm(), "hello")).reply or "")


async def test_a_failed_answer_and_a_reset_are_told_in_german_and_recorded_in_english(
    start_gateway: StartGateway,
) -> None:
    def fail(_request: AgentRequest) -> str:
        raise AgentRejected

    clock, loopback = FakeClock(), LoopbackAdapter()
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=30)
    gateway = await start_gateway(
        ScriptedAgent(fail),
        loopback=loopback,
        config=GatewayConfig(default_reset_policy=policy),
        clock=clock,
        language="de",
    )
    first = await loopback.say("hello")
    await wait_for_turn(gateway, first.turn_id)
    clock.advance(hours=1)
    second = await loopback.say("again")
    await wait_until(lambda: len(loopback.sent) == 3)
    assert second.reply == (
        "Dieser Chat war seit mehr als 30 Minuten inaktiv, deshalb wurde ein neuer gestartet. Mit /restore kommst du"
        " zum alten zurück."
    )
    assert [sent.body.partition(".")[0] for sent in loopback.sent] == [
        "Ich konnte nicht antworten",
        "Dieser Chat war seit mehr als 30 Minuten inaktiv, deshalb wurde ein neuer gestartet",
        "Ich konnte nicht antworten",
    ]
    assert (await get_turn(gateway, first.turn_id)).error == str(AgentRejected())


async def test_what_the_agent_is_told_does_not_depend_on_the_language(start_gateway: StartGateway) -> None:
    requests: list[AgentRequest] = []

    def answer(request: AgentRequest) -> str:
        requests.append(request)
        return "Done."

    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(answer), loopback=loopback, clock=FakeClock())
    for language in (ENGLISH, "de"):
        chat_language.name = language
        await loopback.receive(Inbound(source=loopback.get_source("ada"), content="/title Trip", language=language))
        sent = await loopback.say(f"hello from {language}")
        await wait_for_turn(gateway, sent.turn_id)
    english, german = requests
    assert german.instructions == english.instructions
    assert [(tool.name, tool.description, tool.parameters) for tool in german.tools] == [
        (tool.name, tool.description, tool.parameters) for tool in english.tools
    ]
    assert list(german.messages[: len(english.messages)]) == list(english.messages)

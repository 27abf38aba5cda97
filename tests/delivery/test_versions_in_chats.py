"""Versions in a chat, where people cannot step between them: each answer is sent once, commands use the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.inbound import Outcome
from palaver.testing import ScriptedAgent
from support.deliveries import FailingTransport, list_deliveries
from support.gateway import load_texts, wait_for_turn, wait_until

if TYPE_CHECKING:
    from palaver.gateway.gateway import Gateway
    from support.gateway import StartGateway


class ChatWithVersions:
    """A direct chat whose answers are numbered."""

    def __init__(self) -> None:
        self.agent = ScriptedAgent(lambda _request: f"Answer {len(self.agent.requests)}")
        self.transport = FailingTransport()
        self.loopback = LoopbackAdapter(self.transport)
        self.gateway: Gateway
        self.session_id: str | None = None

    async def ask(self, text: str, message_id: str | None = None) -> None:
        receipt = await self.loopback.say(text, message_id=message_id)
        self.session_id = receipt.session_id
        await wait_for_turn(self.gateway, receipt.turn_id)
        await wait_until(lambda: f"Answer {len(self.agent.requests)}" in self.transport.arrived)

    async def run(self, command: str) -> str:
        return (await self.loopback.say(command)).reply or ""

    def load_texts(self) -> list[str]:
        return [text for _, text in load_texts(self.gateway.store, self.session_id)]

    def list_sent_answers(self) -> list[str]:
        return [text for text in self.transport.arrived if text.startswith("Answer")]


async def start_chat(start_gateway: StartGateway) -> ChatWithVersions:
    chat = ChatWithVersions()
    chat.gateway = await start_gateway(chat.agent, loopback=chat.loopback)
    return chat


async def test_a_retried_answer_is_sent_once_and_choosing_a_version_sends_none(start_gateway: StartGateway) -> None:
    chat = await start_chat(start_gateway)
    await chat.ask("hello", "m1")
    await chat.ask("/retry", "m2")
    repeated = await chat.loopback.say("/retry", message_id="m2")  # the platform sends it again
    assert repeated.outcome is Outcome.DUPLICATE
    for command in ("/version 1", "/version next", "/version previous"):
        assert "is now in use" in await chat.run(command)
    await chat.ask("and then?", "m3")
    assert chat.list_sent_answers() == ["Answer 1", "Answer 2", "Answer 3"]
    answers = [
        each for each in await list_deliveries(chat.gateway, chat.session_id) if each.content.startswith("Answer")
    ]
    assert sorted((each.content, each.reply_to) for each in answers) == [
        ("Answer 1", "m1"),
        ("Answer 2", "m2"),
        ("Answer 3", "m3"),
    ]
    assert [message["content"] for message in chat.agent.requests[-1].messages] == ["hello", "Answer 1", "and then?"]


async def test_undo_and_redo_take_an_exchange_with_all_its_versions(start_gateway: StartGateway) -> None:
    chat = await start_chat(start_gateway)
    for text in ("first", "second", "/retry"):
        await chat.ask(text)
    assert chat.load_texts() == ["first", "Answer 1", "second", "Answer 3"]
    await chat.run("/undo")
    assert chat.load_texts() == ["first", "Answer 1"]
    assert "no other versions" in await chat.run("/versions")
    await chat.run("/redo")
    assert chat.load_texts() == ["first", "Answer 1", "second", "Answer 3"]
    await chat.run("/version 1")
    assert chat.load_texts() == ["first", "Answer 1", "second", "Answer 2"]
    await chat.run("/undo")
    await chat.ask("/retry")  # of the message that is the last one now
    assert chat.load_texts() == ["first", "Answer 4"]
    assert "Version 2 of 2 is in use" in await chat.run("/versions")
    await chat.run("/version 1")
    assert chat.load_texts() == ["first", "Answer 1"]
    await chat.run("/redo")  # what was undone in that version
    assert chat.load_texts() == ["first", "Answer 1", "second", "Answer 2"]
    assert chat.list_sent_answers() == ["Answer 1", "Answer 2", "Answer 3", "Answer 4"]

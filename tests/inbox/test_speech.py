"""Voice notes of chats are words before the agent reads them, and nothing is lost if they can't be."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from drivers.openai_server import KEY, OpenAIServer, reply_with_error, reply_with_transcript
from palaver.agent.profiles import CurrentSettings
from palaver.config.agent_rules import AgentProfile, Provider, SpeechRules, TurnRules
from palaver.config.budget_rules import (
    BudgetKey,
    BudgetLimit,
    BudgetPeriod,
    BudgetRules,
    BudgetScope,
    BudgetUnit,
    TokenPrice,
)
from palaver.inbox import Inbox
from palaver.inbox.speech import Speech
from palaver.media.attachments import Attachments
from palaver.money.meter import Budgets
from palaver.sessions.inbound import Inbound, InboundFile
from palaver.testing import ScriptedAgent
from support.inbox import list_rows, load_log, make_dm

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from palaver import SessionStore

OGG = b"OggS" + b"\0" * 4996


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


async def read_note() -> AsyncIterator[bytes]:
    yield OGG


NOTE = InboundFile(None, read_note, is_voice=True, duration_seconds=5)


def make_speaking_inbox(store: SessionStore, folder: Path, server: OpenAIServer, **rules: Any) -> Inbox:
    turn_rules = TurnRules(open_platforms=frozenset({make_dm().platform}), **rules)
    profile = AgentProfile(
        providers={"shop": Provider(api_key=KEY, base_url=server.url)},
        prices={"shop:whisper-1": TokenPrice(input_usd=Decimal(10), output_usd=Decimal(0))},
        speech=SpeechRules(transcription="shop:whisper-1"),
    )
    files = Attachments(store, folder / "attachments")
    speech = Speech(store, files, Budgets(store, lambda: turn_rules), profile, {})
    return Inbox(store, CurrentSettings(ScriptedAgent(), turn_rules), files=files, speech=speech)


async def say_note(inbox: Inbox, message_id: str = "1") -> Any:
    return await inbox.accept(Inbound(source=make_dm(), content="", message_id=message_id, files=[NOTE]))


@pytest.mark.both_engines
async def test_the_words_of_a_voice_note_are_stored_with_it(
    store: SessionStore, tmp_path: Path, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_transcript("/new please water the plants", {"type": "duration", "seconds": 5}))
    inbox = make_speaking_inbox(store, tmp_path, server)
    receipt = await say_note(inbox)
    message = load_log(store, receipt)[-1].message
    assert message is not None
    assert isinstance(message.content, list)
    [part] = message.content
    assert part["transcript"] == "/new please water the plants"  # and no command
    assert message.text == "/new please water the plants"
    files = Attachments(store, tmp_path / "attachments")
    [prepared] = await files.prepare_for_model(str(receipt.session_id), [message.to_dict()])
    assert prepared["content"][0]["text"] == "(voice message, transcribed) /new please water the plants"
    assert list_rows(store, "SELECT model, input_tokens FROM usage") == [("whisper-1", 50)]
    assert list_rows(store, "SELECT 1 FROM model_call") == []


async def test_a_message_that_comes_again_is_transcribed_once(
    store: SessionStore, tmp_path: Path, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_transcript("Hello"))
    inbox = make_speaking_inbox(store, tmp_path, server)
    first, second = await say_note(inbox), await say_note(inbox)
    assert second.seq == first.seq
    assert len(server.requests) == 1


@pytest.mark.both_engines
async def test_the_agent_is_told_why_a_voice_note_has_no_words(
    store: SessionStore, tmp_path: Path, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_error(503, "overloaded"))
    receipt = await say_note(make_speaking_inbox(store, tmp_path, server))
    assert receipt.turn_id is not None
    message = load_log(store, receipt)[-1].message
    assert message is not None
    assert isinstance(message.content, list)
    [part] = message.content
    assert "overloaded" in part["transcript_error"]
    files = Attachments(store, tmp_path / "attachments")
    [prepared] = await files.prepare_for_model(str(receipt.session_id), [message.to_dict()])
    assert "could not be transcribed" in prepared["content"][0]["text"]
    assert list_rows(store, "SELECT 1 FROM usage") == []  # the provider refused it
    assert list_rows(store, "SELECT 1 FROM attachment_use") != []


async def test_a_budget_refuses_a_transcription_but_not_the_message(
    store: SessionStore, tmp_path: Path, server: OpenAIServer
) -> None:
    limit = BudgetLimit(key=BudgetKey(BudgetScope.ALL, "", BudgetPeriod.DAY), unit=BudgetUnit.TOKENS, amount=10)
    inbox = make_speaking_inbox(store, tmp_path, server, budgets=BudgetRules(limits=(limit,)))
    receipt = await say_note(inbox)
    assert receipt.turn_id is not None
    message = load_log(store, receipt)[-1].message
    assert message is not None
    assert isinstance(message.content, list)
    assert "budget" in message.content[0]["transcript_error"].lower()
    assert server.requests == []

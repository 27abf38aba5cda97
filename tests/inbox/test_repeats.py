"""A receipt is kept only for what was done: what was refused under an id of the sender's choice is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from palaver import Platform, SessionSource
from palaver.config.agent_rules import TurnRules
from palaver.inbox import MAX_MESSAGE_CHARS
from palaver.people.model import Role
from palaver.sessions import inbound_table as inbound_messages
from palaver.sessions.inbound import Inbound, Outcome
from palaver.sessions.turn import BusyPolicy
from support.gateway import load_texts
from support.people import Town, chat

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.testing import FakeClock

MESSAGES_PER_MINUTE = 12
RULES = TurnRules(
    messages_per_minute=dict.fromkeys([Role.OWNER, Role.MEMBER, Role.GUEST], MESSAGES_PER_MINUTE), max_queued=1
)


class Sender(NamedTuple):
    """A place that a person or program sends from, and whether they choose the ids of their messages."""

    name: str
    chooses_ids: bool


SENDERS = [
    Sender("web", chooses_ids=True),
    Sender("local", chooses_ids=True),
    Sender("api", chooses_ids=True),
    Sender("webhook", chooses_ids=True),
    Sender("telegram", chooses_ids=False),
]


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock, RULES)


async def _find_source(town: Town, sender: Sender) -> SessionSource:
    if sender.name == "telegram":
        await town.add_person(chat("ada"))
        return chat("ada")
    if sender.name == "webhook":
        return SessionSource(Platform.WEBHOOK, "backups", user_id="default", user_name="Backups")
    person = await town.add_account("ada")
    return SessionSource(Platform(sender.name), person.id, user_id=person.id, user_name="ada")


async def _end_turns(town: Town) -> None:
    def end(tx: Any) -> None:
        tx.execute("UPDATE turn SET state = 'done', ended_at = created_at WHERE state = 'queued'")

    await town.write(end)


async def _send_too_many(town: Town, source: SessionSource) -> None:
    for number in range(MESSAGES_PER_MINUTE):
        await town.inbox.accept(Inbound(source=source, content=f"earlier {number}"))
        await _end_turns(town)


async def _wait_a_minute(town: Town, _source: SessionSource) -> None:
    town.clock.advance(minutes=2)


async def _keep_busy(town: Town, source: SessionSource) -> None:
    await town.send(source, "earlier")


async def _fill_queue(town: Town, source: SessionSource) -> None:
    await town.send(source, "earlier", busy_policy=BusyPolicy.QUEUE)


async def _finish(town: Town, _source: SessionSource) -> None:
    await _end_turns(town)


async def _do_nothing(_town: Town, _source: SessionSource) -> None:
    pass


async def _say_something(town: Town, source: SessionSource) -> None:
    await town.send(source, "earlier")
    await _end_turns(town)
    town.clock.advance(minutes=2)


Step = Callable[[Town, SessionSource], Awaitable[None]]


class Refusal(NamedTuple):
    """How a message is refused, with which error, and what ends the reason for it."""

    text: str
    error: str
    prepare: Step
    end: Step
    fields: dict[str, Any]
    ends: bool = True  # False: the same message is always refused


REFUSALS = {
    "too many messages": Refusal("hello", "too_many_messages", _send_too_many, _wait_a_minute, {}),
    "too many commands": Refusal("/title Trip", "too_many_messages", _send_too_many, _wait_a_minute, {}),
    "too many reads": Refusal("/help", "too_many_messages", _send_too_many, _wait_a_minute, {}),
    "busy": Refusal("hello", "session_busy", _keep_busy, _finish, {"busy_policy": BusyPolicy.REJECT}),
    "full queue": Refusal("hello", "queue_full", _fill_queue, _finish, {}),
    "nothing to undo": Refusal("/undo", "nothing_to_do", _do_nothing, _say_something, {}),
    "no session to read": Refusal("/why", "nothing_to_do", _do_nothing, _say_something, {}),
    "too long": Refusal("x" * (MAX_MESSAGE_CHARS + 1), "too_long", _do_nothing, _do_nothing, {}, ends=False),
    "bad arguments": Refusal("/undo soon", "bad_arguments", _do_nothing, _do_nothing, {}, ends=False),
}


@pytest.mark.parametrize("sender", SENDERS, ids=[sender.name for sender in SENDERS])
@pytest.mark.parametrize("name", REFUSALS)
async def test_what_was_refused_is_done_when_it_is_repeated(town: Town, sender: Sender, name: str) -> None:
    refusal, source = REFUSALS[name], await _find_source(town, sender)
    await refusal.prepare(town, source)
    message = Inbound(source=source, content=refusal.text, message_id="key", **refusal.fields)
    refused = [await town.inbox.accept(message) for _ in range(2)]
    assert refused[0].outcome is Outcome.REJECTED
    assert (refused[0].facts or {})["error"] == refusal.error
    await refusal.end(town, source)
    repeated = [await town.inbox.accept(message) for _ in range(2)]
    outcomes = [each.outcome for each in (refused[1], *repeated)]
    if not sender.chooses_ids:  # the chat has the notice, and the platform sends the message again until we have it
        assert outcomes == [Outcome.DUPLICATE] * 3
        notices = [text for text in await town.get_told(source) if text == refused[0].reply]
        assert len(notices) == 1
    elif not refusal.ends:
        assert outcomes == [Outcome.REJECTED] * 3
        assert {each.reply for each in repeated} == {refused[0].reply}
    else:
        assert outcomes[0] is Outcome.REJECTED
        assert outcomes[1] in {Outcome.ACCEPTED, Outcome.COMMAND}
        assert outcomes[2] is Outcome.DUPLICATE
        stored = [text for _, text in load_texts(town.store, repeated[0].session_id)]
        assert stored.count(refusal.text) == (outcomes[1] is Outcome.ACCEPTED)
        assert len(await town.rows("SELECT receipt FROM inbound_message WHERE message_id = 'key'")) == 1


async def test_a_program_reads_its_refusal_in_the_response_alone(town: Town) -> None:
    source = SessionSource(Platform.WEBHOOK, "backups", user_id="default", user_name="Backups")
    await _send_too_many(town, source)
    for number in range(20):
        receipt = await town.inbox.accept(Inbound(source=source, content="again", message_id=f"m{number % 2}"))
        assert receipt.outcome is Outcome.REJECTED
    assert await town.get_told(source) == []


@pytest.mark.both_engines
async def test_a_refusal_that_an_earlier_version_has_recorded_is_tried_again(town: Town) -> None:
    source = town.page(await town.add_account("ada"))
    message = Inbound(source=source, content="hello", message_id="key")
    old_receipt = {"outcome": "rejected", "reply": "You're sending messages too fast."}
    await town.write(lambda tx: inbound_messages.save_receipt(tx, message, old_receipt, 1))
    receipts = [await town.inbox.accept(message) for _ in range(2)]
    assert [receipt.outcome for receipt in receipts] == [Outcome.ACCEPTED, Outcome.DUPLICATE]
    assert receipts[1].seq == receipts[0].seq


@pytest.mark.both_engines
async def test_a_key_that_two_requests_use_at_once_is_never_both_stored_and_refused(town: Town) -> None:
    source = town.page(await town.add_account("ada"))
    message = Inbound(source=source, content="hello", message_id="key", busy_policy=BusyPolicy.REJECT)
    receipts = await asyncio.gather(*(town.inbox.accept(message) for _ in range(8)))
    assert sorted(receipt.outcome for receipt in receipts) == [Outcome.ACCEPTED, *[Outcome.DUPLICATE] * 7]


async def test_the_key_of_one_person_says_nothing_about_the_key_of_another(town: Town) -> None:
    ada, bob = [town.page(await town.add_account(name)) for name in ("ada", "bob")]
    await _send_too_many(town, ada)
    outcomes = [
        (await town.inbox.accept(Inbound(source=source, content="hello", message_id="key"))).outcome
        for source in (ada, bob)
    ]
    assert outcomes == [Outcome.REJECTED, Outcome.ACCEPTED]


async def test_too_many_wrong_codes_are_refused_and_not_recorded(town: Town) -> None:
    source = town.page(await town.add_account("ada", Role.OWNER))
    for number in range(10):
        reply = await town.ask(source, "/link ABCD-2345", message_id=f"wrong {number}")
        assert "isn't valid" in reply
    refused = await town.send(source, "/link ABCD-2345", message_id="key")
    assert (refused.outcome, (refused.facts or {})["error"]) == (Outcome.REJECTED, "too_many_attempts")
    town.clock.advance(minutes=20)
    assert (await town.send(source, "/link ABCD-2345", message_id="key")).outcome is Outcome.COMMAND

"""Threads that the agent answers in: what follows needs no mention, until another person is addressed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.core.engines.base import Write
from palaver.core.source import Platform
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.inbound import MessageDeleted, Outcome
from palaver.sessions.inbound_table import MAX_GROUP_MESSAGE_AGE, MAX_MESSAGES_PER_CHAT
from support.inbox import list_rows, make_inbox, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionStore
    from palaver.inbox import Inbox
    from palaver.testing import FakeClock

SLACK = Platform.SLACK
OPEN = frozenset({SLACK})


class Thread:
    """Writes messages in a thread of a channel."""

    def __init__(self, inbox: Inbox, thread_id: str | None = "1") -> None:
        self._inbox = inbox
        self._thread_id = thread_id
        self._count = 0

    def make_source(self, user: str = "ada") -> SessionSource:
        name = user.title()
        return SessionSource(SLACK, "C1", chat_type="group", user_id=user, user_name=name, thread_id=self._thread_id)

    async def send(self, text: str, user: str = "ada", **fields: Any) -> Outcome:
        self._count += 1
        defaults: dict[str, Any] = {"message_id": str(self._count), "is_addressed": False, "addresses_others": False}
        return (await say(self._inbox, self.make_source(user), text, **(defaults | fields))).outcome

    async def mention(self, text: str = "@Palaver hello", user: str = "ada", **fields: Any) -> Outcome:
        return await self.send(text, user, is_addressed=True, **fields)


@pytest.fixture
def thread(store: SessionStore) -> Thread:
    return Thread(make_inbox(store, open_platforms=OPEN))


@pytest.mark.both_engines
async def test_what_follows_needs_no_mention_until_another_person_is_addressed(
    thread: Thread, store: SessionStore
) -> None:
    assert await thread.send("before") is Outcome.RECORDED
    assert await thread.mention() is Outcome.ACCEPTED
    assert await thread.send("and tomorrow?") is Outcome.QUEUED
    assert await thread.send("me too", "bob") is Outcome.QUEUED
    assert await thread.send("@Carol, your turn", addresses_others=True) is Outcome.RECORDED
    assert await thread.send("I think so", "carol") is Outcome.RECORDED
    assert await thread.send("why?") is Outcome.RECORDED
    assert await thread.mention("@Palaver what do you say?") is Outcome.QUEUED
    assert await thread.send("and why?") is Outcome.QUEUED
    assert await thread.mention("@Palaver tell @Carol", addresses_others=True) is Outcome.QUEUED
    assert await thread.send("thanks") is Outcome.QUEUED
    [[context]] = list_rows(store, "SELECT body FROM event WHERE content LIKE '%what do you say%'")
    assert all(text in context for text in ("@Carol, your turn", "I think so", "why?"))


@pytest.mark.parametrize(
    "fields",
    [{"addresses_others": None}, {"is_from_bot": True}, {"addresses_others": True}],
    ids=["unknown", "bot", "to_others"],
)
async def test_what_is_no_follow_up(thread: Thread, fields: dict[str, Any]) -> None:
    await thread.mention()
    assert await thread.send("hello", **fields) is Outcome.RECORDED


@pytest.mark.both_engines
async def test_only_people_address_others(thread: Thread) -> None:
    await thread.mention()
    assert await thread.send("@Carol: build 7", "ci", is_from_bot=True, addresses_others=True) is Outcome.RECORDED
    assert await thread.send("what was that?") is Outcome.QUEUED


async def test_an_operator_may_ask_for_each_mention(store: SessionStore) -> None:
    thread = Thread(make_inbox(store, open_platforms=OPEN, strict_mention_platforms=OPEN))
    await thread.mention()
    assert await thread.send("and tomorrow?") is Outcome.RECORDED


async def test_a_channel_and_other_threads_need_a_mention(store: SessionStore) -> None:
    inbox = make_inbox(store, open_platforms=OPEN)
    channel, other = Thread(inbox, None), Thread(inbox, "2")
    await channel.mention()
    assert await channel.send("and tomorrow?") is Outcome.RECORDED
    assert await other.send("and tomorrow?", message_id="9") is Outcome.RECORDED


async def test_a_thread_under_a_message_of_ours_needs_no_mention_at_all(thread: Thread) -> None:
    assert await thread.mention("what is this?", is_in_own_thread=True) is Outcome.ACCEPTED
    assert await thread.send("@Carol?", is_in_own_thread=True, addresses_others=True) is Outcome.RECORDED
    assert await thread.mention("no idea", "carol", is_in_own_thread=True) is Outcome.RECORDED
    assert await thread.mention("@Palaver?") is Outcome.QUEUED
    assert await thread.mention("and why?", is_in_own_thread=True) is Outcome.QUEUED


@pytest.mark.both_engines
async def test_people_without_access_get_no_answer_and_take_nobody_else_s(store: SessionStore) -> None:
    thread = Thread(make_inbox(store, open_platforms=frozenset()))
    person = store.get_or_create_person(thread.make_source("ada"))
    store.engine.run(Write(lambda tx: people.set_role(tx, person.id, Role.MEMBER)))
    await thread.mention()
    assert await thread.send("me too", "eve") is Outcome.RECORDED
    assert list_rows(store, "SELECT COUNT(*) FROM turn") == [(1,)]
    assert await thread.send("and tomorrow?") is Outcome.QUEUED


async def test_a_follow_up_wakes_only_the_conversation_of_its_writer(
    open_store: Callable[..., SessionStore],
) -> None:
    store = open_store(GatewayConfig(thread_sessions_per_user=True))
    thread = Thread(make_inbox(store, open_platforms=OPEN))
    await thread.mention()
    assert await thread.send("hello", "bob") is Outcome.RECORDED
    assert await thread.send("and tomorrow?") is Outcome.QUEUED
    assert list_rows(store, "SELECT COUNT(*) FROM lane") == [(1,)]


@pytest.mark.both_engines
async def test_the_same_message_again_is_what_it_was(thread: Thread, store: SessionStore) -> None:
    await thread.send("before", message_id="before")
    await thread.mention()
    await thread.send("follow-up", message_id="follow-up")
    assert await thread.send("before", message_id="before") is Outcome.DUPLICATE
    await thread.send("@Carol?", addresses_others=True)
    assert await thread.send("follow-up", message_id="follow-up") is Outcome.DUPLICATE
    assert list_rows(store, "SELECT content FROM group_message ORDER BY no") == [("before",), ("@Carol?",)]


async def test_a_long_talk_among_people_stays_theirs(thread: Thread) -> None:
    await thread.mention()
    await thread.send("@Carol?", addresses_others=True)
    for number in range(MAX_MESSAGES_PER_CHAT + 2):  # the first is forgotten
        assert await thread.send(f"talk {number}", "carol") is Outcome.RECORDED


async def test_after_a_long_silence_a_mention_is_needed(thread: Thread, clock: FakeClock) -> None:
    await thread.mention()
    clock.advance(days=MAX_GROUP_MESSAGE_AGE.days - 1)
    assert await thread.send("still there?") is Outcome.QUEUED
    clock.advance(days=MAX_GROUP_MESSAGE_AGE.days - 1)
    assert await thread.send("and now?") is Outcome.QUEUED
    clock.advance(days=MAX_GROUP_MESSAGE_AGE.days)
    clock.advance(seconds=timedelta(minutes=1).total_seconds())
    assert await thread.send("and now?") is Outcome.RECORDED


async def test_a_deleted_message_addresses_nobody(store: SessionStore) -> None:
    inbox = make_inbox(store, open_platforms=OPEN)
    thread = Thread(inbox)
    await thread.mention()
    await thread.send("@Carol?", message_id="to-carol", addresses_others=True)
    await inbox.accept(MessageDeleted(source=thread.make_source(), message_id="to-carol"))
    assert await thread.send("and tomorrow?") is Outcome.QUEUED

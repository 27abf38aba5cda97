"""What a job sends to a chat is part of the conversation there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, SessionSource
from palaver.agent.history import build_messages
from palaver.agent.profiles import CurrentSettings
from palaver.cli.chat.feed_presenter import FeedPresenter, PersonMessage
from palaver.cli.transcript import format_events
from palaver.config.agent_rules import MemoryRules, ToolsetRule, TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.ids import TurnId
from palaver.core.texts import say, translate
from palaver.delivery import table as deliveries
from palaver.delivery.chat_posts import post_to_chat
from palaver.delivery.notices import notify_person
from palaver.delivery.view import DeliveryOperations
from palaver.inbox import Inbox
from palaver.live.feed_events import EventAppended
from palaver.people.model import Role
from palaver.sessions import delivery_queries, lanes_table as lanes, message_edits, table as sessions
from palaver.sessions.delivery import Address, DeliveryState
from palaver.sessions.export import export_markdown
from palaver.sessions.inbound import Inbound
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.testing import ScriptedAgent
from support.messaging import JOB_SENDER, add_writer, get_now, make_post, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.delivery.chat_posts import PostedMessage
    from palaver.people.model import Principal
    from palaver.sessions.delivery import Delivery
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]


def post(store: SessionStore, principal: Principal, target: str, **fields: Any) -> PostedMessage:
    chat = resolve(store, principal, target)
    return store._engine.run(
        Write(lambda tx: post_to_chat(tx, store._config, chat, make_post(**fields), get_now(store)))
    )


def list_deliveries(store: SessionStore, session_id: str | None) -> list[Delivery]:
    return store._engine.run(
        Read(lambda tx: delivery_queries.list_for_session(tx, sessions.get_no(tx, session_id or "")))
    )


def test_a_message_joins_the_conversation_and_is_sent(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    ada = add_writer(store, dm(), text="hello")
    before = store.find_entry("agent:main:telegram:dm:ada")
    assert before is not None
    clock.advance(minutes=5)
    posted = post(store, ada, "telegram:ada")
    session = store.get_session(before.session_id)
    assert posted.session_id == session.id
    assert (session.message_count, session.preview) == (2, "Sunny, 20 degrees.")
    assert session.last_human_at == before.session.last_human_at  # the idle clock is not moved
    assert session.last_message_at == clock.now()
    [sent] = list_deliveries(store, session.id)
    assert (sent.content, str(sent.address), sent.state) == (
        "Sunny, 20 degrees.",
        "telegram::ada",
        DeliveryState.PENDING,
    )
    assert [hit.seq for hit in store.search("Sunny")] == [posted.seq]
    status = store.seen_by(ada).part(DeliveryOperations).list(session.id)[0]
    assert (status.message_seq, status.turn_id, status.input_seq) == (posted.seq, None, None)


def test_the_agent_knows_what_it_has_sent_and_why(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm(), text="hello")
    posted = post(store, ada, "telegram:ada")
    answer = store.record_user_message(dm(), "And tomorrow?")
    events = [event for event in store.load_events(answer.session_id) if event.message is not None]
    messages = build_messages(events, input_seq=answer.seq, compaction=None, shared=False)
    assert messages[1:] == [
        {
            "role": "user",
            "content": '[Your scheduled job "Morning news" ran, and you sent the following message here.]',
        },
        {"role": "assistant", "content": "Sunny, 20 degrees."},
        {"role": "user", "content": "And tomorrow?"},
    ]
    stored = events[1].message
    assert stored is not None
    assert stored.extra["sent_by"] == JOB_SENDER.to_dict()
    assert events[1].seq == posted.seq
    row = store._engine.run(Read(lambda tx: sessions.get(tx, answer.session_id)))
    text = store._engine.run(Read(lambda tx: export_markdown(tx, row)))
    assert "Sent by the job “Morning news”.\n\nSunny, 20 degrees." in text


def test_the_terminal_says_who_sent_it(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm())
    posted = post(store, ada, "telegram:ada")
    session = store.get_session(posted.session_id or "")
    event = store.load_events(session.id)[-1]
    lines = list(format_events([event], session, in_full=True))
    assert lines[1].endswith(" · Sent by the job “Morning news”")
    assert lines[2].strip() == "Sunny, 20 degrees."
    shown = FeedPresenter(None).present(EventAppended(event))
    assert shown == [PersonMessage("Sent by the job “Morning news”", "Sunny, 20 degrees.")]
    assert FeedPresenter(None, turn_id=TurnId("t_1")).present(EventAppended(event)) == []


def test_a_conversation_may_begin_with_it(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm(), text="hello")
    store.reset_session("agent:main:telegram:dm:ada")
    posted = post(store, ada, "telegram:ada")
    assert posted.seq is not None
    events = store.load_events(posted.session_id or "")
    first, second = build_messages(events, input_seq=posted.seq, compaction=None, shared=False)
    assert (first["role"], second["role"]) == ("user", "assistant")


def test_a_session_that_has_expired_is_left(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    store = open_store(GatewayConfig(default_reset_policy=policy))
    ada = add_writer(store, dm())
    first = post(store, ada, "telegram:ada")
    clock.advance(minutes=59)
    assert post(store, ada, "telegram:ada").session_id == first.session_id
    clock.advance(minutes=2)
    second = post(store, ada, "telegram:ada")
    assert second.session_id != first.session_id
    assert store.get_session(first.session_id or "").ended_at is not None
    assert store.record_user_message(dm(), "What was that?").session_id == second.session_id


async def test_an_answer_that_comes_late_is_understood(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    """Whether the conversation had ended before the message was sent, or ended after it."""
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    store = open_store(GatewayConfig(default_reset_policy=policy))
    inbox = Inbox(store, CurrentSettings(ScriptedAgent(), TurnRules(open_platforms=frozenset({Platform.TELEGRAM}))))
    first = await inbox.accept(Inbound(source=dm(), content="hello"))
    store.append_to_transcript(first.session_id or "", {"role": "assistant", "content": "Hi.", "answers": first.seq})
    ada = store.get_or_create_person(dm()).principal
    await asyncio.to_thread(cancel_turns, store)
    clock.advance(minutes=30)
    assert post(store, ada, "telegram:ada").session_id == first.session_id
    clock.advance(hours=5)
    late = await inbox.accept(Inbound(source=dm(), content="And tomorrow?"))
    assert late.session_id != first.session_id
    assert late.reply is not None  # they are told that a new conversation has started
    [message] = build_messages(
        store.load_events(late.session_id or ""), input_seq=late.seq or 0, compaction=None, shared=False
    )
    assert "> you, by the job “Morning news”: Sunny, 20 degrees." in message["content"]
    await asyncio.to_thread(cancel_turns, store)

    clock.advance(hours=5)
    posted = post(store, ada, "telegram:ada")
    assert posted.session_id != late.session_id
    clock.advance(hours=5)
    answer = await inbox.accept(Inbound(source=dm(), content="Thanks"))
    assert answer.session_id == posted.session_id
    assert "/restore" in (answer.reply or "")  # the message has left the conversation, and the person was not told yet
    again = await inbox.accept(Inbound(source=dm(), content="Bye"))
    assert (again.session_id, again.reply) == (posted.session_id, None)
    clock.advance(minutes=61)
    await asyncio.to_thread(cancel_turns, store)
    next_day = await inbox.accept(Inbound(source=dm(), content="Good morning"))
    assert next_day.session_id != posted.session_id
    stored = store.load_events(next_day.session_id or "")[-1].message
    assert stored is not None
    assert "context" not in stored.extra  # it was answered


@pytest.mark.both_engines
async def test_the_agent_learns_from_a_conversation_that_a_message_has_left(
    open_store: OpenStore, dm: Source, clock: FakeClock
) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    store = open_store(GatewayConfig(default_reset_policy=policy))
    ada = add_writer(store, dm())
    rules = TurnRules(
        open_platforms=frozenset({Platform.TELEGRAM}),
        toolsets={"memory": ToolsetRule()},
        memory=MemoryRules(learn=True),
    )
    inbox = Inbox(store, CurrentSettings(ScriptedAgent(), rules))
    first = await inbox.accept(Inbound(source=dm(), content="My dog is called Rex."))
    await asyncio.to_thread(cancel_turns, store)
    clock.advance(hours=5)
    await asyncio.to_thread(post, store, ada, "telegram:ada")
    await inbox.accept(Inbound(source=dm(), content="Thanks"))
    query = "SELECT s.id FROM memory_turn m JOIN session s ON s.no = m.session_no"
    assert await store._engine.arun(Read(lambda tx: tx.fetch_all(query))) == [(first.session_id,)]


def test_an_undo_leaves_what_was_sent_since(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm(), text="one")
    two = store.record_user_message(dm(), "two")
    session_id = two.session_id
    post(store, ada, "telegram:ada", text="during the answer")
    store.append_to_transcript(session_id, {"role": "assistant", "content": "second", "answers": two.seq})
    post(store, ada, "telegram:ada", text="after it")
    for number in range(30):
        store.append_to_transcript(session_id, {"role": "assistant", "content": f"more {number}"})
    assert store.undo(session_id).messages == 32
    left = ["one", "during the answer", "after it"]
    assert [message["content"] for message in store.load_transcript(session_id)] == left
    assert [message["content"] for message in store.load_transcript(session_id, limit=2)] == left[-2:]
    assert store.get_session(session_id).message_count == 3
    assert store.redo(session_id).messages == 32
    assert len(store.load_transcript(session_id)) == 35


def test_an_undo_keeps_the_answer_that_a_message_came_before(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm(), text="one")
    second = store.record_user_message(dm(), "two")
    post(store, ada, "telegram:ada", text="sent")
    for content, answers in (("first", second.seq - 1), ("second", second.seq)):
        store.append_to_transcript(second.session_id, {"role": "assistant", "content": content, "answers": answers})
    store.undo(second.session_id)
    assert [message["content"] for message in store.load_transcript(second.session_id)] == ["one", "sent", "first"]


def cancel_turns(store: SessionStore) -> None:
    store._engine.run(Write(lambda tx: tx.execute("UPDATE turn SET state = 'done', ended_at = 1")))


def test_a_shared_group_has_one_conversation(open_store: OpenStore, group: Source) -> None:
    store = open_store(GatewayConfig(group_sessions_per_user=False))
    ada = add_writer(store, group("ada"))
    ben = add_writer(store, group("ben"))
    posted = post(store, ada, "discord:club")
    recorded = store.record_user_message(group("ben"), "Thanks")
    assert recorded.session_id == posted.session_id
    for person in (ada, ben):
        assert store.seen_by(person).load_messages(recorded.session_id)[-2].seq == posted.seq
    eve = add_writer(store, group("eve", chat="other"))
    assert list(store.seen_by(eve).search("Sunny")) == []


async def test_every_lane_of_a_group_sees_it_with_its_next_message(open_store: OpenStore, group: Source) -> None:
    store = open_store(GatewayConfig(connected_platforms=(Platform.DISCORD,)))
    inbox = Inbox(store, CurrentSettings(ScriptedAgent(), TurnRules(open_platforms=frozenset({Platform.DISCORD}))))
    for user in ("ada", "ben"):
        await inbox.accept(Inbound(source=group(user), content="hello"))
    ada = store.get_or_create_person(group("ada")).principal
    posted = post(store, type(ada)(ada.person_id, Role.MEMBER), "discord:club")
    assert (posted.session_id, posted.delivery_id is not None) == (None, True)
    quoted = "> you, by the job “Morning news” Sunny"
    for user in ("ada", "ben"):
        receipt = await inbox.accept(Inbound(source=group(user), content="And tomorrow?"))
        events = store.load_events(receipt.session_id or "")
        last = build_messages(events, input_seq=receipt.seq or 0, compaction=None, shared=False)[-1]
        assert quoted in last["content"].replace(":", "")
        assert last["content"].endswith("And tomorrow?")


def test_a_chat_in_which_no_person_has_written_gets_no_conversation(open_store: OpenStore, dm: Source) -> None:
    store = open_store(GatewayConfig(connected_platforms=(Platform.TELEGRAM,), group_sessions_per_user=False))
    owner = add_writer(store, dm("olga"), Role.OWNER)
    posted = post(store, owner, "telegram:4711")
    assert posted.session_id is None
    assert posted.delivery_id is not None
    assert len(store.list_sessions()) == 1


@pytest.mark.both_engines
def test_a_dead_target_fails_visibly_and_can_be_sent_again(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm())
    address = str(Address(Platform.TELEGRAM, "ada"))
    store._engine.run(Write(lambda tx: deliveries.mark_target_dead(tx, address, "blocked", get_now(store))))
    posted = post(store, ada, "telegram:ada")
    view = store.seen_by(ada)
    [status] = view.part(DeliveryOperations).list(posted.session_id or "")
    assert status.state is DeliveryState.FAILED
    assert status.error is not None
    assert "blocked" in status.error
    again = view.part(DeliveryOperations).send_again(posted.session_id or "", status.id)
    assert (again.state, again.message_seq) == (DeliveryState.PENDING, posted.seq)


@pytest.mark.both_engines
@pytest.mark.parametrize("is_waiting", [True, False])
def test_why_a_target_is_dead_is_told_in_the_language_of_the_reader(
    store: SessionStore, dm: Source, is_waiting: bool
) -> None:
    ada = add_writer(store, dm())
    address = str(Address(Platform.TELEGRAM, "ada"))
    reason = say("account.closed", "This account is closed.")
    posted = post(store, ada, "telegram:ada") if is_waiting else None
    store._engine.run(Write(lambda tx: deliveries.mark_target_dead(tx, address, reason, get_now(store))))
    posted = posted or post(store, ada, "telegram:ada")
    [status] = store.seen_by(ada).part(DeliveryOperations).list(posted.session_id or "")
    assert status.error == "This address can no longer be reached: This account is closed."
    assert translate(status.error, "de") == "Diese Adresse ist nicht mehr erreichbar: Dieses Konto ist geschlossen."


@pytest.mark.both_engines
def test_a_reaction_finds_the_message_that_was_sent(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm())
    posted = post(store, ada, "telegram:ada")

    def confirm(tx: Any) -> message_edits.MessagePlace | None:
        tx.execute(
            "INSERT INTO delivery_part (delivery_no, part_no, body, state, sent_message_id)"
            " SELECT no, 1, 'x', 'sent', 'm7' FROM delivery WHERE id = $1",
            posted.delivery_id,
        )
        return message_edits.find_sent_answer(tx, dm(), "m7")

    place = store._engine.run(Write(confirm))
    assert place is not None
    assert place.seq == posted.seq


def test_a_post_during_an_answer_comes_after_it_for_the_model(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm(), text="one")
    post(store, ada, "telegram:ada", text="news")
    entry = store.find_entry("agent:main:telegram:dm:ada")
    assert entry is not None
    store.append_to_transcript(entry.session_id, {"role": "assistant", "content": "first", "answers": 2})
    recorded = store.record_user_message(dm(), "two")
    built = build_messages(store.load_events(entry.session_id), input_seq=recorded.seq, compaction=None, shared=False)
    texts = [message["content"] for message in built if message["role"] == "assistant"]
    assert texts == ["first", "news"]


# ---- notices ---------------------------------------------------------------------------------------------------


def notify(store: SessionStore, principal: Principal, preferred: SessionSource | None = None) -> list[str]:
    now = get_now(store)

    def run(tx: Any) -> list[str]:
        is_sent = notify_person(tx, store._config, principal.person_id, "It fails.", now, preferred=preferred)
        rows = tx.fetch_all("SELECT address FROM delivery WHERE kind = 'notice' ORDER BY no")
        assert bool(rows) == is_sent
        return [address for (address,) in rows]

    return store._engine.run(Write(run))


@pytest.mark.both_engines
def test_a_notice_goes_to_the_preferred_chat_or_the_latest_direct_messages(
    store: SessionStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    page_only = store.get_or_create_person(SessionSource("web", "page", user_id="pia", user_name="Pia")).principal
    assert notify(store, page_only) == []
    add_writer(store, dm("ben"))
    ada = add_writer(store, dm("ada"))
    clock.advance(minutes=1)
    ada_on_discord = SessionSource("discord", "d1", user_id="ada", user_name="Ada")

    def link(tx: Any) -> None:
        tx.execute(
            "INSERT INTO identity (platform, account, person_id, created_at) VALUES ('discord', 'ada', $1, 1)",
            ada.person_id,
        )

    store._engine.run(Write(link))
    add_writer(store, ada_on_discord)
    assert notify(store, ada) == ["discord::d1"]
    assert notify(store, ada, dm("ada"))[-1] == "telegram::ada"
    assert notify(store, ada, dm("ben"))[-1] == "discord::d1"  # not the chat of another person
    assert notify(store, ada, SessionSource("web", "page"))[-1] == "discord::d1"
    add_writer(store, group("ada"))
    assert notify(store, ada, group("ada"))[-1] == "discord::club"


def test_posts_do_not_keep_a_session_from_expiring(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    store = open_store(GatewayConfig(default_reset_policy=policy))
    ada = add_writer(store, dm())
    for _ in range(3):
        clock.advance(minutes=19)
        post(store, ada, "telegram:ada")
    clock.advance(minutes=19)
    arrival = store.build_arrival(dm(), clock.now())
    assert store._engine.run(Read(lambda tx: lanes.find_open_entry(tx, arrival))) is None

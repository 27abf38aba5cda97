"""Conversations end when their reset policy runs out. The next message finds what it would have found without that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.agent.profiles import CurrentSettings
from palaver.config.agent_rules import MemoryRules, TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.ids import SessionId
from palaver.core.source import ChatType, Platform
from palaver.delivery.chat_posts import post_to_chat
from palaver.memory.model import MemoryTurnKind
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import settings_table as session_settings, table as sessions
from palaver.sessions.events import EventKind
from palaver.sessions.expiry_table import START, PlaceType, find_first_base, list_open_sessions, list_place_types
from palaver.sessions.keys import DmScope
from palaver.sessions.model import EndReason, StartReason
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.testing import ScriptedAgent
from palaver.turns import expiry
from palaver.turns.expiry import ExpiryWatcher
from support.inbox import answer, list_rows, make_dm, make_group, make_inbox, say
from support.messaging import add_writer, get_now, make_post, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.sessions.inbound import Receipt
    from palaver.testing import FakeClock

    OpenStore = Callable[..., SessionStore]

IDLE = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
DAILY = ResetPolicy(mode=ResetMode.DAILY, at_hour=4)
BOTH = ResetPolicy(mode=ResetMode.BOTH, idle_minutes=24 * 60, at_hour=4)
NEVER = ResetPolicy()
IDLE_CONFIG = GatewayConfig(default_reset_policy=IDLE)


def make_watcher(store: SessionStore, **rules: Any) -> ExpiryWatcher:
    return ExpiryWatcher(store, CurrentSettings(ScriptedAgent(), TurnRules(**rules)))


def get_end(store: SessionStore, session_id: str | None) -> EndReason | None:
    return store.get_session(session_id or "").end_reason


def propose_job(store: SessionStore, session_id: str | None) -> None:
    """Store a job that the agent has proposed in a session."""

    def insert(tx: Any) -> None:
        tx.execute(
            "INSERT INTO job (id, person_id, name, name_key, prompt, schedule, timezone, anchor, targets, origin,"
            " proposed_session_no, proposed_at, toolsets, state, created_at, updated_at) SELECT 'j1', p.id, 'News',"
            " 'news', 'News?', 'every 1h', 'UTC', 0, '[]', '{}', s.no, 0, '[]', 'proposed', 0, 0"
            " FROM person p, session s WHERE s.id = $1 ORDER BY p.id LIMIT 1",
            session_id,
        )

    store.engine.run(Write(insert))


def choose_profile(tx: Transaction, session_id: str, profile: str) -> None:
    session_settings.change(tx, sessions.get_no(tx, SessionId(session_id)), "profile", profile, 0)


def load_profile(store: SessionStore, receipt: Receipt) -> str | None:
    """Return the profile of the conversation that a message has come to."""
    no = store.engine.run(Read(lambda tx: sessions.get_no(tx, SessionId(receipt.session_id or ""))))
    return store.engine.run(Read(lambda tx: session_settings.load(tx, no))).profile


# ---- the watcher and the message come to the same result ---------------------------------------------------


@dataclass(frozen=True)
class Silence:
    """A conversation in which no person writes for a while."""

    policy: ResetPolicy
    source: SessionSource
    duration: timedelta
    reason: StartReason | None
    told: str | None  # part of what the person is told
    with_messages: bool = True
    rules: dict[str, Any] = field(default_factory=dict)


SILENCES = {
    "idle": Silence(IDLE, make_dm(), timedelta(hours=2), StartReason.IDLE, "idle for more than 1 hour"),
    "not yet idle": Silence(IDLE, make_dm(), timedelta(hours=1), None, None),
    "daily": Silence(DAILY, make_dm(), timedelta(hours=20), StartReason.DAILY, "every day at 04:00 (UTC)"),
    "not yet the hour": Silence(DAILY, make_dm(), timedelta(hours=19), None, None),
    "both, the hour first": Silence(BOTH, make_dm(), timedelta(days=3), StartReason.DAILY, "every day at 04:00 (UTC)"),
    "both, idle first": Silence(
        ResetPolicy(mode=ResetMode.BOTH, idle_minutes=60), make_dm(), timedelta(days=3), StartReason.IDLE, "1 hour"
    ),
    "not told": Silence(
        ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60, notify=False),
        make_dm(),
        timedelta(hours=2),
        StartReason.IDLE,
        None,
    ),
    "nothing was said": Silence(IDLE, make_dm(), timedelta(hours=2), StartReason.IDLE, None, with_messages=False),
    "a group": Silence(IDLE, make_group(), timedelta(hours=2), StartReason.IDLE, "idle for more than 1 hour"),
    "never": Silence(ResetPolicy(), make_dm(), timedelta(days=400), None, None),
}


async def record_silence(store: SessionStore, clock: FakeClock, silence: Silence, *, watched: bool) -> dict[str, Any]:
    """Be silent, write again, and return everything that people and the agent notice of it."""
    inbox = make_inbox(store)
    first = await say(inbox, silence.source, "hello")
    answer(store, first)
    if not silence.with_messages:
        first = await say(inbox, silence.source, "/new")
    start = clock.now()
    clock.advance(seconds=silence.duration.total_seconds())
    if watched:
        await make_watcher(store).run_once()
    second = await say(inbox, silence.source, "hello again")
    answer(store, second)
    noticed = describe(store, first, second)
    back = await say(inbox, silence.source, "/restore")
    noticed |= {"restored": back.outcome, "restored_to_first": back.session_id == first.session_id}
    clock.set(start)
    return noticed


def describe(store: SessionStore, first: Receipt, second: Receipt) -> dict[str, Any]:
    sessions = [store.get_session(receipt.session_id or "") for receipt in (first, second)]
    return {
        "logs": [
            [(event.kind, event.facts.get("reason")) for event in store.load_events(each.id)] for each in sessions
        ],
        "starts": [(each.start_reason, each.previous_had_messages) for each in sessions],
        "ends": [each.end_reason for each in sessions],
        "previous_is_first": store.load_events(sessions[1].id)[0].facts.get("previous") == sessions[0].id,
        "is_same": first.session_id == second.session_id,
        "reply": second.reply,
        "moves": [reason for (reason,) in list_rows(store, "SELECT reason FROM lane_move ORDER BY no")],
    }


@pytest.mark.both_engines
@pytest.mark.parametrize("name", SILENCES)
async def test_it_makes_no_difference_whether_the_watcher_or_the_message_is_first(
    open_store: OpenStore, clock: FakeClock, name: str
) -> None:
    silence = SILENCES[name]
    store = open_store(GatewayConfig(default_reset_policy=silence.policy))
    watched = await record_silence(store, clock, silence, watched=True)
    store.engine.run(Write(lambda tx: [tx.execute(f"DELETE FROM {table}") for table in ("lane_move", "lane")]))
    unwatched = await record_silence(store, clock, silence, watched=False)
    assert watched == unwatched
    assert watched["starts"][1][0] == (silence.reason or StartReason.FIRST)
    assert watched["is_same"] is (silence.reason is None)
    assert (silence.told or "") in (watched["reply"] or "")
    assert (watched["reply"] is None) is (silence.told is None)


@pytest.mark.parametrize("watched", [True, False])
async def test_the_policy_of_the_profile_decides_and_is_named(
    open_store: OpenStore, clock: FakeClock, watched: bool
) -> None:
    by_profile = {"work": IDLE, "diary": NEVER}
    store = open_store(GatewayConfig(reset_by_platform={Platform.TELEGRAM: DAILY}, reset_by_profile=by_profile))
    inbox = make_inbox(store)
    ada, ben, cleo = make_dm("ada"), make_dm("ben"), make_dm("cleo")
    first = {source: await say(inbox, source, "hello") for source in (ada, ben, cleo)}
    for source, profile in ((ada, "work"), (ben, "diary")):
        session_id = first[source].session_id or ""
        store.engine.run(Write(partial(choose_profile, session_id=session_id, profile=profile)))
    for receipt in first.values():
        answer(store, receipt)
    clock.advance(minutes=60)
    second = await say(inbox, ada, "still here")
    assert second.session_id == first[ada].session_id
    answer(store, second)
    clock.advance(minutes=61)
    if watched:
        await make_watcher(store).run_once()
    back = await say(inbox, ada, "hello again")
    assert back.session_id != first[ada].session_id
    assert "with the profile “work” was idle for more than 1 hour" in (back.reply or "")
    assert "a new one was started with the same profile." in (back.reply or "")
    started = store.load_events(back.session_id or "")[0]
    assert started.facts["reset_setting"] == "profiles.work.session_reset"
    assert load_profile(store, back) == started.facts["profile"] == "work"
    clock.advance(days=2)
    if watched:
        await make_watcher(store).run_once()
    assert (await say(inbox, ben, "dear diary")).session_id == first[ben].session_id  # its profile says never
    daily = await say(inbox, cleo, "hello again")  # without a profile, the platform decides
    assert "Conversations here restart every day at 04:00 (UTC)" in (daily.reply or "")
    assert load_profile(store, daily) is None


@pytest.mark.parametrize("watched", [True, False])
async def test_an_automatic_restart_keeps_the_profile_and_a_new_conversation_does_not(
    open_store: OpenStore, clock: FakeClock, watched: bool
) -> None:
    store = open_store(GatewayConfig(default_reset_policy=DAILY))
    inbox = make_inbox(store)
    ada = make_dm("ada")
    first = await say(inbox, ada, "hello")
    store.engine.run(Write(partial(choose_profile, session_id=first.session_id or "", profile="cook")))
    answer(store, first)
    clock.advance(days=2)
    if watched:
        await make_watcher(store).run_once()
    restarted = await say(inbox, ada, "what is for dinner?")
    assert restarted.session_id != first.session_id
    assert load_profile(store, restarted) == "cook"
    assert "so a new one was started with the same profile, “cook”." in (restarted.reply or "")
    answer(store, restarted)
    key = store.engine.run(Read(lambda tx: sessions.get(tx, restarted.session_id or ""))).session.key
    store.reset_session(key)
    asked_for = await say(inbox, ada, "something else")
    assert load_profile(store, asked_for) is None


# ---- ending on time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("watched", [True, False])
async def test_what_the_agent_has_sent_is_answered_where_it_was_sent(
    open_store: OpenStore, clock: FakeClock, watched: bool
) -> None:
    store = open_store(IDLE_CONFIG)
    ada = add_writer(store, make_dm(), text="hello")
    clock.advance(hours=2)
    chat = resolve(store, ada, "telegram:ada")
    posted = store.engine.run(Write(lambda tx: post_to_chat(tx, store.config, chat, make_post(), get_now(store))))
    assert store.get_session(posted.session_id or "").start_reason is StartReason.IDLE
    clock.advance(hours=9)
    if watched:
        await make_watcher(store).run_once()
    receipt = await say(make_inbox(store), make_dm(), "And tomorrow?")
    assert receipt.session_id == posted.session_id
    assert "idle for more than 1 hour" in (receipt.reply or "")  # the person was not told before


async def test_a_session_ends_when_its_time_has_come_and_not_before(open_store: OpenStore, clock: FakeClock) -> None:
    store = open_store(IDLE_CONFIG)
    message = store.record_user_message(make_dm(), "hello")
    watcher = make_watcher(store)
    assert await watcher.run_once() == expiry.MAX_WAIT_SECONDS
    clock.advance(minutes=59, seconds=30)
    assert await watcher.run_once() == 30
    clock.advance(seconds=30)
    assert await watcher.run_once() == expiry.MIN_WAIT_SECONDS  # exactly one hour is not more than one hour
    assert get_end(store, message.session_id) is None
    clock.advance(seconds=1)
    await watcher.run_once()
    session = store.get_session(message.session_id)
    assert (session.end_reason, session.ended_at) == (EndReason.IDLE, clock.now())
    assert store.find_entry(message.session_key) is not None  # the lane stays on it
    await watcher.run_once()
    assert [event.kind for event in store.load_events(session.id)].count(EventKind.ENDED) == 1


@pytest.mark.both_engines
async def test_without_a_policy_the_watcher_does_nothing(open_store: OpenStore, clock: FakeClock) -> None:
    store = open_store(GatewayConfig(reset_by_platform={Platform.WEB: IDLE}))
    store.record_user_message(make_dm(), "hello")
    clock.advance(days=900)
    watcher = make_watcher(store)
    await watcher.start()
    assert await watcher.run_once() == expiry.MAX_WAIT_SECONDS
    await watcher.stop()
    assert list_rows(store, "SELECT * FROM named_lease") == []
    assert list_rows(store, "SELECT 1 FROM session WHERE ended_at IS NOT NULL") == []


@pytest.mark.both_engines
@pytest.mark.parametrize("is_upgraded", [False, True])
async def test_a_session_that_was_used_meanwhile_ends_at_its_new_time(
    open_store: OpenStore, clock: FakeClock, is_upgraded: bool
) -> None:
    """The watcher finds it at the time of its first message, and again an hour after the last."""
    store = open_store(IDLE_CONFIG)
    watcher = make_watcher(store)
    session_id = store.record_user_message(make_dm(), "hello").session_id
    clock.advance(minutes=50)
    store.record_user_message(make_dm(), "and again")
    if is_upgraded:  # an older version has stored it
        store.engine.run(Write(lambda tx: tx.execute("UPDATE session SET expiry_base = 0")))
    clock.advance(minutes=11)
    assert await watcher.run_once() == expiry.MAX_WAIT_SECONDS
    assert list_rows(store, "SELECT last_human_at - expiry_base FROM session") == [(0,)]
    clock.advance(minutes=48, seconds=30)
    assert await watcher.run_once() == 30
    assert get_end(store, session_id) is None
    clock.advance(seconds=31)
    await watcher.run_once()
    assert get_end(store, session_id) is EndReason.IDLE


@pytest.mark.both_engines
async def test_a_post_that_is_answered_after_the_watcher_has_passed_it_ends_on_time(
    open_store: OpenStore, clock: FakeClock
) -> None:
    store = open_store(IDLE_CONFIG)
    ada = add_writer(store, make_dm(), text="hello")
    clock.advance(hours=2)
    chat = resolve(store, ada, "telegram:ada")
    posted = store.engine.run(Write(lambda tx: post_to_chat(tx, store.config, chat, make_post(), get_now(store))))
    watcher = make_watcher(store)
    clock.advance(hours=2)
    await watcher.run_once()
    answered = await say(make_inbox(store), make_dm(), "Thanks.")
    assert answered.session_id == posted.session_id
    answer(store, answered)
    clock.advance(hours=1, seconds=1)
    await watcher.run_once()
    assert get_end(store, posted.session_id) is EndReason.IDLE


@pytest.mark.both_engines
async def test_a_session_that_was_reopened_ends_again_on_time(open_store: OpenStore, clock: FakeClock) -> None:
    store = open_store(IDLE_CONFIG)
    watcher = make_watcher(store)
    message = store.record_user_message(make_dm(), "hello")
    clock.advance(hours=2)
    await watcher.run_once()
    store.restore(message.session_key)
    clock.advance(minutes=59)
    await watcher.run_once()
    assert get_end(store, message.session_id) is None
    clock.advance(minutes=2)
    await watcher.run_once()
    assert get_end(store, message.session_id) is EndReason.IDLE


async def test_each_chat_has_its_own_policy_and_the_page_none(open_store: OpenStore, clock: FakeClock) -> None:
    config = GatewayConfig(
        default_reset_policy=IDLE,
        reset_by_platform={Platform.SLACK: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=600)},
        reset_by_type={ChatType.GROUP: ResetPolicy()},
    )
    store = open_store(config)
    sources = [
        make_dm(),
        make_group(),
        SessionSource("slack", "c", user_id="ada"),
        SessionSource("web", "p", user_id="ada"),
        SessionSource("webhook", "w", user_id="hook"),  # no person ever writes there: it counts from its start
    ]
    sessions = [store.record_user_message(source, "hello").session_id for source in sources]
    watcher = make_watcher(store)
    clock.advance(hours=2)
    await watcher.run_once()
    assert [get_end(store, each) for each in sessions] == [EndReason.IDLE, None, None, None, EndReason.IDLE]
    clock.advance(hours=10)
    await watcher.run_once()
    assert [get_end(store, each) for each in sessions] == ["idle", None, "idle", None, "idle"]


async def test_a_conversation_that_continues_elsewhere_follows_the_policy_there(
    open_store: OpenStore, clock: FakeClock
) -> None:
    """It ends when every chat that is on it would leave it with the next message."""
    config = GatewayConfig(
        reset_by_platform={Platform.SLACK: IDLE, Platform.SIGNAL: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=180)}
    )
    store = open_store(config)
    slack, signal = SessionSource("slack", "c", user_id="ada"), SessionSource("signal", "s", user_id="ada")
    alone, both, stays = (store.record_user_message(make_dm(each), "hi") for each in ("ada", "bob", "cem"))
    keys = [store.record_user_message(source, "hi").session_key for source in (slack, signal)]
    other_key = store.record_user_message(SessionSource("slack", "d", user_id="bob"), "hi").session_key
    third_key = store.record_user_message(SessionSource("slack", "e", user_id="cem"), "hi").session_key
    store.switch_session(keys[0], alone.session_id)
    store.reset_session(alone.session_key)  # it is on Slack only now
    store.switch_session(keys[1], both.session_id)
    store.switch_session(other_key, both.session_id)
    store.reset_session(both.session_key)
    store.switch_session(third_key, stays.session_id)  # still in its own chat, too, where conversations never end
    watcher = make_watcher(store)
    clock.advance(hours=2)
    await watcher.run_once()
    assert [get_end(store, each.session_id) for each in (alone, both, stays)] == [EndReason.IDLE, None, None]
    clock.advance(hours=2)
    await watcher.run_once()
    assert [get_end(store, each.session_id) for each in (alone, both, stays)] == ["idle", "idle", None]


async def test_a_chat_for_all_platforms_ends_only_if_it_would_on_each(open_store: OpenStore, clock: FakeClock) -> None:
    config = GatewayConfig(
        dm_scope=DmScope.PERSON, reset_by_platform={Platform.TELEGRAM: IDLE}, default_reset_policy=DAILY
    )
    store = open_store(config)
    message = store.record_user_message(make_dm(), "hi")
    watcher = make_watcher(store)
    clock.advance(hours=2)
    await watcher.run_once()
    assert get_end(store, message.session_id) is None  # the next message may come from Slack
    clock.advance(days=1)
    await watcher.run_once()
    assert get_end(store, message.session_id) is EndReason.DAILY


async def test_a_session_is_looked_at_once(open_store: OpenStore, clock: FakeClock, monkeypatch: Any) -> None:
    """What stays open for good costs nothing until a complete pass."""
    config = GatewayConfig(default_reset_policy=IDLE, reset_by_type={ChatType.GROUP: ResetPolicy()})
    store = open_store(config)
    for user in ("ada", "bob", "cem"):
        store.record_user_message(make_group(user), "hello")
    checked: list[int] = []
    watcher = make_watcher(store)
    original = watcher._check

    async def check(session_no: int) -> bool:
        checked.append(session_no)
        return await original(session_no)

    monkeypatch.setattr(watcher, "_check", check)
    monkeypatch.setattr(expiry, "SESSIONS_PER_READ", 1)  # also across batches, at the same moment
    clock.advance(hours=2)
    await watcher.run_once()
    assert len(checked) == len(set(checked)) == 3
    await watcher.run_once()
    assert len(checked) == 3
    clock.advance(days=1)
    await watcher.run_once()
    assert len(checked) == 6


# ---- what pins a session -----------------------------------------------------------------------------------


async def test_a_clock_that_is_set_back_hides_no_session(open_store: OpenStore, clock: FakeClock) -> None:
    store = open_store(IDLE_CONFIG)
    inbox, watcher = make_inbox(store), make_watcher(store)
    await watcher.run_once()
    clock.advance(hours=10)
    first = await say(inbox, make_dm("ada"), "hello")
    answer(store, first)
    clock.advance(hours=2)
    await watcher.run_once()
    assert get_end(store, first.session_id) is EndReason.IDLE
    clock.advance(hours=-5)
    await watcher.run_once()
    second = await say(inbox, make_dm("ben"), "hello")
    answer(store, second)
    clock.advance(hours=2)
    await watcher.run_once()
    assert get_end(store, second.session_id) is EndReason.IDLE


@pytest.mark.both_engines
async def test_open_turns_and_waiting_proposals_pin_a_session(open_store: OpenStore, clock: FakeClock) -> None:
    store = open_store(IDLE_CONFIG)
    inbox = make_inbox(store)
    asked, proposed = await say(inbox, make_dm("ada"), "hello"), await say(inbox, make_dm("bob"), "hello")
    answer(store, proposed)
    propose_job(store, proposed.session_id)
    watcher = make_watcher(store)
    clock.advance(hours=2)
    await watcher.run_once()
    assert [get_end(store, each.session_id) for each in (asked, proposed)] == [None, None]
    answer(store, asked)
    await watcher.run_once()
    assert [get_end(store, each.session_id) for each in (asked, proposed)] == [EndReason.IDLE, None]
    assert (await say(inbox, make_dm("bob"), "/why")).session_id == proposed.session_id
    store.engine.run(Write(lambda tx: tx.execute("DELETE FROM job")))
    await watcher.run_once()
    assert get_end(store, proposed.session_id) is EndReason.IDLE


async def test_a_message_continues_the_session_of_a_waiting_proposal(open_store: OpenStore, clock: FakeClock) -> None:
    store = open_store(IDLE_CONFIG)
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "remind me every day")
    answer(store, first)
    propose_job(store, first.session_id)
    clock.advance(hours=2)
    second = await say(inbox, make_dm(), "yes, please")
    assert (second.session_id, second.reply) == (first.session_id, None)


@pytest.mark.parametrize(("age", "ends"), [(timedelta(hours=1), False), (timedelta(hours=25), True)])
async def test_background_work_pins_a_session_for_a_day(
    open_store: OpenStore, clock: FakeClock, age: timedelta, ends: bool
) -> None:
    store = open_store(IDLE_CONFIG, is_busy=lambda _: clock.now() - age)
    message = store.record_user_message(make_dm(), "hello")
    clock.advance(hours=2)
    await make_watcher(store).run_once()
    assert (get_end(store, message.session_id) is not None) is ends


# ---- going back --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("watched", [True, False])
async def test_restore_after_the_end_continues_the_conversation(
    open_store: OpenStore, clock: FakeClock, watched: bool
) -> None:
    store = open_store(IDLE_CONFIG)
    inbox = make_inbox(store)
    earlier = await say(inbox, make_dm(), "one")
    answer(store, earlier)
    await say(inbox, make_dm(), "/new")
    first = await say(inbox, make_dm(), "two")
    answer(store, first)
    clock.advance(hours=2)
    if watched:
        await make_watcher(store).run_once()
        assert get_end(store, first.session_id) is EndReason.IDLE
    back = await say(inbox, make_dm(), "/restore")
    assert back.session_id == first.session_id
    assert (back.reply or "").startswith("Back in")
    assert "other conversation" not in (back.reply or "")
    second = await say(inbox, make_dm(), "three")
    assert (second.session_id, second.reply) == (first.session_id, None)
    answer(store, second)
    assert (await say(inbox, make_dm(), "/restore")).session_id == earlier.session_id


@pytest.mark.both_engines
@pytest.mark.parametrize("watched", [True, False])
async def test_a_setting_holds_from_the_next_message_even_if_that_starts_a_conversation(
    open_store: OpenStore, clock: FakeClock, watched: bool
) -> None:
    store = open_store(IDLE_CONFIG)
    inbox = make_inbox(store)
    person_id = store.get_or_create_person(make_dm()).id
    store.engine.run(Write(lambda tx: people.set_role(tx, person_id, Role.MEMBER)))
    first = await say(inbox, make_dm(), "hello")
    answer(store, first)
    clock.advance(hours=2)
    if watched:
        await make_watcher(store).run_once()
    await say(inbox, make_dm(), "/tools off memory")
    second = await say(inbox, make_dm(), "my PIN is 1234")
    assert second.session_id != first.session_id
    assert "idle for more than 1 hour" in (second.reply or "")
    columns = list_rows(store, "SELECT id, disabled_toolsets FROM session ORDER BY no")
    assert columns == [(first.session_id, None), (second.session_id, '["memory"]')]
    assert (await say(inbox, make_dm(), "and so on")).reply is None
    answer(store, second)
    assert (await say(inbox, make_dm(), "/restore")).session_id == first.session_id


@pytest.mark.both_engines
async def test_status_and_why_say_that_and_why_a_conversation_has_ended(
    open_store: OpenStore, clock: FakeClock
) -> None:
    store = open_store(IDLE_CONFIG)
    inbox = make_inbox(store)
    answer(store, await say(inbox, make_dm(), "hello"))
    assert "Ended" not in ((await say(inbox, make_dm(), "/status")).reply or "")
    clock.advance(minutes=61)
    await make_watcher(store).run_once()
    clock.advance(hours=2)
    end = "2 h ago, after a period of inactivity. Your next message starts a new conversation."
    for command in ("/status", "/why"):
        reply = (await say(inbox, make_dm(), command)).reply or ""
        assert end in reply, command
        assert "Use /restore to continue this one." in reply, command


@pytest.mark.both_engines
async def test_a_message_on_the_page_and_a_retry_continue_an_ended_conversation(
    open_store: OpenStore, clock: FakeClock
) -> None:
    store = open_store(IDLE_CONFIG)
    inbox = make_inbox(store)
    first = await say(inbox, make_dm(), "hello")
    answer(store, first)
    person = store.get_or_create_person(make_dm())
    clock.advance(hours=2)
    watcher = make_watcher(store)
    await watcher.run_once()
    page = SessionSource("web", "page", user_id=str(person.id))
    store.engine.run(
        Write(
            lambda tx: tx.execute(
                "INSERT INTO identity (platform, account, person_id, created_at) VALUES ('web', $1, $1, 0)", person.id
            )
        )
    )
    receipt = await say(inbox, page, "more", session_id=first.session_id)
    assert receipt.session_id == first.session_id
    assert get_end(store, first.session_id) is None
    answer(store, receipt)
    clock.advance(hours=2)
    await watcher.run_once()
    assert get_end(store, first.session_id) is EndReason.IDLE
    retried = await say(inbox, make_dm(), "/retry")
    assert get_end(store, first.session_id) is None
    answer(store, retried)


# ---- what the agent learns ---------------------------------------------------------------------------------


@pytest.mark.both_engines
@pytest.mark.parametrize("watched", [True, False])
async def test_one_memory_turn_follows_the_end(open_store: OpenStore, clock: FakeClock, watched: bool) -> None:
    store = open_store(IDLE_CONFIG)
    rules: dict[str, Any] = {"memory": MemoryRules(learn=True), "open_platforms": frozenset({Platform.TELEGRAM})}
    inbox = make_inbox(store, **rules)
    person = store.get_or_create_person(make_dm())
    store.engine.run(Write(lambda tx: tx.execute("UPDATE person SET role = 'member' WHERE id = $1", person.id)))
    first = await say(inbox, make_dm(), "I live in Vienna")
    answer(store, first)
    clock.advance(hours=2)
    if watched:
        await make_watcher(store, **rules).run_once()
    await say(inbox, make_dm(), "hello")
    rows = list_rows(store, "SELECT s.id, m.kind FROM memory_turn m JOIN session s ON s.no = m.session_no")
    assert rows == [(first.session_id, MemoryTurnKind.EXPIRY)]


# ---- two watchers ------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_one_process_watches_and_another_takes_over(open_store: OpenStore, clock: FakeClock) -> None:
    store = open_store(IDLE_CONFIG)
    message = store.record_user_message(make_dm(), "hello")
    first, second = make_watcher(store), make_watcher(store)
    await first.run_once()
    clock.advance(hours=2)  # the lease has run out, too
    await second.run_once()
    assert get_end(store, message.session_id) is EndReason.IDLE
    store.restore(message.session_key)
    clock.advance(minutes=61)
    second_lease = list_rows(store, "SELECT owner FROM named_lease")
    await second.run_once()
    await first.run_once()
    assert list_rows(store, "SELECT owner FROM named_lease") == second_lease
    await second.start()
    await second.stop()
    assert list_rows(store, "SELECT owner FROM named_lease") == []


async def test_a_message_and_watchers_at_once(open_store: OpenStore, clock: FakeClock) -> None:
    """In any order, the message is stored once, in an open session, and the old one has ended once."""
    stores = [open_store(IDLE_CONFIG) for _ in range(3)]
    inbox = make_inbox(stores[0])
    for attempt in range(5):
        first = await say(inbox, make_dm(), f"hello {attempt}")
        answer(stores[0], first)
        clock.advance(hours=2)
        watchers = [make_watcher(store) for store in stores[1:]]
        for watcher in watchers:
            watcher._lease.take = _grant  # type: ignore[method-assign]  # as if the lease had run out
        running = [asyncio.create_task(watcher.run_once()) for watcher in watchers]
        second = await say(make_inbox(stores[0]), make_dm(), "again")
        await asyncio.gather(*running)
        assert "idle for more than" in (second.reply or "")
        kinds = [event.kind for event in stores[0].load_events(first.session_id or "")]
        assert kinds.count(EventKind.ENDED) == 1
        assert get_end(stores[0], second.session_id) is None
        answer(stores[0], second)
        clock.advance(hours=2)


async def _grant() -> bool:
    return True


# ---- the cost ----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_the_watcher_uses_the_index(open_store: OpenStore, clock: FakeClock) -> None:
    """On PostgreSQL with enough rows for its planner to care; SQLite's plans do not depend on the number of rows."""
    store = open_store(IDLE_CONFIG)
    store.record_user_message(make_dm(), "hello")
    if store.engine.name == "postgres":
        store.engine.run(Write(_add_many_sessions))
    statements: list[tuple[str, tuple[object, ...]]] = []

    def collect(tx: Any) -> None:
        fetch_all, fetch_one = tx.fetch_all, tx.fetch_one

        def record(fetch: Callable[..., Any], sql: str, *params: object) -> Any:
            statements.append((sql, params))
            return fetch(sql, *params)

        tx.fetch_all, tx.fetch_one = partial(record, fetch_all), partial(record, fetch_one)
        try:
            place_type = PlaceType("telegram", "dm")
            list_place_types(tx)
            list_open_sessions(tx, place_type, START, 2**60, 100)
            find_first_base(tx, place_type, 0)
        finally:
            del tx.fetch_all, tx.fetch_one

    store.engine.run(Read(collect))
    for sql, params in statements:
        plan = _explain(store, sql, params)
        assert "session_open_activity" in plan, (sql, plan)
        assert "SCAN s\n" not in plan, (sql, plan)
        assert "Seq Scan on session" not in plan, (sql, plan)
        assert "TEMP B-TREE" not in plan, (sql, plan)


def _add_many_sessions(tx: Any) -> None:
    tx.execute(
        "INSERT INTO session (id, key, platform, chat_type, source, audience_no, shared, created_at, start_reason,"
        " last_human_at, expiry_base, ended_at, end_reason) SELECT 's' || n, 'k' || n,"
        " CASE WHEN n % 2 = 0 THEN 'telegram' ELSE 'web' END, 'dm', '{}', (SELECT MIN(no) FROM audience), 0, n,"
        " 'first', n, n, CASE WHEN n % 10 > 0 THEN n END, CASE WHEN n % 10 > 0 THEN 'idle' END"
        " FROM generate_series(1, 3000) n"
    )
    tx.execute("ANALYZE session")


def _explain(store: SessionStore, sql: str, params: tuple[object, ...]) -> str:
    if store.engine.name == "sqlite":
        rows = list_rows(store, f"EXPLAIN QUERY PLAN {sql}", *params)
        return "".join(f"{row[3]}\n" for row in rows)
    return "\n".join(row[0] for row in list_rows(store, f"EXPLAIN {sql}", *params))

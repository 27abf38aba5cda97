"""Sessions: which one a message goes to, resets and switches of a lane, lists, and deletion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, Platform, ResetPolicy, SessionSource, SessionStore
from palaver.core.errors import InvalidInput, InvalidSource, NothingToRestore, SessionNotFound
from palaver.core.ids import SESSION_ID_PATTERN
from palaver.core.source import ChatType
from palaver.sessions.events import EventKind
from palaver.sessions.keys import DmScope
from palaver.sessions.model import EndReason, StartReason
from palaver.sessions.policy import ResetMode

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver.testing import FakeClock

pytestmark = pytest.mark.both_engines


Source = Callable[..., SessionSource]


def test_the_same_source_keeps_its_session(store: SessionStore, dm: Source) -> None:
    first = store.get_or_create_session(dm())
    again = store.get_or_create_session(dm())
    assert first.is_new
    assert not again.is_new
    assert again.session_id == first.session_id
    assert again.session_key == "agent:main:telegram:dm:ada"
    assert SESSION_ID_PATTERN.fullmatch(first.session_id)
    assert first.session_id.startswith("20261115_081200_")


def test_an_entry_has_the_source_of_its_first_message(store: SessionStore, group: Source) -> None:
    source = group(chat_topic="chess", thread_id="9")
    entry = store.get_or_create_session(source)
    assert entry.origin == source
    assert entry.session.display_name == source.description
    assert entry.session.platform == "discord"
    assert entry.session.chat_type == "group"


def test_different_people_have_different_sessions(store: SessionStore, dm: Source) -> None:
    assert store.get_or_create_session(dm("ada")).session_id != store.get_or_create_session(dm("bob")).session_id


def test_a_session_survives_a_restart(open_store: OpenStore, dm: Source) -> None:
    with open_store() as store:
        session_id = store.record_user_message(dm(), "hello").session_id
    with open_store() as store:
        assert store.get_or_create_session(dm()).session_id == session_id
        assert store.load_transcript(session_id) == [{"role": "user", "content": "hello"}]


def test_force_new_ends_the_current_session(store: SessionStore, dm: Source) -> None:
    old = store.get_or_create_session(dm())
    new = store.get_or_create_session(dm(), force_new=True)
    assert new.session_id != old.session_id
    assert store.get_session(old.session_id).end_reason is EndReason.FORCED
    assert store.get_or_create_session(dm()).session_id == new.session_id


def test_a_reset_keeps_the_old_session_complete_and_can_be_reverted(store: SessionStore, dm: Source) -> None:
    old = store.record_user_message(dm(), "remember me")
    new = store.reset_session(old.session_key)
    assert new.is_new
    assert new.session.start_reason is StartReason.MANUAL
    assert new.reset_had_activity
    ended = store.get_session(old.session_id)
    assert (ended.end_reason, ended.ended_at) == (EndReason.MANUAL, datetime(2026, 11, 15, 8, 12, tzinfo=UTC))
    assert store.load_transcript(old.session_id) == [{"role": "user", "content": "remember me"}]

    restored = store.restore(old.session_key)
    assert restored.session_id == old.session_id
    assert restored.session.ended_at is None
    assert store.get_session(new.session_id).end_reason is EndReason.RESTORED
    assert store.get_or_create_session(dm()).session_id == old.session_id


def test_repeated_restores_revert_one_move_each(store: SessionStore, dm: Source) -> None:
    first = store.get_or_create_session(dm())
    second = store.reset_session(first.session_key)
    third = store.reset_session(first.session_key)
    assert third.session_id != second.session_id
    assert store.restore(first.session_key).session_id == second.session_id
    assert store.restore(first.session_key).session_id == first.session_id
    with pytest.raises(NothingToRestore):
        store.restore(first.session_key)


def test_resets_and_restores_are_events_in_the_log(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    new = store.reset_session(entry.session_key)
    store.restore(entry.session_key)
    reasons = [(event.kind, event.facts.get("reason")) for event in store.load_events(entry.session_id)]
    assert reasons == [(EventKind.STARTED, "first"), (EventKind.ENDED, "manual"), (EventKind.REOPENED, None)]
    started = store.load_events(new.session_id)[0]
    assert dict(started.facts) == {"reason": "manual", "previous": entry.session_id}


def test_a_switch_reopens_the_other_session_with_its_own_totals(store: SessionStore, dm: Source) -> None:
    old = store.record_user_message(dm(), "one")
    store.update_session(old.session_id, turn_id="t", input_tokens=7)
    new = store.reset_session(old.session_key)
    store.update_session(new.session_id, turn_id="t", input_tokens=100)

    switched = store.switch_session(old.session_key, old.session_id)
    assert switched.session_id == old.session_id
    assert switched.session.usage.input_tokens == 7
    assert switched.session.ended_at is None
    assert store.get_session(new.session_id).end_reason is EndReason.SWITCHED
    assert store.restore(old.session_key).session_id == new.session_id


def test_a_switch_to_the_current_session_changes_nothing(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    log = store.load_events(entry.session_id)
    assert store.switch_session(entry.session_key, entry.session_id).session_id == entry.session_id
    assert store.load_events(entry.session_id) == log


def test_a_reset_does_not_end_a_session_that_another_lane_is_on(store: SessionStore, dm: Source) -> None:
    shared = store.get_or_create_session(dm("ada"))
    other = store.get_or_create_session(dm("bob"))
    store.switch_session(other.session_key, shared.session_id)
    store.reset_session(other.session_key)
    assert store.get_session(shared.session_id).ended_at is None
    assert store.get_or_create_session(dm("ada")).session_id == shared.session_id


def test_a_reopened_session_gets_a_new_end_reason(store: SessionStore, dm: Source) -> None:
    first = store.get_or_create_session(dm("ada"))
    store.reset_session(first.session_key)
    other = store.get_or_create_session(dm("bob"))
    store.switch_session(other.session_key, first.session_id)  # reopened, then ended again for another reason
    store.switch_session(other.session_key, other.session_id)
    assert store.get_session(first.session_id).end_reason is EndReason.SWITCHED
    kinds = [event.kind for event in store.load_events(first.session_id)]
    assert kinds == [EventKind.STARTED, EventKind.ENDED, EventKind.REOPENED, EventKind.ENDED]


@pytest.mark.parametrize("operation", ["reset_session", "restore"])
def test_a_lane_that_does_not_exist_is_refused(store: SessionStore, operation: str) -> None:
    with pytest.raises((SessionNotFound, NothingToRestore)):
        getattr(store, operation)("agent:main:telegram:dm:unknown")


def test_a_switch_to_a_missing_session_changes_nothing(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    with pytest.raises(SessionNotFound, match="20200101_000000_00000000"):
        store.switch_session(entry.session_key, "20200101_000000_00000000")
    assert store.get_or_create_session(dm()).session_id == entry.session_id


# -- the reset policy ----------------------------------------------------------------------------------------

IDLE = GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))


def test_an_idle_session_is_reset(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    old = store.record_user_message(dm(), "hello")
    clock.advance(minutes=60)
    assert store.get_or_create_session(dm()).session_id == old.session_id  # not yet: the limit must be exceeded
    clock.advance(seconds=1)
    entry = store.get_or_create_session(dm())
    assert entry.session_id != old.session_id
    assert entry.was_auto_reset
    assert entry.auto_reset_reason is StartReason.IDLE
    assert entry.reset_had_activity
    assert store.get_session(old.session_id).end_reason is EndReason.IDLE


def test_an_automatic_reset_is_reported_until_the_next_message(
    open_store: OpenStore, dm: Source, clock: FakeClock
) -> None:
    store = open_store(IDLE)
    store.record_user_message(dm(), "hello")
    clock.advance(hours=2)
    assert store.get_or_create_session(dm()).was_auto_reset
    assert store.get_or_create_session(dm()).was_auto_reset
    store.record_user_message(dm(), "hello again")
    assert not store.get_or_create_session(dm()).was_auto_reset


def test_a_message_to_an_idle_session_starts_a_new_one(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    old = store.record_user_message(dm(), "hello")
    clock.advance(hours=2)
    new = store.record_user_message(dm(), "good morning")
    assert new.session_id != old.session_id
    assert new.was_auto_reset
    assert new.previous_had_messages
    assert store.load_transcript(new.session_id) == [{"role": "user", "content": "good morning"}]
    assert store.restore(new.session_key).session_id == old.session_id


def test_a_reset_of_an_empty_session_had_no_activity(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    store.get_or_create_session(dm())
    clock.advance(hours=2)
    assert not store.get_or_create_session(dm()).reset_had_activity


@pytest.mark.parametrize("platform", ["cron", "webhook"])
def test_messages_of_programs_do_not_move_the_idle_clock(
    open_store: OpenStore, clock: FakeClock, platform: str
) -> None:
    store = open_store(IDLE)
    source = SessionSource(platform, "job", user_id="job")
    first = store.record_user_message(source, "tick")
    clock.advance(minutes=50)
    store.record_user_message(source, "tick")
    clock.advance(minutes=20)
    assert store.get_or_create_session(source).session_id != first.session_id


def test_answers_and_messages_not_from_a_human_do_not_move_the_idle_clock(
    open_store: OpenStore, dm: Source, clock: FakeClock
) -> None:
    store = open_store(IDLE)
    recorded = store.record_user_message(dm(), "hello")
    clock.advance(minutes=50)
    store.append_to_transcript(recorded.session_id, "still here")
    store.append_to_transcript(recorded.session_id, {"role": "user", "content": "heartbeat"}, from_human=False)
    clock.advance(minutes=20)
    assert store.get_or_create_session(dm()).session_id != recorded.session_id


def test_a_busy_session_is_not_reset_until_its_work_is_a_day_old(
    open_store: OpenStore, dm: Source, clock: FakeClock
) -> None:
    busy_since = clock.now()
    store = open_store(IDLE, is_busy=lambda session_id: busy_since)
    recorded = store.record_user_message(dm(), "start the build")
    clock.advance(hours=23)
    assert store.get_or_create_session(dm()).session_id == recorded.session_id
    clock.advance(hours=2)
    assert store.get_or_create_session(dm()).session_id != recorded.session_id


def test_is_busy_may_return_true_instead_of_a_time(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    checked_ids = []

    def is_busy(session_id: str) -> bool:
        checked_ids.append(session_id)
        return True

    store = open_store(IDLE, is_busy=is_busy)
    recorded = store.record_user_message(dm(), "start")
    clock.advance(days=3)
    assert store.record_user_message(dm(), "and now?").session_id == recorded.session_id
    assert set(checked_ids) == {recorded.session_id}


def test_the_reset_policy_of_a_platform_overrides_that_of_the_chat_type(
    open_store: OpenStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    config = GatewayConfig(
        default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=10),
        reset_by_type={ChatType.GROUP: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=100)},
        reset_by_platform={Platform.TELEGRAM: ResetPolicy(mode=ResetMode.NONE)},
    )
    store = open_store(config)
    sources = [dm(), group(), SessionSource("slack", "c", user_id="u")]
    before = [store.record_user_message(source, "hi").session_id for source in sources]
    clock.advance(minutes=50)
    after = [store.get_or_create_session(source).session_id for source in sources]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, True, False]


def test_a_daily_reset_follows_its_time_zone(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=4, timezone="Asia/Tokyo")
    store = open_store(GatewayConfig(default_reset_policy=policy))
    clock.set(datetime(2026, 11, 15, 18, 59, tzinfo=UTC))  # 03:59 in Tokyo
    old = store.record_user_message(dm(), "still up")
    clock.advance(minutes=2)
    assert store.record_user_message(dm(), "morning").start_reason is StartReason.DAILY
    assert store.get_session(old.session_id).end_reason is EndReason.DAILY


def test_a_clock_that_goes_back_resets_nothing(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    recorded = store.record_user_message(dm(), "hello")
    clock.advance(days=-30)
    assert store.record_user_message(dm(), "hello?").session_id == recorded.session_id
    assert [message["content"] for message in store.load_transcript(recorded.session_id)] == ["hello", "hello?"]


# -- dm scope -------------------------------------------------------------------------------------------------


def test_with_person_scope_a_person_has_one_lane_on_every_platform(open_store: OpenStore) -> None:
    store = open_store(GatewayConfig(dm_scope=DmScope.PERSON))
    source = SessionSource("telegram", "1", user_id="1")
    key = store.record_user_message(source, "hi").session_key
    assert key == f"agent:main:person:{store.get_or_create_person(source).id}"
    assert store.get_or_create_session(source).session_key == key


def test_with_platform_scope_people_share_a_lane(open_store: OpenStore, dm: Source) -> None:
    store = open_store(GatewayConfig(dm_scope=DmScope.PLATFORM))
    one, other = store.record_user_message(dm("ada"), "hi"), store.record_user_message(dm("bob"), "ho")
    assert one.session_id == other.session_id
    transcript = store.load_transcript(one.session_id)
    assert [message["author"]["name"] for message in transcript] == ["Ada", "Bob"]


# -- lists ---------------------------------------------------------------------------------------------------


def test_an_empty_session_is_not_listed_until_its_first_message(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    assert store.list_sessions() == ()
    assert not store.has_any_sessions()
    store.append_to_transcript(entry.session_id, {"role": "user", "content": "hi"})
    assert [session.id for session in store.list_sessions()] == [entry.session_id]
    assert store.has_any_sessions()


def test_only_the_first_conversation_of_a_person_is_the_first_contact(store: SessionStore, dm: Source) -> None:
    store.get_or_create_session(dm("ada"), force_new=True)  # stays empty
    first = store.get_or_create_session(dm("ada"), force_new=True)
    assert first.is_first_contact
    store.record_user_message(dm("ada"), "hi")
    store.record_user_message(dm("bob"), "hi")
    assert not store.get_or_create_session(dm("ada"), force_new=True).is_first_contact
    assert store.get_session(first.session_id).is_first_contact  # it does not change
    assert store.get_or_create_session(dm("bob")).is_first_contact
    assert not store.get_session(store.fork(first.session_id).id).is_first_contact


def test_lists_are_newest_first_and_their_pages_neither_skip_nor_repeat(
    store: SessionStore, dm: Source, clock: FakeClock
) -> None:
    for number in range(23):
        clock.advance(seconds=number % 2)  # some at the same time
        store.record_user_message(dm(f"user{number}"), str(number))
    listed: list[str] = []
    cursor = None
    while True:
        page = store.list_sessions(limit=5, cursor=cursor)
        listed += [session.preview for session in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert listed == [str(number) for number in reversed(range(23))]


def test_lists_can_be_limited_to_recently_active_sessions(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    store.record_user_message(dm("old"), "old")
    clock.advance(minutes=30)
    store.record_user_message(dm("new"), "new")
    assert [session.preview for session in store.list_sessions(active_minutes=10)] == ["new"]
    assert len(store.list_sessions(active_minutes=30)) == 2


def test_an_answer_after_a_while_moves_its_session_up(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    slow = store.record_user_message(dm("slow"), "think hard")
    clock.advance(seconds=1)
    quick = store.record_user_message(dm("quick"), "hi")
    store.append_to_transcript(slow.session_id, "immediately")
    assert [session.id for session in store.list_sessions()] == [quick.session_id, slow.session_id]
    clock.advance(minutes=5)
    store.append_to_transcript(slow.session_id, "done")
    assert [session.id for session in store.list_sessions()] == [slow.session_id, quick.session_id]
    assert store.get_session(slow.session_id).last_message_at == clock.now()


@pytest.mark.parametrize(
    ("arguments", "name"), [({"limit": 0}, "limit"), ({"limit": 10_000}, "limit"), ({"cursor": "x"}, "cursor"),
                      ({"cursor": "9" * 30 + ".1"}, "cursor"), ({"cursor": "²³.¹"}, "cursor"),
                      ({"state": "attic"}, "state")]
)  # fmt: skip
def test_an_invalid_list_argument_is_refused_with_its_name(
    store: SessionStore, arguments: dict[str, object], name: str
) -> None:
    with pytest.raises(InvalidInput, match=name):
        store.list_sessions(**arguments)  # type: ignore[arg-type]


def test_lists_are_filtered_by_state(store: SessionStore, dm: Source) -> None:
    ids = [store.record_user_message(dm(name), name).session_id for name in ("a", "b", "c")]
    store.archive(ids[0])
    store.pin(ids[1])
    assert {session.id for session in store.list_sessions()} == {ids[1], ids[2]}
    assert [session.id for session in store.list_sessions(state="archived")] == [ids[0]]
    assert [session.id for session in store.list_sessions(state="pinned")] == [ids[1]]
    assert store.get_session(ids[1]).pinned
    store.archive(ids[0], archived=False)
    store.archive(ids[0], archived=False)
    kinds = [event.kind for event in store.load_events(ids[0])]
    assert kinds == [EventKind.STARTED, EventKind.MESSAGE, EventKind.ARCHIVED, EventKind.UNARCHIVED]


# -- deletion ------------------------------------------------------------------------------------------------


def test_a_deleted_session_is_not_found_and_a_late_write_is_refused(store: SessionStore, dm: Source) -> None:
    recorded = store.record_user_message(dm(), "forget zebra")
    assert store.search("zebra")
    store.delete_session(recorded.session_id)
    for late_call in (
        lambda: store.append_to_transcript(recorded.session_id, "too late"),
        lambda: store.rewrite_transcript(recorded.session_id, []),
        lambda: store.update_session(recorded.session_id, input_tokens=1),
        lambda: store.load_transcript(recorded.session_id),
        lambda: store.delete_session(recorded.session_id),
        lambda: store.undo(recorded.session_id),
    ):
        with pytest.raises(SessionNotFound):
            late_call()
    assert store.search("zebra") == []
    assert store.list_sessions() == ()
    assert store.record_user_message(dm(), "hello again").session_id != recorded.session_id


def test_deleting_the_session_before_a_reset_leaves_nothing_to_restore(store: SessionStore, dm: Source) -> None:
    old = store.record_user_message(dm(), "old")
    store.reset_session(old.session_key)
    store.delete_session(old.session_id)
    with pytest.raises(NothingToRestore):
        store.restore(old.session_key)


def test_a_fork_survives_the_deletion_of_its_parent(store: SessionStore, dm: Source) -> None:
    recorded = store.record_user_message(dm(), "hello")
    fork = store.fork(recorded.session_id)
    assert fork.parent_id == recorded.session_id
    store.delete_session(recorded.session_id)
    assert store.get_session(fork.id).parent_id is None
    assert store.load_transcript(fork.id) == [{"role": "user", "content": "hello"}]


def test_timestamps_are_exact_and_in_utc(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    clock.set(datetime(2026, 3, 29, 3, 30, 0, 123457, tzinfo=UTC))
    recorded = store.record_user_message(dm(), "hello")
    session = store.get_session(recorded.session_id)
    assert session.created_at == session.active_at == clock.now()
    assert session.created_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("field", ["chat_id", "user_id", "thread_id", "user_id_alt"])
@pytest.mark.parametrize("bad", ["a\0b", "\ud83d"])
def test_an_id_that_cannot_be_stored_is_refused(store: SessionStore, field: str, bad: str) -> None:
    source = SessionSource("telegram", **{"chat_id": "1", field: bad})
    for operation in (store.get_or_create_session, store.get_or_create_person):
        with pytest.raises(InvalidSource, match="cannot be an id"):
            operation(source)
    assert store.list_sessions() == ()


@pytest.mark.parametrize("invalid", ["", "nowhere", "../../etc/passwd", "a\0b", "\ud83d", "20261115_081200_1A2B3C4D"])
def test_an_invalid_session_id_matches_no_session(store: SessionStore, invalid: str) -> None:
    for operation in (
        store.get_session,
        store.load_transcript,
        store.undo,
        store.fork,
        store.export,
        store.delete_session,
    ):
        with pytest.raises(SessionNotFound):
            operation(invalid)
    with pytest.raises(SessionNotFound):
        store.append_to_transcript(invalid, "hello")
    with pytest.raises(SessionNotFound):
        store.update_session(invalid, input_tokens=1)


def test_names_may_contain_any_characters(store: SessionStore) -> None:
    source = SessionSource("telegram", "1", user_id="1", user_name="half \ud83d, zero \0", chat_topic="\ud83d")
    entry = store.get_or_create_session(source)
    origin = store.get_session(entry.session_id).origin
    assert (origin.user_name, origin.chat_topic) == ("half ?, zero  ", "?")  # no engine can store these characters


HUGE = 2**70


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("limit", lambda store, session_id: store.load_transcript(session_id, HUGE)),
        ("turns", lambda store, session_id: store.undo(session_id, HUGE)),
        ("at", lambda store, session_id: store.fork(session_id, HUGE)),
        ("limit", lambda store, session_id: store.load_events(session_id, limit=-5)),
        ("after", lambda store, session_id: store.load_events(session_id, after=HUGE)),
        ("cursor", lambda store, session_id: store.search("x", cursor=f"{session_id}.{HUGE}")),
        ("active_minutes", lambda store, session_id: store.list_sessions(active_minutes=float("nan"))),
        ("active_minutes", lambda store, session_id: store.list_sessions(active_minutes=1e12)),
        ("active_minutes", lambda store, session_id: store.list_sessions(active_minutes=-1)),
    ],
)
def test_a_number_out_of_range_is_refused_with_its_name(
    store: SessionStore, dm: Source, name: str, call: Callable[[SessionStore, str], object]
) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    with pytest.raises(InvalidInput, match=name):
        call(store, session_id)

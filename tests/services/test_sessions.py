"""Which session a message goes to, and every move from one to another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, Platform, ResetPolicy, SessionSource, SessionStore
from palaver.domain.errors import InvalidInput, InvalidSource, NoSuchSession, NothingToRestore
from palaver.domain.events import EventKind
from palaver.domain.ids import SESSION_ID
from palaver.domain.keys import DmScope
from palaver.domain.policy import ResetMode
from palaver.domain.session import EndReason, StartReason
from palaver.domain.source import ChatType

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver.testing import FakeClock

Source = Callable[..., SessionSource]


def test_the_same_source_keeps_its_session(store: SessionStore, dm: Source) -> None:
    first = store.get_or_create_session(dm())
    again = store.get_or_create_session(dm())
    assert first.is_new
    assert not again.is_new
    assert again.session_id == first.session_id
    assert again.session_key == "agent:main:telegram:dm:ada"
    assert SESSION_ID.fullmatch(first.session_id)
    assert first.session_id.startswith("20261115_081200_")


def test_an_entry_tells_where_it_began(store: SessionStore, group: Source) -> None:
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


def test_force_new_ends_the_previous_session(store: SessionStore, dm: Source) -> None:
    old = store.get_or_create_session(dm())
    new = store.get_or_create_session(dm(), force_new=True)
    assert new.session_id != old.session_id
    assert store.get_session(old.session_id).end_reason is EndReason.FORCED
    assert store.get_or_create_session(dm()).session_id == new.session_id


def test_a_reset_ends_the_session_keeps_it_whole_and_can_be_taken_back(store: SessionStore, dm: Source) -> None:
    old = store.record_user_message(dm(), "remember me")
    new = store.reset_session(old.session_key)
    assert new.is_new
    assert new.session.start_reason is StartReason.MANUAL
    assert new.reset_had_activity
    ended = store.get_session(old.session_id)
    assert (ended.end_reason, ended.ended_at) == (EndReason.MANUAL, datetime(2026, 11, 15, 8, 12, tzinfo=UTC))
    assert store.load_transcript(old.session_id) == [{"role": "user", "content": "remember me"}]

    back = store.restore(old.session_key)
    assert back.session_id == old.session_id
    assert back.session.ended_at is None
    assert store.get_session(new.session_id).end_reason is EndReason.RESTORED
    assert store.get_or_create_session(dm()).session_id == old.session_id


def test_restores_go_back_one_move_after_the_other(store: SessionStore, dm: Source) -> None:
    first = store.get_or_create_session(dm())
    second = store.reset_session(first.session_key)
    third = store.reset_session(first.session_key)
    assert third.session_id != second.session_id
    assert store.restore(first.session_key).session_id == second.session_id
    assert store.restore(first.session_key).session_id == first.session_id
    with pytest.raises(NothingToRestore):
        store.restore(first.session_key)


def test_what_happened_to_a_session_stands_in_its_log(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    new = store.reset_session(entry.session_key)
    store.restore(entry.session_key)
    told = [(event.kind, event.facts.get("reason")) for event in store.events(entry.session_id)]
    assert told == [(EventKind.STARTED, "first"), (EventKind.ENDED, "manual"), (EventKind.REOPENED, None)]
    began = store.events(new.session_id)[0]
    assert dict(began.facts) == {"reason": "manual", "previous": entry.session_id}


def test_a_switch_reopens_its_target_with_its_own_totals(store: SessionStore, dm: Source) -> None:
    old = store.record_user_message(dm(), "one")
    store.update_session(old.session_id, turn_id="t", input_tokens=7)
    new = store.reset_session(old.session_key)
    store.update_session(new.session_id, turn_id="t", input_tokens=100)

    back = store.switch_session(old.session_key, old.session_id)
    assert back.session_id == old.session_id
    assert back.session.usage.input_tokens == 7
    assert back.session.ended_at is None
    assert store.get_session(new.session_id).end_reason is EndReason.SWITCHED
    assert store.restore(old.session_key).session_id == new.session_id


def test_a_switch_to_the_current_session_changes_nothing(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    log = store.events(entry.session_id)
    assert store.switch_session(entry.session_key, entry.session_id).session_id == entry.session_id
    assert store.events(entry.session_id) == log


def test_a_session_that_another_lane_is_on_goes_on(store: SessionStore, dm: Source) -> None:
    shared = store.get_or_create_session(dm("ada"))
    other = store.get_or_create_session(dm("bob"))
    store.switch_session(other.session_key, shared.session_id)
    store.reset_session(other.session_key)
    assert store.get_session(shared.session_id).ended_at is None
    assert store.get_or_create_session(dm("ada")).session_id == shared.session_id


def test_the_first_reason_for_an_end_stands(store: SessionStore, dm: Source) -> None:
    first = store.get_or_create_session(dm("ada"))
    store.reset_session(first.session_key)
    other = store.get_or_create_session(dm("bob"))
    store.switch_session(other.session_key, first.session_id)  # reopened, then left again for another reason
    store.switch_session(other.session_key, other.session_id)
    assert store.get_session(first.session_id).end_reason is EndReason.SWITCHED
    kinds = [event.kind for event in store.events(first.session_id)]
    assert kinds == [EventKind.STARTED, EventKind.ENDED, EventKind.REOPENED, EventKind.ENDED]


@pytest.mark.parametrize("act", ["reset_session", "restore"])
def test_a_lane_that_does_not_exist_is_named(store: SessionStore, act: str) -> None:
    with pytest.raises((NoSuchSession, NothingToRestore)):
        getattr(store, act)("agent:main:telegram:dm:nobody")


def test_a_switch_to_a_session_that_does_not_exist_leaves_the_lane_alone(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    with pytest.raises(NoSuchSession, match="20200101_000000_00000000"):
        store.switch_session(entry.session_key, "20200101_000000_00000000")
    assert store.get_or_create_session(dm()).session_id == entry.session_id


# -- the reset policy ----------------------------------------------------------------------------------------

IDLE = GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))


def test_an_idle_session_is_reset_with_its_reason(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    old = store.record_user_message(dm(), "hello")
    clock.advance(minutes=60)
    assert store.get_or_create_session(dm()).session_id == old.session_id  # strictly later, not at
    clock.advance(seconds=1)
    entry = store.get_or_create_session(dm())
    assert entry.session_id != old.session_id
    assert entry.was_auto_reset
    assert entry.auto_reset_reason is StartReason.IDLE
    assert entry.reset_had_activity
    assert store.get_session(old.session_id).end_reason is EndReason.IDLE


def test_the_reset_is_told_until_something_is_said(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    store.record_user_message(dm(), "hello")
    clock.advance(hours=2)
    assert store.get_or_create_session(dm()).was_auto_reset
    assert store.get_or_create_session(dm()).was_auto_reset
    store.record_user_message(dm(), "hello again")
    assert not store.get_or_create_session(dm()).was_auto_reset


def test_a_message_that_meets_an_idle_session_begins_another(
    open_store: OpenStore, dm: Source, clock: FakeClock
) -> None:
    store = open_store(IDLE)
    old = store.record_user_message(dm(), "hello")
    clock.advance(hours=2)
    new = store.record_user_message(dm(), "good morning")
    assert new.session_id != old.session_id
    assert new.was_auto_reset
    assert new.after_activity
    assert store.load_transcript(new.session_id) == [{"role": "user", "content": "good morning"}]
    assert store.restore(new.session_key).session_id == old.session_id


def test_a_reset_of_an_empty_session_had_no_activity(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    store.get_or_create_session(dm())
    clock.advance(hours=2)
    assert not store.get_or_create_session(dm()).reset_had_activity


@pytest.mark.parametrize("platform", ["cron", "webhook"])
def test_machines_do_not_move_the_idle_clock(open_store: OpenStore, clock: FakeClock, platform: str) -> None:
    store = open_store(IDLE)
    source = SessionSource(platform, "job", user_id="job")
    first = store.record_user_message(source, "tick")
    clock.advance(minutes=50)
    store.record_user_message(source, "tick")
    clock.advance(minutes=20)
    assert store.get_or_create_session(source).session_id != first.session_id


def test_answers_and_marked_messages_do_not_move_the_idle_clock(
    open_store: OpenStore, dm: Source, clock: FakeClock
) -> None:
    store = open_store(IDLE)
    said = store.record_user_message(dm(), "hello")
    clock.advance(minutes=50)
    store.append_to_transcript(said.session_id, "still here")
    store.append_to_transcript(said.session_id, {"role": "user", "content": "heartbeat"}, human=False)
    clock.advance(minutes=20)
    assert store.get_or_create_session(dm()).session_id != said.session_id


def test_a_busy_session_is_never_reset_until_its_work_is_forgotten(
    open_store: OpenStore, dm: Source, clock: FakeClock
) -> None:
    began = clock.now()
    store = open_store(IDLE, is_busy=lambda session_id: began)
    said = store.record_user_message(dm(), "start the build")
    clock.advance(hours=23)
    assert store.get_or_create_session(dm()).session_id == said.session_id
    clock.advance(hours=2)
    assert store.get_or_create_session(dm()).session_id != said.session_id


def test_busy_may_be_a_plain_yes(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    asked = []

    def is_busy(session_id: str) -> bool:
        asked.append(session_id)
        return True

    store = open_store(IDLE, is_busy=is_busy)
    said = store.record_user_message(dm(), "start")
    clock.advance(days=3)
    assert store.record_user_message(dm(), "and now?").session_id == said.session_id
    assert set(asked) == {said.session_id}


def test_the_policy_of_a_platform_wins_over_that_of_the_chat_type(
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


def test_a_daily_reset_follows_the_zone(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=4, timezone="Asia/Tokyo")
    store = open_store(GatewayConfig(default_reset_policy=policy))
    clock.set(datetime(2026, 11, 15, 18, 59, tzinfo=UTC))  # 03:59 in Tokyo
    old = store.record_user_message(dm(), "still up")
    clock.advance(minutes=2)
    assert store.record_user_message(dm(), "morning").began is StartReason.DAILY
    assert store.get_session(old.session_id).end_reason is EndReason.DAILY


def test_a_clock_that_steps_back_resets_nothing(open_store: OpenStore, dm: Source, clock: FakeClock) -> None:
    store = open_store(IDLE)
    said = store.record_user_message(dm(), "hello")
    clock.advance(days=-30)
    assert store.record_user_message(dm(), "hello?").session_id == said.session_id
    assert [message["content"] for message in store.load_transcript(said.session_id)] == ["hello", "hello?"]


# -- scopes --------------------------------------------------------------------------------------------------


def test_one_lane_for_a_person_on_every_platform(open_store: OpenStore) -> None:
    store = open_store(GatewayConfig(dm_scope=DmScope.PERSON))
    source = SessionSource("telegram", "1", user_id="1")
    key = store.record_user_message(source, "hi").session_key
    assert key == f"agent:main:person:{store.person_for(source).id}"
    assert store.get_or_create_session(source).session_key == key


def test_people_share_a_lane_where_the_scope_says_so(open_store: OpenStore, dm: Source) -> None:
    store = open_store(GatewayConfig(dm_scope=DmScope.PLATFORM))
    one, other = store.record_user_message(dm("ada"), "hi"), store.record_user_message(dm("bob"), "ho")
    assert one.session_id == other.session_id
    said = store.load_transcript(one.session_id)
    assert [message["author"]["name"] for message in said] == ["Ada", "Bob"]


# -- lists ---------------------------------------------------------------------------------------------------


def test_an_empty_session_is_not_listed_until_its_first_message(store: SessionStore, dm: Source) -> None:
    entry = store.get_or_create_session(dm())
    assert store.list_sessions() == ()
    assert not store.has_any_sessions()
    store.append_to_transcript(entry.session_id, {"role": "user", "content": "hi"})
    assert [session.id for session in store.list_sessions()] == [entry.session_id]
    assert store.has_any_sessions()


def test_lists_are_newest_first_and_paged_without_gap_or_repetition(
    store: SessionStore, dm: Source, clock: FakeClock
) -> None:
    for number in range(23):
        clock.advance(seconds=number % 2)  # some at the very same moment
        store.record_user_message(dm(f"user{number}"), str(number))
    seen: list[str] = []
    cursor = None
    while True:
        page = store.list_sessions(limit=5, cursor=cursor)
        seen += [session.preview for session in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [str(number) for number in reversed(range(23))]


def test_lists_can_be_narrowed_to_the_last_minutes(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    store.record_user_message(dm("old"), "old")
    clock.advance(minutes=30)
    store.record_user_message(dm("new"), "new")
    assert [session.preview for session in store.list_sessions(active_minutes=10)] == ["new"]
    assert len(store.list_sessions(active_minutes=30)) == 2


def test_an_answer_that_took_its_time_moves_its_session_up(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    slow = store.record_user_message(dm("slow"), "think hard")
    clock.advance(seconds=1)
    quick = store.record_user_message(dm("quick"), "hi")
    store.append_to_transcript(slow.session_id, "at once")
    assert [session.id for session in store.list_sessions()] == [quick.session_id, slow.session_id]
    clock.advance(minutes=5)
    store.append_to_transcript(slow.session_id, "done")
    assert [session.id for session in store.list_sessions()] == [slow.session_id, quick.session_id]
    assert store.get_session(slow.session_id).last_message_at == clock.now()


@pytest.mark.parametrize(
    ("bad", "what"), [({"limit": 0}, "limit"), ({"limit": 10_000}, "limit"), ({"cursor": "x"}, "cursor"),
                      ({"cursor": "9" * 30 + ".1"}, "cursor"), ({"cursor": "²³.¹"}, "cursor"),
                      ({"shelf": "attic"}, "shelf")]
)  # fmt: skip
def test_a_list_that_cannot_be_is_refused_by_name(store: SessionStore, bad: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        store.list_sessions(**bad)  # type: ignore[arg-type]


def test_pinned_and_archived_sessions_have_shelves_of_their_own(store: SessionStore, dm: Source) -> None:
    ids = [store.record_user_message(dm(name), name).session_id for name in ("a", "b", "c")]
    store.archive(ids[0])
    store.pin(ids[1])
    assert {session.id for session in store.list_sessions()} == {ids[1], ids[2]}
    assert [session.id for session in store.list_sessions(shelf="archived")] == [ids[0]]
    assert [session.id for session in store.list_sessions(shelf="pinned")] == [ids[1]]
    assert store.get_session(ids[1]).pinned
    store.archive(ids[0], archived=False)
    store.archive(ids[0], archived=False)
    kinds = [event.kind for event in store.events(ids[0])]
    assert kinds == [EventKind.STARTED, EventKind.MESSAGE, EventKind.ARCHIVED, EventKind.UNARCHIVED]


# -- deletion ------------------------------------------------------------------------------------------------


def test_a_deleted_session_is_gone_and_a_late_write_is_refused(store: SessionStore, dm: Source) -> None:
    said = store.record_user_message(dm(), "forget zebra")
    assert store.search("zebra")
    store.delete_session(said.session_id)
    for late in (
        lambda: store.append_to_transcript(said.session_id, "too late"),
        lambda: store.rewrite_transcript(said.session_id, []),
        lambda: store.update_session(said.session_id, input_tokens=1),
        lambda: store.load_transcript(said.session_id),
        lambda: store.delete_session(said.session_id),
        lambda: store.undo(said.session_id),
    ):
        with pytest.raises(NoSuchSession):
            late()
    assert store.search("zebra") == []
    assert store.list_sessions() == ()
    assert store.record_user_message(dm(), "hello again").session_id != said.session_id


def test_deleting_the_session_before_a_reset_leaves_nothing_to_restore(store: SessionStore, dm: Source) -> None:
    old = store.record_user_message(dm(), "old")
    store.reset_session(old.session_key)
    store.delete_session(old.session_id)
    with pytest.raises(NothingToRestore):
        store.restore(old.session_key)


def test_a_fork_outlives_what_it_was_forked_from(store: SessionStore, dm: Source) -> None:
    said = store.record_user_message(dm(), "hello")
    copy = store.fork(said.session_id)
    assert copy.parent_id == said.session_id
    store.delete_session(said.session_id)
    assert store.get_session(copy.id).parent_id is None
    assert store.load_transcript(copy.id) == [{"role": "user", "content": "hello"}]


def test_timestamps_are_exact_and_in_utc(store: SessionStore, dm: Source, clock: FakeClock) -> None:
    clock.set(datetime(2026, 3, 29, 3, 30, 0, 123457, tzinfo=UTC))
    said = store.record_user_message(dm(), "hello")
    session = store.get_session(said.session_id)
    assert session.created_at == session.active_at == clock.now()
    assert session.created_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("field", ["chat_id", "user_id", "thread_id", "user_id_alt"])
@pytest.mark.parametrize("bad", ["a\0b", "\ud83d"])
def test_an_id_that_no_database_keeps_is_refused(store: SessionStore, field: str, bad: str) -> None:
    source = SessionSource("telegram", **{"chat_id": "1", field: bad})
    for act in (store.get_or_create_session, store.person_for):
        with pytest.raises(InvalidSource, match="cannot be an id"):
            act(source)
    assert store.list_sessions() == ()


@pytest.mark.parametrize("bad", ["", "nowhere", "../../etc/passwd", "a\0b", "\ud83d", "20261115_081200_1A2B3C4D"])
def test_what_is_no_session_id_names_no_session(store: SessionStore, bad: str) -> None:
    for act in (store.get_session, store.load_transcript, store.undo, store.fork, store.export, store.delete_session):
        with pytest.raises(NoSuchSession):
            act(bad)
    with pytest.raises(NoSuchSession):
        store.append_to_transcript(bad, "hello")
    with pytest.raises(NoSuchSession):
        store.update_session(bad, input_tokens=1)


def test_names_may_hold_anything(store: SessionStore) -> None:
    source = SessionSource("telegram", "1", user_id="1", user_name="half \ud83d, zero \0", chat_topic="\ud83d")
    entry = store.get_or_create_session(source)
    assert store.get_session(entry.session_id).origin == source


HUGE = 2**70


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("limit", lambda store, it: store.load_transcript(it, HUGE)),
        ("turns", lambda store, it: store.undo(it, HUGE)),
        ("at", lambda store, it: store.fork(it, HUGE)),
        ("limit", lambda store, it: store.events(it, limit=-5)),
        ("after", lambda store, it: store.events(it, after=HUGE)),
        ("before", lambda store, it: store.search("x", before=HUGE)),
        ("active_minutes", lambda store, it: store.list_sessions(active_minutes=float("nan"))),
        ("active_minutes", lambda store, it: store.list_sessions(active_minutes=1e12)),
        ("active_minutes", lambda store, it: store.list_sessions(active_minutes=-1)),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused_by_name(
    store: SessionStore, dm: Source, name: str, act: Callable[[SessionStore, str], object]
) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    with pytest.raises(InvalidInput, match=name):
        act(store, session_id)

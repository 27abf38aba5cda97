"""Old conversations are deleted by their last activity, on request or by settings; whatever is in use stays."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.config.agent_rules import RetentionRules, TurnRules
from palaver.core.clock import to_micros
from palaver.core.errors import InvalidInput, OwnerRequired
from palaver.delivery.table import MAX_NOTICE_AGE
from palaver.media.attachments import Attachments
from palaver.operation import retention_table as retention
from palaver.operation.cleanup import Cleanup
from palaver.operation.retention import PruneReport, Retention, parse_age
from palaver.people.erasures_table import MAX_REPORT_AGE
from palaver.sessions import deletion_table as session_deletion
from palaver.sessions.lanes_table import MAX_UNDONE_AGE
from palaver.transfer.importer import Importer
from support.erased_people import execute
from support.inbox import list_rows, make_dm, make_inbox, say
from support.made_reader import MadeReader, make_conversation, make_exchange

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.testing import FakeClock

DAY = timedelta(days=1)


def start_conversation(store: SessionStore, user: str, text: str = "hello", platform: str = "telegram") -> str:
    """Store a message of a person and its answer; return the conversation."""
    source = SessionSource(platform, user, user_id=user, user_name=user.title())
    session_id = store.record_user_message(source, text).session_id
    store.append_to_transcript(session_id, {"role": "assistant", "content": "Hello."})
    return session_id


def list_ids(store: SessionStore) -> set[str]:
    return {session_id for (session_id,) in list_rows(store, "SELECT id FROM session")}


async def prune(store: SessionStore, days: int, *, dry_run: bool = False, platform: str | None = None) -> PruneReport:
    service = Retention(store, RetentionRules)
    owner = store.get_owner().principal
    return await service.prune(owner, timedelta(days=days), dry_run=dry_run, platform=platform)


async def test_a_request_works_for_a_limited_time_and_the_next_one_goes_on(
    sqlite_store: SessionStore, clock: FakeClock
) -> None:
    for user in ("ada", "bob", "cleo"):
        start_conversation(sqlite_store, user)
    clock.advance(days=200)
    service, owner = Retention(sqlite_store, RetentionRules), sqlite_store.get_owner().principal
    preview = await service.prune(owner, 90 * DAY, time_limit=timedelta(0))
    assert (preview.sessions, preview.is_complete) == (1, False)
    reports = [await service.prune(owner, 90 * DAY, dry_run=False, time_limit=timedelta(0)) for _ in range(3)]
    assert [(report.sessions, report.is_complete) for report in reports] == [(1, False), (1, False), (1, True)]
    assert list_ids(sqlite_store) == set()


@pytest.mark.both_engines
async def test_a_long_old_conversation_is_gone_with_its_last_row(store: SessionStore, clock: FakeClock) -> None:
    long_id = start_conversation(store, "ada")
    for number in range(session_deletion.MAX_SHORT_ROWS):
        store.append_to_transcript(long_id, {"role": "assistant", "content": str(number)})
    clock.advance(days=200)
    report = await prune(store, 90)
    assert (report.sessions, report.messages) == (1, session_deletion.MAX_SHORT_ROWS + 2)
    assert list_rows(store, "SELECT 1 FROM event") == list_rows(store, "SELECT 1 FROM session") == []


async def test_a_conversation_that_was_used_a_second_ago_stays_however_old_it_is(
    store: SessionStore, clock: FakeClock
) -> None:
    used, unused = start_conversation(store, "ada"), start_conversation(store, "bob")
    clock.advance(days=200)
    store.append_to_transcript(used, {"role": "user", "content": "still here"})
    clock.advance(seconds=1)
    report = await prune(store, 90)
    assert list_ids(store) == {used}
    assert (report.sessions, report.messages) == (1, 2)
    assert unused not in list_ids(store)


async def test_a_conversation_that_was_just_imported_stays_as_long_as_a_new_one(
    store: SessionStore, clock: FakeClock
) -> None:
    old = make_conversation("c1", make_exchange("years ago", "yes"), created_at=clock.now() - 1000 * DAY)
    Importer(store, None).import_files(MadeReader([old]), store.get_owner())
    assert (await prune(store, 90)).sessions == 0
    clock.advance(days=91)
    assert (await prune(store, 90)).sessions == 1


async def test_a_dry_run_says_exactly_what_would_go_and_deletes_nothing(store: SessionStore, clock: FakeClock) -> None:
    first_day = clock.now()
    for number in range(5):
        start_conversation(store, f"user{number}", "x" * 1000)
        clock.advance(days=1)
    clock.advance(days=88)
    before = list_ids(store)
    dry_run = await prune(store, 90, dry_run=True)
    assert list_ids(store) == before
    assert (dry_run.sessions, dry_run.messages, dry_run.is_dry_run) == (3, 6, True)
    assert (dry_run.oldest, dry_run.newest) == (first_day, first_day + 2 * DAY)
    assert 3_000 < dry_run.bytes < 6_000
    report = await prune(store, 90)
    assert {**report.to_dict(), "is_dry_run": True} == dry_run.to_dict()
    assert len(list_ids(store)) == 2
    assert (await prune(store, 90)).sessions == 0


@pytest.mark.both_engines
async def test_what_is_pinned_or_in_use_stays_and_what_is_archived_goes(store: SessionStore, clock: FakeClock) -> None:
    pinned, archived, busy, waiting, proposing, origin, sending, plain = (
        start_conversation(store, f"user{number}") for number in range(8)
    )
    store.pin(pinned)
    store.archive(archived)
    owner = store.get_owner()
    number = "(SELECT no FROM session WHERE id = $1)"
    turn = (
        "INSERT INTO turn (id, session_no, kind, input_seq, state, queue_round, due_at, created_at)"
        f" VALUES ('t', {number}, 'answer', 2, 'queued', 1, 0, 0)"
    )
    execute(store, turn, waiting)
    for name, column, session_id in (("a", "proposed_session_no", proposing), ("b", "origin_session_no", origin)):
        execute(
            store,
            f"INSERT INTO job (id, person_id, name, name_key, prompt, schedule, timezone, anchor, targets, origin,"
            f" toolsets, state, created_at, updated_at, {column}) VALUES ('{name}', '{owner.id}', '{name}', '{name}',"
            f" 'p', 'every 1h', 'UTC', 0, '[]', '{{}}', '[]', 'paused', 0, 0, {number})",
            session_id,
        )
    execute(
        store,
        "INSERT INTO delivery (id, kind, session_no, platform, account, address, content, state, created_at)"
        f" VALUES ('d', 'notice', {number}, 'telegram', '', 'a', 'x', 'pending', 0)",
        sending,
    )
    clock.advance(days=100)
    service = Retention(store, RetentionRules)
    store.get_busy_since = lambda session_id: clock.now() if session_id == busy else None  # type: ignore[method-assign]
    await service.prune(owner.principal, 90 * DAY, dry_run=False)
    assert list_ids(store) == {pinned, busy, waiting, proposing, origin, sending}
    assert plain not in list_ids(store)


async def test_a_conversation_that_is_used_while_others_are_deleted_stays(
    store: SessionStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = [start_conversation(store, f"user{number}") for number in range(3)]
    clock.advance(days=100)
    measure = retention.measure_session

    def write_meanwhile(tx: Transaction, session_no: int) -> int:
        size = measure(tx, session_no)
        if not written:
            written.append(True)
            store.append_to_transcript(conversations[0], {"role": "user", "content": "wait!"})
        return size

    written: list[bool] = []
    monkeypatch.setattr(retention, "measure_session", write_meanwhile)
    report = await prune(store, 90)
    assert report.sessions == 2
    assert list_ids(store) == {conversations[0]}


async def test_only_one_platform_can_be_pruned(store: SessionStore, clock: FakeClock) -> None:
    here, there = start_conversation(store, "ada"), start_conversation(store, "ada", platform="discord")
    clock.advance(days=100)
    assert (await prune(store, 90, platform="telegram")).sessions == 1
    assert list_ids(store) == {there}
    assert here not in list_ids(store)


async def test_only_owners_prune(store: SessionStore) -> None:
    person = store.get_or_create_person(make_dm())
    with pytest.raises(OwnerRequired):
        await Retention(store, RetentionRules).prune(person.principal, DAY)


@pytest.mark.both_engines
async def test_settings_delete_by_age_with_the_hourly_cleanup(
    store: SessionStore, clock: FakeClock, tmp_path: Path
) -> None:
    attachments = Attachments(store, tmp_path)
    start_conversation(store, "ada")
    clock.advance(days=30)
    await Cleanup(store, attachments).run_once()
    assert len(list_ids(store)) == 1, "off by default"
    rules = TurnRules(retention=RetentionRules(max_age_days=30))
    await Cleanup(store, attachments, lambda: rules).run_once()
    assert len(list_ids(store)) == 1, "exactly as old as allowed"
    clock.advance(seconds=6)
    await Cleanup(store, attachments, lambda: rules).run_once()
    assert list_ids(store) == set()


async def test_settings_delete_by_size_the_longest_unused_first(sqlite_store: SessionStore, clock: FakeClock) -> None:
    store = sqlite_store
    conversations = []
    for number in range(6):
        session_id = start_conversation(store, f"user{number}")
        for _ in range(4):
            store.append_to_transcript(session_id, {"role": "user", "content": "x" * 500_000})
        conversations.append(session_id)
        clock.advance(days=1)
    clock.advance(days=3, seconds=10)  # the newest were used in the last 7 days
    service = Retention(store, lambda: RetentionRules(max_database_mb=10))
    size = await service.measure_database()
    assert size is not None
    assert size > 12_000_000
    report = await service.apply_rules()
    assert report.sessions == 2, "no more than needed"
    assert list_ids(store) == set(conversations[2:])
    assert (await service.apply_rules()).sessions == 0
    small = Retention(store, lambda: RetentionRules(max_database_mb=1))
    await small.apply_rules()
    assert list_ids(store) == set(conversations[3:]), "what was used in the last days stays, whatever the size"


def test_ages_are_read() -> None:
    assert [parse_age(text).days for text in ("90d", "90", "2 weeks", "6m", "1 year")] == [90, 90, 14, 180, 365]
    for text in ("", "0d", "-1", "soon", "1.5d", "99999999d", "9" * 5000):
        with pytest.raises(InvalidInput, match="not an age"):
            parse_age(text)


def test_a_policy_describes_itself() -> None:
    assert RetentionRules().describe() == "Conversations are kept until a person deletes them."
    rules = RetentionRules(max_age_days=90, max_database_mb=2000)
    assert "90 days" in rules.describe()
    assert "2,000 MB" in rules.describe()


# ---- what else would grow for ever -------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_old_notices_moves_and_reports_are_deleted(store: SessionStore, clock: FakeClock, tmp_path: Path) -> None:
    clean_up = Cleanup(store, Attachments(store, tmp_path))
    inbox = make_inbox(store)
    await say(inbox, make_dm(), "hello", "1")
    await say(inbox, make_dm(), "/new", "2")
    await say(inbox, make_dm(), "hello again", "3")
    await say(inbox, make_dm(), "/restore", "4")
    await say(inbox, make_dm(), "/new", "5")
    now = to_micros(clock.now())
    insert = (
        "INSERT INTO delivery (id, kind, platform, account, address, content, state, created_at, ended_at)"
        f" VALUES ($1, 'notice', 'telegram', '', 'a', 'x', $2, {now}, $3)"
    )
    execute(store, insert, "ended", "sent", now)
    execute(store, insert, "open", "pending", None)
    execute(
        store,
        "INSERT INTO erasure (id, step, counts, started_at, ended_at) VALUES ('e', 'person', '{}', 1, $1)",
        now,
    )
    assert list_rows(store, "SELECT COUNT(*) FROM lane_move WHERE undone_at IS NOT NULL") == [(1,)]
    clock.advance(days=MAX_NOTICE_AGE.days, seconds=1)
    assert await clean_up.delete_old("notices") == 1
    assert await clean_up.delete_old("undone_moves") == 1
    assert await clean_up.delete_old("erasure_reports") == 0
    assert list_rows(store, "SELECT id FROM delivery WHERE session_no IS NULL") == [("open",)]
    assert (await say(inbox, make_dm(), "/restore", "6")).reply is not None
    assert MAX_UNDONE_AGE == MAX_NOTICE_AGE
    clock.advance(days=MAX_REPORT_AGE.days)
    assert await clean_up.delete_old("erasure_reports") == 1

"""Erasing a person: nothing of them is left anywhere, nothing of others is touched, and the totals stay."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from palaver.accounts import merge_table as person_merge
from palaver.core.engines.base import Read, Write
from palaver.core.engines.sqlite_backup import rewrite_file
from palaver.core.errors import NotAllowed, NotFound, OwnerRequired, SessionNotFound
from palaver.core.ids import JobId
from palaver.media.attachments import Attachments
from palaver.memory.service import MemoryOperations
from palaver.operation import person_erasure, shared_erasure
from palaver.operation.erasure import Erasures
from palaver.people import table as people
from palaver.people.model import Principal, Role
from palaver.sessions import search_table as search, usage_table as usage_reports
from palaver.sessions.events import EventKind
from palaver.sessions.indexer import catch_up_index
from palaver.sessions.usage import UsageGrouping
from palaver.transfer.imported import ImportedConversation
from palaver.transfer.importer import ImportEnded, Importer
from support.erased_people import (
    MARK,
    OTHER_MARK,
    execute,
    find_everywhere,
    leave_traces,
    make_private,
    make_shared,
    quote_and_copy,
)
from support.gateway import TIMEOUT_SECONDS
from support.inbox import answer, list_rows, make_inbox, say
from support.made_reader import START, MadeReader, make_file, make_message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from palaver.transfer.imported import ImportedMessage

pytestmark = pytest.mark.both_engines


@pytest.fixture
def attachments(store: SessionStore, tmp_path: Path) -> Attachments:
    return Attachments(store, tmp_path / "attachments")


@pytest.fixture
def erasures(store: SessionStore, attachments: Attachments, tmp_path: Path) -> Erasures:
    return Erasures(store, attachments, tmp_path / "outputs")


async def settle_two_people(store: SessionStore, attachments: Attachments) -> tuple[Person, Person]:
    """Let Ada and Bob leave traces, quote each other, and be indexed."""
    ada = await leave_traces(store, attachments, MARK)
    bob = await leave_traces(store, attachments, OTHER_MARK)
    await quote_and_copy(store, attachments, MARK, bob, OTHER_MARK)
    await catch_up_index(store.engine)
    return ada, bob


def load_totals(store: SessionStore) -> object:
    return store.engine.run(Read(lambda tx: usage_reports.load_report(tx, UsageGrouping.DAY, 0, 2**60, None, 100)))


async def test_nothing_of_an_erased_person_is_left_anywhere(
    store: SessionStore, attachments: Attachments, erasures: Erasures, tmp_path: Path
) -> None:
    ada, _ = await settle_two_people(store, attachments)
    outputs = tmp_path / "outputs" / f"job-{MARK}-j_{MARK}"
    outputs.mkdir(parents=True)
    (outputs / "2026.md").write_text(f"output {MARK}")
    totals = load_totals(store)
    assert len(find_everywhere(store, tmp_path / "attachments", MARK)) > 40
    report = await erasures.erase(store.get_owner().principal, ada.id)
    assert find_everywhere(store, tmp_path / "attachments", MARK) == []
    assert find_everywhere(store, tmp_path / "attachments", ada.id) == []
    assert not outputs.exists()
    assert load_totals(store) == totals
    assert report.ended_at is not None
    counts = report.to_dict()
    assert (counts["conversations"], counts["messages"]) == (3, 10)
    assert (counts["shared_conversations"], counts["files"], counts["jobs"], counts["memories"]) == (3, 2, 1, 2)
    assert counts["shared_messages"] == 4  # a question and its answer, twice: in the group, and in Bob's copy
    assert counts["quotes"] == 4


async def test_erasing_a_person_touches_nothing_of_others(
    store: SessionStore, attachments: Attachments, erasures: Erasures, tmp_path: Path
) -> None:
    ada, bob = await settle_two_people(store, attachments)
    sql = "SELECT s.id, e.seq, e.kind, e.content, e.person_id FROM event e JOIN session s ON s.no = e.session_no"
    bobs = f"{sql} WHERE e.content LIKE '%{OTHER_MARK}%' OR e.person_id = $1 ORDER BY 1, 2"
    before = list_rows(store, bobs, bob.id)
    seen = {session.id for session in store.seen_by(bob.principal).list(limit=50)}
    await erasures.erase(store.get_owner().principal, ada.id)
    assert list_rows(store, bobs, bob.id) == before
    assert {session.id for session in store.seen_by(bob.principal).list(limit=50)} == seen
    assert len(store.seen_by(bob.principal).search(OTHER_MARK)) > 5
    assert len(store.seen_by(bob.principal).part(MemoryOperations).list()) == 2
    for table, count in (("share", 1), ("project", 1), ("job", 1), ("api_token", 1), ("sign_in", 1), ("attachment", 2)):
        assert list_rows(store, f"SELECT COUNT(*) FROM {table}") == [(count,)], table
    [(same,)] = list_rows(store, "SELECT sha256 FROM attachment WHERE name = 'same.txt'")
    assert (tmp_path / "attachments" / same[:2] / same).exists(), "bytes that Bob has uploaded, too, stay"


async def test_messages_in_a_shared_conversation_become_erased_entries(
    store: SessionStore, attachments: Attachments, erasures: Erasures
) -> None:
    ada, bob = await settle_two_people(store, attachments)
    session_id = list_rows(store, "SELECT id FROM session WHERE shared = 1 AND parent_no IS NULL")[0][0]
    before = store.load_events(session_id)
    await erasures.erase(store.get_owner().principal, ada.id)
    after = store.load_events(session_id)
    assert [event.seq for event in after] == list(range(1, len(before) + 2))
    erased = [event for event in after if event.kind is EventKind.ERASED]
    assert [event.facts.get("stored_kind") for event in erased] == ["message", "message", "reaction", None]
    assert all(event.person_id is None and event.message is None for event in erased)
    texts = [message["content"] for message in store.load_transcript(session_id)]
    assert texts == [
        f"together {OTHER_MARK}",
        f"Dear {OTHER_MARK}, here I am.",
        f"me too {OTHER_MARK}",
        f"Hello {OTHER_MARK}.",
    ]
    session = store.get_session(session_id)
    assert session.message_count == 4
    assert session.shown_title == f"together {OTHER_MARK}"
    assert MARK not in store.seen_by(bob.principal).export_markdown(session_id)
    assert "Message erased" in store.seen_by(bob.principal).export_markdown(session_id)
    joined = [event.facts["joined"] for event in after if event.kind is EventKind.MEMBERS_CHANGED]
    assert joined == [["Eve"]]
    assert store.undo(session_id).messages == 2, "the conversation goes on"
    assert store.redo(session_id).messages == 2


async def test_a_preview_counts_and_changes_nothing(
    store: SessionStore, attachments: Attachments, erasures: Erasures, tmp_path: Path
) -> None:
    ada, _ = await settle_two_people(store, attachments)
    before = find_everywhere(store, tmp_path / "attachments", MARK)
    preview = await erasures.preview(store.get_owner().principal, ada.id)
    assert find_everywhere(store, tmp_path / "attachments", MARK) == before
    assert (preview.person_id, preview.name) == (ada.id, f"Name {MARK}")
    counts = preview.report.to_dict()
    assert (counts["conversations"], counts["shared_conversations"], counts["shared_messages"]) == (3, 2, 2)
    assert (counts["files"], counts["jobs"], counts["accounts"], counts["sign_ins"]) == (2, 1, 3, 1)
    assert "3 conversations" in preview.report.to_lines()


async def test_linked_accounts_are_the_same_person(
    store: SessionStore, attachments: Attachments, erasures: Erasures, tmp_path: Path
) -> None:
    ada, bob = await settle_two_people(store, attachments)

    def merge(tx: Transaction) -> None:
        survivor, other = people.find_by_id(tx, bob.id), people.find_by_id(tx, ada.id)
        assert survivor is not None
        assert other is not None
        person_merge.merge_people(tx, survivor, other, 1)

    store.engine.run(Write(merge))
    await erasures.erase(store.get_owner().principal, ada.id)  # the one who was linked: both are erased
    assert find_everywhere(store, tmp_path / "attachments", MARK) == []
    assert find_everywhere(store, tmp_path / "attachments", OTHER_MARK) == []
    assert list_rows(store, "SELECT COUNT(*) FROM person") == [(1,)]


async def test_only_owners_erase_people_and_see_reports(
    store: SessionStore, attachments: Attachments, erasures: Erasures
) -> None:
    ada, bob = await settle_two_people(store, attachments)
    for principal in (
        bob.principal,
        Principal(bob.id, Role.GUEST),
        Principal(store.get_owner().id, Role.OWNER, JobId("j_1")),
    ):
        with pytest.raises(OwnerRequired):
            await erasures.erase(principal, ada.id)
        with pytest.raises(OwnerRequired):
            await erasures.preview(principal, ada.id)
    assert list_rows(store, "SELECT 1 FROM erasure") == []


async def test_the_person_at_the_terminal_and_the_last_owner_stay(store: SessionStore, erasures: Erasures) -> None:
    owner = store.get_owner()
    with pytest.raises(NotAllowed, match="person at the terminal"):
        await erasures.erase(owner.principal, owner.id)
    with pytest.raises(NotFound):
        await erasures.erase(owner.principal, "p_unknown")
    execute(store, "DELETE FROM identity WHERE person_id = $1", owner.id)
    with pytest.raises(NotAllowed, match="last owner"):
        await erasures.erase(owner.principal, owner.id)


async def test_a_late_write_finds_nothing(store: SessionStore, attachments: Attachments, erasures: Erasures) -> None:
    inbox = make_inbox(store, files=attachments)
    receipt = await say(inbox, make_private(MARK), f"wait {MARK}", message_id="1")
    person = store.get_or_create_person(make_private(MARK))
    await erasures.erase(store.get_owner().principal, person.id)
    with pytest.raises(SessionNotFound):
        answer(store, receipt)
    assert list_rows(store, "SELECT 1 FROM turn") == []


async def test_an_account_that_writes_again_is_a_strangers(
    store: SessionStore, attachments: Attachments, erasures: Erasures
) -> None:
    ada, _ = await settle_two_people(store, attachments)
    await erasures.erase(store.get_owner().principal, ada.id)
    receipt = await say(make_inbox(store), make_private(MARK), "hello again", message_id="m-new")
    person = store.get_or_create_person(make_private(MARK))
    assert person.id != ada.id
    assert person.role is Role.GUEST
    assert store.load_transcript(receipt.session_id or "") == [{"role": "user", "content": "hello again"}]
    shared = await say(make_inbox(store), make_shared(MARK), "me again", message_id="m-2", is_addressed=True)
    assert shared.is_stored


async def test_a_long_conversation_is_erased_in_small_transactions(
    store: SessionStore, attachments: Attachments, erasures: Erasures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_erasure, "EVENTS_PER_BATCH", 7)
    monkeypatch.setattr(person_erasure, "ROWS_PER_BATCH", 3)
    monkeypatch.setattr(shared_erasure, "EVENTS_PER_BATCH", 4)
    monkeypatch.setattr(shared_erasure, "SCANNED_PER_READ", 5)
    monkeypatch.setattr(shared_erasure, "TURNS_PER_BATCH", 2)
    ada, bob = await settle_two_people(store, attachments)
    inbox = make_inbox(store)
    for number in range(12):
        for source in (make_private(MARK), make_shared(MARK)):
            answer(
                store, await say(inbox, source, f"{MARK} {number}", f"l{number}-{source.chat_id}", is_addressed=True)
            )
        answer(store, await say(inbox, make_shared(OTHER_MARK), f"between {number}", f"o{number}", is_addressed=True))
    points: list[str] = []
    monkeypatch.setattr("palaver.operation.erasure.crash_point", points.append)
    await erasures.erase(store.get_owner().principal, ada.id)
    assert points.count("erase.batch_stored") > 60
    assert find_everywhere(store, tmp_path / "attachments", MARK) == []
    shared = [session for session in store.seen_by(bob.principal).list(limit=50) if session.shared]
    assert max(session.message_count for session in shared) == 28


async def test_words_that_are_being_indexed_meanwhile_are_not_left_in_the_index(
    store: SessionStore, attachments: Attachments, erasures: Erasures, tmp_path: Path
) -> None:
    ada, _ = await settle_two_people(store, attachments)
    inbox = make_inbox(store)
    for number, source in enumerate((make_private(MARK), make_shared(MARK))):
        answer(store, await say(inbox, source, f"{MARK} again", f"i{number}", is_addressed=True))
    batch = store.engine.run(Read(lambda tx: search.collect_unindexed(tx, 1000)))
    assert batch is not None
    assert any(MARK in words for *_, words in batch.rows)
    await erasures.erase(store.get_owner().principal, ada.id)
    store.engine.run(Write(lambda tx: search.index_batch(tx, batch)))
    assert find_everywhere(store, tmp_path / "attachments", MARK) == []


async def test_the_file_of_the_database_has_no_bytes_of_an_erased_person(
    sqlite_store: SessionStore, tmp_path: Path
) -> None:
    attachments = Attachments(sqlite_store, tmp_path / "attachments")
    ada, _ = await settle_two_people(sqlite_store, attachments)
    inbox = make_inbox(sqlite_store)
    for number in range(40):  # long enough for pages of their own
        text = f"{MARK} " + f"word{number} " * 2000
        receipt = await say(inbox, make_private(MARK), text, message_id=f"long {number}")
        answer(sqlite_store, receipt, text)
    await catch_up_index(sqlite_store.engine)
    await Erasures(sqlite_store, attachments).erase(sqlite_store.get_owner().principal, ada.id)
    path = tmp_path / "palaver.db"
    rewrite_file(path)  # also while the store is open
    sqlite_store.close()
    assert MARK.encode() not in path.read_bytes().lower()
    assert OTHER_MARK.encode() in path.read_bytes().lower()


async def test_an_import_that_runs_meanwhile_ends_and_leaves_nothing(
    store: SessionStore, attachments: Attachments, erasures: Erasures, tmp_path: Path
) -> None:
    person = store.engine.run(Write(lambda tx: people.add_person(tx, "Ada", Role.MEMBER, 1_000_000))).person
    loop = asyncio.get_running_loop()

    def read_entries() -> Iterator[ImportedMessage]:
        yield make_message(f"{MARK} one", files=(make_file(f"{MARK}.txt", MARK.encode()),))
        erasing = erasures.erase(Principal(store.get_owner().id, Role.OWNER), person.id)
        asyncio.run_coroutine_threadsafe(erasing, loop).result(TIMEOUT_SECONDS)
        yield make_message(f"{MARK} two", 1)

    reader = MadeReader([ImportedConversation(origin_id=MARK, open_entries=read_entries, created_at=START)])
    with pytest.raises(ImportEnded):
        await Importer(store, attachments).import_for_person(person.principal, reader)
    assert find_everywhere(store, tmp_path / "attachments", MARK) == []

"""Imports of other programs' conversations: what people see of them here, twice, grown, deleted, and for whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource, TurnUsage
from palaver.accounts import merge_table as person_merge
from palaver.core.engines.base import Read, Write
from palaver.core.errors import SessionNotFound
from palaver.jobs import table as jobs
from palaver.media.attachments import Attachments
from palaver.memory.service import MemoryOperations
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import home_channels, table as sessions, versions_table as compactions
from palaver.sessions.events import EventKind
from palaver.sessions.message import MAX_MESSAGE_BYTES
from palaver.sessions.model import EndReason
from palaver.transfer import conversation_writer, imports_table as imports, report as write_queue
from palaver.transfer.imported import (
    ImportedAccount,
    ImportedHomeChannel,
    ImportedJob,
    ImportedMemory,
    ImportedProject,
    ImportProblem,
)
from palaver.transfer.importer import Importer
from palaver.transfer.report import ImportOptions
from support.made_reader import (
    START,
    MadeReader,
    make_compaction,
    make_conversation,
    make_exchange,
    make_file,
    make_message,
)
from support.store_content import dump_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from palaver import Session, SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from palaver.transfer.imported import ImportedEntry, ImportedItem
    from palaver.transfer.report import ImportReport


@pytest.fixture
def importer(store: SessionStore, tmp_path: Path) -> Importer:
    options = ImportOptions(profiles=frozenset({"coder"}), personalities=frozenset({"pirate"}))
    return Importer(store, Attachments(store, tmp_path / "attachments"), options)


@pytest.fixture
def run(importer: Importer, store: SessionStore) -> Callable[..., ImportReport]:
    def run(*items: ImportedItem, **options: Any) -> ImportReport:
        return importer.import_files(MadeReader(items), store.get_owner(), **options)

    return run


def list_all(store: SessionStore) -> list[Session]:
    return [*store.list_sessions(limit=200), *store.list_sessions(limit=200, state="archived")]


def get_only(store: SessionStore) -> Session:
    (session,) = list_all(store)
    return session


def get_texts(store: SessionStore, session_id: str) -> list[Any]:
    return [message["content"] for message in store.load_transcript(session_id)]


def count(report: ImportReport) -> dict[str, int]:
    return {name: number for name, number in report.counts.items() if number}


# ---- what comes in -----------------------------------------------------------------------------------------


def test_a_conversation_comes_in_with_its_messages_times_and_counters(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    entries = [
        make_message("What is **this**?", 0),
        make_message(None, 1, "assistant", tool_calls=[{"id": "1", "name": "look"}]),
        make_message("a tool says", 2, "tool", tool_call_id="1"),
        make_message("It is *that*.", 3, "assistant"),
        make_message("Thanks", 5),
    ]
    report = run(make_conversation("c1", entries, title="A question", pinned=True, created_at=START))
    assert count(report) == {"conversations": 1, "messages": 5}
    session = get_only(store)
    assert (session.title, session.auto_title, session.preview) == ("A question", "What is this?", "Thanks")
    assert (session.message_count, session.tool_call_count, session.pinned) == (5, 1, True)
    assert session.created_at == START
    assert session.active_at == session.last_message_at == session.last_human_at == START + timedelta(minutes=5)
    bases = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT last_human_at - expiry_base FROM session")))
    assert bases == [(0,)]
    assert session.ended_at is None
    assert session.is_first_contact
    log = store.load_events(session.id)
    assert [event.kind for event in log] == [EventKind.STARTED, *[EventKind.MESSAGE] * 5]
    assert [event.at for event in log[1:]] == [START + timedelta(minutes=minutes) for minutes in (0, 1, 2, 3, 5)]
    assert [hit.session_id for hit in store.search("thanks")] == [session.id]


def test_counters_are_those_that_the_store_itself_would_have_written(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    texts = ["# Hello *you*", "- one\n- two", "   ", "```\ncode\n```"]
    source = SessionSource("telegram", "ada", user_id="ada")
    session_id = store.get_or_create_session(source).session_id
    for number, text in enumerate(texts):
        store.append_to_transcript(session_id, {"role": "user" if number % 2 == 0 else "assistant", "content": text})
    run(make_conversation("c1", make_exchange(*texts)))
    written, imported = store.get_session(session_id), next(s for s in list_all(store) if s.id != session_id)
    names = ("message_count", "preview", "auto_title", "tool_call_count", "title")
    assert [getattr(imported, name) for name in names] == [getattr(written, name) for name in names]


def test_hidden_messages_stay_hidden_and_compactions_are_in_effect(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    entries: list[ImportedEntry] = [
        make_message("first", 0),
        make_message("bad answer", 1, "assistant", hidden=True),
        make_message("another bad answer", 2, "assistant", hidden=True),
        make_message("good answer", 3, "assistant"),
        make_compaction("So far: first.", 4, kept_count=1),
        make_message("second", 5),
        make_compaction("So far: first and second.", 6),
        make_message("third", 7),
    ]
    run(make_conversation("c1", entries))
    session = get_only(store)
    assert get_texts(store, session.id) == ["first", "good answer", "second", "third"]
    assert session.message_count == 4
    assert [event.message.text for event in store.load_events(session.id) if event.hidden and event.message] == [
        "bad answer",
        "another bad answer",
    ]

    def load(tx: Any) -> tuple[Any, list[str]]:
        no = sessions.get(tx, session.id).no
        current = compactions.find_current(tx, no)
        view, _ = compactions.load_view(tx, no, current, 10**9)
        return current, [event.message.text for event in view if event.message]

    current, seen = store.engine.run(Read(load))
    assert current.summary == "So far: first and second."
    assert current.message_count == 3
    assert seen == ["third"]
    store.engine.run(Write(lambda tx: compactions.undo_last(tx, sessions.get(tx, session.id).no, 0)))
    current, seen = store.engine.run(Read(load))
    assert (current.summary, current.message_count) == ("So far: first.", 1)
    assert seen == ["good answer", "second", "third"]


@pytest.mark.both_engines
def test_titles_projects_settings_usage_and_parents_are_kept(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    usage = TurnUsage(turn_id="t1", model="gpt-5", provider="openai", input_tokens=10, output_tokens=4, cost="0.25")
    first = make_conversation(
        "c1",
        make_exchange("a", "b"),
        title="Trip",
        project=ImportedProject(name="Travel", color="#3b82f6"),
        workspace="/srv/trip",
        profile="coder",
        personality="poet",
        usage=(usage,),
        archived=True,
    )
    second = make_conversation("c2", make_exchange("c"), title="Trip", parent_origin_id="c1", model="claude-4")
    report = run(first, second)
    by_title = {session.title or "": session for session in list_all(store)}
    assert sorted(by_title) == ["Trip", "Trip #2"]
    trip, fork = by_title["Trip"], by_title["Trip #2"]
    assert trip.archived
    assert (trip.usage.input_tokens, str(trip.usage.cost), trip.model_name) == (10, "0.25", "openai:gpt-5")
    assert (fork.parent_id, fork.start_reason, fork.model) == (trip.id, "fork", "claude-4")
    view = store.seen_by(store.get_owner().principal)
    assert [(project.name, project.id) for project in view.projects.list()] == [("Travel", trip.project_id)]
    columns = "SELECT workspace, profile, personality FROM session WHERE id = $1"
    assert store.engine.run(Read(lambda tx: tx.fetch_one(columns, trip.id))) == ("/srv/trip", "coder", None)
    assert any("poet" in line for line in report.notes.lines)
    assert any("Trip #2" in line for line in report.notes.lines)


@pytest.mark.both_engines
def test_files_become_attachments_and_those_that_cannot_are_named(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    files = (make_file("notes.txt", b"hello"), make_file("program.exe", b"\x00\x01binary"))
    report = run(make_conversation("c1", [make_message("look", files=files)]))
    assert count(report) == {"conversations": 1, "messages": 1, "files": 1}
    assert any("program.exe" in line for line in report.problems.lines)
    (content,) = get_texts(store, get_only(store).id)
    assert [part["type"] for part in content] == ["text", "attachment", "text"]
    assert "program.exe" in content[2]["text"]
    used = "SELECT a.name FROM attachment a JOIN attachment_use u ON u.attachment_no = a.no"
    assert store.engine.run(Read(lambda tx: tx.fetch_all(used))) == [("notes.txt",)]


def test_text_that_cannot_be_stored_is_replaced_and_a_message_that_is_too_large_is_shortened(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    entries = [
        make_message("a\0b\ud800", 0, platform_message_id="7"),
        make_message("x" * (MAX_MESSAGE_BYTES + 10), 1),
        make_message("deep", 2, "assistant", tool_calls=deep),
    ]
    report = run(make_conversation("c\0", entries, title="t" * 300))
    texts = get_texts(store, get_only(store).id)
    assert texts[0] == "a b?"
    assert len(texts[1]) < MAX_MESSAGE_BYTES
    assert texts[2].startswith("deep")
    assert report.problems.count == 2
    assert len(get_only(store).title or "") <= 100


def test_problems_and_what_was_folded_are_reported_and_the_rest_comes_in(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    entries: list[ImportedEntry | ImportProblem] = [
        make_message("a"),
        ImportProblem(where="a.jsonl, line 2", what="not JSON"),
        make_message("b"),
    ]
    report = run(
        ImportProblem(where="index.json", what="damaged"),
        make_conversation("c1", entries, folded=("“a” was stored three times",)),
        make_conversation("c2", []),
    )
    assert report.problems.lines == ["index.json: damaged", "a.jsonl, line 2: not JSON"]
    assert report.folded.lines == ["Conversation 'c1': “a” was stored three times"]
    assert count(report) == {"conversations": 1, "messages": 2, "empty": 1}
    assert get_texts(store, get_only(store).id) == ["a", "b"]


# ---- again -------------------------------------------------------------------------------------------------


def test_importing_twice_changes_nothing(store: SessionStore, run: Callable[..., ImportReport]) -> None:
    items = [
        make_conversation("c1", make_exchange("a", "b"), title="Trip", is_current=True, source=ADA),
        make_conversation("c2", make_exchange("a", "b")),
        ImportedMemory(origin_id="m1", text="Likes tea"),
        ImportedAccount(platform="telegram", user_id="ada"),
    ]
    run(*items)
    before = dump(store)
    report = run(*items)
    assert dump(store) == before
    assert count(report) == {"unchanged": 4}


def dump(store: SessionStore) -> dict[str, Any]:
    """Return all rows that an import may write."""
    tables = ("session", "event", "lane", "person", "identity", "memory", "usage", "audience_member", "job")
    return dump_tables(store, *tables)


@pytest.mark.both_engines
@pytest.mark.parametrize("is_long", [False, True])
def test_a_conversation_that_grew_there_gets_its_new_messages(
    store: SessionStore, run: Callable[..., ImportReport], monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    if is_long:
        monkeypatch.setattr(conversation_writer, "ROWS_PER_STEP", 2)
        monkeypatch.setattr(write_queue, "MAX_BATCH_ROWS", 2)
    texts = [f"text {number}" for number in range(8)]
    run(make_conversation("c1", make_exchange(*texts[:3]), ended_at=START, end_reason=EndReason.MANUAL))
    session = get_only(store)
    store.rename_session(session.id, "My name for it")
    entries: list[ImportedEntry] = [
        *make_exchange(*texts),
        make_compaction("all", 9, kept_count=1),
        make_message("last", 10),
    ]
    report = run(make_conversation("c1", entries))
    assert count(report) == {"grown": 1, "messages": 6}
    grown = get_only(store)
    assert get_texts(store, grown.id) == [*texts, "last"]
    assert (grown.title, grown.message_count, grown.preview) == ("My name for it", 9, "last")
    seqs = [event.seq for event in store.load_events(grown.id)]
    assert seqs == list(range(1, len(seqs) + 1))
    compacted = next(event for event in store.load_events(grown.id) if event.kind is EventKind.COMPACTED)
    kept = next(event for event in store.load_events(grown.id) if event.message and event.message.text == texts[-1])
    assert (compacted.facts["first_kept_seq"], compacted.facts["message_count"]) == (kept.seq, 7)
    assert count(run(make_conversation("c1", entries))) == {"unchanged": 1}


@pytest.mark.both_engines
def test_the_rest_of_a_conversation_that_went_on_both_there_and_here_is_a_branch_of_it(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    def make(*texts: str, title: str = "Trip") -> ImportedItem:
        return make_conversation("c1", make_exchange(*texts), title=title, source=ADA, is_current=True)

    run(make("a", "b"))
    here = get_only(store)
    store.append_to_transcript(here.id, "said here")
    before = store.load_events(here.id)
    dry = run(make("a", "b", "c", "d"), dry_run=True)
    report = run(make("a", "b", "c", "d"))
    assert count(dry) == count(report) == {"continued": 1, "conversations": 1, "messages": 2}
    (note,) = report.notes.lines
    assert note.startswith("Conversation 'c1' ('Trip') went on both there and here. It stays as it is here.")
    assert "“Trip #2”" in note
    assert dry.notes.lines == report.notes.lines

    rest = next(each for each in list_all(store) if each.id != here.id)
    assert (rest.title, rest.parent_id, rest.created_at) == ("Trip #2", here.id, START + timedelta(minutes=2))
    assert get_texts(store, rest.id) == ["c", "d"]
    *events, forked = store.load_events(here.id)
    assert events == before
    assert (forked.kind, forked.facts["fork_id"]) == (EventKind.FORKED, rest.id)
    started = store.load_events(rest.id)[0]
    assert (started.facts["reason"], started.facts["previous"], started.facts["is_rest"]) == ("fork", here.id, True)
    assert store.get_or_create_session(ADA).session.id == here.id

    written = dump(store)
    report = run(make("a", "b", "c", "d"))
    assert (count(report), report.notes.lines) == ({"unchanged": 1}, [])
    assert dump(store) == written
    grown = run(make("a", "b", "c", "d", "e"))
    assert count(grown) == {"continued": 1, "grown": 1, "messages": 1}
    assert "“Trip #2”" in grown.notes.lines[0]
    assert get_texts(store, rest.id) == ["c", "d", "e"]

    assert len(store.load_events(here.id)) == len(before) + 1

    store.append_to_transcript(rest.id, "said here, too")
    run(make("a", "b", "c", "d", "e", "f"))
    last = next(each for each in list_all(store) if each.id not in {here.id, rest.id})
    assert (last.title, last.parent_id, get_texts(store, last.id)) == ("Trip #3", rest.id, ["f"])
    store.delete_session(last.id)
    assert count(run(make("a", "b", "c", "d", "e", "f", "g"))) == {"deleted": 1}


def test_the_rest_of_a_conversation_comes_in_once_after_an_interruption(
    store: SessionStore, run: Callable[..., ImportReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_writer, "ROWS_PER_STEP", 1)
    monkeypatch.setattr(write_queue, "MAX_BATCH_ROWS", 1)
    run(make_conversation("c1", make_exchange("a", "b"), title="Trip"))
    here = get_only(store)
    store.append_to_transcript(here.id, "said here")
    entries = make_exchange("a", "b", "c", "d", "e")

    readings = iter([5, 4])  # entries; the first time, the import looks only for what is new

    def open_entries() -> Any:
        yield from entries[: next(readings)]
        raise RuntimeError("the disk was removed")

    broken = replace(make_conversation("c1", []), open_entries=open_entries)
    with pytest.raises(RuntimeError):
        run(broken)
    assert [each.id for each in list_all(store)] == [here.id]
    report = run(make_conversation("c1", entries, title="Trip"))
    assert count(report) == {"continued": 1, "conversations": 1, "messages": 3}
    (rest,) = [each for each in list_all(store) if each.id != here.id]
    assert (rest.title, get_texts(store, rest.id)) == ("Trip #2", ["c", "d", "e"])
    assert [event.kind for event in store.load_events(here.id)].count(EventKind.FORKED) == 1


def test_the_rest_of_a_conversation_without_a_title_is_named_after_it(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    run(make_conversation("c1", make_exchange("What is this?", "b")))
    here = get_only(store)
    store.append_to_transcript(here.id, "said here")
    run(make_conversation("c1", make_exchange("What is this?", "b", "c")))
    assert {each.title for each in list_all(store) if each.id != here.id} == {"What is this? #2"}


async def test_the_rest_of_a_persons_own_import_is_theirs_alone(store: SessionStore, importer: Importer) -> None:
    ada = store.get_or_create_person(ADA)
    await import_for(importer, ada, make_conversation("c1", make_exchange("a", "b"), source=CLUB))
    (here,) = store.seen_by(ada.principal).list()
    store.append_to_transcript(here.id, "said here")
    await import_for(importer, ada, make_conversation("c1", make_exchange("a", "b", "c"), source=CLUB))
    assert len(store.seen_by(ada.principal).list()) == 2
    assert store.seen_by(store.get_owner().principal).list() == ()


def test_a_conversation_that_changed_there_stays_as_it_is(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    run(make_conversation("c2", make_exchange("x", "y")))
    assert count(run(make_conversation("c2", make_exchange("x", "other", "z")))) == {"changed": 1}
    assert get_texts(store, get_only(store).id) == ["x", "y"]


def test_a_conversation_that_was_deleted_here_does_not_come_back(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    run(make_conversation("c1", make_exchange("a", "b")))
    store.delete_session(get_only(store).id)
    assert count(run(make_conversation("c1", make_exchange("a", "b", "c")))) == {"deleted": 1}
    assert list_all(store) == []


def test_a_dry_run_says_the_same_and_writes_nothing(
    store: SessionStore, run: Callable[..., ImportReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue, "MAX_BATCH_ROWS", 2)
    group = SessionSource("telegram", "g1", chat_type="group", user_id="bo", user_name="Bo")
    items = [
        ImportedAccount(platform="telegram", user_id="ada", is_owner=True),
        ImportedAccount(platform="telegram", user_id="ada"),
        ImportedHomeChannel(source=ADA),
        ImportedHomeChannel(source=group),
        make_conversation("c1", make_exchange("a", "b"), source=ADA, is_current=True, title="Trip"),
        make_conversation("c2", [make_message("x" * (MAX_MESSAGE_BYTES + 10), files=(make_file("a.txt", b"a"),))]),
        make_conversation("c3", make_exchange("a", "b"), source=ADA, is_current=True, title="Trip"),
        make_conversation("c4", make_exchange("a", "b"), source=group, project=ImportedProject(name="Home")),
        make_conversation("c5", make_exchange("a"), project=ImportedProject(name="Home"), profile="none"),
        make_conversation("c5", make_exchange("a")),
        make_conversation("c6", []),
        ImportedMemory(origin_id="m1", text="Likes tea"),
        ImportedMemory(origin_id="m2", text=" "),
        ImportedJob(origin_id="j1", name="Morning", prompt="Hello", schedule="0 7 * * *"),
        ImportedJob(origin_id="j2", name="Never", prompt="Hello", schedule="never"),
        ImportProblem(where="a file", what="It is damaged."),
    ]
    store.get_owner()
    for expected in ("conversations", "unchanged"):
        before = dump(store)
        dry = run(*items, dry_run=True)
        assert dump(store) == before
        real = run(*items)
        assert count(dry) == count(real)
        assert count(dry)[expected] > 1
        for name in ("problems", "notes", "folded"):
            assert sorted(getattr(dry, name).lines) == sorted(getattr(real, name).lines)
    assert next(dry.format_lines()) == "This would come in:"


# ---- places and people -------------------------------------------------------------------------------------

ADA = SessionSource("telegram", "ada", user_id="ada", user_name="Ada")
CLUB = SessionSource("discord", "club", chat_type="thread", chat_name="Club", thread_id="1")


def test_the_next_message_continues_the_current_conversation_of_its_chat(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    old = make_conversation("old", make_exchange("long ago"), source=ADA)
    current = make_conversation("current", make_exchange("hello", "hi"), source=ADA, is_current=True)
    report = run(old, current)
    assert report.counts["lanes"] == 1
    recorded = store.record_user_message(ADA, "again")
    assert get_texts(store, recorded.session_id) == ["hello", "hi", "again"]
    ended = next(session for session in list_all(store) if session.id != recorded.session_id)
    assert ended.end_reason == "switched"
    assert store.get_or_create_person(ADA).role is Role.GUEST


def test_a_chat_that_has_a_conversation_here_stays_on_it(store: SessionStore, run: Callable[..., ImportReport]) -> None:
    here = store.record_user_message(ADA, "said here").session_id
    report = run(make_conversation("c1", make_exchange("hello"), source=ADA, is_current=True))
    assert report.counts["lanes"] == 0
    assert any("continues there" in line for line in report.notes.lines)
    assert store.record_user_message(ADA, "again").session_id == here


@pytest.mark.both_engines
def test_an_empty_conversation_of_a_chat_gives_way(store: SessionStore, run: Callable[..., ImportReport]) -> None:
    store.get_or_create_session(ADA)
    run(make_conversation("c1", make_exchange("hello"), source=ADA, is_current=True))
    assert get_texts(store, store.record_user_message(ADA, "again").session_id) == ["hello", "again"]


@pytest.mark.both_engines
def test_people_of_a_shared_chat_see_its_conversation_and_others_do_not(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    entries = [
        make_message("from ada", 0, author={"id": "ada", "name": "Ada"}),
        make_message("from bob", 1, author={"id": "bob", "name": "Bob"}),
    ]
    run(make_conversation("c1", entries, source=CLUB), make_conversation("c2", entries, source=CLUB))
    for name, expected in (("ada", 2), ("bob", 2), ("eve", 0)):
        person = store.get_or_create_person(SessionSource("discord", name, user_id=name))
        assert len(store.seen_by(person.principal).list()) == expected
    audiences = store.engine.run(Read(lambda tx: tx.fetch_all("SELECT DISTINCT audience_no FROM session")))
    assert len(audiences) == 1


def test_accounts_become_members_once(store: SessionStore, run: Callable[..., ImportReport]) -> None:
    account = ImportedAccount(platform="telegram", user_id="ada", name="Ada", is_owner=True)
    report = run(account)
    person = store.get_or_create_person(ADA)
    assert person.role is Role.MEMBER
    assert any("administrator" in line for line in report.notes.lines)
    store.engine.run(Write(lambda tx: people.set_role(tx, person.id, Role.GUEST)))
    run(account)
    assert store.get_or_create_person(ADA).role is Role.GUEST


@pytest.mark.both_engines
def test_home_channels_memories_and_jobs_come_in_once(store: SessionStore, run: Callable[..., ImportReport]) -> None:
    items = [
        ImportedHomeChannel(source=ADA),
        ImportedMemory(origin_id="m1", text="Likes tea", at=START),
        ImportedJob(origin_id="j1", name="News", prompt="What is new?", schedule="every 1h", targets=("local",)),
        ImportedJob(origin_id="j2", name="Bad", prompt="What?", schedule="whenever"),
    ]
    report = run(*items)
    assert count(report) == {"home_channels": 1, "memories": 1, "jobs": 1}
    assert report.problems.count == 1
    owner = store.get_owner()
    (job,) = store.engine.run(Read(lambda tx: jobs.list_owned(tx, owner.id)))
    assert (job.job.name, job.job.state, job.job.targets) == ("News", "paused", ("local",))
    assert store.engine.run(Read(home_channels.load_chosen))["telegram"].chat_id == "ada"  # type: ignore[index]
    view = store.seen_by(owner.principal)
    view.part(MemoryOperations).forget(view.part(MemoryOperations).list()[0].memory.id)
    store.engine.run(Write(lambda tx: jobs.delete(tx, job.no)))
    assert count(run(*items)) == {"unchanged": 3}
    assert store.engine.run(Read(lambda tx: jobs.list_owned(tx, owner.id))) == []


GROUP = SessionSource("telegram", "-5", chat_type="group", chat_name="Family", user_id="ada", user_name="Ada")


@pytest.mark.both_engines
def test_a_group_that_shares_its_conversation_later_gets_what_came_in_as_that_of_one_person(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    conversation = make_conversation("c1", make_exchange("Where?", "There."), source=GROUP, is_current=True)
    run(conversation)
    assert not get_only(store).shared
    store.replace_config(replace(store.config, group_sessions_per_user=False))
    assert count(run(conversation)) == {"conversations": 1, "messages": 2, "lanes": 1}
    assert get_only(store).shared
    bob = replace(GROUP, user_id="bob", user_name="Bob")
    assert get_texts(store, store.record_user_message(bob, "And now?").session_id) == ["Where?", "There.", "And now?"]
    assert count(run(conversation)) == {"unchanged": 1}


@pytest.mark.both_engines
def test_what_is_said_while_a_group_comes_to_share_its_conversation_is_not_lost(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    entries = make_exchange("Where?", "There.")
    run(make_conversation("c1", entries, source=GROUP, is_current=True))
    session_id = get_only(store).id

    def open_entries() -> Iterator[ImportedEntry]:
        store.append_to_transcript(session_id, {"role": "user", "content": "Wait!"})
        yield from entries

    store.replace_config(replace(store.config, group_sessions_per_user=False))
    run(replace(make_conversation("c1", entries, source=GROUP, is_current=True), open_entries=open_entries))
    assert get_texts(store, session_id) == ["Where?", "There.", "Wait!"]
    assert get_only(store).id == session_id


# ---- for oneself -------------------------------------------------------------------------------------------


async def import_for(importer: Importer, person: Person, *items: ImportedItem) -> ImportReport:
    return await importer.import_for_person(person.principal, MadeReader(items))


async def test_a_persons_own_import_touches_nothing_of_other_people(store: SessionStore, importer: Importer) -> None:
    ada = store.get_or_create_person(ADA)
    bob_source = SessionSource("telegram", "bob", user_id="bob", user_name="Bob")
    bob = store.get_or_create_person(bob_source)
    said = store.record_user_message(bob_source, "bob's secret").session_id
    before = dump(store)
    report = await import_for(
        importer,
        ada,
        make_conversation("c1", make_exchange("planted"), source=bob_source, is_current=True, title="Planted"),
        make_conversation("c2", make_exchange("group"), source=CLUB, is_current=True),
        ImportedAccount(platform="telegram", user_id="ada", is_owner=True),
        ImportedAccount(platform="telegram", user_id="mallory"),
        ImportedHomeChannel(source=ADA),
        ImportedJob(origin_id="j1", name="News", prompt="Spy", schedule="every 1h", targets=("telegram:bob",)),
        ImportedMemory(origin_id="m1", text="Ada's own"),
    )
    after = dump(store)
    for table in ("lane", "person", "identity", "audience_member", "job"):
        assert after[table] == before[table], table
    assert count(report) == {"conversations": 2, "messages": 2, "memories": 1}
    assert report.notes.count == 3
    assert [session.id for session in store.seen_by(bob.principal).list()] == [said]
    assert len(store.seen_by(ada.principal).list()) == 2
    assert store.seen_by(bob.principal).part(MemoryOperations).list() == ()
    assert get_texts(store, store.record_user_message(bob_source, "next").session_id) == ["bob's secret", "next"]
    assert store.engine.run(Read(home_channels.load_chosen)) == {}


async def test_two_people_who_import_the_same_file_each_get_their_own(store: SessionStore, importer: Importer) -> None:
    ada = store.get_or_create_person(ADA)
    bob = store.get_or_create_person(SessionSource("telegram", "bob", user_id="bob"))
    conversation = make_conversation("c1", make_exchange("hello"), title="Same")
    for person in (ada, bob):
        report = await import_for(importer, person, conversation)
        assert count(report) == {"conversations": 1, "messages": 1}
    (of_ada,), (of_bob,) = (store.seen_by(person.principal).list() for person in (ada, bob))
    assert of_ada.id != of_bob.id
    assert of_ada.title == of_bob.title == "Same"
    with pytest.raises(SessionNotFound):
        store.seen_by(bob.principal).get(of_ada.id)


async def test_a_branch_never_names_a_conversation_of_another_person(store: SessionStore, importer: Importer) -> None:
    ada = store.get_or_create_person(ADA)
    bob = store.get_or_create_person(SessionSource("telegram", "bob", user_id="bob"))
    await import_for(importer, ada, make_conversation("secret", make_exchange("hello")))
    await import_for(importer, bob, make_conversation("c2", make_exchange("hi"), parent_origin_id="secret"))
    (of_bob,) = store.seen_by(bob.principal).list()
    assert of_bob.parent_id is None


async def test_a_persons_import_is_bounded(
    store: SessionStore, importer: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.transfer.importer.MAX_PERSONAL_CONVERSATIONS", 2)
    ada = store.get_or_create_person(ADA)
    report = await import_for(importer, ada, *(make_conversation(f"c{n}", make_exchange("x")) for n in range(5)))
    assert report.counts["conversations"] == 2
    assert any("operator" in line for line in report.notes.lines)


@pytest.mark.both_engines
def test_what_an_import_has_left_that_was_given_up_is_deleted_later(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    run(make_conversation("done", make_exchange("a")), make_conversation("given up", make_exchange("b")))
    kept, left = (next(s.id for s in list_all(store) if s.preview == text) for text in ("a", "b"))
    unfinished = "UPDATE imported_item SET state = 'writing' WHERE origin_id = 'given up'"
    store.engine.run(Write(lambda tx: tx.execute(unfinished)))
    assert store.engine.run(Write(lambda tx: imports.delete_unfinished(tx, 0, 10))) == 0
    assert store.engine.run(Read(lambda tx: imports.has_unfinished(tx, 2**62)))
    assert store.engine.run(Write(lambda tx: imports.delete_unfinished(tx, 2**62, 10))) == 1
    assert not store.engine.run(Read(lambda tx: imports.has_unfinished(tx, 2**62)))
    assert [session.id for session in list_all(store)] == [kept]
    assert left != kept
    assert count(run(make_conversation("given up", make_exchange("b")))) == {"conversations": 1, "messages": 1}


def test_a_person_who_links_their_accounts_still_has_what_they_imported(
    store: SessionStore, importer: Importer
) -> None:
    ada, bob = (store.get_or_create_person(SessionSource("telegram", name, user_id=name)) for name in ("ada", "bob"))
    conversation = make_conversation("c1", make_exchange("a"))
    importer.import_files(MadeReader([conversation]), bob)

    def link(tx: Transaction) -> None:
        rows = [people.find_by_id(tx, person.id) for person in (ada, bob)]
        assert rows[0] is not None
        assert rows[1] is not None
        person_merge.merge_people(tx, rows[0], rows[1], 0)

    store.engine.run(Write(link))
    assert count(importer.import_files(MadeReader([conversation]), ada)) == {"unchanged": 1}

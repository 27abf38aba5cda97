"""Palaver's own format: what is exported, imported into an empty store and exported again has the same bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from palaver import SessionSource
from palaver.accounts import merge_table as person_merge
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.texts import load_text, say, store_text
from palaver.jobs import table as jobs
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions import table as sessions, versions_table as versions
from palaver.transfer import import_rows
from palaver.transfer.exporter import ExportScope, export_records
from palaver.transfer.imported import InvalidImport
from palaver.transfer.importer import Importer
from palaver.transfer.own_format import decode_fields, encode_fields, format_lines
from palaver.transfer.readers import open_reader
from palaver.transfer.restore import restore_export
from support.random_store import SOURCES, RandomStore

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.media.attachments import Attachments
    from palaver.transfer.report import ImportReport
    from support.transfer_stores import StoreMaker

EVERYTHING = ExportScope()


def export(store: SessionStore, files: Attachments, scope: ExportScope = EVERYTHING) -> bytes:
    return b"".join(format_lines(export_records(store, files, scope)))


def restore(store: SessionStore, files: Attachments, data: bytes, **options: Any) -> ImportReport:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "export.jsonl"
        path.write_bytes(data)
        return restore_export(store, files, path, **options)


def fill(store: SessionStore, files: Attachments, seed: int = 1, operations: int = 60) -> RandomStore:
    filled = RandomStore(store, files, random.Random(seed))
    filled.fill(operations)
    return filled


def read_records(data: bytes, record_type: str) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in data.splitlines()]
    return [record for record in records if record["type"] == record_type]


@pytest.mark.both_engines
@settings(max_examples=settings().max_examples // 5)
@given(seed=st.integers(0, 10**9), operations=st.integers(0, 60))
def test_an_export_that_is_imported_and_exported_again_has_the_same_bytes(
    store_maker: StoreMaker, tmp_path_factory: pytest.TempPathFactory, seed: int, operations: int
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    store, files = store_maker.make(folder / "first")
    filled = fill(store, files, seed, operations)
    first = export(store, files)
    shown = {each: (store.load_transcript(each), filled.load_versions(store, each)) for each in filled.session_ids}
    copy, copied_files = store_maker.make(folder / "copy")
    report = restore(copy, copied_files, first)
    assert report.problems.lines == []
    assert export(copy, copied_files) == first
    for session_id, (transcript, infos) in shown.items():
        assert (copy.load_transcript(session_id), filled.load_versions(copy, session_id)) == (transcript, infos)
        assert copy.load_transcript(session_id, limit=2) == transcript[-2:]
    other_time = "SELECT id FROM session WHERE expiry_base <> COALESCE(last_human_at, created_at)"
    assert copy.engine.run(Read(lambda tx: tx.fetch_all(other_time))) == []


def test_random_stores_have_versions(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    filled = fill(store, files, seed=3)
    kinds = {record["kind"] for record in read_records(export(store, files), "event")}
    assert {"version_started", "version_chosen"} <= kinds
    assert any(filled.load_versions(store, session_id) for session_id in filled.session_ids)


def test_the_versions_of_a_message_can_be_chosen_after_an_import(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    session_id = store.get_or_create_session(SessionSource("telegram", "ada", user_id="ada")).session_id
    first = store.append_to_transcript(session_id, {"role": "user", "content": "one"})
    no = store.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))
    store.engine.run(Write(lambda tx: versions.start_version(tx, no, first, 1_000_000, is_edit=True)))
    store.append_to_transcript(session_id, {"role": "user", "content": "two"})
    exported = export(store, files)
    copy, copied_files = store_maker.make(tmp_path / "copy")
    assert restore(copy, copied_files, exported).problems.lines == []
    copy_no = copy.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))
    assert [message["content"] for message in copy.load_transcript(session_id)] == ["two"]
    copy.engine.run(Write(lambda tx: versions.choose_version(tx, copy_no, first, 1, 1_000_000)))
    assert [message["content"] for message in copy.load_transcript(session_id)] == ["one"]


def test_importing_into_the_store_it_comes_from_changes_nothing(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    fill(store, files)
    first = export(store, files)
    report = restore(store, files, first)
    assert export(store, files) == first
    assert set(report.counts) == {"unchanged"}


@pytest.mark.both_engines
def test_importing_the_same_file_twice_changes_nothing(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    fill(store, files, seed=7)
    first = export(store, files)
    copy, copied_files = store_maker.make(tmp_path / "copy")
    restore(copy, copied_files, first)
    report = restore(copy, copied_files, first)
    assert export(copy, copied_files) == first
    assert set(report.counts) == {"unchanged"}


@pytest.mark.both_engines
def test_a_dry_run_counts_and_writes_nothing(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    filled = fill(store, files)
    first = export(store, files)
    copy, copied_files = store_maker.make(tmp_path / "copy")
    empty = export(copy, copied_files)
    report = restore(copy, copied_files, first, dry_run=True)
    assert export(copy, copied_files) == empty
    assert report.counts["conversations"] == len(read_records(first, "session"))
    assert report.counts["conversations"] >= len(filled.session_ids)


def test_a_person_who_is_here_is_found_by_their_account_and_keeps_what_is_theirs(
    store_maker: StoreMaker, tmp_path: Path
) -> None:
    ada, bob = SOURCES[:2]
    store, files = store_maker.make(tmp_path / "first")
    for source in (ada, bob):
        session_id = store.record_user_message(source, f"hello from {source.user_name}").session_id
        store.rename_session(session_id, "Trip")
    first = export(store, files)

    other, other_files = store_maker.make(tmp_path / "other")
    here = other.record_user_message(ada, "here before").session_id
    other.rename_session(here, "Trip")
    person = other.get_or_create_person(ada)
    restore(other, other_files, first)
    assert other.get_or_create_person(ada).id == person.id
    seen = {session.title: session for session in other.seen_by(person.principal).list()}
    assert sorted(map(str, seen)) == ["Trip", "Trip #2"]
    assert seen["Trip"].id == here
    assert seen["Trip #2"].preview == "hello from Ada"
    of_bob = other.seen_by(other.get_or_create_person(bob).principal).list()
    assert [session.title for session in of_bob] == ["Trip"]
    assert other.record_user_message(ada, "next").session_id == here, "the chat stays on its conversation"


def test_owners_of_a_file_are_members_in_a_store_with_an_owner(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    store.get_owner()
    boss = store.get_or_create_person(SOURCES[0])
    store.engine.run(Write(lambda tx: people.set_role(tx, boss.id, Role.OWNER)))
    store.record_user_message(SOURCES[0], "hello")
    first = export(store, files)
    other, other_files = store_maker.make(tmp_path / "other")
    owner = other.get_owner()
    report = restore(other, other_files, first)
    assert other.get_owner() == owner
    assert other.get_or_create_person(SOURCES[0]).role is Role.MEMBER
    assert any("member here" in line for line in report.notes.lines)


@pytest.mark.both_engines
def test_a_bad_line_is_reported_with_its_number_and_the_rest_comes_in(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    session_id = store.record_user_message(SOURCES[0], "one").session_id
    for text in ("two", "three", "four"):
        store.append_to_transcript(session_id, text)
    other_id = store.record_user_message(SOURCES[1], "from bob").session_id
    lines = export(store, files).splitlines(keepends=True)
    bad = next(number for number, line in enumerate(lines) if b'"two"' in line)
    lines[bad] = b'{"type": "event", broken\n'
    lines.insert(bad, b"[]\n")
    copy, copied_files = store_maker.make(tmp_path / "copy")
    report = restore(copy, copied_files, b"".join(lines))
    assert [line.partition(":")[0] for line in report.problems.lines] == [
        f"export.jsonl, line {bad + 1}",
        f"export.jsonl, line {bad + 2}",
    ]
    assert [message["content"] for message in copy.load_transcript(session_id)] == ["one", "three", "four"]
    session = copy.get_session(session_id)
    assert (session.message_count, session.preview) == (3, "four")
    assert copy.get_session(other_id).message_count == 1


@pytest.mark.both_engines
@pytest.mark.parametrize("lines", [1, 2])
def test_a_file_that_was_cut_off_is_noticed(store_maker: StoreMaker, tmp_path: Path, lines: int) -> None:
    store, files = store_maker.make(tmp_path / "first")
    fill(store, files, operations=10)
    data = b"".join(export(store, files).splitlines(keepends=True)[:-lines])
    copy, copied_files = store_maker.make(tmp_path / "copy")
    report = restore(copy, copied_files, data)
    assert any("ends early" in line for line in report.problems.lines)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"type":"header","format":"palaver.export/2"}\n', "Update Palaver"),
        (b'{"type":"header","format":"other/1"}\n', "not an export"),
        (b"PK\x03\x04 something", "not an export"),
        (b"", "not an export"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    store_maker: StoreMaker, tmp_path: Path, data: bytes, words: str
) -> None:
    store, files = store_maker.make(tmp_path / "first")
    with pytest.raises(InvalidImport, match=words):
        restore(store, files, data)


def test_the_export_of_a_person_has_theirs_and_nothing_of_others(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    ada = store.get_or_create_person(SOURCES[2])
    telegram_user = store.get_or_create_person(SOURCES[0])
    now = to_micros(store.clock.now())

    def link(tx: Any) -> None:
        rows = [people.find_by_id(tx, person.id) for person in (ada, telegram_user)]
        assert rows[0] is not None
        assert rows[1] is not None
        person_merge.merge_people(tx, rows[0], rows[1], now)

    store.engine.run(Write(link))
    for source in SOURCES:
        store.record_user_message(source, f"secret of {source.user_name} in {source.platform}")
    data = export(store, files, ExportScope(ada.id))
    assert b"secret of Ada in telegram" in data
    assert b"secret of Dan in discord" in data, "Ada takes part in the club"
    assert b"secret of Bob" not in data
    assert b"secret of Eve" not in data
    names = {record["name"]: record for record in read_records(data, "person")}
    assert sorted(names) == ["Ada", "Dan"]
    assert "accounts" not in names["Dan"]
    copy, copied_files = store_maker.make(tmp_path / "copy")
    report = restore(copy, copied_files, data)
    assert report.problems.count == 0
    assert export(copy, copied_files, ExportScope(ada.id)) == data


@pytest.mark.both_engines
def test_the_export_of_some_sessions_has_only_these(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    wanted = store.record_user_message(SOURCES[0], "wanted").session_id
    store.record_user_message(SOURCES[1], "not wanted")
    data = export(store, files, ExportScope(session_ids=(wanted,)))
    assert [record["id"] for record in read_records(data, "session")] == [wanted]
    assert b"not wanted" not in data
    copy, copied_files = store_maker.make(tmp_path / "copy")
    restore(copy, copied_files, data)
    person = copy.get_or_create_person(SOURCES[0])
    assert [session.id for session in copy.seen_by(person.principal).list()] == [wanted]


@pytest.mark.both_engines
def test_no_secret_is_exported(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    session_id = store.record_user_message(SOURCES[0], "hello").session_id
    person = store.get_or_create_person(SOURCES[0])

    columns: dict[str, dict[str, object]] = {
        "account": {"name_key": "a", "password_hash": "PLANTED"},
        "api_token": {"id": "t", "digest": "PLANTED", "name": "PLANTED", "scopes": ""},
        "sign_in": {
            "id": "i",
            "digest": "PLANTED",
            "method": "link",
            "device": "",
            "ip_address": "",
            "last_seen_at": 0,
        },
        "share": {"id": "s", "secret": "PLANTED", "session_no": 1, "body": "{}", "message_count": 0},
    }
    session_no = store.engine.run(Read(lambda tx: sessions.get_no(tx, session_id)))
    columns["share"]["session_no"] = session_no

    def plant(tx: Any) -> None:
        for table, values in columns.items():
            import_rows.insert_row(tx, table, values | {"person_id": person.id, "created_at": 0})

    store.engine.run(Write(plant))
    assert b"PLANTED" not in export(store, files)


def test_files_keep_their_bytes_and_damaged_ones_are_reported(store_maker: StoreMaker, tmp_path: Path) -> None:
    store, files = store_maker.make(tmp_path / "first")
    store.record_user_message(SOURCES[0], "hello")
    filled = RandomStore(store, files, random.Random(5))
    filled.session_ids = [store.list_sessions()[0].id]
    filled.add_file()
    data = export(store, files)
    copy, copied_files = store_maker.make(tmp_path / "copy")
    restore(copy, copied_files, data)
    assert export(copy, copied_files) == data
    (chunk, *_) = read_records(data, "chunk")
    damaged = data.replace(chunk["data"][:8].encode(), b"AAAAAAAA", 1)
    third, third_files = store_maker.make(tmp_path / "third")
    report = restore(third, third_files, damaged)
    assert report.problems.count == 1
    assert "damaged" in report.problems.lines[0]
    assert third.list_sessions()[0].message_count == 2


@pytest.mark.both_engines
def test_a_conversation_that_was_deleted_after_its_import_stays_deleted(
    store_maker: StoreMaker, tmp_path: Path
) -> None:
    store, files = store_maker.make(tmp_path / "first")
    session_id = store.record_user_message(SOURCES[0], "hello").session_id
    data = export(store, files)
    copy, copied_files = store_maker.make(tmp_path / "copy")
    restore(copy, copied_files, data)
    copy.delete_session(session_id)
    report = restore(copy, copied_files, data)
    assert report.counts["deleted"] == 1
    assert list(copy.list_sessions()) == []


async def test_a_person_imports_their_own_export_and_the_things_of_others_stay(
    store_maker: StoreMaker, tmp_path: Path
) -> None:
    store, files = store_maker.make(tmp_path / "first")
    session_id = store.record_user_message(SOURCES[0], "hello").session_id
    store.append_to_transcript(session_id, ["answer", "undone"])
    store.rename_session(session_id, "Trip")
    filled = RandomStore(store, files, random.Random(5))
    filled.session_ids = [session_id]
    filled.add_file()
    path = tmp_path / "export.jsonl"
    path.write_bytes(export(store, files))

    other, other_files = store_maker.make(tmp_path / "other")
    bob = other.get_or_create_person(SOURCES[1])
    other.record_user_message(SOURCES[1], "bob was here")
    importer = Importer(other, other_files)
    for expected in ({"conversations": 1, "messages": 4, "files": 1}, {"unchanged": 1}):
        report = await importer.import_for_person(bob.principal, open_reader("palaver", path))
        assert dict(report.counts) == expected
    by_title = {session.title: session for session in other.seen_by(bob.principal).list()}
    imported = by_title["Trip"]
    assert imported.id != session_id
    contents = [message["content"] for message in other.load_transcript(imported.id)]
    assert contents[:3] == ["hello", "answer", "undone"]
    assert contents[3][1]["type"] == "attachment"
    assert other.engine.run(Read(lambda tx: tx.fetch_one("SELECT COUNT(*) FROM person"))) == (1,)


def test_a_record_has_a_translatable_text_in_english() -> None:
    fields = [field for field in jobs.EXPORT.fields if field.name == "state_reason"]
    stored = store_text(say("jobs.ended", "It has no further runs."))
    record = encode_fields(fields, [stored])
    assert record == {"state_reason": "It has no further runs."}
    assert decode_fields(fields, record) == ["It has no further runs."]
    forged = decode_fields(fields, {"state_reason": stored})  # in a file that a person has made
    assert load_text(forged[0]) == stored.replace("\U000e0001", "")

"""Moves from hermes-agent 0.19.0 as people make them: a chat and a terminal, `/compress`, both programs for a while."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from palaver import SessionSource
from palaver.memory.service import MemoryOperations
from palaver.transfer.chat_accounts import find_accounts, list_chat_accounts
from palaver.transfer.importer import Importer
from palaver.transfer.readers.hermes import open_reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver import SessionStore
    from palaver.transfer.report import ImportReport

ADA = SessionSource("telegram", "42", user_id="42", user_name="Ada")


@pytest.fixture
def home(read_home: Callable[[str], Any]) -> Any:
    return read_home("moves-0.19.0")


def test_a_compress_command_that_rotates_sessions_doubles_nothing(home: Any) -> None:
    """Hermes stored 22 and 20 messages again before the two compactions, with the times that they had.

    A turn had failed between two questions, so that the copies after the second summary have both as one message.
    """
    sessions = home.truth["sessions"]
    for name, said in home.truth["seen"].items():
        texts = [each for each in home.texts(sessions[name]) if each[0] != "tool"]
        assert texts == said, name
    garden = home.texts(sessions["garden"])
    assert garden.count(["assistant", "Done."]) == 3
    assert garden.count(["user", "What now?"]) == garden.count(["assistant", "Fine."]) == 2
    assert [kept_count for _, kept_count in home.compactions(sessions["garden"])] == [8, 11]


def test_the_report_says_that_a_session_was_stored_again(home: Any) -> None:
    folded = home.conversation(home.truth["sessions"]["garden"]).folded
    assert [line.partition(" ")[0] for line in folded if "written again to state.db" in line] == ["22", "20"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("moves-0.19.0", ["telegram:42 (Ada): 2 conversations", "telegram:43 (Bo): 1 conversation"]),
        (
            "hermes-0.19.0",
            [
                "telegram:111 (Ada): 2 conversations",
                "slack:U42 (Di): 1 conversation",
                "whatsapp-web:4366012345 (Cy): 1 conversation",
                "discord:77 (Bo): 0 conversations",
                "telegram:112: 0 conversations",
            ],
        ),
    ],
)
def test_the_chat_accounts_are_known_without_reading_messages(
    build_home: Callable[[str], Path], name: str, expected: list[str]
) -> None:
    with closing(open_reader(build_home(name))) as reader:
        assert [str(each) for each in list_chat_accounts(reader)] == expected


@pytest.fixture
def run(store: SessionStore) -> Callable[..., ImportReport]:
    def run(folder: Path, *names: str, **options: Any) -> ImportReport:
        with closing(open_reader(folder)) as reader:
            own = find_accounts(list_chat_accounts(reader), names)
            return Importer(store, None).import_files(reader, store.get_owner(), own_accounts=own, **options)

    return run


@pytest.mark.parametrize("is_named_later", [False, True])
def test_one_person_on_telegram_and_in_the_terminal_is_one_person_here(
    store: SessionStore, run: Callable[..., ImportReport], build_home: Callable[[str], Path], is_named_later: bool
) -> None:
    folder = build_home("moves-0.19.0")
    owner = store.get_owner()
    if is_named_later:
        run(folder)
        assert len(store.seen_by(owner.principal).list()) == 2
    dry, report = run(folder, "telegram:42", dry_run=True), run(folder, "telegram:42")
    assert dry.counts == report.counts
    assert len(store.seen_by(owner.principal).list()) == 4
    on_telegram = store.get_or_create_person(ADA)
    assert on_telegram.id == owner.id
    (memory,) = store.seen_by(on_telegram.principal).part(MemoryOperations).list()
    assert memory.memory.text == "Ada likes short answers."
    assert store.get_or_create_session(ADA).session.message_count == 4


def test_what_was_said_in_hermes_after_a_move_is_a_branch(
    store: SessionStore, run: Callable[..., ImportReport], build_home: Callable[[str], Path]
) -> None:
    folder = build_home("moves-0.19.0")
    run(folder, "telegram:42")
    here = store.get_or_create_session(ADA).session
    store.record_user_message(ADA, "Said here")
    texts = [each["content"] for each in store.load_transcript(here.id)]
    with closing(apsw.Connection(str(folder / "state.db"))) as db:
        columns = "session_id, role, content, timestamp, active, compacted"
        sql = f"""INSERT INTO messages ({columns}) SELECT session_id, ?, ?, ?, 1, 0 FROM messages
            WHERE content = 'What about the frost?'"""
        db.execute(sql, ("user", "Said there", 1795132600.5))
        db.execute(sql, ("assistant", "There, too", 1795132601.5))
    dry, report = run(folder, "telegram:42", dry_run=True), run(folder, "telegram:42")
    assert dry.counts == report.counts == {"conversations": 1, "messages": 2, "continued": 1, "unchanged": 5}
    assert [each["content"] for each in store.load_transcript(here.id)] == texts
    assert store.get_or_create_session(ADA).session.id == here.id
    (rest,) = [each for each in store.list_sessions(limit=100) if each.parent_id == here.id]
    assert [each["content"] for each in store.load_transcript(rest.id)] == ["Said there", "There, too"]
    assert rest.title == "What about the seeds? #2"
    assert not run(folder).counts["conversations"]

"""A home of Hermes in a store of ours: twice the same, and chats go on where they stopped."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.media.attachments import Attachments
from palaver.transfer.importer import Importer
from palaver.transfer.readers.hermes import open_reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver import SessionStore
    from palaver.transfer.report import ImportReport

ADA = SessionSource("telegram", "111", chat_name="Ada", user_id="111", user_name="Ada")


@pytest.fixture
def run(store: SessionStore, tmp_path: Path) -> Callable[..., ImportReport]:
    importer = Importer(store, Attachments(store, tmp_path / "attachments"))

    def run(folder: Path, **options: Any) -> ImportReport:
        with closing(open_reader(folder)) as reader:
            return importer.import_files(reader, store.get_owner(), **options)

    return run


def describe(store: SessionStore) -> dict[str, Any]:
    """Return everything that people see of the conversations."""
    found = [*store.list_sessions(limit=200), *store.list_sessions(limit=200, state="archived")]
    return {session.id: (session.to_dict(), store.load_transcript(session.id)) for session in found}


def get_texts(store: SessionStore, session_id: str) -> list[str]:
    texts = []
    for message in store.load_transcript(session_id):
        content = message["content"]
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [part["text"] for part in parts if part.get("text")]
    return texts


def test_a_second_import_changes_nothing(
    store: SessionStore, run: Callable[..., ImportReport], build_home: Callable[[str], Path]
) -> None:
    folder = build_home("hermes-0.19.0")
    run(folder, dry_run=True)
    assert describe(store) == {}
    run(folder)
    before = describe(store)
    assert len(before) == 10
    report = run(folder)
    assert describe(store) == before
    assert not report.counts.get("conversations")


@pytest.mark.parametrize(
    "name", ["compactions-0.19.0", "hermes-0.13.0", "hermes-0.19.0", "hermes-webui", "moves-0.19.0"]
)
def test_a_dry_run_says_what_the_import_says(
    store: SessionStore, run: Callable[..., ImportReport], build_home: Callable[[str], Path], name: str
) -> None:
    folder = build_home(name)
    for _ in range(2):
        dry, real = run(folder, dry_run=True).to_dict(), run(folder).to_dict()
        assert dry.pop("dry_run") is not real.pop("dry_run")
        assert dry == real


@pytest.mark.both_engines
def test_the_next_telegram_message_continues_where_hermes_stopped(
    store: SessionStore, run: Callable[..., ImportReport], read_home: Callable[[str], Any], tmp_path: Path
) -> None:
    home = read_home("hermes-0.19.0")
    run(tmp_path / "hermes-0.19.0")
    entry = store.get_or_create_session(ADA)
    session = entry.session
    assert session.title == "Lights at home"
    assert get_texts(store, session.id) == [text for _, text in home.truth["seen"][home.truth["dm"]]]


def test_an_import_after_more_was_said_there_adds_only_that(
    store: SessionStore, run: Callable[..., ImportReport], build_home: Callable[[str], Path]
) -> None:
    folder = build_home("hermes-0.13.0")
    run(folder)
    before = {session_id: len(messages) for session_id, (_, messages) in describe(store).items()}
    transcript = folder / "sessions" / "20260115_101500_0a0b0c0d.jsonl"
    with transcript.open("a", encoding="utf-8") as file:
        file.write('{"role": "user", "content": "One more", "timestamp": "2026-01-16T09:00:00"}\n')
    run(folder)
    after = {session_id: len(messages) for session_id, (_, messages) in describe(store).items()}
    assert after.keys() == before.keys()
    assert sum(after.values()) == sum(before.values()) + 1

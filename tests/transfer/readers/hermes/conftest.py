"""Homes of Hermes, built from the fixtures beside this file (see their README)."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import pytest

from palaver.transfer.imported import (
    ImportedCompaction,
    ImportedConversation,
    ImportedItem,
    ImportedMessage,
    ImportProblem,
)
from palaver.transfer.readers.hermes import open_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIXTURES = Path(__file__).parent / "fixtures"
T = TypeVar("T")


@dataclass
class ReadHome:
    """Everything that the reader found, and what was really said there."""

    items: list[ImportedItem]
    entries: dict[str, list[Any]]  # by conversation
    truth: dict[str, Any]

    def conversation(self, origin_id: str) -> ImportedConversation:
        return next(item for item in self.conversations if item.origin_id == origin_id)

    @property
    def conversations(self) -> list[ImportedConversation]:
        return self.all(ImportedConversation)

    def all(self, kind: type[T]) -> list[T]:
        return [item for item in self.items if isinstance(item, kind)]

    def texts(self, origin_id: str, *, hidden: bool = False) -> list[list[str]]:
        """Return roles and texts of the messages, without those that only call tools."""
        messages = [entry for entry in self.entries[origin_id] if isinstance(entry, ImportedMessage)]
        return [
            [entry.message.role, entry.message.text]
            for entry in messages
            if entry.hidden is hidden and entry.message.text
        ]

    def compactions(self, origin_id: str) -> list[tuple[str, int]]:
        return [
            (entry.summary, entry.kept_count)
            for entry in self.entries[origin_id]
            if isinstance(entry, ImportedCompaction)
        ]

    @property
    def problems(self) -> list[ImportProblem]:
        inside = [entry for entries in self.entries.values() for entry in entries if isinstance(entry, ImportProblem)]
        return [*self.all(ImportProblem), *inside]


def build_database(path: Path, script: Path) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute(script.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def vienna(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The fixtures were written in Vienna."""
    monkeypatch.setenv("TZ", "Europe/Vienna")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def build_home(tmp_path: Path) -> Callable[[str], Path]:
    """Builds a folder like `~/.hermes` from a fixture."""

    def build(name: str) -> Path:
        folder = tmp_path / name
        if (FIXTURES / name / "home").exists():
            shutil.copytree(FIXTURES / name / "home", folder)
        folder.mkdir(exist_ok=True)
        build_database(folder / "state.db", FIXTURES / name / "state.sql")
        return folder

    return build


@pytest.fixture
def read_folder() -> Callable[[Path], ReadHome]:
    def read(folder: Path) -> ReadHome:
        with closing(open_reader(folder)) as reader:
            items = list(reader.read_items())
            entries = {
                item.origin_id: list(item.open_entries()) for item in items if isinstance(item, ImportedConversation)
            }
        return ReadHome(items, entries, {})

    return read


@pytest.fixture
def read_home(build_home: Callable[[str], Path], read_folder: Callable[[Path], ReadHome]) -> Callable[[str], ReadHome]:
    def read(name: str) -> ReadHome:
        home = read_folder(build_home(name))
        home.truth = json.loads((FIXTURES / name / "truth.json").read_text(encoding="utf-8"))
        return home

    return read

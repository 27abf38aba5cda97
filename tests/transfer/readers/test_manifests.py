"""Readers are found by their manifests, built-in ones and those of other packages in the same way."""

from __future__ import annotations

import logging
import subprocess
import sys
import tomllib
from contextlib import closing
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from palaver.cli.program import program
from palaver.transfer.imported import ENTRY_POINT_GROUP, InvalidImport, ReaderManifest
from palaver.transfer.readers import BUILT_IN, get_manifests, load_manifests, open_reader
from palaver.transfer.uploads import UnknownExport, recognize_format
from support.imported_items import read_everything

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ["hermes", "chatgpt", "claude", "open-webui", "openclaw", "palaver"]
DIARY = '{"diary_entries": ["Dear diary", "Ada was here"]}'
PACKAGE = """
import json
import re
from datetime import UTC, datetime
from palaver import Platform
from palaver.sessions.message import Message
from palaver.transfer.imported import ImportedConversation, ImportedMessage, ReaderManifest

READER = ReaderManifest(
    name="diary", label="Diary", opener="palaver_diary:open_reader", pattern=re.compile(rb'"diary_entries"')
)
AT = datetime(2026, 1, 1, tzinfo=UTC)

class DiaryReader:
    format = "diary"
    platform = Platform("diary")

    def __init__(self, path):
        self._texts = json.loads(path.read_text())["diary_entries"]

    def count_conversations(self):
        return 1

    def read_items(self):
        yield ImportedConversation(origin_id="diary", open_entries=self._read_entries, created_at=AT, title="Diary")

    def _read_entries(self):
        for text in self._texts:
            yield ImportedMessage(message=Message("user", text), at=AT)

    def close(self):
        pass

open_reader = DiaryReader
"""


@pytest.fixture
def diary_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with a reader as pip would."""
    site = tmp_path / "site-packages"
    info = site / "palaver_diary-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "palaver_diary.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: palaver-diary\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\ndiary = palaver_diary:READER\n")
    monkeypatch.syspath_prepend(str(site))
    get_manifests.cache_clear()
    yield
    get_manifests.cache_clear()
    sys.modules.pop("palaver_diary", None)


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    path = tmp_path / "diary.json"
    path.write_text(DIARY)
    return path


@pytest.mark.usefixtures("diary_package")
def test_the_reader_of_another_package_is_offered_recognized_and_opened(diary: Path) -> None:
    assert list(get_manifests()) == [*NAMES, "diary"]
    assert recognize_format(diary, "diary.json") == "diary"
    [read] = read_everything(open_reader("diary", diary)).conversations
    assert [message.message.text for message in read.messages] == ["Dear diary", "Ada was here"]


@pytest.mark.usefixtures("diary_package")
def test_the_command_imports_with_the_reader_of_another_package(diary: Path, tmp_path: Path) -> None:
    environment = {"PALAVER_HOME": str(tmp_path / "home")}
    shown = CliRunner().invoke(program, ["import", "--help"], env=environment)
    assert "palaver or diary" in " ".join(shown.output.split())
    result = CliRunner().invoke(program, ["import", "diary", str(diary)], env=environment)
    assert result.exit_code == 0, result.output
    assert "1  conversation\n" in result.output
    assert "2  messages\n" in result.output


def test_a_reader_that_is_not_installed_is_not_offered(diary: Path) -> None:
    assert list(get_manifests()) == NAMES
    with pytest.raises(InvalidImport, match="not a format that can be imported"):
        open_reader("diary", diary)
    with pytest.raises(UnknownExport):
        recognize_format(diary, "diary.json")


REPLACEMENT = ReaderManifest(name="chatgpt", label="ChatGPT", opener=f"{__name__}:no_function")
MISSING_MODULE = ReaderManifest(name="lost", label="Lost", opener="no_such_package:open_reader")


def make_point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=ENTRY_POINT_GROUP)


def test_a_package_replaces_a_reader_and_one_that_cannot_be_loaded_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    points = [
        make_point("chatgpt", "palaver.transfer.readers:CHATGPT"),
        make_point("mine", f"{__name__}:REPLACEMENT"),
        make_point("again", f"{__name__}:REPLACEMENT"),
        make_point("missing", "no_such_package:READER"),
        make_point("wrong", f"{__name__}:NAMES"),
        make_point("lost", f"{__name__}:MISSING_MODULE"),
    ]
    with caplog.at_level(logging.WARNING):
        manifests = load_manifests(points)
    assert list(manifests) == NAMES
    assert manifests["chatgpt"] is REPLACEMENT
    assert [(record.message, vars(record)["entry_point"], vars(record)["error"]) for record in caplog.records] == [
        ("importer_not_loaded", "again", "chatgpt is provided twice"),
        ("importer_not_loaded", "missing", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("importer_not_loaded", "wrong", f"{__name__}:NAMES is not a ReaderManifest"),
    ]


def test_the_built_in_readers_are_entry_points_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    points = [make_point(name, value) for name, value in project["entry-points"][ENTRY_POINT_GROUP].items()]
    assert [point.load() for point in points] == list(BUILT_IN)
    assert [point.name for point in points] == NAMES


def test_manifests_load_no_reader() -> None:
    code = (
        "import sys; from palaver.transfer.readers import get_manifests; get_manifests(); "
        "print([name for name in sys.modules if name.startswith('palaver.transfer.readers.')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n", result.stderr


def test_a_usual_export_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from palaver.transfer.reader_kit import export_files as json_stream

    path = Path(__file__).parent / "fixtures" / "chatgpt.json"
    parsed: list[object] = []
    monkeypatch.setattr(json_stream, "parse_json", parsed.append)
    with closing(open_reader("chatgpt", path)) as reader:
        assert reader.count_conversations() == 2
        for item in reader.read_items():
            list(item.open_entries())  # type: ignore[union-attr]
    assert not parsed

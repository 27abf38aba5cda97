"""Zip files and folders are read without extracting anything, and a crafted one does no harm."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from palaver.transfer.imported import InvalidImport
from palaver.transfer.reader_kit import export_files
from palaver.transfer.reader_kit.export_files import DamagedFile, open_export, read_small_file
from support.imported_items import make_zip, make_zip_bytes

if TYPE_CHECKING:
    from pathlib import Path

HOW = "Ask for an export."


def test_files_are_read_from_a_zip_file_and_from_a_folder(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"x/conversations.json": "[1]", "note.txt": "hi"})
    folder = tmp_path / "folder"
    (folder / "x").mkdir(parents=True)
    (folder / "x" / "conversations.json").write_text("[1]")
    (folder / "part.zip").write_bytes(make_zip_bytes({"more.json": b"[2]"}))
    for path, names in (
        (tmp_path / "a.zip", {"x/conversations.json"}),
        (folder, {"x/conversations.json", "part.zip/more.json"}),
    ):
        files = open_export(path, how_to_get=HOW)
        assert names <= set(files.names)
        assert read_small_file(files, "x/conversations.json", 100) == b"[1]"
        with files.open_file("x/conversations.json") as file:
            file.seek(1)
            assert file.read() == b"1]"
        files.close()


def test_a_name_in_a_zip_file_never_becomes_a_path(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"../../evil.json": "[]", "/etc/evil.json": "[]"})
    before = sorted(tmp_path.rglob("*"))
    files = open_export(tmp_path / "a.zip", how_to_get=HOW)
    assert files.names == ["../../evil.json", "/etc/evil.json"]
    assert read_small_file(files, "../../evil.json", 10) == b"[]"
    files.close()
    assert sorted(tmp_path.rglob("*")) == before


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("secret")
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations.json").symlink_to(tmp_path / "secret.json")
    assert open_export(folder, how_to_get=HOW).names == []


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_files, "MIN_SUSPICIOUS_BYTES", 1_000_000)
    make_zip(tmp_path / "a.zip", {"conversations.json": b" " * 5_000_000})
    files = open_export(tmp_path / "a.zip", how_to_get=HOW)
    with pytest.raises(DamagedFile, match="no real export"):
        files.open_file("conversations.json")
    files.close()


def test_a_file_that_does_not_fit_on_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_files, "_MAX_SPOOLED_BYTES", 10)
    monkeypatch.setattr(export_files, "get_room", lambda _folder: 0)
    make_zip(tmp_path / "a.zip", {"conversations.json": "[" + " " * 1000 + "]"})
    files = open_export(tmp_path / "a.zip", how_to_get=HOW)
    with pytest.raises(DamagedFile, match="TMPDIR"):
        files.open_file("conversations.json")
    files.close()


def test_a_member_with_a_wrong_checksum_is_reported(tmp_path: Path) -> None:
    data = bytearray(make_zip_bytes({"a.json": b"[" + b"1234567890," * 100 + b"1]"}))
    with zipfile.ZipFile(make_zip(tmp_path / "size.zip", {"a.json": b"x"})) as opened:
        start = len(opened.filelist[0].FileHeader())
    data[start + 4] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(data)
    files = open_export(tmp_path / "a.zip", how_to_get=HOW)
    with pytest.raises(DamagedFile, match="damaged in the zip file"):
        read_small_file(files, "a.json", 10_000)
    files.close()


def test_a_file_larger_than_expected_is_not_read_to_the_end(tmp_path: Path) -> None:
    make_zip(tmp_path / "a.zip", {"users.json": "x" * 1000})
    files = open_export(tmp_path / "a.zip", how_to_get=HOW)
    with pytest.raises(DamagedFile, match="larger than"):
        read_small_file(files, "users.json", 100)
    files.close()


def test_half_a_download_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(make_zip_bytes({"a.json": b"[]"})[:40])
    with pytest.raises(InvalidImport, match="not downloaded completely"):
        open_export(tmp_path / "a.zip", how_to_get=HOW)


def test_a_path_that_does_not_exist_says_how_to_get_an_export(tmp_path: Path) -> None:
    with pytest.raises(InvalidImport, match=HOW):
        open_export(tmp_path / "gone.zip", how_to_get=HOW)

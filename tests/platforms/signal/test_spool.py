"""The spool loses nothing, reads nothing twice, and is not longer than it has to be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from palaver.platforms.signal import receiver as spool_module
from palaver.platforms.signal.receiver import Spool, SpoolPosition

if TYPE_CHECKING:
    from pathlib import Path


def read_all(spool: Spool) -> list[bytes]:
    found: list[bytes] = []
    while lines := spool.read_lines():
        found += [line.content for line in lines]
    return found


def test_complete_lines_are_read_once_and_a_torn_one_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    descriptor = spool.create_file()
    assert spool.list_numbers() == [1]
    os.write(descriptor, b"one\ntwo\nthr")
    assert read_all(spool) == [b"one", b"two"]
    assert str(spool.position) == "1:8"
    os.write(descriptor, b"ee\n")
    assert read_all(spool) == [b"three"]
    os.close(descriptor)


def test_it_reads_on_from_a_cursor(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    descriptor = spool.create_file()
    os.write(descriptor, b"one\ntwo\n")
    os.close(descriptor)
    assert read_all(Spool(tmp_path, SpoolPosition.parse("1:4"))) == [b"two"]
    assert read_all(Spool(tmp_path, SpoolPosition.parse(None))) == [b"one", b"two"]


def test_the_next_file_follows_when_the_writer_of_the_last_one_is_gone(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    first = spool.create_file()
    os.write(first, b"one\ntorn")
    second = spool.create_file()
    os.write(second, b"two\n")
    assert read_all(spool) == [b"one"]
    assert spool.has_writer(1)
    os.write(first, b" no more\n")  # the old writer goes on for a moment
    assert read_all(spool) == [b"torn no more"]
    os.write(first, b"half a li")
    os.close(first)
    assert not spool.has_writer(1)
    assert read_all(spool) == [b"two"]  # the rest of a dead writer is passed over
    os.close(second)


def test_a_process_that_inherits_the_file_is_its_writer(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    descriptor = spool.create_file()
    inherited = os.dup(descriptor)  # shares the lock, like the standard output of a child
    os.close(descriptor)
    assert spool.has_writer(1)
    os.close(inherited)
    assert not spool.has_writer(1)
    assert not spool.has_writer(7)


def test_numbers_are_never_used_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for expected in (1, 2):
        os.close(spool.create_file())
        assert spool.list_numbers()[-1] == expected
    spool.delete_before(2)
    assert spool.list_numbers() == [2]
    spool.delete_before(3)
    os.close(Spool(tmp_path, SpoolPosition(2, 10)).create_file())
    assert spool.list_numbers() == [3]


def test_files_are_private(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "deep" / "spool")
    descriptor = spool.create_file()
    os.close(descriptor)
    assert (tmp_path / "deep" / "spool").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "deep" / "spool" / "1.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("has_end", [True, False])
def test_a_line_that_is_too_long_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_end: bool
) -> None:
    monkeypatch.setattr(spool_module, "READ_BYTES", 16)
    monkeypatch.setattr(spool_module, "MAX_LINE_BYTES", 64)
    spool = Spool(tmp_path)
    descriptor = spool.create_file()
    os.write(descriptor, b"a\n" + b"x" * 300 + (b"\nb\n" if has_end else b""))
    os.close(descriptor)
    descriptor = spool.create_file()
    os.write(descriptor, b"y" * 40 + b"\nc\n")
    found: list[bytes] = []
    for _ in range(60):
        found += [line.content for line in spool.read_lines()]
    assert found == [b"a", *([b"b"] if has_end else []), b"y" * 40, b"c"]
    os.close(descriptor)

"""Tests of writing files completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.core.errors import InvalidInput, PalaverError
from palaver.core.files import write_file_atomically


@pytest.mark.parametrize("force", [False, True])
def test_only_a_regular_file_can_be_replaced(tmp_path: Path, force: bool) -> None:
    with pytest.raises(InvalidInput, match="not a file"):
        write_file_atomically(tmp_path, "text", overwrite=force)
    with pytest.raises(InvalidInput, match="not a file"):
        write_file_atomically(Path("/dev/null"), "text", overwrite=force)


def test_a_link_is_followed_instead_of_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_file_atomically(link, "new", overwrite=True)
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_failure_leaves_the_old_file_and_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "x"
    file.write_text("old")
    monkeypatch.setattr("os.fsync", raise_disk_full)
    with pytest.raises(PalaverError, match="No space left"):
        write_file_atomically(file, "new", overwrite=True)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_another_process_creates_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x"
    monkeypatch.setattr("os.fsync", lambda _: file.write_text("from another process"))
    with pytest.raises(InvalidInput, match="already exists"):
        write_file_atomically(file, "ours", overwrite=False)
    assert file.read_text() == "from another process"


def test_a_file_system_without_links_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_not_permitted(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", raise_not_permitted)
    write_file_atomically(tmp_path / "x", "text", overwrite=False)
    assert (tmp_path / "x").read_text() == "text"
    assert len(list(tmp_path.iterdir())) == 1

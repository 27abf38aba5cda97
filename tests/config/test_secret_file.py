"""The install secret: created once, complete and private."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from palaver.config import SECRET_BYTES, load_install_secret
from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_secret_is_created_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    secret = load_install_secret(home)
    assert len(secret) == SECRET_BYTES
    assert load_install_secret(home) == secret
    assert [path.name for path in home.iterdir()] == ["secret"]
    assert stat.S_IMODE((home / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert load_install_secret(tmp_path / "other") != secret


def test_concurrent_first_calls_get_the_same_secret(tmp_path: Path) -> None:
    start = Barrier(8)

    def load(_: int) -> bytes:
        start.wait()
        return load_install_secret(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        results = set(pool.map(load, range(8)))
    assert results == {(tmp_path / "secret").read_bytes()}
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_the_secret_of_a_faster_process_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def create_after_other_process(count: int) -> bytes:
        (tmp_path / "secret").write_bytes(b"first!" * 8)
        return b"x" * count

    monkeypatch.setattr("secrets.token_bytes", create_after_other_process)
    assert load_install_secret(tmp_path) == b"first!" * 8
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 31])
def test_a_secret_that_is_too_short_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(ConfigError, match=f"has {len(content)} bytes, but it needs 32") as caught:
        load_install_secret(tmp_path)
    assert str(tmp_path / "secret") in str(caught.value)
    assert (tmp_path / "secret").read_bytes() == content


def test_a_secret_that_cannot_be_read_or_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    with pytest.raises(ConfigError, match=r"install secret \(Is a directory\)"):
        load_install_secret(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="can't read or create the install secret"):
        load_install_secret(tmp_path / "file")

"""The install secret: one for each installation, kept whole and private."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from palaver.config import SECRET_BYTES, install_secret
from palaver.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    secret = install_secret(home)
    assert len(secret) == SECRET_BYTES
    assert install_secret(home) == secret
    assert [path.name for path in home.iterdir()] == ["secret"]
    assert stat.S_IMODE((home / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert install_secret(tmp_path / "other") != secret


def test_all_who_ask_for_the_first_time_at_once_get_the_same_secret(tmp_path: Path) -> None:
    start = Barrier(8)

    def ask(_: int) -> bytes:
        start.wait()
        return install_secret(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(ask, range(8)))
    assert answers == {(tmp_path / "secret").read_bytes()}
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_a_secret_that_somebody_else_kept_meanwhile_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(count: int) -> bytes:
        (tmp_path / "secret").write_bytes(b"theirs" * 8)
        return b"x" * count

    monkeypatch.setattr("secrets.token_bytes", too_late)
    assert install_secret(tmp_path) == b"theirs" * 8
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 31])
def test_a_secret_that_is_too_short_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(ConfigError, match=f"at least 32 bytes, this has {len(content)}") as caught:
        install_secret(tmp_path)
    assert str(tmp_path / "secret") in str(caught.value)
    assert (tmp_path / "secret").read_bytes() == content


def test_a_secret_that_cannot_be_read_or_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    with pytest.raises(ConfigError, match="the install secret: Is a directory"):
        install_secret(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="the install secret: "):
        install_secret(tmp_path / "file")

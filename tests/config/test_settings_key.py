"""The keys that secret settings are encrypted with."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from palaver.config.settings_key import (
    FILE_NAME,
    VARIABLE,
    create_key_file,
    generate_key_text,
    load_key_ring,
    read_key_texts,
    write_key_file,
)
from palaver.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_without_a_file_there_is_no_key(tmp_path: Path) -> None:
    assert load_key_ring(tmp_path, {}).keys == ()
    assert not (tmp_path / FILE_NAME).exists()


def test_the_file_is_created_once_and_only_for_its_owner(tmp_path: Path) -> None:
    first, second = create_key_file(tmp_path / "home"), create_key_file(tmp_path / "home")
    assert first == second == load_key_ring(tmp_path / "home", {})
    assert stat.S_IMODE((tmp_path / "home" / FILE_NAME).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "home").iterdir()] == [FILE_NAME]


def test_the_keys_of_the_file_are_replaced_as_a_whole(tmp_path: Path) -> None:
    old = create_key_file(tmp_path).keys[0]
    texts = [generate_key_text(), *read_key_texts(tmp_path)]
    write_key_file(tmp_path, texts)
    ring = load_key_ring(tmp_path, {})
    assert len(ring.keys) == 2
    assert ring.keys[1] == old
    assert ring.find(old.id) == old
    assert ring.find("0" * 16) is None
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_the_variable_wins_over_the_file_and_may_hold_several_keys(tmp_path: Path) -> None:
    create_key_file(tmp_path)
    first, second = generate_key_text(), generate_key_text()
    ring = load_key_ring(tmp_path, {VARIABLE: f" {first},{second} "})
    assert ring.is_from_variable
    assert len(ring.keys) == 2
    assert load_key_ring(tmp_path, {VARIABLE: second}).keys[0] == ring.keys[1]


def test_a_short_key_is_refused_without_being_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 32 characters") as caught:
        load_key_ring(tmp_path, {VARIABLE: "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_key_is_not_in_its_own_text(tmp_path: Path) -> None:
    ring = create_key_file(tmp_path)
    assert ring.keys[0].material.hex() not in repr(ring)
    assert repr(ring.keys[0].material)[2:-1] not in repr(ring)

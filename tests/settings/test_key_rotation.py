"""Re-encrypting all secrets with a new key, and processes that are killed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver.config.settings_key import read_key_texts
from palaver.core import crash_points
from palaver.core.errors import InvalidInput, NothingToDo
from palaver.settings.editor import rotate_key
from support.settings import API_KEY, SettingsTown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver import SessionStore

pytestmark = pytest.mark.both_engines


KEY_A, KEY_B = "a" * 40, "b" * 40


@pytest.fixture
def town(store: SessionStore, tmp_path: Path) -> SettingsTown:
    town = SettingsTown(store, tmp_path)
    town.set({"providers.openai.api_key": API_KEY, "turns.max_running": 4})
    town.set({"providers.openai.api_key": API_KEY + "2"})
    return town


@pytest.fixture
def remove_hook() -> Iterator[None]:
    yield
    crash_points.set_crash_hook(None)


def get_key(town: SettingsTown) -> str | None:
    return town.load().settings.agent.providers["openai"].api_key


def test_secrets_and_their_history_are_encrypted_with_a_new_key(town: SettingsTown) -> None:
    before, old_texts = town.load(), read_key_texts(town.home)
    result = rotate_key(town.reader)
    assert (result.secret_count, result.dropped_count) == (1, 0)
    assert read_key_texts(town.home) != old_texts
    assert len(read_key_texts(town.home)) == 1
    assert town.load().state.key_id != before.state.key_id
    assert get_key(town) == API_KEY + "2"
    town.editor.undo(town.owner, town.editor.list_history(town.owner)[0].number)
    assert get_key(town) == API_KEY


@pytest.mark.parametrize(
    "point", ["settings.key_written", "settings.before_rotation", "settings.rotated", "settings.before_key_cleanup"]
)
@pytest.mark.usefixtures("remove_hook")
def test_a_rotation_that_is_cut_off_leaves_readable_secrets(town: SettingsTown, point: str) -> None:
    def cut_off(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    crash_points.set_crash_hook(cut_off)
    with pytest.raises(KeyboardInterrupt):
        rotate_key(town.reader)
    crash_points.set_crash_hook(None)
    assert get_key(town) == API_KEY + "2"
    town.set({"providers.anthropic.api_key": API_KEY})
    rotate_key(town.reader)
    assert len(read_key_texts(town.home)) == 1
    assert town.load().problems == ()


def test_with_the_variable_the_operator_brings_the_new_key(store: SessionStore, tmp_path: Path) -> None:
    old = SettingsTown(store, tmp_path, {"PALAVER_SECRET_KEY": KEY_A})
    old.set({"providers.openai.api_key": API_KEY})
    with pytest.raises(NothingToDo, match="to the new key, a comma and the old key"):
        rotate_key(old.reader)
    rotate_key(SettingsTown(store, tmp_path, {"PALAVER_SECRET_KEY": f"{KEY_B},{KEY_A}"}).reader)
    assert get_key(SettingsTown(store, tmp_path, {"PALAVER_SECRET_KEY": KEY_B})) == API_KEY
    assert not (tmp_path / "settings.key").exists()


def test_a_secret_that_cannot_be_decrypted_prevents_the_rotation(town: SettingsTown) -> None:
    (town.home / "settings.key").unlink()
    town.set({"providers.anthropic.api_key": API_KEY})
    with pytest.raises(InvalidInput, match=r"providers\.openai\.api_key: .*config unset providers\.openai\.api_key"):
        rotate_key(town.reader)
    town.unset("providers.openai")
    assert rotate_key(town.reader).dropped_count > 0
    assert town.load().problems == ()


def test_without_secrets_there_is_nothing_to_rotate(store: SessionStore, tmp_path: Path) -> None:
    with pytest.raises(NothingToDo):
        rotate_key(SettingsTown(store, tmp_path).reader)

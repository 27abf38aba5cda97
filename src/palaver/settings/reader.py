"""Reads the stored settings, decrypts their secrets, and combines them with config.yaml and the environment."""

from __future__ import annotations

import functools
import logging
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from palaver.config.layers import CombinedSettings, SettingProblem, combine_settings
from palaver.config.schema import ConfigFile
from palaver.config.setting_templates import SettingPath, parse_key
from palaver.config.settings_key import KeyRing, load_key_ring
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Engine, Read
from palaver.core.errors import ConfigError, InvalidInput
from palaver.core.recent_entries import RecentEntries
from palaver.people.model import find_guest_command_problem
from palaver.settings import table as settings_storage
from palaver.settings.encryption import DecryptionFailed, is_encrypted, read_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.config import Settings
    from palaver.settings.table import SettingRow, SettingsState

_GUEST_COMMANDS: Final = ("people", "guest_commands")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class LoadedSettings:
    """The settings at one moment: what is stored, what can be used of it, and all layers together."""

    state: SettingsState
    rows: Mapping[SettingPath, SettingRow]
    values: Mapping[SettingPath, object] = field(repr=False)  # with the secrets decrypted
    unreadable: Mapping[SettingPath, str]  # secrets that can't be decrypted, and what to do about it
    ring: KeyRing = field(repr=False)
    combined: CombinedSettings

    @property
    def settings(self) -> Settings:
        return self.combined.settings

    @property
    def values_with_encrypted(self) -> dict[SettingPath, object]:
        """The values, with the encrypted text of those that can't be decrypted now."""
        return {**{path: self.rows[path].value for path in self.unreadable}, **self.values}

    @property
    def problems(self) -> tuple[SettingProblem, ...]:
        broken = (SettingProblem(path=path, text=text) for path, text in self.unreadable.items())
        return (*broken, *self.combined.problems)


class SettingsReader:
    def __init__(self, engine: Engine, base: Settings) -> None:
        self.engine = engine
        self.base = base  # what config.yaml and the environment say
        self._combined: RecentEntries[str, CombinedSettings] = RecentEntries(2)

    def load(self) -> LoadedSettings:
        """Read everything now. A value that can't be used is left out and reported; nothing stops the start."""
        state, rows = self.engine.run(Read(lambda tx: (settings_storage.load_state(tx), settings_storage.list_all(tx))))
        ring, key_problem = self.load_ring()
        values: dict[SettingPath, object] = {}
        unreadable: dict[SettingPath, str] = {}
        by_path: dict[SettingPath, SettingRow] = {}
        secrets: list[str] = []
        for row in rows:
            try:
                path = parse_key(row.key)
                by_path[path] = row
                values[path] = read_value(row.value, row.key, ring)
            except DecryptionFailed as error:
                unreadable[path] = key_problem or error.text
                continue
            except (InvalidInput, ValueError, LookupError) as error:
                log.warning("setting_unreadable", extra={"key": row.key, "error": type(error).__name__})
                continue
            if is_encrypted(row.value):
                secrets += _list_texts(values[path])
        if secrets:
            from palaver.core.logs import hide_in_logs

            hide_in_logs(secrets)
        return LoadedSettings(
            state=state,
            rows=by_path,
            values=values,
            unreadable=unreadable,
            ring=ring,
            combined=self.combine(values),
        )

    def combine(self, values: Mapping[SettingPath, object]) -> CombinedSettings:
        """Combine values of the database with the other layers; those that can't be used are left out and reported.

        The settings before and after a change are remembered: they are validated once, however often they are read.
        """
        content = repr(sorted(values.items()))  # unlike the values themselves, it differs for 1 and True
        combined = self._combined.get(content) or self._validate(values)
        self._combined.remember(content, combined)
        return combined

    def _validate(self, values: Mapping[SettingPath, object]) -> CombinedSettings:
        if not values:
            return CombinedSettings(settings=self.base, file=self._empty_file)
        unknown = _find_unknown_commands(values)
        if unknown is None:
            return combine_settings(self.base, values)
        combined = combine_settings(self.base, {path: each for path, each in values.items() if path != _GUEST_COMMANDS})
        return replace(combined, problems=(*combined.problems, SettingProblem(path=_GUEST_COMMANDS, text=unknown)))

    @functools.cached_property
    def _empty_file(self) -> ConfigFile:
        """The values without any from the database; without a config.yaml no parser is needed for that."""
        if not self.base.fixed_layers.data and not self.base.fixed_layers.overrides:
            return ConfigFile()
        return combine_settings(self.base, {}).file

    def load_ring(self) -> tuple[KeyRing, str | None]:
        """Return the keys of this machine, and why they can't be used."""
        try:
            return load_key_ring(self.base.home, self.base.fixed_layers.environ), None
        except ConfigError as error:
            return KeyRing((), is_from_variable=False), error.text


def _find_unknown_commands(values: Mapping[SettingPath, object]) -> str | None:
    """Return what is wrong with the commands of guests: only the services know which commands there are."""
    names = values.get(_GUEST_COMMANDS)
    if not isinstance(names, list):
        return None
    from palaver.inbox.registry import COMMANDS

    return find_guest_command_problem(frozenset(map(str, names)), {command.name for command in COMMANDS})


def _list_texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _list_texts(item)]
    return [value] if isinstance(value, str) else []

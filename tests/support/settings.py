"""Settings of a store in tests: the reader, the editor and the catalog, without the machine's environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from palaver.app import make_catalog, make_editor
from palaver.config import load_settings
from palaver.settings.editor import SettingsEdit
from palaver.settings.overview import SettingsOverview
from palaver.settings.reader import SettingsReader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from palaver import SessionStore
    from palaver.config import Settings
    from palaver.people.model import Principal
    from palaver.settings.editor import EditResult, SettingsEditor
    from palaver.settings.overview import SettingValue
    from palaver.settings.reader import LoadedSettings

API_KEY = "sk-very-secret-0123456789abcdef"
BOT_TOKEN = "123456789:AAF0123456789abcdefghijklmnopqrstuv"


@dataclass
class SettingsTown:
    """The settings of one store, and its owner."""

    store: SessionStore
    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    file: str = ""

    def __post_init__(self) -> None:
        if self.file:
            (self.home / "config.yaml").write_text(self.file, encoding="utf-8")

    @cached_property
    def base(self) -> Settings:
        return load_settings({"HOME": str(self.home), **self.environ}, self.home)

    @property
    def reader(self) -> SettingsReader:
        return SettingsReader(self.store.engine, self.base)

    @property
    def editor(self) -> SettingsEditor:
        return make_editor(self.store, self.base)

    @property
    def owner(self) -> Principal:
        return self.store.get_owner().principal

    def load(self) -> LoadedSettings:
        return self.reader.load()

    def set(self, values: Mapping[str, Any], **options: Any) -> EditResult:
        return self.editor.change(self.owner, SettingsEdit(values=values, **options))

    def unset(self, *keys: str, **options: Any) -> EditResult:
        return self.editor.change(self.owner, SettingsEdit(unset=keys, **options))

    def get(self, key: str) -> SettingValue:
        from palaver.config.setting_templates import parse_key

        value = SettingsOverview(self.load(), make_catalog(self.base)).find_value(parse_key(key))
        assert value is not None
        return value

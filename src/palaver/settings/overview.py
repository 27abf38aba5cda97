"""All settings as data: what exists, its value, where that comes from, and whether it can be changed.

Always true: the value of a secret is never part of it; only whether it is set, since when and by whom, and at most its
last characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from palaver.config.layers import flatten, get_value
from palaver.config.setting_templates import NAME, find_template, format_path, has_password, list_templates
from palaver.core.clock import from_micros
from palaver.settings.encryption import is_encrypted, read_hint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.config.setting_templates import SettingPath, SettingTemplate
    from palaver.settings.platform_catalog import PlatformCatalog
    from palaver.settings.reader import LoadedSettings

SourceKind = Literal["default", "database", "file", "environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSource:
    """Where the value of a setting comes from."""

    kind: SourceKind
    variable: str | None = None  # of the environment
    line: int | None = None  # of config.yaml
    set_at: datetime | None = None  # in the database
    set_by: str | None = None  # the id of a person

    def __str__(self) -> str:
        match self.kind:
            case "environment":
                return f"environment variable {self.variable}"
            case "file":
                return "config.yaml" if self.line is None else f"config.yaml, line {self.line}"
            case _:
                return self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """One setting now."""

    path: SettingPath
    template: SettingTemplate
    value: object  # None for a secret, and for what has no value
    source: SettingSource
    is_set: bool  # somewhere, rather than being the default
    is_secret: bool = False
    hint: str | None = None  # the last characters of a secret
    problem: str | None = None  # why the stored value can't be used

    @property
    def key(self) -> str:
        return format_path(self.path)

    @property
    def can_change(self) -> bool:
        return self.source.kind in ("default", "database") and self.template.unstorable_reason is None


class SettingsOverview:
    """Describes settings that were loaded."""

    def __init__(self, loaded: LoadedSettings, catalog: PlatformCatalog) -> None:
        self._loaded = loaded
        self._catalog = catalog
        self._fixed = loaded.settings.fixed_layers
        self._problems = {problem.path: problem.text for problem in loaded.problems}

    def list_values(self) -> list[SettingValue]:
        """Return every setting without a chosen name, and those with names that have a value, in schema order."""
        found = {path for path, _ in self._iterate_set()}
        order = {template.key: number for number, template in enumerate(list_templates())}
        fixed_keys = {template.parts for template in list_templates() if NAME not in template.parts}
        values = [value for path in found | fixed_keys if (value := self.find_value(path)) is not None]
        return sorted(values, key=lambda each: (order[each.template.key], each.path))

    def find_value(self, path: SettingPath) -> SettingValue | None:
        """Return one setting; None if this is no key of a setting."""
        template = find_template(path)
        if template is None:
            return None
        source = self._find_source(path)
        has_value, value = get_value(self._loaded.combined.file, path)
        row = self._loaded.rows.get(path)
        if source.variable is not None and template.is_adapter_setting:
            value = self._fixed.environ.get(source.variable, "").strip()
        elif not has_value:
            value = template.default
        is_secret = self._is_secret(path, template, value) or (row is not None and is_encrypted(row.value))
        hint = read_hint(row.value) if is_secret and source.kind == "database" and row is not None else None
        return SettingValue(
            path=path,
            template=template,
            value=None if is_secret else value,
            source=source,
            is_set=source.kind != "default",
            is_secret=is_secret,
            hint=hint,
            problem=self._problems.get(path),
        )

    def _is_secret(self, path: SettingPath, template: SettingTemplate, value: object) -> bool:
        if template.is_adapter_setting:
            return self._catalog.is_secret(path[1], path[-1]) or has_password(value)
        return template.is_secret or has_password(value)

    def _find_source(self, path: SettingPath) -> SettingSource:
        variable = self._catalog.find_variable(path)
        if variable is not None:
            return SettingSource(kind="environment", variable=variable)
        pin = self._fixed.find_pin(path)
        if pin is not None:
            return SettingSource(
                kind="file" if pin.variable is None else "environment", variable=pin.variable, line=pin.line
            )
        row = self._loaded.rows.get(path)
        if row is None:
            return SettingSource(kind="default")
        return SettingSource(kind="database", set_at=from_micros(row.set_at), set_by=row.set_by)

    def _iterate_set(self) -> Iterator[tuple[SettingPath, object]]:
        """Yield every key that config.yaml, the environment or the database sets."""
        yield from flatten(self._fixed.data)
        for key in self._fixed.variables:
            yield tuple(key.split(".")), None
        for path in self._loaded.rows:
            yield path, None
        for form in self._catalog.list_forms():
            for field in form.fields:
                path = ("platforms", form.platform, "settings", field.name)
                if self._catalog.find_variable(path) is not None:
                    yield path, None

"""All settings as data: what exists, its value, where that comes from, and whether it can be changed.

Always true: the value of a secret is never part of it; only whether it is set, since when and by whom, and at most its
last characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from palaver.config.layers import SettingProblem, flatten, get_value, make_exposure_problem
from palaver.config.setting_templates import (
    NAME,
    SettingPath,
    SettingTemplate,
    find_template,
    format_path,
    has_password,
    list_templates,
)
from palaver.config.settings import SettingSource
from palaver.core.clock import from_micros
from palaver.core.dataclass import dataclass
from palaver.core.wire import build_json
from palaver.settings.encryption import is_encrypted, read_hint
from palaver.settings.wire import SettingJson

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from palaver.config import Settings
    from palaver.config.settings import FixedLayers
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.settings.reader import LoadedSettings
    from palaver.settings.wire import PlatformFormJson


class PlatformCatalog(Protocol):
    def list_forms(self) -> Sequence[PlatformFormJson]: ...

    def is_secret(self, platform: str, setting: str) -> bool:
        """Whether a setting of an account is secret; one that is not known may be."""

    def list_addresses(self, platform: str) -> Mapping[str, object] | None:
        """Return the settings of an account that say where its secrets are sent, and their defaults.

        None if the platform is not known.
        """

    def is_terminal_only(self, platform: str, setting: str) -> bool:
        """Whether a setting of an account starts a program on the server."""

    def find_variable(self, path: SettingPath) -> str | None:
        """Return the environment variable that sets this setting of an account now; None if none does."""

    def find_problems(
        self, before: Settings, after: Settings, changed: Collection[SettingPath]
    ) -> Sequence[SettingProblem]:
        """Return what is wrong with the accounts whose settings are changed."""

    def list_accounts(self, settings: Settings, unreadable: Mapping[SettingPath, str]) -> list[ConfiguredAccount]:
        """Return the accounts that are set up; one with a secret that can't be decrypted can't be connected."""

    def build_account(
        self, settings: Settings, platform: str, account: str, values: Mapping[str, object]
    ) -> ConfiguredAccount:
        """Build an account from values that are not stored, to test them. Raises NotFound for an unknown platform."""


def is_secret_setting(catalog: PlatformCatalog, path: SettingPath, value: object = None) -> bool:
    """Whether a setting is secret, whatever its value, or has this value, which is."""
    template = find_template(path)
    if template is None:
        return False
    is_secret = catalog.is_secret(path[1], path[-1]) if template.is_adapter_setting else template.is_secret
    return is_secret or has_password(value)


# A stored secret stays with the addresses that it was entered for.
#
# Secrets can't be read on the page. They must not be readable by changing the address that they are sent to either:
# one that is not entered together with an address is sent only where it was sent before. This is checked for
# everything that pairs them: setting and unsetting, undoing, and tests with values that are not stored. In the
# terminal of the server it is not needed. A secret of config.yaml or the environment is never sent to an address of
# the database at all; see `config/layers.py` and, for accounts on platforms, `platforms/registry.py`.


class SecretPair(NamedTuple):
    secret: object
    addresses: Mapping[SettingPath, object]


Pairs = dict["SettingPath", SecretPair]


class SecretPairs:
    """Finds the stored secrets and their addresses in values of the database."""

    def __init__(self, fixed: FixedLayers, catalog: PlatformCatalog) -> None:
        self._fixed = fixed
        self._catalog = catalog

    def find(self, stored: Mapping[SettingPath, object]) -> Pairs:
        """Return the secrets among these values, which are the decrypted ones, or the encrypted text of a lost key."""
        pairs: Pairs = {}
        for path, value in stored.items():
            addresses = self._find_addresses(path, stored)
            if addresses and value not in (None, "", []):
                pairs[path] = SecretPair(value, addresses)
        return pairs

    def _find_addresses(self, path: SettingPath, stored: Mapping[SettingPath, object]) -> dict[SettingPath, object]:
        template = find_template(path)
        if template is None:
            return {}
        if not template.is_adapter_setting:
            return {each: self._get_value(each, stored, None) for each in template.list_addresses(path)}
        if not self._catalog.is_secret(path[1], path[-1]):
            return {}
        defaults = self._catalog.list_addresses(path[1])
        if defaults is None:  # its package is not installed now: any other setting may be the address
            defaults = {each[-1]: None for each in stored if each[:-1] == path[:-1] and each != path}
        return {
            (*path[:-1], name): self._get_value((*path[:-1], name), stored, default)
            for name, default in defaults.items()
        }

    def _get_value(self, path: SettingPath, stored: Mapping[SettingPath, object], default: object) -> object:
        """Return an address as all layers together give it. How it is written does not count."""
        variable = self._catalog.find_variable(path)
        is_fixed, value = self._fixed.find_value(path)
        if variable is not None:
            value = self._fixed.environ.get(variable, "")
        elif not is_fixed:
            value = stored.get(path)
        value = default if value in (None, "") else value
        return value.strip().rstrip("/") if isinstance(value, str) else value


def find_exposed_secrets(
    after: Pairs, known: Collection[Pairs], entered: Collection[SettingPath]
) -> Iterator[SettingProblem]:
    """Yield a problem for each secret that is not entered and would be sent where none of the known pairs sends it."""
    for path, pair in after.items():
        if path in entered or any(pairs.get(path) == pair for pairs in known):
            continue
        before = next((pairs[path].addresses for pairs in known if path in pairs), {})
        changed = [each for each, value in pair.addresses.items() if before.get(each, _MISSING) != value]
        yield make_exposure_problem((changed or list(pair.addresses))[0], format_path(path), None)


_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
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


def setting_to_json(value: SettingValue) -> SettingJson:
    can_change = value.can_change and not value.template.is_terminal_only
    return build_json(SettingJson, value, template=value.template.key, can_change=can_change)


class SettingsOverview:
    def __init__(self, loaded: LoadedSettings, catalog: PlatformCatalog) -> None:
        self._loaded = loaded
        self._catalog = catalog
        self._fixed = loaded.settings.fixed_layers
        self._problems = {problem.path: problem.text for problem in loaded.problems}

    def list_values(self) -> list[SettingValue]:
        """Return every setting without a chosen name, and those with names that have a value, in schema order."""
        fields = [
            ("platforms", form["platform"], "settings", field["name"])
            for form in self._catalog.list_forms()
            for field in form["fields"]
        ]
        found = {
            *(path for path, _ in flatten(self._fixed.data)),
            *(tuple(key.split(".")) for key in self._fixed.variables),
            *self._loaded.rows,
            *(path for path in fields if self._catalog.find_variable(path) is not None),
        }
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
        is_secret = is_secret_setting(self._catalog, path, value) or (row is not None and is_encrypted(row.value))
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

    def _find_source(self, path: SettingPath) -> SettingSource:
        variable = self._catalog.find_variable(path)
        if variable is not None:
            return SettingSource(kind="environment", variable=variable)
        pin = self._fixed.find_pin(path)
        if pin is not None:
            return pin
        row = self._loaded.rows.get(path)
        if row is None:
            return SettingSource(kind="default")
        return SettingSource(kind="database", set_at=from_micros(row.set_at), set_by=row.set_by)

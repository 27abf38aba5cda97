"""The layers of the settings: environment variables, config.yaml, the database, the defaults.

The first that has a value wins. The first two are read once, at start (`FixedLayers`), and pin what they set. Values
from the database are another layer of the same document: they are merged below those of the file and validated with
them, by the same rules.

Always true: a value from the database that is not valid, because another version has written it, is left out and
reported; it never stops the start.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from palaver.config.environment import apply_overrides, read_overrides
from palaver.config.schema import ConfigFile, KeyPath, format_key
from palaver.config.setting_templates import SettingPath, find_template, list_parts_below, to_plain
from palaver.config.settings import FixedLayers, Settings, build_settings, expand_path
from palaver.config.validation import FILE_NAME, read_document, validate_data, validate_document
from palaver.core.dataclass import dataclass
from palaver.core.errors import ConfigError
from palaver.core.texts import say

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path


_MAX_ROUNDS: Final = 10  # of leaving out values that are not valid


@dataclass(frozen=True, kw_only=True)
class SettingProblem:
    """A value from the database that can't be used."""

    path: SettingPath
    text: str  # without the key, unless it is a whole sentence
    is_sentence: bool = False

    @property
    def message(self) -> str:
        return self.text if self.is_sentence else f"{format_key(self.path)}: " + self.text

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True, kw_only=True)
class CombinedSettings:
    """All layers together."""

    settings: Settings
    file: ConfigFile = field(repr=False)  # the values of all layers, as config.yaml would hold them
    problems: tuple[SettingProblem, ...] = ()


def find_home(environ: Mapping[str, str], home: Path | None = None) -> Path:
    """Return the absolute path of the home folder: the given one, PALAVER_HOME, or ~/.palaver."""
    return (home or expand_path(environ.get("PALAVER_HOME") or "~/.palaver", environ)).absolute()


def load_settings(environ: Mapping[str, str], home: Path | None = None) -> Settings:
    """Read the settings: the environment wins over config.yaml, which wins over the defaults.

    `home` is the folder of config.yaml; by default PALAVER_HOME or ~/.palaver. Nothing is written. Raises ConfigError
    with all problems.
    """
    home = find_home(environ, home)
    document = read_document(home / FILE_NAME)
    file, problems = validate_document(document) if document else (ConfigFile(), [])
    disabled = frozenset(name for name, section in file.platforms.items() if not section.enabled)
    overrides, variables, override_problems = read_overrides(environ)
    problems += override_problems
    if not problems:
        file, problems = apply_overrides(file, overrides)
    if problems:
        raise ConfigError("\n".join(problems), file=str(home / FILE_NAME), problems=tuple(problems))
    fixed = FixedLayers(
        data=document.data if document else {},
        lines=document.lines if document else {},
        overrides=overrides,
        variables=variables,
        environ=environ,
    )
    return build_settings(file, home, disabled, fixed)


def combine_settings(base: Settings, stored: Mapping[SettingPath, object]) -> CombinedSettings:
    """Add the values from the database to the settings of the file and the environment, which win."""
    fixed = base.fixed_layers
    used = {path: value for path, value in stored.items() if fixed.find_pin(path) is None}
    withheld = dict(_find_exposed_pins(fixed, used))
    problems = [problem for problems in withheld.values() for problem in problems]
    fixed_data = _remove_paths(fixed.data, withheld)
    for _ in range(_MAX_ROUNDS):
        tree = _build_tree(used)
        switched_off = _switch_off_unused_platforms(tree, fixed_data)
        data = _merge(tree, fixed_data)
        file, found = validate_data(data)
        # The keys of the database that may have caused a problem: the same, above it or below it.
        wrong = [
            (path, text, [each for each in used if _is_below(path, each) or _is_below(each, path)])
            for path, text in found
        ]
        if not any(causes for _, _, causes in wrong):
            break
        for path, text, causes in wrong:
            named = next((cause for cause in causes if _is_below(path, cause)), path)
            if causes:
                problems.append(SettingProblem(path=tuple(map(str, named)), text=text))
            for cause in causes:
                used.pop(cause, None)
    else:
        file, switched_off = validate_data(fixed_data)[0], frozenset()
    overrides = {key: value for key, value in fixed.overrides.items() if tuple(key.split(".")) not in withheld}
    file, _ = apply_overrides(file, overrides)
    disabled = frozenset(
        name for name, section in file.platforms.items() if not section.enabled and name not in switched_off
    )
    settings = build_settings(file, base.home, disabled, fixed, database_url=base.database_url)
    return CombinedSettings(settings=settings, file=file, problems=tuple(dict.fromkeys(problems)))


def flatten(data: Mapping[str, object], prefix: SettingPath = ()) -> Iterator[tuple[SettingPath, object]]:
    """Yield every setting in a document or a part of it; what is not known is yielded as it is."""
    for name, value in data.items():
        path = (*prefix, str(name))
        if isinstance(value, dict) and find_template(path) is None and list_parts_below(path):
            yield from flatten(value, path)
        else:
            yield path, value


def get_value(file: ConfigFile, path: SettingPath) -> tuple[bool, object]:
    """Return whether the settings have a value at a key, and the value."""
    value: Any = file
    for part in path:
        if isinstance(value, dict):
            if part not in value:
                return False, None
            value = value[part]
        elif value is not None and hasattr(value, part):
            value = getattr(value, part)
        else:
            return False, None
    return True, to_plain(value)


def _find_exposed_pins(
    fixed: FixedLayers, used: Mapping[SettingPath, object]
) -> Iterator[tuple[SettingPath, list[SettingProblem]]]:
    """Yield the secrets of the file and the environment that would be sent to an address of the database.

    They are withheld: the operator has not entered them for that address. A choice is no such address: all that can be
    chosen is known.
    """
    pinned = {*(path for path, _ in flatten(fixed.data)), *(tuple(key.split(".")) for key in fixed.overrides)}
    for path in sorted(pinned):
        template = find_template(path)
        addresses = [] if template is None else template.list_addresses(path)
        exposed = [each for each in addresses if each in used and not _is_choice(each)]
        if exposed and fixed.find_value(path)[1]:
            yield path, [make_exposure_problem(each, format_key(path), fixed.find_place(path)) for each in exposed]


def make_exposure_problem(address: SettingPath, secret_key: str, place: str | None) -> SettingProblem:
    """Build the problem of a secret, pinned at a place, that would be sent to an address it was not entered for."""
    if place is None:
        text = say(
            "settings.secret_exposed",
            "{key} would be sent to this address, so enter it again together with the address",
            key=secret_key,
        )
    else:
        text = say(
            "settings.secret_exposed_by_pin",
            "{key} would be sent to this address, so enter it again together with the address. It is set"
            " by {place}: change the address there",
            key=secret_key,
            place=place,
        )
    return SettingProblem(path=address, text=text)


def _is_choice(path: SettingPath) -> bool:
    template = find_template(path)
    return template is not None and bool(template.choices)


def _remove_paths(data: Mapping[str, object], paths: Collection[SettingPath]) -> Mapping[str, object]:
    if not paths:
        return data
    copy: dict[str, Any] = deepcopy(dict(data))
    for path in paths:
        section: Any = copy
        for part in path[:-1]:
            section = section.get(part) if isinstance(section, dict) else None
        if isinstance(section, dict):
            section.pop(path[-1], None)
    return copy


def _is_below(path: KeyPath, other: KeyPath) -> bool:
    return path[: len(other)] == other


def _build_tree(values: Mapping[SettingPath, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        section = tree
        for part in path[:-1]:
            if not isinstance(section.get(part), dict):
                section[part] = {}
            section = section[part]
        section[path[-1]] = value
    return tree


def _merge(stored: Mapping[str, Any], fixed: Mapping[str, object], path: SettingPath = ()) -> dict[str, Any]:
    """Put the values of the file over those of the database. A section without any value sets nothing."""
    merged = dict(stored)
    for name, value in fixed.items():
        below, at = stored.get(name), (*path, name)
        if value is None and isinstance(below, dict):
            continue
        if isinstance(value, dict) and isinstance(below, dict) and find_template(at) is None:
            merged[name] = _merge(below, value, at)
        else:
            merged[name] = value
    return merged


def _switch_off_unused_platforms(tree: dict[str, Any], file: Mapping[str, object]) -> frozenset[str]:
    """Switch off platforms that have only rules in the database, such as a busy policy; return their names.

    In config.yaml a platform that is named is connected. In the database, `enabled` or settings of an account say so.
    """
    platforms, in_file = tree.get("platforms"), file.get("platforms")
    names = set()
    for name, section in platforms.items() if isinstance(platforms, dict) else ():
        is_in_file = isinstance(in_file, dict) and name in in_file
        if isinstance(section, dict) and not is_in_file and not section.keys() & {"enabled", "settings", "accounts"}:
            section["enabled"] = False
            names.add(name)
    return frozenset(names)

"""Every setting that exists, described as data, so that a page, the terminal and the API can offer it.

A template is a key in which `<name>` stands for a name that the operator chooses: `providers.<name>.api_key`. The
schema says which exist; this module reads it and adds what a form needs. The help texts are in `setting_help`.

Always true: every value that config.yaml can hold has a template, so what a helper adds to the schema appears here.
"""

from __future__ import annotations

import functools
import types
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from palaver.config.schema import ConfigFile
from palaver.config.setting_help import SETTING_HELP
from palaver.config.validators import TEXT_FORM, Rule, ValueForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from palaver.config.setting_keys import SettingPath

NAME: Final = "<name>"
_LONG_TEXTS: Final = frozenset({"instructions", f"profiles.{NAME}.instructions", f"personalities.{NAME}"})
# Needed before the database can be opened.
_NOT_STORABLE: Final = {
    "database_url": "Palaver needs it to open the database. Set it in config.yaml or with PALAVER_DATABASE_URL."
}
_NEEDS_RESTART: Final = frozenset({"database_url", "web.host", "web.port", "web.public_url", "web.trusted_proxies"})
# Every secret, and the settings that say where it is sent. Those of platforms are in their manifests.
_ADDRESSES_BY_SECRET: Final[Mapping[str, tuple[str, ...]]] = {
    f"providers.{NAME}.api_key": (f"providers.{NAME}.base_url",),
    "web.search.api_key": ("web.search.url", "web.search.provider"),
    f"mcp_servers.{NAME}.args": (f"mcp_servers.{NAME}.command",),
    f"mcp_servers.{NAME}.env.{NAME}": (f"mcp_servers.{NAME}.command",),
    f"mcp_servers.{NAME}.headers.{NAME}": (f"mcp_servers.{NAME}.url",),
}
# They start a program on the server, which a thief of a browser session must not be able to do.
_TERMINAL_ONLY: Final = frozenset(
    {
        *(f"mcp_servers.{NAME}.command", f"mcp_servers.{NAME}.args", f"mcp_servers.{NAME}.env.{NAME}"),
        *("speech.transcription_command", "speech.speaking_command"),
    }
)


@dataclass(frozen=True, kw_only=True)
class SettingTemplate:
    """One setting, or all settings of one kind."""

    key: str
    form: ValueForm
    allowed: str  # the valid values, in words
    is_list: bool = False
    default: object = None
    is_secret: bool = False
    is_adapter_setting: bool = False  # the manifest of its platform describes it
    help: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.key.split("."))

    def list_addresses(self, path: SettingPath) -> list[SettingPath]:
        """Return the settings that say where the secret at a path is sent; nothing for what is no secret."""
        keys = _ADDRESSES_BY_SECRET.get(self.key, ())
        return [
            tuple(path[index] if part == NAME else part for index, part in enumerate(key.split("."))) for key in keys
        ]

    @property
    def needs_restart(self) -> bool:
        return self.key in _NEEDS_RESTART

    @property
    def is_terminal_only(self) -> bool:
        """Whether it can be changed in the terminal of the server, but not on the page."""
        return self.key in _TERMINAL_ONLY

    @property
    def unstorable_reason(self) -> str | None:
        """Why it can't be changed while Palaver runs; None if it can."""
        return _NOT_STORABLE.get(self.key)


@functools.cache
def list_templates() -> tuple[SettingTemplate, ...]:
    """Return the templates of all settings, in the order of the schema."""
    return tuple(_iterate_section(ConfigFile, ""))


@functools.cache
def _list_by_length() -> dict[int, list[SettingTemplate]]:
    by_length: dict[int, list[SettingTemplate]] = {}
    for template in list_templates():
        by_length.setdefault(len(template.parts), []).append(template)
    return by_length


def find_template(path: SettingPath) -> SettingTemplate | None:
    """Return the template of a setting; None if this is no setting, but a section or nothing known."""
    for template in _list_by_length().get(len(path), ()):
        if all(known in (NAME, part) for known, part in zip(template.parts, path, strict=True)):
            return template
    return None


def is_section(path: SettingPath) -> bool:
    """Whether settings can be below this key."""
    return any(
        len(template.parts) > len(path)
        and all(known in (NAME, part) for known, part in zip(template.parts, path, strict=False))
        for template in list_templates()
    )


def has_password(value: object) -> bool:
    """Whether a value is a URL with a password, or with a query that may hold a token."""
    if not isinstance(value, str) or "://" not in value:
        return False
    try:
        address = urlsplit(value)
    except ValueError:
        return True
    return "@" in address.netloc or bool(address.query)


def _iterate_section(section: type, prefix: str) -> Iterator[SettingTemplate]:
    defaults = {field.name: field for field in fields(section)}
    for name, hint in get_type_hints(section, include_extras=True).items():
        if get_origin(hint) is ClassVar:
            continue
        field = defaults[name]
        default = field.default if field.default is not MISSING else None
        if field.default_factory is not MISSING:
            default = field.default_factory()
        yield from _iterate_value(f"{prefix}{name}", hint, default)


def _iterate_value(key: str, hint: Any, default: object) -> Iterator[SettingTemplate]:
    hint, rule = _unwrap(hint)
    section = next((part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)), None)
    origin = get_origin(hint)
    if origin is dict:
        _, value_hint = get_args(hint)
        yield from _iterate_value(f"{key}.{NAME}", value_hint, None)
    elif section is not None and origin is not tuple:
        yield from _iterate_section(section, f"{key}.")
    else:
        yield _make_template(key, hint, rule, default)


def _make_template(key: str, hint: Any, rule: Rule | None, default: object) -> SettingTemplate:
    list_hint = next((part for part in (hint, *_list_options(hint)) if get_origin(part) is tuple), None)
    is_optional = type(None) in _list_options(hint)
    if list_hint is not None:
        _, item_rule = _unwrap(get_args(list_hint)[0])
        form, allowed = (item_rule.form, item_rule.allowed) if item_rule else (TEXT_FORM, "text")
        form = ValueForm(form.kind, form.choices, form.minimum, form.maximum, form.pattern, is_optional)
        allowed = f"a list; each: {allowed}"
    else:
        form, allowed = (rule.form, rule.allowed) if rule else (TEXT_FORM, "text")
    if key in _LONG_TEXTS:
        form = ValueForm("long_text", is_optional=form.is_optional)
    return SettingTemplate(
        key=key,
        form=form,
        allowed=allowed,
        is_list=list_hint is not None,
        default=list(default) if isinstance(default, tuple) else default,
        is_secret=key in _ADDRESSES_BY_SECRET,
        is_adapter_setting=hint is object,
        help=SETTING_HELP.get(key, ""),
    )


def _unwrap(hint: Any) -> tuple[Any, Rule | None]:
    """Return the type of an annotated hint, and its rule."""
    if get_origin(hint) is not Annotated:
        return hint, None
    inner, *notes = get_args(hint)
    return inner, next((note for note in notes if isinstance(note, Rule)), None)


def _list_options(hint: Any) -> tuple[Any, ...]:
    """Return the types that a union allows."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()

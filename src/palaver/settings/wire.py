"""The JSON of settings and of changes of them, for the API and the terminal.

Always true: of a secret, it has only whether it is set, and at most its last characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from palaver.core.wire import Doc, Time, TypedDict, build_json

if TYPE_CHECKING:
    from palaver.settings.overview import SettingValue


class SettingSourceJson(TypedDict):
    """Where the value of a setting comes from."""

    kind: Annotated[
        Literal["default", "database", "file", "environment"],
        Doc("`file` (config.yaml) and `environment` pin a value: it can be changed only there."),
    ]
    variable: Annotated[str | None, Doc("The environment variable that sets it.")]
    line: Annotated[int | None, Doc("The line of config.yaml.")]
    set_at: Annotated[Time | None, Doc("When it was set in the database.")]
    set_by: Annotated[str | None, Doc("The id of the person who has set it.")]


class SettingJson(TypedDict):
    """One setting now."""

    key: Annotated[str, Doc(example="turns.max_running")]
    template: Annotated[str, Doc("The key of its template, with `<name>` for names that you choose.")]
    value: Annotated[Any, Doc("Null for a secret.")]
    is_set: Annotated[bool, Doc("Whether it has a value that is not the default.")]
    is_secret: bool
    hint: Annotated[str | None, Doc("The last characters of a long secret in the database.")]
    source: SettingSourceJson
    can_change: Annotated[bool, Doc("Whether it can be changed with this API.")]
    problem: Annotated[str | None, Doc("Why the stored value can't be used; the default applies instead.")]


class ChangeItemJson(TypedDict):
    """One key of a change. A secret is shown as `set`, with its last characters if it is long."""

    key: str
    before: Any
    after: Any
    is_secret: bool


class SettingsChangeJson(TypedDict):
    """A change in the history."""

    number: int
    changed_at: Time
    person_id: str | None
    person_name: str | None
    origin: Literal["page", "terminal"]
    undoes: Annotated[int | None, Doc("The change that this one has undone.")]
    items: list[ChangeItemJson]


def setting_to_json(value: SettingValue) -> SettingJson:
    can_change = value.can_change and not value.template.is_terminal_only
    return build_json(SettingJson, value, template=value.template.key, can_change=can_change)

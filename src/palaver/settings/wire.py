"""The JSON of settings, of changes of them, and of tests with them, for the API and the terminal.

Always true: of a secret, it has only whether it is set, and at most its last characters.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from palaver.core.wire import Doc, Time, TypedDict


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


class PlatformFieldJson(TypedDict):
    """One setting of an account, for a form: `platforms.<platform>.settings.<name>`."""

    name: str
    label: str
    kind: Literal["text", "integer", "number", "boolean", "choice"]
    help: str
    where: Annotated[str, Doc("Where to get the value.")]
    is_secret: bool
    is_required: bool
    is_list: bool
    is_terminal_only: bool
    choices: list[str]
    pattern: str | None
    minimum: float | None
    maximum: float | None
    default: Any
    variable: Annotated[str | None, Doc("The environment variable that can set it.")]


class PlatformFormJson(TypedDict):
    """A platform that can be connected."""

    platform: str
    label: str
    summary: str
    problem: Annotated[str | None, Doc("Why it can't be connected here, such as a package that is missing.")]
    steps: Annotated[list[str], Doc("How to connect it.")]
    needs_public_url: Annotated[bool, Doc("The platform calls this server, so `web.public_url` has to be set.")]
    can_be_linked: Annotated[bool, Doc("An account is linked with a QR code after it was saved.")]
    fields: list[PlatformFieldJson]


class ProviderPresetJson(TypedDict):
    """A provider of models that many people use."""

    name: str
    title: str
    base_url: Annotated[str | None, Doc("Set `providers.<name>.base_url` to this; null: not needed.")]
    needs_key: bool
    key_page: Annotated[str | None, Doc("Where to get an API key.")]
    default_model: str | None


class ProviderTestJson(TypedDict):
    """The outcome of a round trip to a model."""

    ok: bool
    model: str | None
    seconds: float
    reply: Annotated[str | None, Doc("What the model has answered.")]
    error: str | None
    detail: Annotated[str | None, Doc("What the provider itself said.")]
    facts: Annotated[dict[str, Any], Doc("Of the error: its `code`, and the values that it mentions.")]


class AccountTestJson(TypedDict):
    """The outcome of signing in. The account is not connected."""

    ok: bool
    seconds: float
    name: Annotated[str | None, Doc("The name of the account on the platform.")]
    is_linked: Annotated[bool, Doc("False: it has to be linked with a phone after it is saved.")]
    warnings: list[str]
    details: list[str]
    error: str | None


class OfferedModelsJson(TypedDict):
    """The models of a provider, as it says itself."""

    provider: str
    title: str
    models: list[str]
    error: Annotated[str | None, Doc("Why they are not known, in the words of the provider.")]

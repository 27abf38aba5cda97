"""JSON schemas of settings. A secret is never part of a response: only whether it is set, and its last characters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from palaver.config.setting_templates import MAX_KEY_CHARS
from palaver.settings.editor import MAX_CHANGED_KEYS
from palaver.web.state import RequestModel, ResponseModel, Seq, Time

SettingKey = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS)]
ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$", max_length=32)]
SecretText = Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class SettingSourceOut(ResponseModel):
    """Where the value of a setting comes from."""

    kind: Literal["default", "database", "file", "environment"] = Field(
        description="`file` (config.yaml) and `environment` pin a value: it can be changed only there."
    )
    variable: str | None = Field(description="The environment variable that sets it.")
    line: int | None = Field(description="The line of config.yaml.")
    set_at: Time | None = Field(description="When it was set in the database.")
    set_by: str | None = Field(description="The id of the person who has set it.")


class SettingOut(ResponseModel):
    """One setting now."""

    key: str = Field(examples=["turns.max_running", "providers.openai.api_key"])
    template: str = Field(description="The key of its template, with `<name>` for names that you choose.")
    value: Any = Field(description="Null for a secret.")
    is_set: bool = Field(description="Whether it has a value that is not the default.")
    is_secret: bool
    hint: str | None = Field(description="The last characters of a long secret in the database.")
    source: SettingSourceOut
    can_change: bool = Field(description="Whether it can be changed with this API.")
    problem: str | None = Field(description="Why the stored value can't be used; the default applies instead.")


class SettingTemplateOut(ResponseModel):
    """A setting that exists, or all settings of one kind, with what a form needs."""

    key: str = Field(examples=["providers.<name>.api_key"])
    kind: str = Field(
        description="text, long_text, url, number, integer, boolean, choice, timezone, model or image. `adapter`: the"
        " form of its platform describes it."
    )
    is_list: bool
    is_optional: bool = Field(description="Null is a valid value.")
    choices: list[str]
    minimum: int | None
    maximum: int | None
    pattern: str | None = Field(description="A regular expression for the whole text.")
    allowed: str = Field(description="The valid values, in words.")
    default: Any
    is_secret: bool
    needs_restart: bool = Field(description="A change applies after the server was started again.")
    is_terminal_only: bool = Field(description="It starts a program, so it can be changed only on the server itself.")
    unstorable_reason: str | None = Field(description="Why it can be set only in config.yaml or the environment.")
    help: str


class SettingProblemOut(ResponseModel):
    """A stored value that can't be used."""

    key: str
    message: str


class PlatformFieldOut(ResponseModel):
    """One setting of an account, for a form: `platforms.<platform>.settings.<name>`."""

    name: str
    label: str
    kind: Literal["text", "integer", "number", "boolean", "choice"]
    help: str
    where: str = Field(description="Where to get the value.")
    is_secret: bool
    is_required: bool
    is_list: bool
    is_terminal_only: bool
    choices: list[str]
    pattern: str | None
    minimum: float | None
    maximum: float | None
    default: Any
    variable: str | None = Field(description="The environment variable that can set it.")


class PlatformFormOut(ResponseModel):
    """A platform that can be connected."""

    platform: str
    label: str
    summary: str
    problem: str | None = Field(description="Why it can't be connected here, such as a package that is missing.")
    steps: list[str] = Field(description="How to connect it.")
    needs_public_url: bool = Field(description="The platform calls this server, so `web.public_url` has to be set.")
    can_be_linked: bool = Field(description="An account is linked with a QR code after it was saved.")
    fields: list[PlatformFieldOut]


class ProviderPresetOut(ResponseModel):
    """A provider of models that many people use."""

    name: str
    title: str
    base_url: str | None = Field(description="Set `providers.<name>.base_url` to this; null: not needed.")
    needs_key: bool
    key_page: str | None = Field(description="Where to get an API key.")
    default_model: str | None


class SettingsOut(ResponseModel):
    """All settings."""

    version: Seq = Field(description="Pass it as `expected_version`, so that no change of another person is lost.")
    settings: list[SettingOut]
    templates: list[SettingTemplateOut]
    platforms: list[PlatformFormOut]
    providers: list[ProviderPresetOut]
    problems: list[SettingProblemOut] = Field(description="Stored values that can't be used, and what to do.")
    pending_restart: list[str] = Field(description="Settings that were changed and apply after a restart.")


class SettingsIn(RequestModel):
    """What to change: all of it is stored, or nothing."""

    set: dict[SettingKey, Any] = Field(
        default_factory=dict,
        max_length=MAX_CHANGED_KEYS,
        description="Values by key. A section can be set as a whole: its keys are set.",
        examples=[{"turns.max_running": 4, "providers.openai.api_key": "sk-…"}],
    )
    unset: list[SettingKey] = Field(
        default_factory=list, max_length=MAX_CHANGED_KEYS, description="Keys, or sections with all their keys."
    )
    expected_version: Seq | None = Field(
        default=None, description="Refuse the change (409) if the settings have another version by now."
    )


class SettingsChangedOut(ResponseModel):
    """The settings after a change. They are in force on this server now, and on others within a second."""

    version: Seq
    change: Seq | None = Field(description="The number of the change in the history; null if nothing was different.")
    changed: list[str]
    pending_restart: list[str]


class ChangeItemOut(ResponseModel):
    """One key of a change. A secret is shown as `set`, with its last characters if it is long."""

    key: str
    before: Any
    after: Any
    is_secret: bool


class SettingsChangeOut(ResponseModel):
    """A change in the history."""

    number: Seq
    changed_at: Time
    person_id: str | None
    person_name: str | None
    origin: Literal["page", "terminal"]
    undoes: Seq | None = Field(description="The change that this one has undone.")
    items: list[ChangeItemOut]


class SettingsHistoryOut(ResponseModel):
    """Changes, newest first."""

    changes: list[SettingsChangeOut]
    next_cursor: Seq | None = Field(description="Pass it as `before` to get older changes; null on the last page.")


class UndoIn(RequestModel):
    """The change to undo."""

    change: Seq
    expected_version: Seq | None = None


class ProviderTestIn(RequestModel):
    """A provider to test, with values that need not be stored."""

    provider: ProviderName
    api_key: SecretText | None = Field(default=None, description="Null: the key of the settings.")
    base_url: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        default=None, description="Null: the address of the settings. A stored key is not sent to another address."
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="Without the provider; null: its usual model, or its first."
    )


class ProviderTestOut(ResponseModel):
    """How a round trip to a model went."""

    ok: bool
    model: str | None
    seconds: float
    reply: str | None = Field(description="What the model has answered.")
    error: str | None
    detail: str | None = Field(description="What the provider itself said.")
    facts: dict[str, Any] = Field(description="Of the error: its `code`, and the values that it mentions.")


class AvailableModelsOut(ResponseModel):
    """The models of a provider, as it lists them."""

    models: list[str] = Field(description="Without the provider: `provider:name` is the name of a model in settings.")


class AccountTestIn(RequestModel):
    """Settings of an account, which need not be stored; a stored one that is left out is used."""

    account: Annotated[str, StringConstraints(max_length=32)] = Field(
        default="", description="Its name; empty for the only one."
    )
    settings: dict[Annotated[str, StringConstraints(max_length=100)], Any] = Field(default_factory=dict, max_length=100)


class AccountTestOut(ResponseModel):
    """How signing in went. The account is not connected."""

    ok: bool
    seconds: float
    name: str | None = Field(description="The name of the account on the platform.")
    is_linked: bool = Field(description="False: it has to be linked with a phone after it is saved.")
    warnings: list[str]
    details: list[str]
    error: str | None

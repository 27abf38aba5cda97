"""JSON schemas of settings. A secret is never part of a response: only whether it is set, and its last characters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from palaver.config.setting_templates import MAX_KEY_CHARS
from palaver.core.wire import Doc, TypedDict
from palaver.settings.editor import MAX_CHANGED_KEYS
from palaver.settings.wire import SettingJson, SettingsChangeJson
from palaver.web.state import RequestModel, Seq

SettingKey = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS)]
ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$", max_length=32)]
SecretText = Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class SettingTemplateJson(TypedDict):
    """A setting that exists, or all settings of one kind, with what a form needs."""

    key: Annotated[str, Doc(example="providers.<name>.api_key")]
    kind: Annotated[
        str,
        Doc(
            "text, long_text, url, number, integer, boolean, choice, timezone, model or image. `adapter`: the"
            " form of its platform describes it."
        ),
    ]
    is_list: bool
    is_optional: Annotated[bool, Doc("Null is a valid value.")]
    choices: list[str]
    minimum: int | None
    maximum: int | None
    pattern: Annotated[str | None, Doc("A regular expression for the whole text.")]
    allowed: Annotated[str, Doc("The valid values, in words.")]
    default: Any
    is_secret: bool
    needs_restart: Annotated[bool, Doc("A change applies after the server was started again.")]
    is_terminal_only: Annotated[bool, Doc("It starts a program, so it can be changed only on the server itself.")]
    unstorable_reason: Annotated[str | None, Doc("Why it can be set only in config.yaml or the environment.")]
    help: str


class SettingProblemJson(TypedDict):
    """A stored value that can't be used."""

    key: str
    message: str


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


class SettingNamesJson(TypedDict):
    """What settings and their values are called, for people."""

    parts: Annotated[dict[str, str], Doc("By a part of a key, such as `turns` or `max_running`.")]
    choices: Annotated[dict[str, dict[str, str]], Doc("By the last part of a key, and the value.")]


class SettingsJson(TypedDict):
    """All settings."""

    version: Annotated[Seq, Doc("Pass it as `expected_version`, so that no change of another person is lost.")]
    settings: list[SettingJson]
    templates: list[SettingTemplateJson]
    platforms: list[PlatformFormJson]
    providers: list[ProviderPresetJson]
    names: SettingNamesJson
    problems: Annotated[list[SettingProblemJson], Doc("Stored values that can't be used, and what to do.")]
    pending_restart: Annotated[list[str], Doc("Settings that were changed and apply after a restart.")]


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


class SettingsChangedJson(TypedDict):
    """The settings after a change. They are in force on this server now, and on others within a second."""

    version: Seq
    change: Annotated[Seq | None, Doc("The number of the change in the history; null if nothing was different.")]
    changed: list[str]
    pending_restart: list[str]


class SettingsHistoryJson(TypedDict):
    """Changes, newest first."""

    changes: list[SettingsChangeJson]
    next_cursor: Annotated[Seq | None, Doc("Pass it as `before` to get older changes; null on the last page.")]


class UndoChangeIn(RequestModel):
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


class ProviderTestJson(TypedDict):
    """How a round trip to a model went."""

    ok: bool
    model: str | None
    seconds: float
    reply: Annotated[str | None, Doc("What the model has answered.")]
    error: str | None
    detail: Annotated[str | None, Doc("What the provider itself said.")]
    facts: Annotated[dict[str, Any], Doc("Of the error: its `code`, and the values that it mentions.")]


class AvailableModelsJson(TypedDict):
    """The models of a provider, as it lists them."""

    models: Annotated[list[str], Doc("Without the provider: `provider:name` is the name of a model in settings.")]


class AccountTestIn(RequestModel):
    """Settings of an account, which need not be stored; a stored one that is left out is used."""

    account: Annotated[str, StringConstraints(max_length=32)] = Field(
        default="", description="Its name; empty for the only one."
    )
    settings: dict[Annotated[str, StringConstraints(max_length=100)], Any] = Field(default_factory=dict, max_length=100)


class AccountTestJson(TypedDict):
    """How signing in went. The account is not connected."""

    ok: bool
    seconds: float
    name: Annotated[str | None, Doc("The name of the account on the platform.")]
    is_linked: Annotated[bool, Doc("False: it has to be linked with a phone after it is saved.")]
    warnings: list[str]
    details: list[str]
    error: str | None

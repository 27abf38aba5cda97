"""Settings, for owners: what exists, its value, changes and their history, tests of providers and accounts.

A secret is never part of a response: only whether it is set, and its last characters.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query
from pydantic import Field, StringConstraints

from palaver.config.setting_names import list_choice_names
from palaver.config.setting_templates import (
    MAX_KEY_CHARS,
    format_path,
    list_part_names,
    list_templates,
)
from palaver.core.text import make_storable
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.settings import live_settings as account_tests, model_providers
from palaver.settings.editor import MAX_CHANGED_KEYS, EditResult, SettingsEdit
from palaver.settings.overview import SettingsOverview, setting_to_json
from palaver.settings.wire import (
    AccountTestJson,
    PlatformFormJson,
    ProviderPresetJson,
    ProviderTestJson,
    SettingJson,
    SettingsChangeJson,
)
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.state import MAX_SEQ, RequestModel, Seq, State

if TYPE_CHECKING:
    from palaver.settings.live_settings import LiveSettings
    from palaver.settings.model_providers import ProviderAccess

router = make_router("settings", "/api/settings", responses=error_responses(401))

MAX_PAGE_CHANGES = 100

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
    """Changes of settings: all of them are stored, or none."""

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


class AvailableModelsJson(TypedDict):
    """The models of a provider, as it lists them."""

    models: Annotated[list[str], Doc("Without the provider: `provider:name` is the name of a model in settings.")]


class AccountTestIn(RequestModel):
    """Settings of an account, which need not be stored; a stored one that is left out is used."""

    account: Annotated[str, StringConstraints(max_length=32)] = Field(
        default="", description="Its name; empty for the only one."
    )
    settings: dict[Annotated[str, StringConstraints(max_length=100)], Any] = Field(default_factory=dict, max_length=100)


@router.get("")
async def get_settings(state: State, _owner: OwnerCaller) -> SettingsJson:
    """Return all settings with their values, and everything that a page needs to offer them.

    Settings with a name that you choose, such as `providers.<name>.api_key`, are listed for the names that exist;
    `templates` has all of them. The value of a secret is never returned.
    """
    overview = await state.settings.describe()
    return await asyncio.to_thread(_build_settings_json, state.settings, overview)


@router.patch("", responses=error_responses(409))
async def change_settings(body: SettingsIn, state: State, owner: OwnerCaller) -> SettingsChangedJson:
    """Set and unset settings: all of them, or none if one is not valid (422, with `problems`).

    They are in force on this server when the response comes, and on all others of the same database within a second.
    Answers that are being written keep the settings with which they have started.
    """
    edit = SettingsEdit(values=body.set, unset=body.unset, expected_version=body.expected_version)
    result = await state.settings.change(owner.principal, edit)
    return _to_changed_json(state.settings, result)


@router.get("/history")
async def list_settings_changes(
    state: State,
    owner: OwnerCaller,
    before: Annotated[int, Query(ge=0, le=MAX_SEQ, description="Only changes before this number.")] | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_CHANGES)] = 50,
) -> SettingsHistoryJson:
    """List who has changed which settings, newest first. The values of secrets are never shown."""
    changes = await state.settings.list_history(owner.principal, before=before, limit=limit)
    next_cursor = changes[-1].number if len(changes) == limit else None
    return SettingsHistoryJson(
        changes=[build_json(SettingsChangeJson, each) for each in changes], next_cursor=next_cursor
    )


@router.post("/undo", responses=error_responses(404, 409))
async def undo_settings_change(body: UndoChangeIn, state: State, owner: OwnerCaller) -> SettingsChangedJson:
    """Put back the values from before a change. That is a change itself, and can be undone."""
    result = await state.settings.undo(owner.principal, body.change, body.expected_version)
    return _to_changed_json(state.settings, result)


@router.post("/models/test")
async def run_provider_test(body: ProviderTestIn, state: State, _owner: OwnerCaller) -> ProviderTestJson:
    """Let a model of a provider answer one short question, with values that need not be stored. It costs a few tokens.

    The answer comes after at most 45 seconds. A provider that refuses is no error of this request: `error` says why.
    """
    access = _find_access(state, body.provider, body.api_key, body.base_url)
    return await model_providers.run_test(access, body.model)


@router.get("/models/available", responses=error_responses(502))
async def list_available_models(
    state: State, _owner: OwnerCaller, provider: Annotated[ProviderName, Query()]
) -> AvailableModelsJson:
    """List the models that a provider of the settings offers, as the provider says. It takes at most 15 seconds."""
    names = await model_providers.list_models(_find_access(state, provider, None, None))
    return AvailableModelsJson(models=[make_storable(name) for name in names])


@router.post("/platforms/{platform}/test", responses=error_responses(404))
async def run_account_test(
    platform: Annotated[str, Path(max_length=40)], body: AccountTestIn, state: State, _owner: OwnerCaller
) -> AccountTestJson:
    """Sign in to an account with values that need not be stored, and sign out again; it is not connected.

    The answer comes after at most about a minute.
    """
    return await account_tests.run_account_test(state.settings, platform, body.account, body.settings)


def _find_access(state: State, provider: str, api_key: str | None, base_url: str | None) -> ProviderAccess:
    settings = state.settings.current.settings
    return model_providers.find_access(provider, settings.agent, settings.fixed_layers.environ, api_key, base_url)


def _build_settings_json(live: LiveSettings, overview: SettingsOverview) -> SettingsJson:
    loaded = live.current
    return SettingsJson(
        version=loaded.state.version,
        settings=[setting_to_json(value) for value in overview.list_values()],
        templates=[
            build_json(SettingTemplateJson, each, kind="adapter" if each.is_adapter_setting else each.kind)
            for each in list_templates()
        ],
        platforms=[build_json(PlatformFormJson, None, **form) for form in live.catalog.list_forms()],
        providers=list(model_providers.PRESETS),
        names=build_json(SettingNamesJson, None, parts=list_part_names(), choices=list_choice_names()),
        problems=[
            build_json(SettingProblemJson, each, key=format_path(each.path), message=each.text)
            for each in loaded.problems
        ],
        pending_restart=live.list_pending_restarts(),
    )


def _to_changed_json(live: LiveSettings, result: EditResult) -> SettingsChangedJson:
    return SettingsChangedJson(
        version=result.loaded.state.version,
        change=result.change_no,
        changed=[format_path(path) for path in result.changed],
        pending_restart=live.list_pending_restarts(),
    )

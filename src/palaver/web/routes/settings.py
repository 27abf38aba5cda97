"""Settings, for owners: what exists, its value, changes and their history, tests of providers and accounts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from fastapi import Path, Query

from palaver.config.setting_names import list_choice_names
from palaver.config.setting_templates import SettingTemplate, format_path, list_part_names, list_templates
from palaver.core.text import make_storable
from palaver.core.wire import build_json
from palaver.settings import live_settings as account_tests, model_providers
from palaver.settings.editor import EditResult, SettingsEdit
from palaver.settings.wire import SettingsChangeJson, setting_to_json
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.settings_schemas import (
    AccountTestIn,
    AccountTestJson,
    AvailableModelsJson,
    PlatformFormJson,
    ProviderName,
    ProviderPresetJson,
    ProviderTestIn,
    ProviderTestJson,
    SettingNamesJson,
    SettingProblemJson,
    SettingsChangedJson,
    SettingsHistoryJson,
    SettingsIn,
    SettingsJson,
    SettingTemplateJson,
    UndoChangeIn,
)
from palaver.web.state import MAX_SEQ, State

if TYPE_CHECKING:
    from palaver.settings.live_settings import LiveSettings
    from palaver.settings.model_providers import ProviderAccess
    from palaver.settings.overview import SettingsOverview

router = make_router("settings", "/api/settings", responses=error_responses(401))

MAX_PAGE_CHANGES = 100


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
    test = await model_providers.run_test(access, body.model)
    facts = {name: value for name, value in test.facts.items() if name != "detail"}
    return build_json(ProviderTestJson, test, ok=test.error is None, facts=facts)


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
    test = await account_tests.run_account_test(state.settings, platform, body.account, body.settings)
    return build_json(AccountTestJson, test, ok=test.error is None)


def _find_access(state: State, provider: str, api_key: str | None, base_url: str | None) -> ProviderAccess:
    settings = state.settings.current.settings
    return model_providers.find_access(provider, settings.agent, settings.fixed_layers.environ, api_key, base_url)


# -- responses ----------------------------------------------------------------------------------------------


def _build_settings_json(live: LiveSettings, overview: SettingsOverview) -> SettingsJson:
    loaded = live.current
    return SettingsJson(
        version=loaded.state.version,
        settings=[setting_to_json(value) for value in overview.list_values()],
        templates=[_to_template_json(template) for template in list_templates()],
        platforms=[build_json(PlatformFormJson, form) for form in live.catalog.list_forms()],
        providers=[build_json(ProviderPresetJson, preset) for preset in model_providers.PRESETS],
        names=build_json(SettingNamesJson, None, parts=list_part_names(), choices=list_choice_names()),
        problems=[
            build_json(SettingProblemJson, each, key=format_path(each.path), message=each.text)
            for each in loaded.problems
        ],
        pending_restart=_list_restarts(live),
    )


def _to_template_json(template: SettingTemplate) -> SettingTemplateJson:
    return build_json(SettingTemplateJson, template, kind="adapter" if template.is_adapter_setting else template.kind)


def _to_changed_json(live: LiveSettings, result: EditResult) -> SettingsChangedJson:
    return SettingsChangedJson(
        version=result.loaded.state.version,
        change=result.change_no,
        changed=[format_path(path) for path in result.changed],
        pending_restart=_list_restarts(live),
    )


def _list_restarts(live: LiveSettings) -> list[str]:
    return [format_path(path) for path in live.list_pending_restarts()]

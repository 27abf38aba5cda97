"""Settings, for owners: what exists, its value, changes and their history, tests of providers and accounts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Path, Query

from palaver.config.setting_templates import format_path, list_templates
from palaver.settings import live_settings as account_tests, model_providers
from palaver.settings.editor import SettingsEdit
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.settings_schemas import (
    AccountTestIn,
    AccountTestOut,
    AvailableModelsOut,
    ChangeItemOut,
    PlatformFieldOut,
    PlatformFormOut,
    ProviderName,
    ProviderPresetOut,
    ProviderTestIn,
    ProviderTestOut,
    SettingOut,
    SettingProblemOut,
    SettingsChangedOut,
    SettingsChangeOut,
    SettingsHistoryOut,
    SettingsIn,
    SettingSourceOut,
    SettingsOut,
    SettingTemplateOut,
    UndoIn,
)
from palaver.web.state import MAX_SEQ, State, replace_surrogates, to_utf8_text

if TYPE_CHECKING:
    from palaver.config.form_fields import FormField
    from palaver.config.setting_templates import SettingTemplate
    from palaver.settings.editor import EditResult
    from palaver.settings.encryption import SettingsChange
    from palaver.settings.live_settings import LiveSettings
    from palaver.settings.model_providers import ProviderAccess
    from palaver.settings.overview import PlatformForm, SettingsOverview, SettingValue

_Out = TypeVar("_Out", SettingTemplateOut, PlatformFieldOut)

router = make_router("settings", "/api/settings", responses=error_responses(401))

MAX_PAGE_CHANGES = 100


@router.get("")
async def get_settings(state: State, _owner: OwnerCaller) -> SettingsOut:
    """Return all settings with their values, and everything that a page needs to offer them.

    Settings with a name that you choose, such as `providers.<name>.api_key`, are listed for the names that exist;
    `templates` has all of them. The value of a secret is never returned.
    """
    overview = await state.settings.describe()
    return await asyncio.to_thread(_build_settings_out, state.settings, overview)


@router.patch("", responses=error_responses(409))
async def change_settings(body: SettingsIn, state: State, owner: OwnerCaller) -> SettingsChangedOut:
    """Set and unset settings: all of them, or none if one is not valid (422, with `problems`).

    They are in force on this server when the response comes, and on all others of the same database within a second.
    Answers that are being written keep the settings with which they have started.
    """
    edit = SettingsEdit(values=body.set, unset=body.unset, expected_version=body.expected_version)
    result = await state.settings.change(owner.principal, edit)
    return _to_changed_out(state.settings, result)


@router.get("/history")
async def list_settings_changes(
    state: State,
    owner: OwnerCaller,
    before: Annotated[int, Query(ge=0, le=MAX_SEQ, description="Only changes before this number.")] | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_CHANGES)] = 50,
) -> SettingsHistoryOut:
    """List who has changed which settings, newest first. The values of secrets are never shown."""
    changes = await state.settings.list_history(owner.principal, before=before, limit=limit)
    next_cursor = changes[-1].number if len(changes) == limit else None
    return SettingsHistoryOut(changes=[_to_change_out(each) for each in changes], next_cursor=next_cursor)


@router.post("/undo", responses=error_responses(404, 409))
async def undo_settings_change(body: UndoIn, state: State, owner: OwnerCaller) -> SettingsChangedOut:
    """Put back the values from before a change. That is a change itself, and can be undone."""
    result = await state.settings.undo(owner.principal, body.change, body.expected_version)
    return _to_changed_out(state.settings, result)


@router.post("/models/test")
async def run_provider_test(body: ProviderTestIn, state: State, _owner: OwnerCaller) -> ProviderTestOut:
    """Let a model of a provider answer one short question, with values that need not be stored. It costs a few tokens.

    The answer comes after at most 45 seconds. A provider that refuses is no error of this request: `error` says why.
    """
    access = _find_access(state, body.provider, body.api_key, body.base_url)
    test = await model_providers.run_test(access, body.model)
    return ProviderTestOut(
        ok=test.error is None,
        model=test.model,
        seconds=test.seconds,
        reply=None if test.reply is None else to_utf8_text(test.reply),
        error=None if test.error is None else to_utf8_text(test.error),
        detail=None if test.detail is None else to_utf8_text(test.detail),
        facts={name: replace_surrogates(value) for name, value in test.facts.items() if name != "detail"},
    )


@router.get("/models/available", responses=error_responses(502))
async def list_available_models(
    state: State, _owner: OwnerCaller, provider: Annotated[ProviderName, Query()]
) -> AvailableModelsOut:
    """List the models that a provider of the settings offers, as the provider says. It takes at most 15 seconds."""
    names = await model_providers.list_models(_find_access(state, provider, None, None))
    return AvailableModelsOut(models=[to_utf8_text(name) for name in names])


@router.post("/platforms/{platform}/test", responses=error_responses(404))
async def run_account_test(
    platform: Annotated[str, Path(max_length=40)], body: AccountTestIn, state: State, _owner: OwnerCaller
) -> AccountTestOut:
    """Sign in to an account with values that need not be stored, and sign out again; it is not connected.

    The answer comes after at most about a minute.
    """
    test = await account_tests.run_account_test(state.settings, platform, body.account, body.settings)
    return AccountTestOut(
        ok=test.error is None,
        seconds=test.seconds,
        name=None if test.name is None else to_utf8_text(test.name),
        is_linked=test.is_linked,
        warnings=[to_utf8_text(each) for each in test.warnings],
        details=[to_utf8_text(each) for each in test.details],
        error=None if test.error is None else to_utf8_text(test.error),
    )


def _find_access(state: State, provider: str, api_key: str | None, base_url: str | None) -> ProviderAccess:
    settings = state.settings.current.settings
    return model_providers.find_access(provider, settings.agent, settings.fixed_layers.environ, api_key, base_url)


# -- responses ----------------------------------------------------------------------------------------------


def _build_settings_out(live: LiveSettings, overview: SettingsOverview) -> SettingsOut:
    loaded = live.current
    return SettingsOut(
        version=loaded.state.version,
        settings=[_to_setting_out(value) for value in overview.list_values()],
        templates=[_to_template_out(template) for template in list_templates()],
        platforms=[_to_form_out(form) for form in live.catalog.list_forms()],
        providers=[
            ProviderPresetOut(
                name=preset.name,
                title=preset.title,
                base_url=preset.base_url,
                needs_key=preset.needs_key,
                key_page=preset.key_page,
                default_model=preset.default_model,
            )
            for preset in model_providers.PRESETS
        ],
        problems=[SettingProblemOut(key=format_path(each.path), message=str(each)) for each in loaded.problems],
        pending_restart=_list_restarts(live),
    )


def _to_setting_out(value: SettingValue) -> SettingOut:
    source = value.source
    return SettingOut(
        key=value.key,
        template=value.template.key,
        value=replace_surrogates(value.value),
        is_set=value.is_set,
        is_secret=value.is_secret,
        hint=value.hint,
        source=SettingSourceOut(
            kind=source.kind, variable=source.variable, line=source.line, set_at=source.set_at, set_by=source.set_by
        ),
        can_change=value.can_change and not value.template.is_terminal_only,
        problem=value.problem,
    )


def _to_template_out(template: SettingTemplate) -> SettingTemplateOut:
    out = _to_field_out(SettingTemplateOut, template)
    return out.model_copy(update={"kind": "adapter"}) if template.is_adapter_setting else out


def _to_form_out(form: PlatformForm) -> PlatformFormOut:
    return PlatformFormOut(
        platform=form.platform,
        label=form.label,
        summary=form.summary,
        problem=form.problem,
        steps=list(form.steps),
        needs_public_url=form.needs_public_url,
        can_be_linked=form.can_be_linked,
        fields=[_to_field_out(PlatformFieldOut, field) for field in form.fields],
    )


def _to_field_out(model: type[_Out], field: FormField) -> _Out:
    """Return what a page needs of a field; a number stays an integer if it is one."""
    values = {name: getattr(field, name) for name in model.model_fields}
    return model.model_validate(
        {name: list(each) if isinstance(each, tuple) else each for name, each in values.items()}
    )


def _to_changed_out(live: LiveSettings, result: EditResult) -> SettingsChangedOut:
    return SettingsChangedOut(
        version=result.loaded.state.version,
        change=result.change_no,
        changed=[format_path(path) for path in result.changed],
        pending_restart=_list_restarts(live),
    )


def _to_change_out(change: SettingsChange) -> SettingsChangeOut:
    return SettingsChangeOut.model_validate(
        {
            "number": change.number,
            "changed_at": change.changed_at,
            "person_id": change.person_id,
            "person_name": change.person_name,
            "origin": change.origin,
            "undoes": change.undoes,
            "items": [
                ChangeItemOut(key=item.key, before=item.before, after=item.after, is_secret=item.is_secret)
                for item in change.items
            ],
        }
    )


def _list_restarts(live: LiveSettings) -> list[str]:
    return [format_path(path) for path in live.list_pending_restarts()]

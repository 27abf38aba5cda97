"""Describes the platforms that are installed to the settings: their forms, their secrets, their accounts.

Importing it imports nothing heavy: a terminal chat has it, and hardly ever uses it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from palaver.config import AccountEntry, Settings
from palaver.config.layers import SettingProblem
from palaver.config.setting_names import name_field
from palaver.config.setting_templates import ValueHint
from palaver.core.errors import NotFound
from palaver.core.texts import join_texts, name_text
from palaver.settings.wire import PlatformFieldJson, PlatformFormJson

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic.fields import FieldInfo

    from palaver.config.setting_templates import SettingPath
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.platforms.manifest import PlatformManifest


class InstalledPlatforms:
    """The platforms that installed packages provide; see `PlatformCatalog`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    @cached_property
    def _manifests(self) -> Mapping[str, PlatformManifest]:
        from palaver.platforms.registry import load_manifests

        return load_manifests()

    def list_forms(self) -> Sequence[PlatformFormJson]:
        return [_make_form(manifest) for manifest in self._manifests.values()]

    def is_secret(self, platform: str, setting: str) -> bool:
        manifest = self._manifests.get(platform)
        return manifest is None or manifest.may_be_secret(setting)

    def list_addresses(self, platform: str) -> Mapping[str, object] | None:
        manifest = self._manifests.get(platform)
        if manifest is None:
            return None
        fields = ((name, manifest.settings.model_fields[name]) for name in sorted(manifest.list_addresses()))
        return {name: None if info.is_required() else info.default for name, info in fields}

    def is_terminal_only(self, platform: str, setting: str) -> bool:
        manifest = self._manifests.get(platform)
        return manifest is not None and setting in manifest.terminal_only

    def find_variable(self, path: SettingPath) -> str | None:
        match path:
            case ("platforms", platform, "settings", setting) if (
                manifest := self._manifests.get(platform)
            ) is not None:
                names = (name for name, each in manifest.environment.items() if each == setting)
                return next((name for name in names if self._environ.get(name, "").strip()), None)
        return None

    def find_problems(
        self, before: Settings, after: Settings, changed: Collection[SettingPath]
    ) -> Sequence[SettingProblem]:
        platforms = {path[1] for path in changed if path[0] == "platforms" and len(path) > 2}
        if not platforms:
            return []
        known = {account.problem for account in self._list_accounts(before)}
        return [
            SettingProblem(
                path=account.problem_path or ("platforms", str(account.platform)),
                text=account.problem,
                is_sentence=True,
            )
            for account in self._list_accounts(after)
            if account.platform in platforms and account.problem is not None and account.problem not in known
        ]

    def list_accounts(self, settings: Settings, unreadable: Mapping[SettingPath, str]) -> list[ConfiguredAccount]:
        from palaver.core.logs import hide_in_logs

        accounts = [_refuse_unreadable(account, unreadable) for account in self._list_accounts(settings)]
        hide_in_logs(secret for account in accounts for secret in account.secrets)
        return accounts

    def build_account(
        self, settings: Settings, platform: str, account: str, values: Mapping[str, object]
    ) -> ConfiguredAccount:
        from palaver.core.logs import hide_in_logs
        from palaver.platforms.registry import configure_account

        manifest = self._manifests.get(platform)
        if manifest is None:
            raise NotFound(f"There is no platform {platform[:40]!r}.", platform=platform[:40])
        entry = AccountEntry(platform=manifest.platform, name=account, settings=values)
        configured = configure_account(entry, self._environ, settings, manifest)
        hide_in_logs(configured.secrets)
        return configured

    def _list_accounts(self, settings: Settings) -> list[ConfiguredAccount]:
        from palaver.platforms.registry import list_configured_accounts

        return list_configured_accounts(settings, self._environ, self._manifests)


def _refuse_unreadable(account: ConfiguredAccount, unreadable: Mapping[SettingPath, str]) -> ConfiguredAccount:
    prefix = ("platforms", str(account.platform), *(("accounts", account.account) if account.account else ()))
    texts = [f"{'.'.join(path)}: " + text for path, text in unreadable.items() if path[:-1] == (*prefix, "settings")]
    if not texts:
        return account
    from palaver.platforms.registry import make_refusal

    problem = join_texts(" ", texts)
    return replace(account, problem=problem, create=make_refusal(problem))


def _make_form(manifest: PlatformManifest) -> PlatformFormJson:
    from palaver.platforms.registry import describe_missing_package

    return PlatformFormJson(
        platform=str(manifest.platform),
        label=manifest.platform.label,
        summary=name_text(f"platform.{manifest.platform}.summary", manifest.summary),
        fields=[_make_field(name, info, manifest) for name, info in manifest.settings.model_fields.items()],
        problem=describe_missing_package(manifest),
        steps=[
            name_text(f"platform.{manifest.platform}.steps.{number}", step)
            for number, step in enumerate(manifest.steps, 1)
        ],
        needs_public_url=manifest.needs_public_url,
        can_be_linked=manifest.can_be_linked,
    )


def _make_field(name: str, info: FieldInfo, manifest: PlatformManifest) -> PlatformFieldJson:
    from palaver.platforms.manifest import FieldHelp

    hint = ValueHint.read(info.annotation, tuple(info.metadata))
    text, where = manifest.help.get(name) or hint.find(FieldHelp) or (hint.help, "")
    default = None if info.is_required() else info.default
    field = {
        **hint.describe(),
        "name": name,
        "label": name_field(name),
        "help": name_text(f"platform.{manifest.platform}.{name}", text),
        "where": name_text(f"platform.{manifest.platform}.{name}.where", where),
        "is_secret": name in manifest.list_secrets(),
        "is_required": info.is_required(),
        "default": list(default) if isinstance(default, tuple) else default,
        "is_terminal_only": name in manifest.terminal_only,
        "variable": next((each for each, setting in manifest.environment.items() if setting == name), None),
    }
    return cast("PlatformFieldJson", field)

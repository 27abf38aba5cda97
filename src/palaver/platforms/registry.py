"""Finds the platforms that are installed, and the accounts that are set up on them.

Always true: whatever is wrong with a package, a setting or a variable concerns one account, and is told in words: which
key, what is wrong, how to fix it. No value of a setting that may be secret is shown.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import logging
import re
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr, ValidationError

from palaver.config import AccountEntry, Settings
from palaver.config.layers import SettingProblem, make_exposure_problem
from palaver.config.validation import suggest_name
from palaver.core.errors import AccountRefused
from palaver.core.source import BUILT_IN_PLATFORMS, Platform
from palaver.core.texts import join_texts, name_text, read_message, say
from palaver.gateway.account_link import ConfiguredAccount, hide_values
from palaver.platforms.manifest import ENTRY_POINT_GROUP, AccountPlace, AccountSettings, PlatformManifest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from palaver.config.settings import FixedLayers
    from palaver.delivery.adapter import Adapter

log = logging.getLogger(__name__)

FOLDER = "platforms"  # in the home folder: what adapters keep
# What templates and guides contain in place of a secret.
_PLACEHOLDER = re.compile(
    r"<.*>|\$\{?\w*\}?|\.{3}|…|x{3,}|\*+|(?:change|replace)[-_ ]?(?:me|this|it)"
    r"|(?:your|my|the|insert|paste|put|enter)[-_ ].*|.*[-_ ]here"
    r"|placeholder|todo|none|null|example|secret|token|password",
    re.IGNORECASE,
)


def load_manifests(points: Iterable[EntryPoint] | None = None) -> dict[str, PlatformManifest]:
    """Load the manifests of all platforms that installed packages provide, built-in ones in the same way.

    A package that cannot be loaded is logged and left out.
    """
    manifests: dict[str, PlatformManifest] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP) if points is None else points:
        fields = {"entry_point": point.name, "package": None if point.dist is None else point.dist.name}
        try:
            manifest = point.load()
        except Exception as error:  # noqa: BLE001  (another package's mistake must not stop the server)
            log.error("platform_not_loaded", extra={**fields, "error": f"{type(error).__name__}: {error}"})
            continue
        if not isinstance(manifest, PlatformManifest):
            log.error("platform_not_loaded", extra={**fields, "error": f"{point.value} is not a PlatformManifest"})
        elif manifest.platform in manifests:
            log.error("platform_not_loaded", extra={**fields, "error": f"{manifest.platform} is provided twice"})
        else:
            manifests[manifest.platform] = manifest
    return manifests


def list_configured_accounts(
    settings: Settings, environ: Mapping[str, str], manifests: Mapping[str, PlatformManifest]
) -> list[ConfiguredAccount]:
    """Return the accounts that config.yaml and the environment set up, whether or not their settings are valid."""
    chat_platforms = frozenset(settings.gateway.chat_platforms)
    entries = {(entry.platform, entry.name): entry for entry in settings.accounts if entry.platform in chat_platforms}
    for manifest in manifests.values():
        if manifest.platform not in settings.disabled_platforms and _read_variables(manifest, environ):
            entries.setdefault((manifest.platform, ""), AccountEntry(platform=manifest.platform, name=""))
    return [
        configure_account(entry, environ, settings, manifests.get(entry.platform))
        for _, entry in sorted(entries.items())
    ]


def configure_account(
    entry: AccountEntry, environ: Mapping[str, str], settings: Settings, manifest: PlatformManifest | None
) -> ConfiguredAccount:
    """Return the account of an entry, with the variables that apply to it, whether or not its settings are valid."""
    if manifest is None:
        return _refuse(entry, _describe_unknown_platform(entry.platform))
    variables = {} if entry.name else _read_variables(manifest, environ)
    values = {**entry.settings, **{manifest.environment[name]: text for name, text in variables.items()}}
    secrets = tuple(_list_raw_secrets(manifest, values))
    exposure = _find_exposure(entry, manifest, variables, settings.fixed_layers)
    if exposure is not None:
        return _refuse(entry, exposure.message, secrets, exposure.path)
    missing = describe_missing_package(manifest)
    if missing is not None:
        return _refuse(entry, missing, secrets)
    try:
        account_settings = manifest.settings.model_validate(values)
    except ValidationError as errors:
        found = errors.errors(include_url=False, include_input=False)
        problems = [_describe_problem(error, entry, manifest, variables) for error in found]
        names = (str(error["loc"][0]) for error in found if error["loc"])
        wrong = [name for name in names if name.isidentifier()]  # another one may be a secret
        path = (*entry.settings_path, *wrong[:1])
        return _refuse(entry, hide_values(join_texts(" ", problems), secrets), secrets, path)
    own_secrets = tuple(_iterate_secrets(account_settings))
    given = (name for name, text in own_secrets if name not in manifest.self_chosen and _PLACEHOLDER.fullmatch(text))
    placeholder = next(given, None)
    if placeholder is not None:
        key = _name_source(placeholder, entry, manifest, variables)
        problem = say(
            "platform.placeholder_replace_real_one", "{key} is a placeholder. Replace it with the real one.", key=key
        )
        return _refuse(entry, problem, secrets, (*entry.settings_path, placeholder))
    place = AccountPlace(
        account=entry.name,
        folder=settings.home / FOLDER / (f"{entry.platform}@{entry.name}" if entry.name else str(entry.platform)),
        webhook_url=_build_webhook_url(settings.web.public_url, entry),
    )

    async def create() -> Adapter:
        return await _create_adapter(manifest, account_settings, place)

    return ConfiguredAccount(
        platform=entry.platform,
        account=entry.name,
        create=create,
        capabilities=manifest.capabilities,
        secrets=tuple({*secrets, *(text for _, text in own_secrets)}),
        fingerprint=_compute_fingerprint(values, place),
    )


def _refuse(
    entry: AccountEntry, problem: str, secrets: tuple[str, ...] = (), path: tuple[str, ...] = ()
) -> ConfiguredAccount:
    """Return an account that cannot be connected, because of a setting or as such; whatever tries is told why."""

    return ConfiguredAccount(
        platform=entry.platform,
        account=entry.name,
        create=make_refusal(problem),
        problem=problem,
        problem_path=path,
        secrets=secrets,
        fingerprint=problem,
    )


def make_refusal(problem: str) -> Callable[[], Awaitable[Adapter]]:
    """Return the function that creates the adapter of an account which cannot be connected."""

    async def create() -> Adapter:
        raise AccountRefused(problem)

    return create


def _compute_fingerprint(values: Mapping[str, object], place: AccountPlace) -> str:
    """Return a text that differs if the account has to be connected again."""
    text = f"{sorted((name, repr(value)) for name, value in values.items())} {place.folder} {place.webhook_url}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


async def _create_adapter(manifest: PlatformManifest, settings: AccountSettings, place: AccountPlace) -> Adapter:
    try:
        for name in manifest.modules:
            await asyncio.to_thread(importlib.import_module, name)  # an SDK takes a while: the event loop must not wait
        adapter = manifest.create_adapter(settings, place)
    except ImportError as error:
        raise AccountRefused(_describe_missing_module(manifest, error.name or str(error))) from error
    adapter.account = place.account
    return adapter


# -- settings -----------------------------------------------------------------------------------------------


def _read_variables(manifest: PlatformManifest, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that set up the account without a name; empty ones are ignored."""
    texts = {name: environ.get(name, "").strip() for name in manifest.environment}
    return {name: text for name, text in texts.items() if text}


def _find_exposure(
    entry: AccountEntry, manifest: PlatformManifest, variables: Mapping[str, str], fixed: FixedLayers
) -> SettingProblem | None:
    """Return why a secret of the environment or config.yaml must not be used: it would be sent to another address.

    Such an address was stored on the page, or is only tested. What the operator sets beside the secret is used.
    """
    prefix = entry.settings_path
    by_variable = {manifest.environment[name]: name for name in variables}

    def is_fixed(name: str) -> bool:
        return name in by_variable or fixed.find_value((*prefix, name)) == (True, entry.settings.get(name))

    secrets = sorted(manifest.list_secrets() & {*by_variable, *(name for name, each in entry.settings.items() if each)})
    secret = next((name for name in secrets if is_fixed(name)), None)
    fields = manifest.settings.model_fields
    names = sorted(name for name in manifest.list_addresses() & entry.settings.keys() if not is_fixed(name))
    address = next((name for name in names if entry.settings[name] not in (None, fields[name].default)), None)
    if secret is None or address is None:
        return None
    place = by_variable.get(secret) or fixed.find_place((*prefix, secret))
    return make_exposure_problem((*prefix, address), f"{entry.settings_key}.{secret}", place)


def _build_webhook_url(public_url: str | None, entry: AccountEntry) -> str | None:
    if public_url is None:
        return None
    return f"{public_url.rstrip('/')}/hooks/{entry.platform}{f'/{entry.name}' if entry.name else ''}"


def _iterate_secrets(settings: AccountSettings) -> Iterator[tuple[str, str]]:
    """Yield the secrets of validated settings, with the names of their settings."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, SecretStr):
                yield name, item.get_secret_value()


def _list_raw_secrets(manifest: PlatformManifest, values: Mapping[str, object]) -> Iterator[str]:
    """Yield the texts in settings that are not validated yet and may be secret."""
    for name, value in values.items():
        if manifest.may_be_secret(name):
            for item in value if isinstance(value, list) else [value]:
                yield str(item).strip()


def _describe_problem(
    error: Mapping[str, Any], entry: AccountEntry, manifest: PlatformManifest, variables: Mapping[str, str]
) -> str:
    name = str(error["loc"][0]) if error["loc"] else ""
    key = _name_source(name, entry, manifest, variables) if name else entry.settings_key
    match error["type"]:
        case "missing":
            by_variable = next((each for each, setting in manifest.environment.items() if setting == name), None)
            if by_variable and not entry.name:
                return say(
                    "settings.required_or_variable",
                    "{key} is required. Set it in the settings, or with {variable}.",
                    key=key,
                    variable=by_variable,
                )
            return say("settings.required", "{key} is required. Set it in the settings.", key=key)
        case "extra_forbidden":
            hint = suggest_name(name, sorted(manifest.settings.model_fields))
            unknown = f"{entry.settings_key}.{name if name.isidentifier() else '…'}"
            return say(
                "settings.unknown_field", "{key} is an unknown key ({suggestion}).", key=unknown, suggestion=hint
            )
        case "string_type":
            return say("platform.must_text_put_quotes", "{key} must be text. Put it in quotes.", key=key)
        case _:
            text = _explain_error(error)
            reason = text if text.endswith((".", "?", "!")) else text + "."
            return say("settings.field_not_valid", "{key} is not valid: {reason}", key=key, reason=reason)


# What pydantic says about values, by the type of its error.
VALUE_PROBLEMS: Final = {
    name: name_text(f"input.{name}", english)
    for name, english in {
        "int_parsing": "Input should be a valid integer, unable to parse string as an integer",
        "float_parsing": "Input should be a valid number, unable to parse string as a number",
        "bool_parsing": "Input should be a valid boolean, unable to interpret input",
        "list_type": "Input should be a valid list",
        "greater_than_equal": "Input should be greater than or equal to {ge}",
        "greater_than": "Input should be greater than {gt}",
        "less_than_equal": "Input should be less than or equal to {le}",
        "less_than": "Input should be less than {lt}",
        "string_too_short": "String should have at least {min_length} characters",
        "string_too_long": "String should have at most {max_length} characters",
        "literal_error": "Input should be {expected}",
    }.items()
}


def _explain_error(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a value: in the words of the check that has refused it, or in those of pydantic."""
    context = error.get("ctx", {})
    if error["type"] == "value_error":
        problem: ValueError = context["error"]
        return read_message(problem)
    if error["type"] in VALUE_PROBLEMS:
        text = VALUE_PROBLEMS[error["type"]]
        return say(f"input.{error['type']}", text, **{name: str(value) for name, value in context.items()})
    return str(error["msg"])


def _name_source(setting: str, entry: AccountEntry, manifest: PlatformManifest, variables: Mapping[str, str]) -> str:
    """Return where the value of a setting comes from: the name of a variable, or its key in config.yaml."""
    variable = next((name for name in variables if manifest.environment[name] == setting), None)
    return variable or f"{entry.settings_key}.{setting}"


def describe_missing_package(manifest: PlatformManifest) -> str | None:
    """Return which package has to be installed before a platform can be connected; None if it can be."""
    missing = next((name for name in manifest.modules if not _is_installed(name)), None)
    return None if missing is None else _describe_missing_module(manifest, missing)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _describe_missing_module(manifest: PlatformManifest, module: str) -> str:
    label = manifest.platform.label
    if manifest.extra is None:
        return say(
            "platform.needs_python_package_cant",
            "{label} needs the Python package {module}, which can't be loaded. Install it and start the server again.",
            label=label,
            module=module,
        )
    command = f"pip install 'palaver[{manifest.extra}]'"
    return say(
        "platform.package_missing",
        "{label} needs the Python package {module}, which can't be loaded. Install it with"
        " `{command}` and start the server again.",
        label=label,
        module=module,
        command=command,
    )


def _describe_unknown_platform(platform: Platform) -> str:
    if platform in BUILT_IN_PLATFORMS:
        return say(
            "platform.not_supported",
            "This version of Palaver can't connect to {label} yet. Set {key}: false.",
            label=platform.label,
            key=f"platforms.{platform}.enabled",
        )
    return say(
        "platform.unknown",
        "No installed package provides the platform {platform}. Install its package, or remove {key}.",
        platform=str(platform),
        key=f"platforms.{platform}",
    )

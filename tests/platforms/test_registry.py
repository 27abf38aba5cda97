"""The registry: which platforms are installed, which accounts are set up, and what is told when one is not right."""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pydantic import SecretStr, field_validator

from palaver.app import open_store
from palaver.config import load_settings
from palaver.core.errors import AccountRefused
from palaver.core.source import Platform
from palaver.delivery.adapter import Adapter
from palaver.delivery.model import Capabilities
from palaver.platforms.loopback import LoopbackAdapter
from palaver.platforms.manifest import AccountPlace, AccountSettings, PlatformManifest
from palaver.platforms.registry import list_configured_accounts, load_manifests

if TYPE_CHECKING:
    from palaver.gateway.account_link import ConfiguredAccount

GROUP = "palaver.platforms"
PIGEON = Platform("pigeon")
TOKEN = "coop-4711-hunter2"
BUILT_IN = [
    *("discord", "email", "matrix", "signal", "slack", "telegram", "webhook", "whatsapp", "whatsapp-web"),
]


class PigeonSettings(AccountSettings):
    token: SecretStr
    loft: str = "north"
    flights: int = 1

    @field_validator("token")
    @classmethod
    def _check_token(cls, value: SecretStr) -> SecretStr:
        if "forged" in value.get_secret_value():
            raise ValueError(f"{value.get_secret_value()} is not a token of a pigeon")  # a careless author
        return value


class PigeonAdapter(LoopbackAdapter):
    platform = PIGEON

    def __init__(self, settings: PigeonSettings, place: AccountPlace) -> None:
        super().__init__()
        self.settings, self.place = settings, place


MANIFEST = PlatformManifest(
    platform=PIGEON,
    settings=PigeonSettings,
    create=PigeonAdapter,
    extra="pigeon",
    environment={"PIGEON_TOKEN": "token", "PIGEON_LOFT": "loft"},
)


def configure(home: Path, text: str = "", **environ: str) -> dict[str, ConfiguredAccount]:
    return configure_platform(MANIFEST, home, text, **environ)


def configure_platform(
    manifest: PlatformManifest, home: Path, text: str = "", **environ: str
) -> dict[str, ConfiguredAccount]:
    (home / "config.yaml").write_text(text, encoding="utf-8")
    accounts = list_configured_accounts(load_settings(environ, home), environ, {manifest.platform: manifest})
    return {f"{account.platform}@{account.account}": account for account in accounts}


async def create(account: ConfiguredAccount) -> PigeonAdapter:
    return cast("PigeonAdapter", await account.create())


# -- manifests ----------------------------------------------------------------------------------------------


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=GROUP)


def test_a_package_that_cannot_be_loaded_is_one_line_in_the_log_and_leaves_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    points = [
        point("missing", "no_such_package.manifest:MANIFEST"),
        point("wrong", f"{__name__}:TOKEN"),
        point("good", f"{__name__}:MANIFEST"),
        point("again", f"{__name__}:MANIFEST"),
    ]
    with caplog.at_level(logging.WARNING):
        assert load_manifests(points) == {PIGEON: MANIFEST}
    lines = [(record.message, vars(record)["entry_point"], vars(record)["error"]) for record in caplog.records]
    assert lines == [
        ("platform_not_loaded", "missing", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("platform_not_loaded", "wrong", f"{__name__}:TOKEN is not a PlatformManifest"),
        ("platform_not_loaded", "again", "pigeon is provided twice"),
    ]
    assert not any(record.exc_info for record in caplog.records)


def test_the_built_in_platforms_are_installed_as_entry_points_and_load_no_sdk() -> None:
    program = (
        "import sys; from palaver.platforms.registry import load_manifests; manifests = load_manifests(); "
        "sdks = {'httpx', 'httpx2', 'aiohttp', *(name for each in manifests.values() for name in each.modules)}; "
        "print(sorted(map(str, manifests)), sorted(sdks & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == f"{sorted(BUILT_IN)} []\n", result.stderr


@pytest.mark.parametrize("platform", BUILT_IN)
def test_a_manifest_has_the_capabilities_of_its_adapter(platform: str) -> None:
    manifest = load_manifests()[Platform(platform)]
    module = importlib.import_module(f"palaver.platforms.{platform.replace('-', '_')}.adapter")
    adapters = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Adapter)]
    [adapter] = [each for each in adapters if getattr(each, "platform", None) == manifest.platform]
    assert manifest.capabilities == adapter.capabilities


@pytest.mark.parametrize("platform", BUILT_IN)
def test_the_page_of_a_platform_has_all_its_settings_and_variables(platform: str) -> None:
    manifest = load_manifests()[Platform(platform)]
    page = (Path(__file__).parents[2] / f"docs/platforms/{platform}.md").read_text(encoding="utf-8")
    names = [*manifest.settings.model_fields, *manifest.environment, f"palaver[{manifest.extra}]"]
    assert [name for name in names if name not in page] == []
    assert set(manifest.environment.values()) <= set(manifest.settings.model_fields)


def test_a_server_knows_from_the_manifests_where_it_may_not_always_write(tmp_path: Path) -> None:
    manifest = replace(MANIFEST, capabilities=Capabilities(reply_window=timedelta(hours=24)))
    accounts = configure_platform(manifest, tmp_path, PIGEON_TOKEN=TOKEN)
    with open_store(load_settings({}, tmp_path), list(accounts.values())) as store:
        assert store.config.reply_hours == {PIGEON: 24.0}
    with open_store(load_settings({}, tmp_path), list(configure(tmp_path, PIGEON_TOKEN=TOKEN).values())) as store:
        assert store.config.reply_hours == {}


# -- accounts -----------------------------------------------------------------------------------------------


async def test_an_account_is_set_up_by_the_file_or_by_variables_and_variables_win(tmp_path: Path) -> None:
    text = f"platforms: {{pigeon: {{settings: {{token: {TOKEN}, loft: south}}}}}}"
    assert configure(tmp_path) == {}
    by_file = await create(configure(tmp_path, text)["pigeon@"])
    assert (by_file.settings.token.get_secret_value(), by_file.settings.loft) == (TOKEN, "south")
    by_variable = await create(configure(tmp_path, PIGEON_TOKEN=f" {TOKEN} ")["pigeon@"])
    assert (by_variable.settings.token.get_secret_value(), by_variable.settings.loft) == (TOKEN, "north")
    both = await create(configure(tmp_path, text, PIGEON_LOFT="west")["pigeon@"])
    assert (both.settings.token.get_secret_value(), both.settings.loft) == (TOKEN, "west")


@pytest.mark.parametrize("section", ["{enabled: false}", f"{{enabled: false, settings: {{token: {TOKEN}}}}}"])
def test_a_disabled_platform_stays_off_whatever_the_variables_say(tmp_path: Path, section: str) -> None:
    assert configure(tmp_path, f"platforms: {{pigeon: {section}}}", PIGEON_TOKEN=TOKEN) == {}


def test_a_home_channel_alone_does_not_set_up_a_platform_and_does_not_disable_it(tmp_path: Path) -> None:
    telegram = PlatformManifest(
        platform=Platform.TELEGRAM, settings=PigeonSettings, create=PigeonAdapter, environment={"BOT": "token"}
    )
    assert configure_platform(telegram, tmp_path, TELEGRAM_HOME_CHANNEL="1") == {}
    assert list(configure_platform(telegram, tmp_path, TELEGRAM_HOME_CHANNEL="1", BOT=TOKEN)) == ["telegram@"]


async def test_several_accounts_of_a_platform_run_side_by_side_each_with_its_place(tmp_path: Path) -> None:
    text = f"""\
web: {{public_url: "https://chat.example.org/palaver/"}}
platforms:
  pigeon:
    accounts:
      work: {{settings: {{token: {TOKEN}-w}}}}
      home: {{settings: {{token: {TOKEN}-h}}}}
      old: {{enabled: false, settings: {{token: {TOKEN}-o}}}}
"""
    accounts = configure(tmp_path, text)
    assert list(accounts) == ["pigeon@home", "pigeon@work"]
    assert load_settings({}, tmp_path).gateway.chat_accounts == ((PIGEON, "work"), (PIGEON, "home"))
    work = await create(accounts["pigeon@work"])
    assert work.account == "work"
    assert work.place == AccountPlace(
        account="work",
        folder=tmp_path / "platforms" / "pigeon@work",
        webhook_url="https://chat.example.org/palaver/hooks/pigeon/work",
    )
    alone = await create(configure(tmp_path, PIGEON_TOKEN=TOKEN)["pigeon@"])
    assert (alone.place.folder, alone.place.webhook_url) == (tmp_path / "platforms" / "pigeon", None)
    assert list(configure(tmp_path, text, PIGEON_TOKEN=TOKEN)) == ["pigeon@", "pigeon@home", "pigeon@work"]


# -- what is told -------------------------------------------------------------------------------------------

KEY = "platforms.pigeon.settings"


@pytest.mark.parametrize(
    ("settings", "environ", "problem"),
    [
        (
            "{}",
            {},
            f"{KEY}.token is required. Set it in the settings, or with PIGEON_TOKEN.",
        ),
        (f"{{token: {TOKEN}, loftt: x}}", {}, f"{KEY}.loftt is an unknown key (did you mean loft?)."),
        (f"{{token: {TOKEN}, {TOKEN}: x}}", {}, f"{KEY}.… is an unknown key (known: flights, loft, token)."),
        ("{token: 123456}", {}, f"{KEY}.token must be text. Put it in quotes."),
        ("{token: your-token-here}", {}, f"{KEY}.token is a placeholder. Replace it with the real one."),
        ("{}", {"PIGEON_TOKEN": "<token>"}, "PIGEON_TOKEN is a placeholder. Replace it with the real one."),
        (f"{{token: forged-{TOKEN}}}", {}, f"{KEY}.token is not valid: … is not a token of a pigeon."),
        ("{}", {"PIGEON_TOKEN": f"forged-{TOKEN}"}, "PIGEON_TOKEN is not valid: … is not a token of a pigeon."),
        (
            f"{{token: {TOKEN}, flights: many}}",
            {},
            f"{KEY}.flights is not valid: Input should be a valid integer, unable to parse string as an integer.",
        ),
    ],
)
async def test_settings_that_are_not_valid_name_the_key_and_the_fix_and_never_a_secret(
    tmp_path: Path, settings: str, environ: dict[str, str], problem: str
) -> None:
    account = configure(tmp_path, f"platforms: {{pigeon: {{settings: {settings}}}}}", **environ)["pigeon@"]
    assert account.problem == problem
    with pytest.raises(AccountRefused) as refusal:
        await account.create()
    assert str(refusal.value) == problem
    assert "hunter2" not in f"{problem} {account!r}"


async def test_a_missing_package_is_named_with_the_extra_that_brings_it(tmp_path: Path) -> None:
    manifest = PlatformManifest(
        platform=PIGEON, settings=PigeonSettings, create=PigeonAdapter, extra="pigeon", modules=("no_such_sdk",)
    )
    account = configure_platform(manifest, tmp_path, f"platforms: {{pigeon: {{settings: {{token: {TOKEN}}}}}}}")[
        "pigeon@"
    ]
    fix = "Install it with `pip install 'palaver[pigeon]'` and start the server again."
    assert account.problem == f"Pigeon needs the Python package no_such_sdk, which can't be loaded. {fix}"

    def create_broken(_settings: Any, _place: AccountPlace) -> Any:
        raise ImportError("broken wheel", name="pigeon_sdk")

    broken = PlatformManifest(platform=PIGEON, settings=PigeonSettings, create=create_broken, extra="pigeon")
    account = configure_platform(broken, tmp_path, f"platforms: {{pigeon: {{settings: {{token: {TOKEN}}}}}}}")[
        "pigeon@"
    ]
    with pytest.raises(AccountRefused, match=r"Pigeon needs the Python package pigeon_sdk.*palaver\[pigeon\]"):
        await account.create()


def test_a_platform_that_nothing_provides_is_told(tmp_path: Path) -> None:
    accounts = configure(tmp_path, "platforms: {irc: {}, discord: {}, local: {}, web: {}}")
    assert {name: account.problem for name, account in accounts.items()} == {
        "discord@": "This version of Palaver can't connect to Discord yet. Set platforms.discord.enabled: false.",
        "irc@": "No installed package provides the platform irc. Install its package, or remove platforms.irc.",
    }


async def test_secrets_are_in_no_repr_and_are_hidden_in_the_words_of_an_sdk(tmp_path: Path) -> None:
    account = configure(tmp_path, f"platforms: {{pigeon: {{settings: {{token: {TOKEN}}}}}}}")["pigeon@"]
    settings = load_settings({}, tmp_path)
    adapter = await create(account)
    assert "hunter2" not in f"{account!r} {settings!r} {adapter.settings!r} {adapter.place!r}"
    assert account.hide_secrets(f"GET https://sky/bot{TOKEN}/fly failed") == "GET https://sky/bot…/fly failed"

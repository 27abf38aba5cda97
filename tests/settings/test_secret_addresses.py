"""A stored secret is sent only to the addresses that it was entered for: every path that could pair it with another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from palaver.app import make_catalog
from palaver.config.setting_templates import list_templates
from palaver.core.errors import InvalidSettings
from palaver.platforms.registry import load_manifests
from palaver.settings.editor import SettingsEdit
from palaver.settings.overview import SecretPairs, find_exposed_secrets
from support.settings import API_KEY, BOT_TOKEN, SettingsTown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from palaver import SessionStore
    from palaver.config.setting_templates import SettingPath

OTHER_KEY = "sk-another-secret-9876543210fedcba"
FIRST, EVIL = "https://first.example", "https://evil.example"


@dataclass(frozen=True)
class Pair:
    """A secret, an address that it is sent to, and what else the section needs."""

    secret: str
    address: str
    value: str = API_KEY
    other_value: str = OTHER_KEY
    addresses: tuple[object, object] = (FIRST, EVIL)
    rest: Mapping[str, Any] = field(default_factory=dict)
    variable: str | None = None  # of the environment, for the secret

    @property
    def settings(self) -> dict[str, Any]:
        return {**self.rest, self.secret: self.value, self.address: self.addresses[0]}

    @property
    def platform(self) -> str | None:
        parts = self.secret.split(".")
        return parts[1] if parts[0] == "platforms" else None


def _make_platform(platform: str, secret: str, address: str, value: str, other: str, **fields: Any) -> Pair:
    prefix = f"platforms.{platform}.settings"
    rest = {f"{prefix}.{name}": each for name, each in fields.pop("rest", {}).items()}
    return Pair(f"{prefix}.{secret}", f"{prefix}.{address}", value, other, rest=rest, **fields)


_EMAIL = {
    "address": "bot@first.example",
    "imap_host": "imap.first.example",
    "smtp_host": "smtp.first.example",
}
_EMAIL_ADDRESSES: dict[str, tuple[object, object]] = {
    "imap_host": ("imap.first.example", "evil.example"),
    "smtp_host": ("smtp.first.example", "evil.example"),
    "imap_port": (993, 6666),
    "smtp_port": (465, 6666),
    "imap_security": ("tls", "starttls"),
    "smtp_security": ("tls", "starttls"),
    "allow_plaintext": (False, True),
    "ca_file": ("/etc/first.pem", "/tmp/evil.pem"),
}
_WHATSAPP = {
    "app_secret": "0123456789abcdef0123456789abcdef",
    "verify_token": "chosen-by-hand-123",
    "phone_number_id": "123456789012345",
}
META_TOKEN = "EAAG" + "a1B2c3D4e5" * 5
PAIRS = {
    "provider": Pair("providers.lab.api_key", "providers.lab.base_url"),
    "openai": Pair("providers.openai.api_key", "providers.openai.base_url", variable="OPENAI_API_KEY"),
    "anthropic": Pair("providers.anthropic.api_key", "providers.anthropic.base_url", variable="ANTHROPIC_API_KEY"),
    "google": Pair("providers.google.api_key", "providers.google.base_url", variable="GEMINI_API_KEY"),
    "search": Pair("web.search.api_key", "web.search.url", rest={"web.search.provider": "brave"}),
    "search provider": Pair("web.search.api_key", "web.search.provider", addresses=("brave", "tavily")),
    "mcp": Pair("mcp_servers.tools.headers.X-Api-Key", "mcp_servers.tools.url"),
    "telegram": _make_platform(
        "telegram", "bot_token", "api_url", BOT_TOKEN, f"9{BOT_TOKEN[1:]}", variable="TELEGRAM_BOT_TOKEN"
    ),
    "telegram account": Pair(
        "platforms.telegram.accounts.work.settings.bot_token",
        "platforms.telegram.accounts.work.settings.api_url",
        BOT_TOKEN,
        f"9{BOT_TOKEN[1:]}",
    ),
    "discord": _make_platform(
        *("discord", "bot_token", "api_url", f"{'A' * 24}.{'b' * 6}.{'c' * 38}", f"{'Z' * 24}.{'b' * 6}.{'c' * 38}"),
        variable="DISCORD_BOT_TOKEN",
    ),
    "slack": _make_platform(
        *("slack", "bot_token", "api_url", "xoxb-1234567890-abcdefghij", "xoxb-9876543210-abcdefghij"),
        rest={"app_token": "xapp-1-A123456-1234567890-abcdef"},
        variable="SLACK_BOT_TOKEN",
    ),
    "slack app": _make_platform(
        *("slack", "app_token", "api_url", "xapp-1-A123456-1234567890-abcdef", "xapp-1-A999999-1234567890-abcdef"),
        rest={"bot_token": "xoxb-1234567890-abcdefghij"},
    ),
    "whatsapp": _make_platform(
        "whatsapp",
        "access_token",
        "api_url",
        META_TOKEN,
        f"{META_TOKEN}zz",
        rest=_WHATSAPP,
        variable="WHATSAPP_ACCESS_TOKEN",
    ),
    "matrix": _make_platform(
        *("matrix", "access_token", "homeserver", "syt_first_token_0123456789", "syt_other_token_0123456789"),
        variable="MATRIX_ACCESS_TOKEN",
    ),
    "matrix password": _make_platform(
        "matrix", "password", "homeserver", API_KEY, OTHER_KEY, rest={"user_id": "@bot:first.example"}
    ),
    "webhook": _make_platform("webhook", "secret", "url", "whsec_" + "QUJD" * 12, "whsec_" + "WFla" * 12),
    **{
        f"email {name}": _make_platform(
            *("email", "password", name, API_KEY, OTHER_KEY),
            rest={each: value for each, value in _EMAIL.items() if each != name},
            addresses=addresses,
            variable="EMAIL_PASSWORD",
        )
        for name, addresses in _EMAIL_ADDRESSES.items()
    },
}
parametrize_pairs = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)


@pytest.fixture
def town(store: SessionStore, tmp_path: Path) -> SettingsTown:
    return SettingsTown(store, tmp_path)


def get_change(town: SettingsTown) -> int:
    return town.editor.list_history(town.owner)[0].number


def list_others(pair: Pair) -> dict[str, Any]:
    """The other secrets of the section, entered again: they are not what is tested."""
    return {key: value for key, value in pair.rest.items() if key.endswith(("token", "secret"))}


def assert_refused(town: SettingsTown, pair: Pair, run: Any) -> None:
    before = town.load().values
    with pytest.raises(InvalidSettings, match="would be sent to this address, so enter it again together") as caught:
        run()
    assert pair.secret in str(caught.value)
    assert pair.value not in str(caught.value)
    assert town.load().values == before


def test_every_secret_has_declared_where_it_is_sent() -> None:
    tested = {(each.secret.split(".")[-1], each.platform) for each in PAIRS.values() if each.platform}
    not_sent = {  # they verify what comes in, or are an address themselves
        *(("signing_secret", "slack"), ("webhook_secret", "telegram"), ("app_secret", "whatsapp")),
        *(("verify_token", "whatsapp"), ("proxy_url", "whatsapp-web")),
    }
    addresses = {(each.address.split(".")[-1], each.platform) for each in PAIRS.values() if each.platform}
    for platform, manifest in load_manifests().items():
        assert manifest.addresses is not None, platform
        assert {(name, str(platform)) for name in manifest.list_secrets()} <= tested | not_sent
        assert {(name, str(platform)) for name in manifest.addresses} <= addresses
    templates = [each for each in list_templates() if each.is_secret]
    assert all(each.list_addresses(each.parts) for each in templates)
    assert {each.key for each in templates if "command" not in str(each.list_addresses(each.parts))} == {
        *("providers.<name>.api_key", "web.search.api_key", "mcp_servers.<name>.headers.<name>"),
    }


@parametrize_pairs
def test_an_address_is_not_changed_without_its_secret(town: SettingsTown, pair: Pair) -> None:
    town.set(pair.settings)
    assert_refused(town, pair, lambda: town.set({pair.address: pair.addresses[1], **list_others(pair)}))
    town.set({pair.address: pair.addresses[1], pair.secret: pair.value, **list_others(pair)})


@parametrize_pairs
def test_an_address_is_not_unset_without_its_secret(town: SettingsTown, pair: Pair) -> None:
    town.set({**pair.settings, pair.address: pair.addresses[1]})
    if pair.address.endswith(("homeserver", "_host", "mcp_servers.tools.url")):
        with pytest.raises(InvalidSettings):
            town.unset(pair.address)
    else:
        assert_refused(
            town,
            pair,
            lambda: town.editor.change(town.owner, SettingsEdit(unset=[pair.address], values=list_others(pair))),
        )


@parametrize_pairs
def test_undoing_a_change_of_the_secret_does_not_send_it_to_a_later_address(town: SettingsTown, pair: Pair) -> None:
    town.set(pair.settings)
    town.set({pair.secret: pair.other_value})
    replaced = get_change(town)
    town.set({pair.address: pair.addresses[1], pair.secret: pair.other_value, **list_others(pair)})
    assert_refused(town, pair, lambda: town.editor.undo(town.owner, replaced))


@parametrize_pairs
def test_undoing_that_a_secret_was_unset_does_not_send_it_to_a_later_address(town: SettingsTown, pair: Pair) -> None:
    town.set(pair.settings)
    town.unset(pair.secret, origin="terminal") if pair.platform is None else town.unset(f"platforms.{pair.platform}")
    unset = get_change(town)
    if pair.platform is None:
        town.set({pair.address: pair.addresses[1]})
        assert_refused(town, pair, lambda: town.editor.undo(town.owner, unset))
    else:  # the whole account comes back, with its own address
        town.set({**pair.settings, pair.secret: pair.other_value, pair.address: pair.addresses[1]})
        town.editor.undo(town.owner, unset)
        assert town.get(pair.address).value == pair.addresses[0]


@parametrize_pairs
def test_undoing_an_undone_change_does_not_send_a_secret_to_a_later_address(town: SettingsTown, pair: Pair) -> None:
    town.set(pair.settings)
    town.set({pair.secret: pair.other_value})
    town.editor.undo(town.owner, get_change(town))
    undone = get_change(town)
    town.set({pair.address: pair.addresses[1], pair.secret: pair.value, **list_others(pair)})
    other = Pair(pair.secret, pair.address, pair.other_value)
    assert_refused(town, other, lambda: town.editor.undo(town.owner, undone))


@parametrize_pairs
def test_undoing_a_change_of_the_address_does_not_send_it_a_later_secret(town: SettingsTown, pair: Pair) -> None:
    town.set({**pair.settings, pair.address: pair.addresses[1]})
    town.set({pair.address: pair.addresses[0], pair.secret: pair.value, **list_others(pair)})
    changed = get_change(town)
    town.set({pair.secret: pair.other_value})
    assert_refused(
        town, Pair(pair.secret, pair.address, pair.other_value), lambda: town.editor.undo(town.owner, changed)
    )


@parametrize_pairs
def test_a_secret_and_its_address_come_back_together(town: SettingsTown, pair: Pair) -> None:
    town.set(pair.settings)
    town.set({pair.address: pair.addresses[1], pair.secret: pair.other_value, **list_others(pair)})
    town.editor.undo(town.owner, get_change(town))
    assert town.get(pair.address).value == pair.addresses[0]
    town.set({pair.secret: pair.other_value})
    town.editor.undo(town.owner, get_change(town))  # at the same address


@parametrize_pairs
def test_an_address_is_not_changed_while_its_secret_cannot_be_read(town: SettingsTown, pair: Pair) -> None:
    town.set(pair.settings)
    other = SettingsTown(town.store, town.home, {"PALAVER_SECRET_KEY": "z" * 40})
    assert_refused(other, pair, lambda: other.set({pair.address: pair.addresses[1]}))


def list_pinned() -> list[Any]:
    """A choice leads to services that are known, and config.yaml refuses headers without a URL."""
    return [pytest.param(pair, id=name) for name, pair in PAIRS.items() if name not in {"search provider", "mcp"}]


@pytest.mark.parametrize("pair", list_pinned())
@pytest.mark.parametrize("origin", ["page", "terminal"])
def test_a_secret_of_the_file_is_not_sent_to_an_address_of_the_database(
    store: SessionStore, tmp_path: Path, pair: Pair, origin: str
) -> None:
    town = SettingsTown(store, tmp_path)
    stored = {**pair.rest, pair.address: pair.addresses[1]}
    (tmp_path / "config.yaml").write_text(to_yaml({pair.secret: pair.value}), encoding="utf-8")
    with pytest.raises(InvalidSettings, match=r"It is set by config\.yaml") as caught:
        town.set(stored, origin=origin)
    assert "would be sent to this address" in str(caught.value)
    (tmp_path / "config.yaml").write_text(
        to_yaml({**pair.rest, pair.secret: pair.value, pair.address: pair.addresses[1]})
    )
    assert_used(SettingsTown(store, tmp_path), pair)


@pytest.mark.parametrize("pair", [each for each in list_pinned() if each.values[0].variable])
def test_a_secret_of_the_environment_is_not_sent_to_an_address_that_was_stored_before(
    store: SessionStore, tmp_path: Path, pair: Pair
) -> None:
    assert pair.variable is not None
    town = SettingsTown(store, tmp_path)
    town.set({**pair.settings, pair.address: pair.addresses[1], pair.secret: pair.other_value})
    if pair.platform is None:
        town.unset(pair.secret, origin="terminal")
    later = SettingsTown(store, tmp_path, {pair.variable: pair.value})
    assert_not_used(later, pair)
    file = to_yaml({**pair.rest, pair.address: pair.addresses[1]})
    pinned = SettingsTown(store, tmp_path, {pair.variable: pair.value}, file)
    assert_used(pinned, pair)


def to_yaml(values: Mapping[str, Any]) -> str:
    import yaml

    tree: dict[str, Any] = {}
    for key, value in values.items():
        *sections, last = key.split(".")
        section = tree
        for part in sections:
            section = section.setdefault(part, {})
        section[last] = value
    return str(yaml.safe_dump(tree))


def list_used(town: SettingsTown, pair: Pair) -> tuple[str, list[str]]:
    """Everything that is in force, as text, and what is wrong with it."""
    loaded = town.load()
    if pair.platform is not None:
        accounts = make_catalog(town.base).list_accounts(loaded.settings, {})
        [account] = [each for each in accounts if str(each.platform) == pair.platform]
        return ("" if account.problem else " ".join(account.secrets)), [account.problem or ""]
    settings = loaded.settings
    agent = settings.agent
    from palaver.drivers.providers import add_environment_keys

    keys = [each.api_key for each in add_environment_keys(agent.providers, town.environ).values()]
    headers = [dict(each.headers) for each in agent.mcp_servers.values()]
    return f"{keys} {headers} {settings.turns.web.search.api_key}", [str(each) for each in loaded.problems]


def assert_not_used(town: SettingsTown, pair: Pair) -> None:
    text, problems = list_used(town, pair)
    assert pair.value not in text
    assert any("would be sent to this address" in problem and "It is set by" in problem for problem in problems), (
        problems
    )


def assert_used(town: SettingsTown, pair: Pair) -> None:
    text, problems = list_used(town, pair)
    assert pair.value in text, problems


@pytest.mark.parametrize("name", ["provider", "search", "matrix"])
def test_a_secret_that_the_file_leaves_empty_is_none(store: SessionStore, tmp_path: Path, name: str) -> None:
    pair = PAIRS[name]
    town = SettingsTown(store, tmp_path, file=to_yaml({pair.secret: None}))
    extra = {"platforms.matrix.settings.user_id": "@bot:x", "platforms.matrix.settings.password": API_KEY}
    town.set({pair.address: FIRST, **(extra if name == "matrix" else {})})
    assert town.get(pair.address).value == FIRST


def test_the_account_of_another_name_does_not_have_the_secret(town: SettingsTown) -> None:
    town.set(PAIRS["telegram"].settings)
    with pytest.raises(InvalidSettings, match="bot_token is required"):
        town.set({"platforms.telegram.accounts.copy.settings.api_url": EVIL})


def test_in_the_terminal_an_address_is_changed_without_the_secret(town: SettingsTown) -> None:
    pair = PAIRS["provider"]
    town.set(pair.settings)
    town.set({pair.address: EVIL}, origin="terminal")
    assert town.get(pair.address).value == EVIL


@pytest.mark.both_engines
def test_what_was_stored_before_a_change_is_found_in_a_long_history(town: SettingsTown) -> None:
    pair = PAIRS["provider"]
    town.set(pair.settings)
    town.set({pair.secret: pair.other_value})
    replaced = get_change(town)
    for number in range(1, 30):
        town.set({"turns.max_running": number})
    town.editor.undo(town.owner, replaced)
    assert town.load().settings.agent.providers["lab"].api_key == pair.value


def test_of_a_platform_that_is_not_installed_any_setting_may_be_the_address(town: SettingsTown) -> None:
    prefix = ("platforms", "linechat", "settings")
    secrets = SecretPairs(town.base.fixed_layers, make_catalog(town.base))
    before: dict[SettingPath, object] = {(*prefix, "token"): API_KEY, (*prefix, "host"): "first.example"}
    after = {**before, (*prefix, "host"): "evil.example"}
    exposed = find_exposed_secrets(secrets.find(after), [secrets.find(before)], {(*prefix, "host")})
    assert [str(each).partition(" would")[0] for each in exposed] == [
        "platforms.linechat.settings.host: platforms.linechat.settings.token"
    ]

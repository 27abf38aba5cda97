"""Stored keys over HTTP, with a real server at the other address: no key arrives that was not entered for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver.config.agent_rules import AgentProfile, McpServer, Provider, WebSearchRules, WebToolRules
from palaver.config.validators import SearchProvider
from palaver.core.errors import PalaverError
from palaver.drivers.mcp import McpConnection
from palaver.drivers.providers import add_environment_keys
from palaver.media.web.reader import WebReader
from palaver.settings import model_providers
from support.recorder import Recorder, run_recorder
from support.settings import API_KEY, BOT_TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.web import StartWebServer, WebServer

DISCORD_TOKEN = f"{'A' * 24}.{'b' * 6}.{'c' * 38}"
META_TOKEN = "EAAG" + "a1B2c3D4e5" * 5
# For a platform: the setting and the variable of its secret, the secret, another one, its address, and what it needs.
PLATFORMS: dict[str, Any] = {
    "telegram": ("bot_token", "TELEGRAM_BOT_TOKEN", BOT_TOKEN, f"9{BOT_TOKEN[1:]}", "api_url", {}),
    "discord": ("bot_token", "DISCORD_BOT_TOKEN", DISCORD_TOKEN, f"Z{DISCORD_TOKEN[1:]}", "api_url", {}),
    "slack": (
        *("bot_token", "SLACK_BOT_TOKEN", "xoxb-1234567890-abcdefghij", "xoxb-9876543210-abcdefghij", "api_url"),
        {"app_token": "xapp-1-A123456-1234567890-abcdef"},
    ),
    "matrix": (
        *(
            "access_token",
            "MATRIX_ACCESS_TOKEN",
            "syt_first_token_0123456789",
            "syt_other_token_0123456789",
            "homeserver",
        ),
        {},
    ),
    "whatsapp": (
        *("access_token", "WHATSAPP_ACCESS_TOKEN", META_TOKEN, f"{META_TOKEN}zz", "api_url"),
        {
            "app_secret": "0123456789abcdef0123456789abcdef",
            "verify_token": "chosen-by-hand-123",
            "phone_number_id": "123456789012345",
        },
    ),
}
parametrize_platforms = pytest.mark.parametrize("platform", PLATFORMS)


@pytest.fixture
async def evil() -> AsyncIterator[Recorder]:
    async with run_recorder() as recorder:
        yield recorder


async def run_account_test(web: WebServer, platform: str, settings: dict[str, Any]) -> Any:
    owner = await web.sign_in()
    return (await owner.post(f"/api/settings/platforms/{platform}/test", json={"settings": settings})).json()


async def test_undoing_that_a_key_was_unset_does_not_send_it_to_the_address_of_later(
    web: WebServer, evil: Recorder
) -> None:
    owner = await web.sign_in()
    values = {"providers.lab.api_key": API_KEY, "providers.lab.base_url": "http://127.0.0.1:9/v1"}
    assert (await owner.patch("/api/settings", json={"set": values})).is_success
    unset = (await owner.patch("/api/settings", json={"unset": ["providers.lab.api_key"]})).json()["change"]
    assert (await owner.patch("/api/settings", json={"set": {"providers.lab.base_url": evil.url}})).is_success
    refused = await owner.post("/api/settings/undo", json={"change": unset})
    assert refused.status_code == 422
    assert "providers.lab.api_key would be sent to this address" in refused.json()["error"]["message"]
    await owner.post("/api/settings/models/test", json={"provider": "lab", "model": "large"})
    await owner.get("/api/settings/models/available", params={"provider": "lab"})
    assert "/models" in evil.received
    assert API_KEY not in evil.received


@parametrize_platforms
async def test_a_test_sends_no_token_of_the_environment_to_a_given_address(
    start_web: StartWebServer, evil: Recorder, platform: str
) -> None:
    secret, variable, value, other, address, rest = PLATFORMS[platform]
    web = await start_web(environ={variable: value})
    for given in ({}, {secret: other}):  # the variable wins over what is given
        tested = await run_account_test(web, platform, {**rest, address: evil.url, **given})
        assert f"It is set by {variable}: change the address there" in str(tested)
        assert value not in str(tested)
    assert value not in evil.received


@parametrize_platforms
async def test_a_test_sends_no_stored_token_to_a_given_address(web: WebServer, evil: Recorder, platform: str) -> None:
    secret, _, value, _, address, rest = PLATFORMS[platform]
    owner = await web.sign_in()
    prefix = f"platforms.{platform}.settings"
    values = {**rest, secret: value, address: "http://127.0.0.1:9"}
    stored = {f"platforms.{platform}.enabled": True} | {f"{prefix}.{name}": each for name, each in values.items()}
    assert (await owner.patch("/api/settings", json={"set": stored})).is_success
    tested = await run_account_test(web, platform, {address: evil.url})
    assert "a stored secret is not sent to another address" in str(tested)
    assert value not in evil.received


@parametrize_platforms
async def test_a_token_that_is_given_with_its_address_arrives(web: WebServer, evil: Recorder, platform: str) -> None:
    """Shows that the other tests would see a token that arrives."""
    secret, _, value, _, address, rest = PLATFORMS[platform]
    await run_account_test(web, platform, {**rest, secret: value, address: evil.url})
    assert value in evil.received


@parametrize_platforms
async def test_a_redirect_to_another_server_does_not_carry_the_token(
    web: WebServer, evil: Recorder, platform: str
) -> None:
    secret, _, value, _, address, rest = PLATFORMS[platform]
    async with run_recorder(redirect_to=evil.url) as server:
        await run_account_test(web, platform, {**rest, secret: value, address: server.url})
        assert value in server.received
    assert value not in evil.received


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # in Google's own client
@pytest.mark.parametrize("provider", ["lab", "openai", "anthropic", "google"])
async def test_a_redirect_to_another_server_does_not_carry_the_key_of_a_model(evil: Recorder, provider: str) -> None:
    async with run_recorder(redirect_to=evil.url) as server:
        access = model_providers.find_access(provider, AgentProfile(), {}, API_KEY, server.url)
        for model in ("large", None):
            await model_providers.run_test(access, model)
        assert API_KEY in server.received
    assert API_KEY not in evil.received


async def test_a_redirect_to_another_server_does_not_carry_the_headers_of_a_tool_server(evil: Recorder) -> None:
    async with run_recorder(redirect_to=evil.url) as server:
        connection = McpConnection("tools", McpServer(url=f"{server.url}/mcp", headers={"X-Api-Key": API_KEY}))
        assert await connection.open() is not None
        assert API_KEY in server.received
    assert API_KEY not in evil.received


@pytest.mark.parametrize("provider", SearchProvider)
async def test_a_redirect_to_another_server_does_not_carry_the_key_of_a_search(
    evil: Recorder, provider: SearchProvider
) -> None:
    async with run_recorder(redirect_to=evil.url) as server:
        rules = WebToolRules(search=WebSearchRules(provider=provider, url=server.url, api_key=API_KEY))
        with pytest.raises(PalaverError):
            await WebReader(rules).search("tea", 1)
        assert API_KEY in server.received
    assert API_KEY not in evil.received


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_a_key_of_the_environment_is_not_added_to_an_address_of_the_settings(provider: str) -> None:
    environ = {"OPENAI_API_KEY": API_KEY, "ANTHROPIC_API_KEY": API_KEY, "GEMINI_API_KEY": API_KEY}
    complete = add_environment_keys({provider: Provider(base_url="https://evil.example")}, environ)
    assert complete[provider].api_key is None

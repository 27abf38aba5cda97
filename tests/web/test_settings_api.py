"""Settings over HTTP: owners see, change, test and undo them; no other person learns anything of them."""

from __future__ import annotations

import asyncio
import base64
import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from drivers.openai_server import KEY, OpenAIServer, reply_with_error, reply_with_text
from palaver.core.source import Platform
from palaver.sessions.turn import BusyPolicy
from support.settings import API_KEY, BOT_TOKEN
from support.web import make_base_settings
from web.test_attachments import make_png

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from support.web import StartWebServer, WebServer


@pytest.fixture
def provider() -> Iterator[OpenAIServer]:
    with OpenAIServer(models=("large", "small", "text-embedding-3")) as server:
        yield server


async def get_settings(client: httpx2.AsyncClient) -> dict[str, Any]:
    response = await client.get("/api/settings")
    assert response.status_code == 200, response.text
    assert API_KEY not in response.text
    found: dict[str, Any] = response.json()
    return found | {"by_key": {each["key"]: each for each in found["settings"]}}


async def change(client: httpx2.AsyncClient, status: int = 200, **body: Any) -> Any:
    response = await client.patch("/api/settings", json=body)
    assert response.status_code == status, response.text
    assert API_KEY not in response.text
    return response.json()


async def test_an_owner_changes_settings_and_they_are_in_force(web: WebServer) -> None:
    owner = await web.sign_in()
    before = await get_settings(owner)
    assert before["by_key"]["turns.max_running"]["source"]["kind"] == "default"
    values = {"turns.max_running": 4, "personalities.pirate": "Talk like a pirate.", "providers.lab.api_key": API_KEY}
    changed = await change(owner, set=values, expected_version=before["version"])
    assert changed["version"] == before["version"] + 1
    assert sorted(changed["changed"]) == sorted(values)
    assert web.gateway.rules.max_running == 4
    assert "pirate" in web.gateway.profile.personalities
    after = await get_settings(owner)
    value = after["by_key"]["turns.max_running"]
    assert (value["value"], value["source"]["kind"], value["can_change"]) == (4, "database", True)
    assert value["source"]["set_by"] == (await owner.get("/api/me")).json()["person"]["id"]
    secret = after["by_key"]["providers.lab.api_key"]
    assert (secret["value"], secret["is_secret"], secret["is_set"], secret["hint"]) == (None, True, True, API_KEY[-4:])
    await change(owner, unset=["turns"])
    assert web.gateway.rules.max_running == 8


async def test_changes_that_are_not_valid_are_refused_together(web: WebServer) -> None:
    owner = await web.sign_in()
    body = {"turns.max_running": 0, "turns.max_queued": 7, "teleport": 1}
    error = (await change(owner, 422, set=body))["error"]
    assert error["code"] == "invalid_settings"
    assert {problem["key"] for problem in error["facts"]["problems"]} == {"turns.max_running", "teleport"}
    assert web.gateway.rules.max_queued == 20
    error = (await change(owner, 409, set={"turns.max_running": 2}, expected_version=99))["error"]
    assert error["code"] == "settings_changed"
    assert (await change(owner, set={}))["change"] is None


async def test_templates_and_forms_describe_everything_that_can_be_set(web: WebServer) -> None:
    found = await get_settings(await web.sign_in())
    templates = {each["key"]: each for each in found["templates"]}
    assert templates["turns.busy_policy"]["choices"] == ["queue", "steer", "interrupt", "reject"]
    assert (templates["turns.max_running"]["minimum"], templates["turns.max_running"]["maximum"]) == (1, 256)
    assert templates["web.port"]["needs_restart"]
    assert templates["mcp_servers.<name>.command"]["is_terminal_only"]
    assert templates["database_url"]["unstorable_reason"]
    assert all(each["help"] for each in templates.values())
    forms = {each["platform"]: each for each in found["platforms"]}
    [token] = [each for each in forms["telegram"]["fields"] if each["name"] == "bot_token"]
    assert (token["is_secret"], token["is_required"], token["variable"]) == (True, True, "TELEGRAM_BOT_TOKEN")
    built_in = [form for form in forms.values() if form["steps"]]
    assert len(built_in) >= 9
    assert all(field["help"] for form in built_in for field in form["fields"])
    assert {each["name"] for each in found["providers"]} == {"openai", "anthropic", "google", "openrouter", "ollama"}


async def test_history_and_undo(web: WebServer) -> None:
    owner = await web.sign_in()
    first = (await change(owner, set={"turns.max_running": 4, "providers.lab.api_key": API_KEY}))["change"]
    await change(owner, set={"turns.max_running": 5})
    response = await owner.get("/api/settings/history")
    assert API_KEY not in response.text
    newest, oldest = response.json()["changes"]
    assert newest["items"] == [{"key": "turns.max_running", "before": 4, "after": 5, "is_secret": False}]
    assert oldest["items"][0]["after"] == f"set (…{API_KEY[-4:]})"
    page = (await owner.get("/api/settings/history", params={"limit": 1})).json()
    older = await owner.get("/api/settings/history", params={"before": page["next_cursor"]})
    assert [each["number"] for each in older.json()["changes"]] == [first]
    undone = await owner.post("/api/settings/undo", json={"change": first})
    assert undone.status_code == 200
    assert web.gateway.rules.max_running == 8
    assert (await owner.post("/api/settings/undo", json={"change": 999})).status_code == 404


async def test_settings_that_need_a_restart_are_named(web: WebServer) -> None:
    owner = await web.sign_in()
    assert (await change(owner, set={"web.port": 9000, "turns.max_queued": 6}))["pending_restart"] == ["web.port"]
    assert (await get_settings(owner))["pending_restart"] == ["web.port"]
    assert (await change(owner, unset=["web"]))["pending_restart"] == []


async def test_pinned_values_say_where_they_are_set(start_web: StartWebServer, tmp_path: Any) -> None:
    from dataclasses import replace

    from palaver.app import make_live_settings
    from palaver.config import load_settings

    web = await start_web()
    (tmp_path / "config.yaml").write_text("turns:\n  max_running: 3\n", encoding="utf-8")
    base = load_settings({"PALAVER_MODEL": "demo", "TELEGRAM_BOT_TOKEN": BOT_TOKEN}, tmp_path)
    live = make_live_settings(
        web.gateway, replace(base, database_url=make_base_settings("", tmp_path, web.gateway).database_url)
    )
    web.app.state.palaver = replace(web.state, settings=live)
    owner = await web.sign_in()
    found = (await get_settings(owner))["by_key"]
    assert found["turns.max_running"]["source"] | {"set_at": None} == {
        "kind": "file", "variable": None, "line": 2, "set_at": None, "set_by": None,
    }  # fmt: skip
    assert found["model"]["source"]["variable"] == "PALAVER_MODEL"
    token = found["platforms.telegram.settings.bot_token"]
    assert (token["value"], token["is_set"], token["can_change"]) == (None, True, False)
    error = (await change(owner, 422, set={"turns.max_running": 4}))["error"]
    assert error["message"].startswith("turns.max_running: it is set by config.yaml, line 2.")
    assert BOT_TOKEN not in json.dumps(await get_settings(owner))


async def test_members_can_neither_read_nor_change_settings(web: WebServer) -> None:
    owner, other = await web.sign_in(), await web.sign_in("ada")  # guests can't sign in
    await change(owner, set={"turns.max_running": 4})
    expected = await other.get("/api/platforms")  # a route that only owners may use
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"set": {"turns.max_running": 5}}),
        ("GET", "/history", None),
        ("POST", "/undo", {"change": 1}),
        ("POST", "/models/test", {"provider": "openai"}),
        ("GET", "/models/available?provider=openai", None),
        ("POST", "/platforms/telegram/test", {}),
    ):
        response = await other.request(method, f"/api/settings{path}", json=body)
        assert (response.status_code, response.json()) == (expected.status_code, expected.json()), path
    assert web.gateway.rules.max_running == 4


async def test_a_profile_gets_a_picture_and_a_reset_policy_which_members_only_see(web: WebServer) -> None:
    owner, member = await web.sign_in(), await web.sign_in("ada")
    face = f"data:image/png;base64,{base64.b64encode(make_png()).decode()}"
    values = {"profiles.work.picture": face, "profiles.work.session_reset.mode": "idle"}
    await change(owner, set=values | {"profiles.work.session_reset.idle_minutes": 30})
    for picture in (face.replace("png", "gif", 1), face.replace("png", "svg+xml", 1), face + "A" * 65_536, "face.png"):
        error = (await change(owner, 422, set={"profiles.work.picture": picture}))["error"]
        assert "profiles.work.picture" in error["message"]
        assert "a PNG, JPEG, WebP or GIF picture as a data URL, at most 65536 characters" in error["message"]
        assert len(error["message"]) < 300
    error = (await change(owner, 422, set={"profiles.work.session_reset.mode": "weekly"}))["error"]
    assert "none, idle, daily or both" in error["message"]
    refused = await member.patch("/api/settings", json={"set": {"profiles.work.session_reset.mode": "none"}})
    assert refused.status_code == 403
    [profile] = (await member.get("/api/profiles")).json()["profiles"]
    assert profile["picture"] == face
    assert (profile["session_reset"]["mode"], profile["session_reset"]["idle_minutes"]) == ("idle", 30)
    await change(owner, unset=["profiles.work.session_reset"])
    [profile] = (await member.get("/api/profiles")).json()["profiles"]
    assert profile["session_reset"] is None


async def test_an_undo_of_settings_that_another_owner_has_changed_is_refused(web: WebServer) -> None:
    owner = await web.sign_in()
    seen = (await change(owner, set={"turns.max_running": 4}))["version"]
    await change(owner, set={"turns.max_running": 5})
    stale = await owner.post("/api/settings/undo", json={"change": 1, "expected_version": seen})
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "settings_changed")
    assert web.gateway.rules.max_running == 5
    undone = await owner.post("/api/settings/undo", json={"change": 1, "expected_version": seen + 1})
    assert undone.is_success
    assert web.gateway.rules.max_running == 8


async def test_the_busy_policy_of_the_page_can_be_set_without_connecting_a_platform(web: WebServer) -> None:
    owner = await web.sign_in()
    await change(owner, set={"platforms.web.busy_policy": "steer"})
    assert web.gateway.rules.busy_policy_by_platform == {Platform.WEB: BusyPolicy.STEER}
    assert web.gateway.store.config.connected_platforms == ()


# ---- providers and accounts --------------------------------------------------------------------------------


async def test_a_provider_is_tested_before_it_is_stored(web: WebServer, provider: OpenAIServer) -> None:
    owner = await web.sign_in()
    provider.add_replies(reply_with_text("Hello"), reply_with_error(401, "Incorrect API key provided"))
    body = {"provider": "lab", "api_key": KEY, "base_url": provider.url, "model": "large"}
    good = (await owner.post("/api/settings/models/test", json=body)).json()
    assert (good["ok"], good["reply"], good["model"]) == (True, "Hello", "large")
    assert provider.keys == [f"Bearer {KEY}"]
    bad = await owner.post("/api/settings/models/test", json=body)
    assert bad.status_code == 200
    assert not bad.json()["ok"]
    assert "Incorrect API key provided" in bad.json()["detail"]
    assert KEY not in bad.text
    assert (await get_settings(owner))["version"] == 0


async def test_a_stored_provider_lists_its_models_and_answers(web: WebServer, provider: OpenAIServer) -> None:
    owner = await web.sign_in()
    values = {"providers.lab.base_url": provider.url, "providers.lab.api_key": KEY, "model": "lab:large"}
    await change(owner, set=values)
    assert web.gateway.agent.model == "lab:large"
    listed = await owner.get("/api/settings/models/available", params={"provider": "lab"})
    assert listed.json() == {"models": ["large", "small", "text-embedding-3"]}
    provider.add_replies(reply_with_text("Hello"))
    tested = (await owner.post("/api/settings/models/test", json={"provider": "lab"})).json()
    assert (tested["ok"], tested["model"], provider.keys) == (True, "large", [f"Bearer {KEY}"])


async def test_everyone_chooses_from_the_lists_of_the_connected_providers(
    web: WebServer, provider: OpenAIServer
) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    assert (await owner.get("/api/models")).json()["are_more_offered"] is False
    values = {"providers.lab.base_url": provider.url, "providers.lab.api_key": KEY, "model": "lab:large"}
    await change(owner, set=values | {"providers.gone.base_url": "http://127.0.0.1:9/v1"})
    await change(owner, set={"models_by_role.member": ["lab:small"]})
    assert (await ada.get("/api/models")).json()["are_more_offered"] is True
    listed = await asyncio.gather(*(each.get("/api/models/offered") for each in (owner, ada, owner)))
    by_owner, by_ada, _ = ({each["provider"]: each for each in reply.json()["providers"]} for reply in listed)
    assert by_owner["lab"]["models"] == ["lab:large", "lab:small", "lab:text-embedding-3"]
    assert by_ada["lab"]["models"] == ["lab:large", "lab:small"]  # the default, and what members may use
    assert "Could not connect" in by_owner["gone"]["error"]
    assert (by_ada["gone"]["models"], by_ada["gone"]["error"]) == ([], None)
    assert provider.list_count == 1  # for all of them together
    assert KEY not in "".join(reply.text for reply in listed)


async def test_a_stored_key_is_not_sent_to_an_address_that_was_only_given(
    web: WebServer, provider: OpenAIServer
) -> None:
    owner = await web.sign_in()
    await change(owner, set={"providers.lab.base_url": "http://127.0.0.1:9/v1", "providers.lab.api_key": API_KEY})
    provider.add_replies(reply_with_text("Hello"))
    body = {"provider": "lab", "base_url": provider.url, "model": "large"}
    await owner.post("/api/settings/models/test", json=body)
    assert API_KEY not in "".join(provider.keys)
    error = (await change(owner, 422, set={"providers.lab.base_url": provider.url}))["error"]
    assert "enter it again" in error["message"]


async def test_a_provider_that_cannot_be_reached_is_told_in_words(web: WebServer) -> None:
    owner = await web.sign_in()
    body = {"provider": "lab", "base_url": "http://127.0.0.1:9/v1", "model": "x"}
    tested = (await owner.post("/api/settings/models/test", json=body)).json()
    assert (tested["ok"], tested["error"]) == (False, 'Could not connect to "lab".')
    await change(owner, set={"providers.lab.base_url": "http://127.0.0.1:9/v1"})
    listed = await owner.get("/api/settings/models/available", params={"provider": "lab"})
    assert listed.status_code == 502
    assert listed.json()["error"]["message"].startswith('Could not connect to "lab".')
    unknown = await owner.get("/api/settings/models/available", params={"provider": "other"})
    assert unknown.status_code == 422


UNUSABLE_URLS = ("h\x1d", "example.org", "http://a\nb/", "http://[::1]x/", "http://a..b/", "http://a:99999/")


@pytest.mark.parametrize("provider", ["lab", "openai", "google"])
async def test_an_address_that_no_client_can_use_is_refused_by_a_test(web: WebServer, provider: str) -> None:
    owner = await web.sign_in()
    for url, model in product(UNUSABLE_URLS, ("large", None)):
        body = {"provider": provider, "api_key": API_KEY, "base_url": url, "model": model}
        response = await owner.post("/api/settings/models/test", json=body)
        assert response.status_code == 422
        error = response.json()["error"]
        assert error["message"] == (
            f"{provider}: the address is not valid. Enter a URL that begins with http:// or https://."
        )
        assert (error["facts"]["key"], error["facts"]["code"]) == ("base_url", "address_invalid")
        assert API_KEY not in response.text


async def test_a_host_that_only_the_client_refuses_fails_the_test_in_words(web: WebServer) -> None:
    owner = await web.sign_in()
    for provider in ("lab", "openai", "anthropic", "ollama"):
        body = {"provider": provider, "api_key": API_KEY, "base_url": "http://☃/v1", "model": "large"}
        tested = (await owner.post("/api/settings/models/test", json=body)).json()
        assert not tested["ok"]
        assert f"Set providers.{provider}.base_url in the settings to a URL" in tested["error"]
        assert tested["facts"]["code"] == "address_invalid"


async def test_an_address_that_no_client_can_use_is_not_stored(web: WebServer) -> None:
    owner = await web.sign_in()
    keys = ("providers.lab.base_url", "mcp_servers.one.url", "web.search.url", "web.public_url")
    for key, url in product(keys, UNUSABLE_URLS):
        error = (await change(owner, 422, set={key: url}))["error"]
        assert key in error["message"]
        assert "a URL that begins with http:// or https://" in error["message"]


@pytest.mark.parametrize(
    ("platform", "field", "settings"),
    [
        ("telegram", "api_url", {"bot_token": BOT_TOKEN}),
        ("matrix", "homeserver", {"access_token": "syt_YWRh_abcdef"}),
        ("webhook", "url", {"secret": "0123456789abcdef0123456789abcdef"}),
    ],
)
async def test_an_account_with_an_address_that_no_client_can_use_is_refused_by_its_test(
    web: WebServer, platform: str, field: str, settings: dict[str, str]
) -> None:
    owner = await web.sign_in()
    for url in ("https://[::1]x/", "https://a..b/", "https://a:99999/", "https://a\x1db/", "https://[::1"):
        response = await owner.post(
            f"/api/settings/platforms/{platform}/test", json={"settings": settings | {field: url}}
        )
        assert response.status_code == 200
        assert response.json()["error"].startswith(f"platforms.{platform}.settings.{field} is not valid")


async def test_an_account_is_tested_with_values_that_are_not_stored(web: WebServer) -> None:
    owner = await web.sign_in()
    url = "/api/settings/platforms/telegram/test"
    wrong = (await owner.post(url, json={"settings": {"bot_token": "abc"}})).json()
    assert (wrong["ok"], wrong["error"].startswith("platforms.telegram.settings.bot_token is not valid")) == (
        False,
        True,
    )
    settings = {"bot_token": BOT_TOKEN, "api_url": "http://127.0.0.1:9"}
    response = await owner.post(url, json={"settings": settings})
    assert not response.json()["ok"]
    assert response.json()["error"]
    assert BOT_TOKEN not in response.text
    assert (await owner.post("/api/settings/platforms/carrier-pigeon/test", json={})).status_code == 404
    assert Platform.TELEGRAM not in {platform for platform, _ in web.gateway.configured_accounts}

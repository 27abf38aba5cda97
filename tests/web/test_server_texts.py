"""The English texts that the server sends and the page translates.

They are collected from a real server into a file that the tests of the page read (`words/serverTexts.test.ts`): a
setting, a field of a platform, a choice, an error code or a finding without a German text fails there.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import palaver
import palaver.platforms
from palaver.core.errors import PalaverError
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.operation.doctor.finding import FindingCode
from palaver.sessions.turn import FailureCode
from palaver.web.errors import _CODE_BY_STATUS
from support.settings import BOT_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from support.web import WebServer

TEXTS_FILE = Path(__file__).parents[2] / "frontend/src/testing/serverTexts.json"
UPDATE_VARIABLE = "UPDATE_SERVER_TEXTS"
MIN_WORDS = 4  # of a sentence
# Codes that are not error classes: of the web layer and of the inbox.
OTHER_CODES = {"internal_error", "invalid_request", "too_large", "queue_full", "too_long", "too_many_messages"}
# Modules with texts that are no part of a status: what is sent to chats, scripts, and the rules of a program.
_NO_STATUS = {
    *("email.inbound", "email.outbound", "email.receiver", "email.mail_parts", "matrix.receiver", "slack.directory"),
    "signal.client.GUARD_SCRIPT",
}
# Their library starts processes when it is imported.
_HEAVY_MODULES = {"whatsapp_web.library", "whatsapp_web.child", "whatsapp_web.translation"}
# One of each kind of change that is refused.
REFUSED_CHANGES: tuple[dict[str, Any], ...] = (
    {"set": {"turns.max_running": 0, "timezone": "Mars/Base", "model": "x", "web.port": "a"}},
    {"set": {"turns.max_runing": 4}},
    {"set": {"nothing.like.this": 4}},
    {"set": {"toolsets.wbe.enabled": True, "profiles.Clerk.title": "x"}},
    {"set": {"toolsets.web.roles": []}},
    {"set": {"profiles.clerk.toolsets": ["mcp:files"]}},
    {"set": {"budgets.profiles.unknown.day_tokens": 5}},
    {"set": {"mcp_servers.docs.headers.Accept": "x"}},
    {"set": {"database_url": "x.db"}},
    {"set": {"speech.speaking_command": ["say"]}},
    {"set": {"instructions": "x" * 200_000}},
    {"set": {"turns": 5}},
    {"set": {"model": "openai:gpt-5", "fallback_models": ["demo", "openai:gpt-5"]}},
    {"set": {"model": "nowhere:big"}},
    {"set": {"model": "openai:gpt-5"}},
    {"set": {"people.guest_commands": ["fly"]}},
    {"set": {"platforms.telegram.settings.bot_token": "123"}},
    {"set": {"platforms.telegram.settings.mode": "webhook"}},
    {"set": {"platforms.webhook.settings.secret": "short"}},
    {"set": {"platforms.webhook.settings.secrt": "0123456789abcdefghijklmnopqrst"}},
    {"set": {"platforms.matrix.settings.homeserver": "https://matrix.org"}},
    {"set": {"platforms.email.settings.imap_port": "x", "platforms.email.settings.address": "a@example.org"}},
    {"set": {"platforms.slack.settings.bot_token": "xoxb-1", "platforms.slack.settings.mode": "pigeon"}},
    {"set": {"platforms.discord.settings.bot_token": "abc"}},
    {"set": {"platforms.signal.settings.account": "12"}},
    {"set": {"platforms.whatsapp.settings.phone_number_id": "1"}},
    {"set": {"platforms.whatsapp-web.settings.proxy_url": "x"}},
)


async def test_the_page_has_the_current_texts_of_the_server(web: WebServer) -> None:
    owner = await web.sign_in()
    settings = (await owner.get("/api/settings")).json()
    texts = {
        "settings": [
            _pick(each, "key", "help", "allowed", "choices", "unstorable_reason") for each in settings["templates"]
        ],
        "platforms": {each["platform"]: _describe_platform(each) for each in settings["platforms"]},
        "accounts": sorted(set(_iterate_account_texts())),
        "problems": [problem async for problem in _provoke_problems(owner)],
        "errors": sorted(_list_error_codes()),
        "failures": sorted(FailureCode),
        "findings": {code: {"text": code.text, "fix": code.fix} for code in FindingCode},
        "subjects": sorted({code.subject for code in FindingCode} - {"{subject}"}),
    }
    content = json.dumps(texts, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get(UPDATE_VARIABLE):
        TEXTS_FILE.write_text(content, "utf-8")
    assert json.loads(TEXTS_FILE.read_text("utf-8")) == texts, (
        f"the server's texts have changed: run this with {UPDATE_VARIABLE}=1 and translate them (frontend/README.md)"
    )


def _pick(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names}


def _describe_platform(form: dict[str, Any]) -> dict[str, Any]:
    fields = [_pick(field, "name", "help", "where", "choices") for field in form["fields"]]
    return {"summary": form["summary"], "steps": form["steps"], "fields": fields}


def _iterate_account_texts() -> Iterator[str]:
    """Yield the sentences that the built-in adapters have about accounts: why one does not work, what to do."""
    for package in pkgutil.iter_modules(palaver.platforms.__path__, "palaver.platforms."):
        if not package.ispkg:
            continue
        for module in pkgutil.iter_modules(importlib.import_module(package.name).__path__, f"{package.name}."):
            place = module.name.removeprefix("palaver.platforms.")
            if place in _HEAVY_MODULES:
                continue
            for name, value in vars(importlib.import_module(module.name)).items():
                if name.strip("_").isupper() and not {place, f"{place}.{name}"} & _NO_STATUS:
                    found = value.values() if isinstance(value, dict) else [value]
                    yield from (text for text in found if isinstance(text, str) and len(text.split()) > MIN_WORDS)


async def _provoke_problems(owner: httpx2.AsyncClient) -> Any:
    """Yield what the server says about settings that it refuses."""
    for change in REFUSED_CHANGES:
        refused = await owner.patch("/api/settings", json=change)
        assert refused.status_code == 422, (change, refused.text)
        error = refused.json()["error"]
        for problem in error["facts"].get("problems") or [{"key": "", "message": error["message"]}]:
            yield _pick(problem, "key", "message")
    saved = await owner.patch("/api/settings", json={"set": {"platforms.telegram.settings.bot_token": BOT_TOKEN}})
    assert saved.is_success, saved.text
    moved = {"platforms.telegram.settings.api_url": "https://example.org"}
    exposed = (await owner.patch("/api/settings", json={"set": moved})).json()["error"]["facts"]["problems"][0]
    yield _pick(exposed, "key", "message")


EDGES = frozenset({"cli", "platforms", "testing", "web"})


def _list_error_codes() -> set[str]:
    def walk(error_class: type[PalaverError]) -> Iterator[type[PalaverError]]:
        yield error_class
        for each in error_class.__subclasses__():
            yield from walk(each)

    rooms = [each.name for each in pkgutil.iter_modules(palaver.__path__) if each.ispkg and each.name not in EDGES]
    for room in rooms:
        package = importlib.import_module(f"palaver.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)  # so that all classes exist
    places = (*(f"palaver.{room}." for room in rooms), "palaver.web.errors")  # not the errors of the terminal
    found = {each for each in walk(PalaverError) if each.__module__.startswith(places)}
    found.discard(InvalidForeignDatabase)  # the readers of other programs' files say what it means
    codes = {error_class.__new__(error_class).code for error_class in found}
    return codes | OTHER_CODES | set(_CODE_BY_STATUS.values())

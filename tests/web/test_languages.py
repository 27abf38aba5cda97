"""The language of responses: what a request asks for in `Accept-Language`, and English otherwise."""

from __future__ import annotations

import contextvars
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver.core.errors import AgentUnavailable
from palaver.core.ids import DeliveryId, TurnId
from palaver.core.source import Platform
from palaver.core.texts import current_language, say
from palaver.live.channels import FollowedItem
from palaver.live.feed_events import DeliveryChanged, FeedItem, NoticeSent
from palaver.operation.doctor.finding import Finding, FindingCode, make_problem
from palaver.operation.health_check import HealthCheck, HealthReport
from palaver.sessions.delivery import DeliveryState, DeliveryStatus
from palaver.testing import ScriptedAgent
from palaver.web.routes import live

if TYPE_CHECKING:
    import httpx2

    from palaver.agent.base import AgentRequest
    from support.web import StartWebServer, WebServer

GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.5"}


async def test_the_settings_are_described_in_the_language_of_the_request(web: WebServer) -> None:
    owner = await web.sign_in()
    english = (await owner.get("/api/settings")).json()
    german = (await owner.get("/api/settings", headers=GERMAN)).json()
    key = "turns.max_running"
    assert _find(english, "templates", key=key)["help"] == "How many answers are written at the same time."
    assert _find(german, "templates", key=key)["help"] == "Wie viele Antworten gleichzeitig geschrieben werden."
    assert _find(german, "templates", key=key)["allowed"] == "eine ganze Zahl, 1 bis 256"
    assert _find(german, "templates", key="database_url")["unstorable_reason"].startswith("Palaver braucht sie")
    assert [each["names"]["parts"]["max_running"] for each in (english, german)] == [
        "How many at the same time",
        "Gleichzeitig",
    ]
    assert german["names"]["choices"]["roles"]["guest"] == "Gast"


async def test_a_platform_is_described_in_the_language_of_the_request(web: WebServer) -> None:
    owner = await web.sign_in()
    german = (await owner.get("/api/settings", headers=GERMAN)).json()
    telegram = _find(german, "platforms", platform="telegram")
    token = next(field for field in telegram["fields"] if field["name"] == "bot_token")
    assert (telegram["summary"], token["label"], token["help"]) == (
        "Ein Telegram-Bot: private Chats, Gruppen, Themen und Kanäle",
        "Bot-Token",
        "Das Token des Bots.",
    )
    webhook = _find((await owner.get("/api/settings")).json(), "platforms", platform="webhook")
    assert next(field["label"] for field in webhook["fields"] if field["name"] == "url") == "Address for answers (URL)"


@pytest.mark.parametrize(
    ("values", "english", "german"),
    [
        (
            {"turns.max_running": 0},
            "0 is not allowed (a whole number, 1 to 256)",
            "0 ist nicht erlaubt (eine",
        ),
        ({"turns.max_runing": 4}, "unknown key (did you mean max_running?)", "unbekannte Einstellung (meintest du"),
        (
            {"max_running": 4},
            "unknown key (did you mean turns.max_running?)",
            "unbekannte Einstellung (meintest du turns.max_running?)",
        ),
        (
            {"platforms.telegram.settings.bot_token": ""},
            "The bot token is empty.",
            "Das Bot-Token ist leer.",
        ),
        (
            {"platforms.email.settings.imap_port": "x"},
            "Input should be a valid integer",
            "das ist keine ganze Zahl.",
        ),
        ({"model": "openai:gpt-5"}, "requires an API key. Set OPENAI", "braucht einen API-Schlüssel. Setze OPENAI"),
    ],
)
async def test_a_refused_setting_is_explained_in_the_language_of_the_request(
    web: WebServer, values: dict[str, Any], english: str, german: str
) -> None:
    owner = await web.sign_in()
    assert english in await _explain_refusal(owner, values, {})
    assert german in await _explain_refusal(owner, values, GERMAN)


async def _explain_refusal(owner: httpx2.AsyncClient, values: dict[str, Any], headers: dict[str, str]) -> str:
    refused = await owner.patch("/api/settings", json={"set": values}, headers=headers)
    assert refused.status_code == 422
    error = refused.json()["error"]
    message = "\n".join(problem["message"] for problem in error["facts"]["problems"])
    assert error["message"] == message
    return message


async def test_an_error_is_in_the_language_of_the_request(web: WebServer) -> None:
    owner = await web.sign_in()
    answers = [(await owner.get("/api/sessions/unknown", headers=headers)).json()["error"] for headers in ({}, GERMAN)]
    assert [each["code"] for each in answers] == ["session_not_found", "session_not_found"]
    assert answers[0]["message"].startswith("Conversation ")
    assert answers[1]["message"].startswith("Chat ")


async def test_findings_of_another_process_are_in_the_language_of_the_request(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = make_problem(FindingCode.PORT_TAKEN, user="", port=8765)

    async def run(_check: HealthCheck, **_options: object) -> HealthReport:
        return HealthReport([Finding.from_json(json.loads(json.dumps(found.to_json())))], datetime.now(UTC), 1.0)

    monkeypatch.setattr(HealthCheck, "run", run)
    owner = await web.sign_in()
    [english] = (await owner.get("/api/health/details")).json()["findings"]
    [german] = (await owner.get("/api/health/details", headers=GERMAN)).json()["findings"]
    assert english["text"] == "It isn't running, and another program uses port 8765."
    assert german["text"] == "Er läuft nicht, und ein anderes Programm belegt Port 8765."
    assert english["facts"] == german["facts"] == {"user": "", "port": "8765"}


@pytest.mark.parametrize("kind", ["delivery", "notice"])
def test_people_who_follow_a_conversation_in_two_languages_receive_it_each_in_their_own(kind: str) -> None:
    closed = say("account.closed", "This account is closed.")
    delivery = DeliveryStatus(
        id=DeliveryId("d_1"),
        turn_id=None,
        input_seq=None,
        quoted_seqs=(),
        platform=Platform("telegram"),
        state=DeliveryState.FAILED,
        error=closed,
        created_at=datetime.now(UTC),
        ended_at=None,
        target="telegram:1",
    )
    items: dict[str, FeedItem] = {"delivery": DeliveryChanged(delivery), "notice": NoticeSent(TurnId("t_1"), closed)}
    item = FollowedItem("s_1", items[kind])  # both clients receive the same one
    encoded = {}
    for language in ("de", "en"):
        context = contextvars.copy_context()
        context.run(current_language.set, language)
        encoded[language] = context.run(live._encode_item, item, frozenset(), language).decode()
    assert "This account is closed." in encoded["en"]
    assert "Dieses Konto ist geschlossen." in encoded["de"]


async def test_a_failure_at_the_end_of_a_stream_is_in_the_language_of_the_request(start_web: StartWebServer) -> None:
    def fail(_request: AgentRequest) -> str:
        raise AgentUnavailable(say("model.timed_out", "{provider} did not answer in time.", provider="<b>{lab}"))

    web = await start_web(ScriptedAgent(fail))
    ada = await web.sign_in("ada")
    question = {"messages": [{"role": "user", "content": "hello"}]}
    for headers, text in (({}, "did not answer in time."), (GERMAN, "hat nicht rechtzeitig geantwortet.")):
        answer = await ada.post("/api/temporary/answers", json=question, headers=headers)
        assert "<b>{lab} " + text in answer.text


async def test_an_app_for_openai_is_answered_in_the_language_that_it_asks_for(web: WebServer) -> None:
    ada = await web.sign_in("ada")
    question = {"model": "palaver", "messages": [{"role": "user", "content": " "}]}
    for headers, text in (({}, "the last message is empty"), (GERMAN, "ist leer")):
        refused = await ada.post("/v1/chat/completions", json=question, headers=headers)
        assert text in refused.json()["error"]["message"]


async def test_the_data_of_a_command_is_in_the_language_of_the_request(web: WebServer) -> None:
    owner = await web.sign_in()
    await owner.post("/api/commands", json={"text": "/jobs add every 2h: water the plants", "key": "k1"})
    for key, headers, words in (("k2", {}, "every 2 hours"), ("k3", GERMAN, "alle 2 Stunden")):
        answer = await owner.post("/api/commands", json={"text": "/jobs", "key": key}, headers=headers)
        [job] = answer.json()["facts"]["jobs"]
        assert words in job["words"]
        assert words in answer.json()["reply"]


async def test_a_message_that_is_only_in_english_follows_a_sentence_in_the_language_of_the_request(
    web: WebServer,
) -> None:
    ada = await web.sign_in("ada")
    question = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "{b}"}]}
    refused = [await ada.post("/api/temporary/answers", json=question, headers=headers) for headers in ({}, GERMAN)]
    message = refused[0].json()["error"]["message"]
    assert message == "messages: the last message must have the role `user`."
    assert refused[1].json()["error"]["message"] == f"Das ist nicht möglich. Der Server meldet: {message}"
    refused = [await ada.put("/api/sessions", headers=headers) for headers in ({}, GERMAN)]
    assert refused[0].json()["error"]["message"] == "Method Not Allowed"
    assert refused[1].json()["error"]["message"].startswith("Das kann dieser Server nicht.")


def _find(settings: dict[str, Any], part: str, **wanted: str) -> dict[str, Any]:
    return next(each for each in settings[part] if wanted.items() <= each.items())

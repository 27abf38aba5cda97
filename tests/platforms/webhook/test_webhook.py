"""Webhooks through the whole gateway: requests to the web server, answers to a program on another port."""

from __future__ import annotations

import asyncio
import json
import re
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from conftest import create_sqlite_database
from palaver.agent.base import TextDelta
from palaver.people.model import Role
from palaver.platforms.webhook.adapter import MAX_BODY_BYTES, WebhookAdapter
from palaver.platforms.webhook.manifest import MANIFEST, WebhookSettings
from palaver.sessions.delivery import DeliveryState
from palaver.testing import ScriptedAgent
from support.deliveries import wait_for_delivery
from support.platform_adapters import make_place
from support.platform_gateway import SkippingClock, answer_with_question, skip_retry_wait
from support.web import run_web_server, web_server_factory

from .receiver import SECRET, Receiver, Reply, run_receiver, sign

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    import httpx2

    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer

PAGE = Path(__file__).parents[3] / "docs/platforms/webhook.md"
OTHER_SECRET = "the-secret-of-quite-another-webhook"
NUMBERS = count(1)


def make_adapter(account: str = "", *, secret: str = SECRET, **settings: Any) -> WebhookAdapter:
    place = make_place(account, webhook_url=None)
    adapter = MANIFEST.create_adapter(WebhookSettings.model_validate({"secret": secret, **settings}), place)
    assert isinstance(adapter, WebhookAdapter)
    return adapter


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as running:
        yield running


@pytest.fixture
async def start_web(tmp_path: Path) -> AsyncIterator[StartWebServer]:
    async with web_server_factory(create_sqlite_database(tmp_path), tmp_path) as start:
        yield start


async def start(start_web: StartWebServer, *adapters: WebhookAdapter) -> tuple[WebServer, httpx2.AsyncClient]:
    web = await start_web(ScriptedAgent(answer_with_question), adapters=adapters, clock=SkippingClock())
    return web, await open_client(web, *adapters)


async def open_client(web: WebServer, *adapters: WebhookAdapter) -> httpx2.AsyncClient:
    """Open a client for the webhooks of a server, and wait until all of them are connected."""
    client = await web.open_anonymous_client()
    client.headers.pop("origin")  # programs send none
    async with asyncio.timeout(60):
        for adapter in adapters:
            path = f"/hooks/webhook/{adapter.account}".rstrip("/")
            while (await client.get(path)).status_code == 503:  # noqa: ASYNC110  (it connects in the background)
                await asyncio.sleep(0.01)
    return client


async def post(
    client: httpx2.AsyncClient,
    text: str = "Hello",
    *,
    path: str = "/hooks/webhook",
    message_id: str | None = None,
    secret: str = SECRET,
    age_seconds: int = 0,
    sent_body: bytes | None = None,
    **fields: Any,
) -> httpx2.Response:
    body = json.dumps({"text": text, **fields}).encode()
    message_id = f"message-{next(NUMBERS)}" if message_id is None else message_id
    headers = sign(message_id, int(time.time()) - age_seconds, body, secret)
    return await client.post(path, content=sent_body or body, headers=headers)


async def test_a_message_is_answered_at_the_address_in_the_settings(
    start_web: StartWebServer, receiver: Receiver
) -> None:
    _, client = await start(start_web, make_adapter(url=receiver.url))
    response = await post(client, "Is it done?", conversation="backups", message_id="m1")
    assert response.status_code == 202
    assert response.json() == {"outcome": "accepted", "conversation": "backups", "reply": None}
    [answer] = await receiver.wait_for_messages(1)
    [key] = receiver.taken
    assert answer == {
        "id": key,
        "kind": "answer",
        "conversation": "backups",
        "text": "You said: Is it done?",
        "reply_to": "m1",
    }


async def test_the_example_of_the_documentation_works(start_web: StartWebServer, receiver: Receiver) -> None:
    web, _ = await start(start_web, make_adapter(url=receiver.url))
    [script] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [answer] = re.findall(r"before the agent has read it:\n\n```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    process = await asyncio.create_subprocess_exec(
        *("sh", "-eu", "-c", script),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PALAVER_URL": web.url, "PALAVER_SECRET": SECRET},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert json.loads(output) == json.loads(answer)
    [message] = await receiver.wait_for_messages(1)
    assert message["text"] == "You said: Is the backup complete?"


async def test_a_request_that_is_sent_again_is_one_message_even_after_a_restart(
    tmp_path: Path, receiver: Receiver
) -> None:
    store_url = create_sqlite_database(tmp_path)
    outcomes = []
    for _ in range(2):
        adapters = [make_adapter(url=receiver.url)]
        async with run_web_server(store_url, tmp_path, ScriptedAgent(answer_with_question), adapters=adapters) as web:
            client = await open_client(web, *adapters)
            outcomes += [(await post(client, message_id="same")).json()["outcome"] for _ in range(2)]
            await receiver.wait_for_messages(1)
            roles = await load_roles(web)
    assert outcomes == ["accepted", "duplicate", "duplicate", "duplicate"]
    assert roles == [["user", "assistant"]]
    assert receiver.request_count == 1


async def test_a_recorded_request_without_an_id_is_one_message(start_web: StartWebServer, receiver: Receiver) -> None:
    web, client = await start(start_web, make_adapter(url=receiver.url))
    body = b'{"text": "Hello"}'
    headers = sign("", int(time.time()), body)
    responses = [await client.post("/hooks/webhook", content=body, headers=headers) for _ in range(2)]
    assert [response.json()["outcome"] for response in responses] == ["accepted", "duplicate"]
    await receiver.wait_for_messages(1)
    assert await load_roles(web) == [["user", "assistant"]]


async def load_roles(web: WebServer) -> list[list[str]]:
    """Load the roles of all messages of every conversation."""
    store = web.gateway.store
    sessions = store.list_sessions()
    return [[message["role"] for message in store.load_transcript(session.id)] for session in sessions]


@pytest.mark.parametrize(
    ("request_fields", "status", "words"),
    [
        pytest.param({"secret": OTHER_SECRET}, 401, "webhook-signature", id="another secret"),
        pytest.param({"sent_body": b'{"text": "Good bye"}'}, 401, "webhook-signature", id="changed body"),
        pytest.param({"age_seconds": 301}, 401, "webhook-timestamp", id="too old"),
        pytest.param({"age_seconds": -360}, 401, "webhook-timestamp", id="from the future"),
        pytest.param({"message_id": "x" * 129}, 401, "webhook-id", id="long id"),
        pytest.param({"text": ""}, 422, "text", id="no text"),
        pytest.param({"text": 5}, 422, "text", id="not text"),
        pytest.param({"text": "x" * 200_001}, 422, "text", id="long text"),
        pytest.param({"session_id": "20261115_081200_1a2b3c4d"}, 422, "session_id", id="session of a person"),
        pytest.param({"conversation": "a\nb"}, 422, "conversation", id="control character"),
        pytest.param({"conversation": "x" * 101}, 422, "conversation", id="long name"),
        pytest.param({"path": "/hooks/webhook/unknown"}, 404, "", id="unknown account"),
    ],
)
async def test_what_is_not_right_is_refused_and_not_stored(
    start_web: StartWebServer, request_fields: dict[str, Any], status: int, words: str
) -> None:
    web, client = await start(start_web, make_adapter())
    response = await post(client, **request_fields)
    assert response.status_code == status
    assert words in read_error(response)["message"]
    assert SECRET not in response.text
    assert await load_roles(web) == []


def read_error(response: httpx2.Response) -> dict[str, Any]:
    """Return the explanation of an error, which has the same form for all errors."""
    assert response.headers["content-type"] == "application/json"
    [(name, error)] = response.json().items()
    assert name == "error"
    assert sorted(error) == ["code", "facts", "message"]
    assert error["message"]
    return dict(error)


async def test_every_refusal_has_a_code_and_says_how_to_fix_it(start_web: StartWebServer) -> None:
    _, client = await start(start_web, make_adapter())
    unsigned = await client.post("/hooks/webhook", json={"text": "Hello"})
    assert (unsigned.status_code, read_error(unsigned)["code"]) == (401, "signature_refused")
    for method in ("GET", "PUT", "DELETE"):
        refused = await client.request(method, "/hooks/webhook")
        assert (refused.status_code, read_error(refused)["code"]) == (405, "method_not_allowed")
        assert read_error(refused)["message"] == "Use POST."
    for path in ("/hooks/webhook/unknown", "/hooks/telegram"):
        missing = await client.post(path, json={})
        assert (missing.status_code, read_error(missing)["code"]) == (404, "not_found")
    wrong = await post(client, conversation="")
    assert (wrong.status_code, read_error(wrong)["facts"]) == (422, {"field": "conversation"})


async def test_a_request_that_is_too_large_is_refused_before_it_is_verified(start_web: StartWebServer) -> None:
    _, client = await start(start_web, make_adapter())
    response = await client.post("/hooks/webhook", content=b"x" * (MAX_BODY_BYTES + 1))
    assert (response.status_code, read_error(response)["code"]) == (413, "too_large")


async def test_webhooks_have_conversations_of_their_own(start_web: StartWebServer, receiver: Receiver) -> None:
    one = make_adapter("one", url=receiver.url, user_name="One")
    two = make_adapter("two", secret=OTHER_SECRET, user_name="Two")
    web, client = await start(start_web, make_adapter(secret=SECRET[::-1]), one, two)
    await post(client, "mine", path="/hooks/webhook/one", conversation="plans")
    await post(client, "not yours", path="/hooks/webhook/two", secret=OTHER_SECRET, conversation="plans")
    stolen = await post(client, "let me in", path="/hooks/webhook/two", secret=SECRET, conversation="plans")
    assert stolen.status_code == 401
    [answer] = await receiver.wait_for_messages(1)
    assert answer["text"] == "You said: mine"
    sessions = web.gateway.store.list_sessions()
    assert sorted(session.key for session in sessions) == [
        "agent:main:webhook@one:dm:plans",
        "agent:main:webhook@two:dm:plans",
    ]
    people = (await (await web.sign_in()).get("/api/people")).json()["people"]
    assert {(person["name"], person["role"]) for person in people} >= {("One", "guest"), ("Two", "guest")}


async def test_names_of_conversations_are_conversations(start_web: StartWebServer, receiver: Receiver) -> None:
    web, client = await start(start_web, make_adapter(url=receiver.url))
    for name in ("a", "b", "a"):
        await post(client, f"for {name}", conversation=name)
    await receiver.wait_for_messages(3)
    assert sorted(map(len, await load_roles(web))) == [2, 4]


async def test_without_an_address_the_answer_stays_in_the_conversation(start_web: StartWebServer) -> None:
    web, client = await start(start_web, make_adapter())
    assert (await post(client)).status_code == 202
    [session] = web.gateway.store.list_sessions()
    delivery = await wait_for_delivery(web.gateway, session.id)
    assert delivery.state is DeliveryState.SENT
    assert await load_roles(web) == [["user", "assistant"]]


@pytest.mark.parametrize(
    ("replies", "state", "requests"),
    [
        pytest.param([Reply(500)], DeliveryState.SENT, 2, id="server error"),
        pytest.param([Reply(429, {"Retry-After": "1"})], DeliveryState.SENT, 2, id="rate limit"),
        pytest.param([Reply(400)], DeliveryState.FAILED, 1, id="refused"),
        pytest.param([Reply(302, {"Location": "http://127.0.0.1:1/"})], DeliveryState.FAILED, 1, id="redirect"),
        pytest.param([Reply(is_lost=True)], DeliveryState.UNCERTAIN, 1, id="lost answer"),
    ],
)
async def test_an_answer_is_sent_again_if_it_did_not_arrive(
    start_web: StartWebServer, receiver: Receiver, replies: list[Reply], state: DeliveryState, requests: int
) -> None:
    receiver.replies = list(replies)
    web, client = await start(start_web, make_adapter(url=receiver.url))
    await post(client)
    if requests > 1:
        await skip_retry_wait(web.gateway)
    [session] = web.gateway.store.list_sessions()
    delivery = await wait_for_delivery(web.gateway, session.id)
    assert delivery.state is state
    assert receiver.request_count == requests


async def test_a_receiver_that_recognizes_ids_gets_a_lost_answer_again(
    start_web: StartWebServer, receiver: Receiver
) -> None:
    receiver.replies = [Reply(is_lost=True)]
    web, client = await start(start_web, make_adapter(url=receiver.url, key_lifetime_hours=24))
    await post(client)
    await skip_retry_wait(web.gateway)
    [session] = web.gateway.store.list_sessions()
    delivery = await wait_for_delivery(web.gateway, session.id)
    assert delivery.state is DeliveryState.SENT
    assert (receiver.request_count, len(receiver.taken)) == (2, 1)


@pytest.mark.parametrize(
    "settings",
    [
        {"secret": "too short"},
        {"secret": "whsec_not base64 at all, which it should be"},
        {"secret": SECRET, "url": "ftp://example.org/"},
        {"secret": SECRET, "url": "https://user:password@example.org/"},
        {"secret": SECRET, "url": "/answers"},
        {"secret": SECRET, "url": "https://example.org:99999/"},
        {"secret": SECRET, "url": "https://example..org/"},
        {"secret": SECRET, "key_lifetime_hours": -1},
        {"secret": SECRET, "user_name": ""},
        {},
    ],
)
def test_settings_that_do_not_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WebhookSettings.model_validate(settings)


async def test_an_address_without_encryption_is_pointed_out() -> None:
    assert (await make_adapter(url="http://example.org/answers").probe()).warnings
    assert not (await make_adapter(url="http://localhost:9000/answers").probe()).warnings
    assert not (await make_adapter(url="https://example.org/answers").probe()).warnings


async def test_the_reply_to_a_command_is_in_the_response_and_sent(
    start_web: StartWebServer, receiver: Receiver
) -> None:
    _, client = await start(start_web, make_adapter(url=receiver.url))
    response = await post(client, "/whoami")
    assert response.json()["outcome"] == "command"
    [notice] = await receiver.wait_for_messages(1)
    assert notice["kind"] == "notice"
    assert response.json()["reply"] == notice["text"]


async def test_a_message_refused_for_its_rate_is_stored_when_it_is_sent_again(
    start_web: StartWebServer, receiver: Receiver
) -> None:
    clock, adapter = SkippingClock(), make_adapter(url=receiver.url)
    rules = {"messages_per_minute": {Role.GUEST: 2}}
    web = await start_web(ScriptedAgent(answer_with_question), adapters=[adapter], clock=clock, rules=rules)
    client = await open_client(web, adapter)
    statuses = [(await post(client, conversation=f"c{number}")).status_code for number in range(2)]
    refused = [await post(client, "Is it done?", message_id="last") for _ in range(2)]
    statuses += [response.status_code for response in refused]
    assert statuses == [202, 202, 429, 429]
    assert all(0 < int(response.headers["retry-after"]) <= 31 for response in refused)
    clock.skip(seconds=90)
    repeated = [(await post(client, "Is it done?", message_id="last")).json()["outcome"] for _ in range(2)]
    assert repeated == ["accepted", "duplicate"]
    texts = [message["text"] for message in await receiver.wait_for_messages(3)]
    assert texts.count("You said: Is it done?") == 1
    assert all(text.startswith("You said") for text in texts)  # the refusals were in the responses


async def test_a_message_refused_because_the_queue_is_full_says_when_to_send_it_again(
    start_web: StartWebServer, receiver: Receiver
) -> None:
    held = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        await held.wait()
        yield TextDelta("Done.")

    adapter = make_adapter(url=receiver.url)
    web = await start_web(ScriptedAgent(answer), adapters=[adapter], rules={"max_queued": 1})
    client = await open_client(web, adapter)
    responses = [await post(client, message_id=f"m{number}") for number in range(4)]
    refused = responses[-1]
    assert (refused.status_code, read_error(refused)["code"]) == (429, "queue_full")
    assert int(refused.headers["retry-after"]) >= 1
    held.set()
    accepted = [response for response in responses if response.status_code == 202]
    await receiver.wait_for_messages(len(accepted))
    assert (await post(client, message_id="m3")).json()["outcome"] == "accepted"

"""Streams end as soon as a person loses access, whichever process on the store made that change."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from palaver import Principal, Role, SessionSource
from palaver.agent.base import TextDelta
from palaver.core.engines.base import Write
from palaver.core.ids import PersonId
from palaver.live import feed
from palaver.testing import ScriptedAgent
from palaver.web import auth
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.sse import LivePage, start_listening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    import httpx2

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from support.web import StartWebServer, WebServer


NEVER_SECONDS = 1000.0


@pytest.fixture(autouse=True)
def notice_changes_only_when_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_EXPIRY_CHECK_SECONDS", NEVER_SECONDS)
    monkeypatch.setattr(feed, "CATCH_UP_SECONDS", NEVER_SECONDS)


async def get_person_id(client: httpx2.AsyncClient) -> PersonId:
    return PersonId((await client.get("/api/me")).json()["person"]["id"])


async def open_people(web: WebServer) -> Any:
    owner = await web.gateway.store.aio.get_owner()
    return web.state.accounts.open_people(Principal(owner.id, Role.OWNER))


async def sign_out_device(web: WebServer, person_id: PersonId) -> None:
    for device in await web.state.accounts.list_devices(person_id):
        await web.state.accounts.sign_out(person_id, device.id)


async def sign_out_everywhere(web: WebServer, person_id: PersonId) -> None:
    await web.state.accounts.sign_out_everywhere(person_id)


async def set_password(web: WebServer, person_id: PersonId) -> None:
    await web.state.accounts.set_password(person_id, "correct horse battery")


async def demote(web: WebServer, person_id: PersonId) -> None:
    await (await open_people(web)).update(person_id, role=Role.MEMBER)


async def remove(web: WebServer, person_id: PersonId) -> None:
    await (await open_people(web)).remove(person_id)


@pytest.mark.parametrize("take_access", [sign_out_device, sign_out_everywhere, set_password, demote, remove])
async def test_a_live_stream_ends_when_another_process_takes_access(
    start_web: StartWebServer, take_access: Callable[[WebServer, PersonId], Awaitable[None]]
) -> None:
    first, second = await start_web(), await start_web()
    ada = await first.sign_in("Ada", role="owner")
    person_id = await get_person_id(ada)
    task = await start_listening(LivePage(ada, include_all=True), lambda _page: False)
    await take_access(second, person_id)
    with pytest.raises(AssertionError, match="the stream ended"):
        await task
    await wait_until(lambda: first.state.live.client_count == 0)


async def test_a_stream_goes_on_when_someone_else_signs_out(start_web: StartWebServer) -> None:
    first, second = await start_web(), await start_web()
    ada, ben = await first.sign_in("Ada"), await first.sign_in("Ben")
    page = LivePage(ada)
    task = await start_listening(page, lambda page: page.sessions)
    await sign_out_everywhere(second, await get_person_id(ben))
    await first.create_conversation(ada, "hello")
    await task


@pytest.mark.both_engines
async def test_leaving_a_shared_conversation_ends_its_updates(start_web: StartWebServer) -> None:
    first, second = await start_web(), await start_web()
    ada = await first.sign_in("Ada")
    person_id = await get_person_id(ada)
    source = SessionSource("web", "club", chat_type="thread", thread_id="1", user_id=person_id)
    receipt = await second.gateway.store.aio.record_user_message(source, "hello all")
    page = LivePage(ada, (f"{receipt.session_id}:0",))
    task = await start_listening(page, lambda page: page.removed_ids == [receipt.session_id])
    await wait_until(lambda: len(page.events.get(receipt.session_id, ())) > 0)

    def leave(tx: Transaction) -> None:
        tx.execute(
            "DELETE FROM audience_member WHERE person_id = $1"
            " AND audience_no = (SELECT audience_no FROM session WHERE id = $2)",
            person_id,
            receipt.session_id,
        )

    await second.gateway.store.engine.arun(Write(leave))
    await task


# ---- the OpenAI-compatible API ---------------------------------------------------------------------------


class PausedAgent:
    """Starts an answer and goes on only when the test lets it."""

    def __init__(self) -> None:
        self.can_continue = asyncio.Event()

    async def __call__(self, _request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield TextDelta("one ")
        await self.can_continue.wait()
        yield TextDelta("two")


async def revoke_tokens(web: WebServer, person_id: PersonId) -> None:
    for token in await web.state.accounts.list_tokens(person_id):
        await web.state.accounts.revoke_token(person_id, token.id)


@pytest.mark.parametrize("take_access", [revoke_tokens, demote, remove])
async def test_an_openai_stream_ends_with_an_error_when_another_process_takes_access(
    start_web: StartWebServer, take_access: Callable[[WebServer, PersonId], Awaitable[None]]
) -> None:
    agent = PausedAgent()
    first = await start_web(ScriptedAgent(agent))
    await first.sign_in("Ada", role="owner")
    program = await first.open_token_client("chat", person="Ada")
    person_id = await get_person_id(await first.sign_in("Ada"))
    second = await start_web(ScriptedAgent(agent))
    body = {"model": "palaver", "stream": True, "messages": [{"role": "user", "content": "count"}]}
    lines: list[str] = []
    async with asyncio.timeout(TIMEOUT_SECONDS):
        async with program.stream("POST", "/v1/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if "one" in line:
                    await take_access(second, person_id)
                lines += [line] if line else []
    agent.can_continue.set()
    last = json.loads(lines[-1].removeprefix("data: "))
    assert last["error"]["code"] == "not_signed_in"
    assert "two" not in "".join(lines)


@pytest.mark.both_engines
async def test_an_openai_answer_is_withheld_from_a_revoked_token(start_web: StartWebServer) -> None:
    agent = PausedAgent()
    web = await start_web(ScriptedAgent(agent))
    program = await web.open_token_client("chat")
    owner = await web.gateway.store.aio.get_owner()
    body = {"model": "palaver", "messages": [{"role": "user", "content": "count"}]}
    request = asyncio.create_task(program.post("/v1/chat/completions", json=body))
    await wait_until(lambda: web.gateway.turn_worker.running_count == 1)
    await revoke_tokens(web, owner.id)
    agent.can_continue.set()
    assert (await request).status_code == 401

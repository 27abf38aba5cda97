"""A web server in a test, and people who are signed in to it."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

import httpx2

from palaver import Platform, Principal, SessionSource, SessionStore
from palaver.domain.clock import SystemClock
from palaver.domain.ids import PersonId
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.platforms.loopback import LOOPBACK
from palaver.services.accounts.accounts import Accounts
from palaver.services.attachments import Attachments
from palaver.services.gateway import Gateway
from palaver.services.live.clients import Live
from palaver.services.memories import Memories
from palaver.storage import sessions
from palaver.storage.engines.base import Read
from palaver.testing import ScriptedAgent
from palaver.web.app import PAGE, create_app
from palaver.web.server import listen, serving
from palaver.web.state import WebState
from support.gateway import PATIENCE, ended

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from fastapi import FastAPI

    from palaver.agent.base import Agent

OPEN = frozenset({LOOPBACK, Platform.TELEGRAM, Platform.DISCORD})


class StartWeb(Protocol):
    async def __call__(
        self, agent: Agent | None = None, *, rules: Mapping[str, Any] | None = None, **options: Any
    ) -> Web: ...


@dataclass
class Web:
    """A server that runs in this test's loop, on a port of this machine."""

    url: str
    app: FastAPI
    state: WebState
    stack: AsyncExitStack
    _clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)
    _keys: Any = field(default_factory=count)

    @property
    def gateway(self) -> Gateway:
        return self.state.gateway

    async def stranger(self) -> httpx2.AsyncClient:
        """Somebody who is not signed in."""
        client = httpx2.AsyncClient(base_url=self.url, headers={"Origin": self.url}, timeout=PATIENCE)
        return await self.stack.enter_async_context(client)

    async def client(self, person: str = "owner", role: str = "member") -> httpx2.AsyncClient:
        """Somebody signed in by a link of their own; the same person twice is the same client."""
        if person not in self._clients:
            secret = await (self.state.accounts.owner_link() if person == "owner" else self._invited(person, role))
            client = await self.stranger()
            answer = await client.post("/api/sign-in/link", json={"token": secret})
            assert answer.is_success, answer.text
            self._clients[person] = client
        return self._clients[person]

    async def token(self, *scopes: str, person: str = "owner") -> httpx2.AsyncClient:
        """A program that bears a token of somebody."""
        client = await self.client(person)
        made = await client.post("/api/me/tokens", json={"name": "a program", "scopes": list(scopes)})
        assert made.is_success, made.text
        headers = {"Authorization": f"Bearer {made.json()['secret']}"}
        return await self.stack.enter_async_context(
            httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE)
        )

    async def session(self, client: httpx2.AsyncClient, **fields: Any) -> str:
        """A new conversation; its id."""
        made = await client.post("/api/sessions", json=fields)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    async def say(self, client: httpx2.AsyncClient, session_id: str, content: Any, **fields: Any) -> dict[str, Any]:
        """Say something and wait for the end of its turn; the receipt."""
        body = {"content": content, "key": f"key-{next(self._keys)}", **fields}
        said = await client.post(f"/api/sessions/{session_id}/messages", json=body)
        assert said.status_code == 202, said.text
        receipt: dict[str, Any] = said.json()
        if receipt["turn_id"]:
            await ended(self.gateway, receipt["turn_id"])
        return receipt

    async def talk(self, client: httpx2.AsyncClient, *lines: str, **fields: Any) -> str:
        """A conversation in which these things were said and answered; its id."""
        session_id = await self.session(client, **fields)
        for line in lines:
            await self.say(client, session_id, line)
        return session_id

    async def _invited(self, person: str, role: str) -> str:
        owner = await self.client()
        made = await owner.post("/api/people", json={"name": person, "role": role})
        assert made.is_success, made.text
        link: str = made.json()["link"]["url"]
        return link.partition("#")[2]


@asynccontextmanager
async def serving_web(
    store_url: str,
    home: Path,
    agent: Agent | None = None,
    *,
    rules: Mapping[str, Any] | None = None,
    adapters: Any = (),
    clock: Any = None,
    config: Any = None,
    page: Path = PAGE,
    **options: Any,
) -> AsyncIterator[Web]:
    """A server on a database, with a store and a gateway of its own."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(SessionStore.open(store_url, config=config, clock=clock or SystemClock()))
        files = Attachments(store, home / "attachments")
        gateway = Gateway(
            store,
            agent or ScriptedAgent(),
            profile=AgentProfile(),
            rules=TurnRules(**({"open_to_all": OPEN} | dict(rules or {}))),
            adapters=adapters,
            files=files,
        )
        await stack.enter_async_context(gateway.running(patience=5))
        live = Live(store, gateway.feed)
        await live.start()
        state = WebState(gateway=gateway, accounts=Accounts(store), live=live, files=files, **options)
        app = create_app(state, page)
        port = await stack.enter_async_context(serving(app, listen("127.0.0.1", 0), before_stop=live.stop))
        yield Web(f"http://127.0.0.1:{port}", app, state, stack)


@asynccontextmanager
async def starting_web(store_url: str, home: Path) -> AsyncIterator[StartWeb]:
    """What starts servers on a database; all of them are stopped in the end."""
    async with AsyncExitStack() as stack:

        async def start(agent: Agent | None = None, *, rules: Mapping[str, Any] | None = None, **options: Any) -> Web:
            return await stack.enter_async_context(serving_web(store_url, home, agent, rules=rules, **options))

        yield start


async def remembered_in_a_club(web: Web, *clients: httpx2.AsyncClient) -> str:
    """Something that the first of these people said in a thread that all of them share; its id."""
    store = web.gateway.store
    people = [(await client.get("/api/me")).json()["person"]["id"] for client in clients]
    for person in people:
        source = SessionSource("web", "club", chat_type="thread", thread_id="1", user_id=person)
        said = await store.aio.record_user_message(source, "hello all")
    found = await store.engine.arun(Read(lambda tx: sessions.get(tx, said.session_id)))
    here = Memories(store.engine, store.clock, Principal(PersonId(people[0])), found)
    return (await here.remember("The club meets on Monday.")).id


def api_document() -> dict[str, Any]:
    """The OpenAPI document, without a server: for tests that are made from it."""
    store = SimpleNamespace(clock=SystemClock())
    state = cast("Any", SimpleNamespace(gateway=SimpleNamespace(store=store), public_host=None, base_path=""))
    state.trusted_proxies = ()
    return create_app(state).openapi()

"""A web server for tests, and clients that are signed in to it."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

import httpx2

from palaver import Platform, Principal, SessionSource, SessionStore
from palaver.app import make_live_settings, make_web_state
from palaver.config import FixedLayers, Settings
from palaver.config.agent_rules import AgentProfile, TurnRules, WebRules
from palaver.core.clock import SystemClock
from palaver.core.engines.base import Read
from palaver.core.ids import PersonId
from palaver.gateway.gateway import Gateway
from palaver.media.attachments import Attachments
from palaver.memory.service import ConversationMemory
from palaver.platforms.loopback import LOOPBACK
from palaver.sessions import table as sessions
from palaver.testing import ScriptedAgent
from palaver.web.app import PAGE_FOLDER, create_app
from palaver.web.server import run_server
from palaver.web.sockets import open_socket
from support.gateway import TIMEOUT_SECONDS, wait_for_turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from fastapi import FastAPI

    from palaver.agent.base import Agent
    from palaver.gateway.account_runner import ConnectionTiming
    from palaver.web.http_protocol import ConnectionLimits, Timeouts
    from palaver.web.state import WebState

OPEN_PLATFORMS = frozenset({LOOPBACK, Platform.TELEGRAM, Platform.DISCORD})


class StartWebServer(Protocol):
    async def __call__(
        self, agent: Agent | None = None, *, rules: Mapping[str, Any] | None = None, **options: Any
    ) -> WebServer: ...


@dataclass
class WebServer:
    """A server in the test's event loop, on a loopback port."""

    url: str
    app: FastAPI
    state: WebState
    exit_stack: AsyncExitStack
    _clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)
    _keys: Any = field(default_factory=count)

    @property
    def gateway(self) -> Gateway:
        return self.state.gateway

    async def open_anonymous_client(self) -> httpx2.AsyncClient:
        """Open a client that is not signed in."""
        client = httpx2.AsyncClient(base_url=self.url, headers={"Origin": self.url}, timeout=TIMEOUT_SECONDS)
        return await self.exit_stack.enter_async_context(client)

    async def sign_in(self, person: str = "owner", role: str = "member") -> httpx2.AsyncClient:
        """Return a client of this person, who is invited and signed in with a link the first time."""
        if person not in self._clients:
            accounts = self.state.accounts
            secret = await (accounts.create_owner_link() if person == "owner" else self._invite_person(person, role))
            client = await self.open_anonymous_client()
            response = await client.post("/api/sign-in/link", json={"token": secret})
            assert response.is_success, response.text
            self._clients[person] = client
        return self._clients[person]

    async def open_token_client(self, *scopes: str, person: str = "owner") -> httpx2.AsyncClient:
        """Open a client that authenticates with a new token of this person."""
        client = await self.sign_in(person)
        response = await client.post("/api/me/tokens", json={"name": "a program", "scopes": list(scopes)})
        assert response.is_success, response.text
        headers = {"Authorization": f"Bearer {response.json()['secret']}"}
        return await self.exit_stack.enter_async_context(
            httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=TIMEOUT_SECONDS)
        )

    async def create_session(self, client: httpx2.AsyncClient, **fields: Any) -> str:
        """Create an empty conversation and return its id."""
        response = await client.post("/api/sessions", json=fields)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    async def send_message(
        self, client: httpx2.AsyncClient, session_id: str, content: Any, **fields: Any
    ) -> dict[str, Any]:
        """Send a message, wait for the end of its turn, and return the receipt."""
        body = {"content": content, "key": f"key-{next(self._keys)}", **fields}
        response = await client.post(f"/api/sessions/{session_id}/messages", json=body)
        assert response.status_code == 202, response.text
        receipt: dict[str, Any] = response.json()
        if receipt["turn_id"]:
            await wait_for_turn(self.gateway, receipt["turn_id"])
        return receipt

    async def create_conversation(self, client: httpx2.AsyncClient, *messages: str, **fields: Any) -> str:
        """Create a conversation in which these messages were sent and answered, and return its id."""
        session_id = await self.create_session(client, **fields)
        for message in messages:
            await self.send_message(client, session_id, message)
        return session_id

    async def _invite_person(self, person: str, role: str) -> str:
        owner = await self.sign_in()
        response = await owner.post("/api/people", json={"name": person, "role": role})
        assert response.is_success, response.text
        link: str = response.json()["link"]["url"]
        return link.partition("#")[2]


@asynccontextmanager
async def run_web_server(
    store_url: str,
    home: Path,
    agent: Agent | None = None,
    *,
    rules: Mapping[str, Any] | None = None,
    adapters: Any = (),
    clock: Any = None,
    config: Any = None,
    profile: AgentProfile | None = None,
    page_folder: Path = PAGE_FOLDER,
    limits: ConnectionLimits | None = None,
    timeouts: Timeouts | None = None,
    timing: ConnectionTiming | None = None,
    is_server: bool = False,  # jobs run by the clock, too
    environ: Mapping[str, str] | None = None,  # that the settings see
    **options: Any,
) -> AsyncIterator[WebServer]:
    """Run a server on a database, with its own store and gateway. `options` override fields of `WebState`."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(SessionStore.open(store_url, config=config, clock=clock or SystemClock()))
        gateway = Gateway(
            store,
            agent or ScriptedAgent(),
            profile=profile or AgentProfile(),
            rules=TurnRules(**({"open_platforms": OPEN_PLATFORMS} | dict(rules or {}))),
            adapters=adapters,
            files=Attachments(store, home / "attachments"),
            outputs=home / "outputs",
            timing=timing,
            is_server=is_server,
        )
        await stack.enter_async_context(gateway.run(grace_seconds=5))
        settings = make_live_settings(gateway, make_base_settings(store_url, home, gateway, environ))
        await stack.enter_async_context(settings.follow(gateway.feed))
        state = replace(make_web_state(gateway, WebRules(), settings), **options)
        await state.live.start()
        await state.imports.start()
        app = create_app(state, page_folder)
        port = await stack.enter_async_context(
            run_server(
                app,
                open_socket("127.0.0.1", 0),
                before_stop=state.close_streams,
                trusted_proxies=state.trusted_proxies,
                limits=limits,
                timeouts=timeouts,
            )
        )
        yield WebServer(f"http://127.0.0.1:{port}", app, state, stack)


def make_base_settings(
    store_url: str, home: Path, gateway: Gateway, environ: Mapping[str, str] | None = None
) -> Settings:
    """Make settings that fit a gateway, as if config.yaml had them, without the environment of the tests."""
    return Settings(
        home=home,
        database_url=store_url,
        gateway=gateway.store.config,
        agent=gateway.profile,
        turns=gateway.rules,
        fixed_layers=FixedLayers(environ={"HOME": str(home), **(environ or {})}),
    )


@asynccontextmanager
async def web_server_factory(store_url: str, home: Path) -> AsyncIterator[StartWebServer]:
    """Provide a function that starts servers on a database; all of them are stopped at the end."""
    async with AsyncExitStack() as stack:

        async def start(
            agent: Agent | None = None, *, rules: Mapping[str, Any] | None = None, **options: Any
        ) -> WebServer:
            return await stack.enter_async_context(run_web_server(store_url, home, agent, rules=rules, **options))

        yield start


async def create_shared_memory(web: WebServer, *clients: httpx2.AsyncClient) -> str:
    """Let all these people take part in one thread, save a memory there for the first of them, and return its id."""
    store = web.gateway.store
    people = [(await client.get("/api/me")).json()["person"]["id"] for client in clients]
    for person in people:
        source = SessionSource("web", "club", chat_type="thread", thread_id="1", user_id=person)
        receipt = await store.aio.record_user_message(source, "hello all")
    session_row = await store.engine.arun(Read(lambda tx: sessions.get(tx, receipt.session_id)))
    memory = ConversationMemory(store.engine, store.clock, Principal(PersonId(people[0])), session_row)
    return (await memory.remember("The club meets on Monday.")).id


@cache
def build_api_document() -> dict[str, Any]:
    """Build the OpenAPI document without a server, once, for tests that are generated from it."""
    state = SimpleNamespace(metrics=None, public_host=None, base_path="", trusted_proxies=())
    return create_app(cast("Any", state)).openapi()

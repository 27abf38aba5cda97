"""Web servers on a loopback port, each on this test's database."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from conftest import OPEN, emptied
from palaver import SessionStore
from palaver.domain.clock import SystemClock
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.services.accounts import Accounts
from palaver.services.gateway import Gateway
from palaver.services.live import Live
from palaver.testing import ScriptedAgent
from palaver.web.app import create_app
from palaver.web.server import listen, serving
from palaver.web.state import WebState
from support.web import StartWeb, Web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from palaver.agent.base import Agent


@pytest.fixture
def web_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database. SQLite, unless a test asks for another engine:
    `@pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)`.
    """
    if getattr(request, "param", "sqlite") == "postgres":
        return emptied(request.getfixturevalue("postgres_database"))
    return f"sqlite:///{tmp_path}/palaver.db"


@pytest.fixture
async def start_web(web_store: str, tmp_path: Path) -> AsyncIterator[StartWeb]:
    """Starts servers on this test's database, each with a store of its own, and stops them in the end."""
    async with AsyncExitStack() as stack:

        async def start(agent: Agent | None = None, *, rules: Any = None, **options: Any) -> Web:
            store = stack.enter_context(SessionStore.open(web_store, clock=options.pop("clock", SystemClock())))
            gateway = Gateway(
                store,
                agent or ScriptedAgent(),
                profile=AgentProfile(),
                rules=TurnRules(**({"open_to_all": OPEN} | (rules or {}))),
                adapters=options.pop("adapters", ()),
            )
            await stack.enter_async_context(gateway.running(patience=5))
            live = Live(store, gateway.feed)
            await live.start()
            page = {"page": options.pop("page")} if "page" in options else {}
            state = WebState(gateway=gateway, accounts=Accounts(store), live=live, home=tmp_path, **options)
            app = create_app(state, **page)
            port = await stack.enter_async_context(serving(app, listen("127.0.0.1", 0), before_stop=live.stop))
            return Web(f"http://127.0.0.1:{port}", app, state, stack)

        yield start


@pytest.fixture
async def web(start_web: StartWeb) -> Web:
    return await start_web()

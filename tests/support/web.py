"""A web server in a test, and people who are signed in to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from support.gateway import PATIENCE, ended

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from fastapi import FastAPI

    from palaver.agent.base import Agent
    from palaver.services.gateway import Gateway
    from palaver.web.state import WebState


class StartWeb(Protocol):
    async def __call__(self, agent: Agent | None = None, *, rules: Any = None, **options: Any) -> Web: ...


@dataclass
class Web:
    """A server that runs in this test's loop, on a port of this machine."""

    url: str
    app: FastAPI
    state: WebState
    stack: AsyncExitStack
    _clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)

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
            secret = await self._owner_link() if person == "owner" else await self._invited(person, role)
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
        body = {"content": content, "key": f"key-{len(self._said)}", **fields}
        self._said.append(content)
        said = await client.post(f"/api/sessions/{session_id}/messages", json=body)
        assert said.status_code == 202, said.text
        receipt: dict[str, Any] = said.json()
        if receipt["turn_id"]:
            await ended(self.gateway, receipt["turn_id"])
        return receipt

    _said: list[Any] = field(default_factory=list)

    async def _owner_link(self) -> str:
        return await self.state.accounts.owner_link()

    async def _invited(self, person: str, role: str) -> str:
        owner = await self.client()
        made = await owner.post("/api/people", json={"name": person, "role": role})
        assert made.is_success, made.text
        link: str = made.json()["link"]["url"]
        return link.partition("#")[2]

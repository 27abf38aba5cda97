"""A page in a test: it listens to the live stream, keeps what it is told, and comes back where it was cut."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from support.gateway import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

LOST = (httpx2.TransportError, httpx2.StreamError)


@dataclass
class Told:
    """One server-sent event."""

    name: str
    data: dict[str, Any]
    id: str | None = None


async def stream(client: httpx2.AsyncClient, url: str, last: str | None = None) -> AsyncGenerator[Told, None]:
    """Events as they come; one without a name only brings an id."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with client.stream("GET", url, headers=headers) as response:
        assert response.status_code == 200, (await response.aread()).decode()
        assert response.headers["content-type"].startswith("text/event-stream")
        name, data, cursor = "", "", None
        async for line in response.aiter_lines():
            kind, _, value = line.partition(": ")
            match kind:
                case "id":
                    cursor = value
                case "event":
                    name = value
                case "data":
                    data = value
                case "" if not line:
                    yield Told(name, json.loads(data) if data else {}, cursor)
                    name, data, cursor = "", "", None
                case "":
                    yield Told("comment", {"text": value})


@dataclass
class Page:
    """Somebody's page: what it shows, by what it was told."""

    client: httpx2.AsyncClient
    follows: tuple[str, ...] = ()  # `session:seq`
    everything: bool = False
    last: str | None = None
    told: list[Told] = field(default_factory=list)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by session
    turns: dict[str, str] = field(default_factory=dict)
    drafts: dict[str, str] = field(default_factory=dict)  # by turn
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    lists: int = 0

    @property
    def url(self) -> str:
        return f"/api/live?{httpx2.QueryParams({'follow': list(self.follows), 'all': self.everything})}"

    def take(self, told: Told) -> None:
        self.told.append(told)
        self.last = self.last if told.id is None else told.id
        data = told.data
        match told.name:
            case "event":
                known = self.events.setdefault(data["session_id"], [])
                assert not known or known[-1]["seq"] + 1 == data["event"]["seq"], "each once, in order, none left out"
                known.append(data["event"])
            case "turn":
                self.turns[data["turn"]["id"]] = data["turn"]["state"]
                if data["turn"]["ended_at"]:
                    self.drafts.pop(data["turn"]["id"], None)
            case "draft":
                before = "" if data["afresh"] else self.drafts.get(data["turn_id"], "")
                text = "".join(piece.get("text", "") for piece in data["pieces"] if piece["kind"] == "text")
                self.drafts[data["turn_id"]] = before + text
            case "session":
                self.sessions[data["id"]] = data
            case "gone":
                self.gone.append(data["id"])
            case "lists":
                self.lists += 1

    async def until(self, there: Callable[[Page], Any], *, most: int | None = None) -> Page:
        """Listen until something is there, or so many events have come, and hang up."""
        async with asyncio.timeout(PATIENCE):
            listening = stream(self.client, self.url, self.last)
            try:
                count = 0
                async for told in listening:
                    self.take(told)
                    count += bool(told.name)
                    if there(self) or (most is not None and count >= most):
                        return self
            finally:
                await listening.aclose()
        raise AssertionError("the stream ended")

    async def until_whatever_happens(self, there: Callable[[Page], Any]) -> Page:
        """The same, coming back whenever the line is cut."""
        async with asyncio.timeout(PATIENCE * 2):
            while True:
                try:
                    return await self.until(there)
                except (*LOST, AssertionError) as error:
                    if isinstance(error, AssertionError) and str(error) != "the stream ended":
                        raise
                    await asyncio.sleep(0.02)

    def messages(self, session: str) -> list[tuple[str, Any]]:
        """The conversation: who, what."""
        found = self.events.get(session, [])
        return [(e["message"]["role"], e["message"]["content"]) for e in found if e["message"] is not None]

    def settled(self, *texts: str) -> bool:
        """Whether everything was answered, the last of it with these words."""
        said = [content for session in self.events for role, content in self.messages(session) if role == "assistant"]
        return all(text in said for text in texts) and not set(self.turns.values()) & {"queued", "running"}


async def listening(page: Page, there: Callable[[Page], Any]) -> asyncio.Task[Page]:
    """The page listens already when this returns, also to what it follows from now on, until something is there."""
    began = asyncio.Event()
    wanted = {follow.partition(":")[0] for follow in page.follows}

    def seen(each: Page) -> Any:
        if all(session in (each.last or "") or session in each.gone for session in wanted):
            began.set()
        return there(each)

    task = asyncio.create_task(page.until(seen))
    waiting = asyncio.create_task(began.wait())
    await asyncio.wait([task, waiting], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        await task
    return task

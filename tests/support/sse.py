"""A page for tests: it reads the live stream, keeps what it receives, and reconnects where the stream was cut."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from support.gateway import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

CONNECTION_ERRORS = (httpx2.TransportError, httpx2.StreamError)


@dataclass
class SseEvent:
    """One server-sent event."""

    name: str
    data: dict[str, Any]
    id: str | None = None


async def read_stream(
    client: httpx2.AsyncClient, url: str, last_event_id: str | None = None
) -> AsyncGenerator[SseEvent, None]:
    """Yield events as they arrive. An event without a name only carries an id."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
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
                    yield SseEvent(name, json.loads(data) if data else {}, cursor)
                    name, data, cursor = "", "", None
                case "":
                    yield SseEvent("comment", {"text": value})


@dataclass
class LivePage:
    """A person's page: its state follows from the events it has received."""

    client: httpx2.AsyncClient
    follows: tuple[str, ...] = ()  # `session:seq`
    include_all: bool = False
    last_event_id: str | None = None
    received: list[SseEvent] = field(default_factory=list)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by session
    turns: dict[str, str] = field(default_factory=dict)
    drafts: dict[str, str] = field(default_factory=dict)  # by turn
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed_ids: list[str] = field(default_factory=list)
    lists_event_count: int = 0

    @property
    def url(self) -> str:
        return f"/api/live?{httpx2.QueryParams({'follow': list(self.follows), 'all': self.include_all})}"

    def apply(self, event: SseEvent) -> None:
        self.received.append(event)
        self.last_event_id = self.last_event_id if event.id is None else event.id
        data = event.data
        match event.name:
            case "event":
                events = self.events.setdefault(data["session_id"], [])
                assert not events or events[-1]["seq"] + 1 == data["event"]["seq"], "each event once and in order"
                events.append(data["event"])
            case "turn":
                self.turns[data["turn"]["id"]] = data["turn"]["state"]
                if data["turn"]["ended_at"]:
                    self.drafts.pop(data["turn"]["id"], None)
            case "draft":
                before = "" if data["replaces_draft"] else self.drafts.get(data["turn_id"], "")
                text = "".join(piece.get("text", "") for piece in data["pieces"] if piece["kind"] == "text")
                self.drafts[data["turn_id"]] = before + text
            case "session":
                self.sessions[data["id"]] = data
            case "session_removed":
                self.removed_ids.append(data["id"])
            case "lists_changed":
                self.lists_event_count += 1

    async def read_until(self, is_done: Callable[[LivePage], Any], *, max_events: int | None = None) -> LivePage:
        """Read the stream until `is_done`, or until `max_events` have arrived, and disconnect."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            stream = read_stream(self.client, self.url, self.last_event_id)
            try:
                count = 0
                async for event in stream:
                    self.apply(event)
                    count += bool(event.name)
                    if is_done(self) or (max_events is not None and count >= max_events):
                        return self
            finally:
                await stream.aclose()
        raise AssertionError("the stream ended")

    async def read_until_with_reconnects(self, is_done: Callable[[LivePage], Any]) -> LivePage:
        """Read the stream until `is_done`, and reconnect whenever the connection is lost."""
        async with asyncio.timeout(TIMEOUT_SECONDS * 2):
            while True:
                try:
                    return await self.read_until(is_done)
                except (*CONNECTION_ERRORS, AssertionError) as error:
                    if isinstance(error, AssertionError) and str(error) != "the stream ended":
                        raise
                    await asyncio.sleep(0.02)

    def list_messages(self, session: str) -> list[tuple[str, Any]]:
        """List the conversation as pairs of role and content."""
        events = self.events.get(session, [])
        return [(e["message"]["role"], e["message"]["content"]) for e in events if e["message"] is not None]

    def is_settled(self, *texts: str) -> bool:
        """Whether no turn is open and all these answers have arrived."""
        answers = [
            content for session in self.events for role, content in self.list_messages(session) if role == "assistant"
        ]
        return all(text in answers for text in texts) and not set(self.turns.values()) & {"queued", "running"}


async def start_listening(page: LivePage, is_done: Callable[[LivePage], Any]) -> asyncio.Task[LivePage]:
    """Start a task that reads until `is_done`, and return once the page follows all its conversations."""
    following = asyncio.Event()
    session_ids = {follow.partition(":")[0] for follow in page.follows}

    def check(current: LivePage) -> Any:
        if all(each in (current.last_event_id or "") or each in current.removed_ids for each in session_ids):
            following.set()
        return is_done(current)

    task = asyncio.create_task(page.read_until(check))
    waiting = asyncio.create_task(following.wait())
    await asyncio.wait([task, waiting], timeout=TIMEOUT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        await task
    return task

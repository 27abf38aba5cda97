"""Matrix on this machine: a real homeserver with two people on it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

import httpx2

from palaver.core.source import Platform
from palaver.testing import Fault
from platforms.local_platform import ADA, BEN, GROUP, LocalPlatform

from .fault_proxy import FaultProxy
from .homeserver import Person, share_synapse

if TYPE_CHECKING:
    from pathlib import Path


class LocalMatrix(LocalPlatform):
    """Synapse, and a proxy in front of it that breaks requests of our account."""

    platform = Platform.MATRIX
    faults = frozenset({Fault.RATE_LIMITED, Fault.SERVER_ERROR, Fault.ANSWER_LOST, Fault.CONNECTION_CUT})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stack = AsyncExitStack()
        self._rooms: dict[str, str] = {}
        self._people: dict[str, Person] = {}

    async def __aenter__(self) -> Self:
        url = self._stack.enter_context(share_synapse())
        http = await self._stack.enter_async_context(httpx2.AsyncClient(timeout=60))
        self._proxy = await self._stack.enter_async_context(FaultProxy(url).running())
        self._bot = await Person.register(url, http, "Palaver")
        for name in (ADA, BEN):
            self._people[name] = await Person.register(url, http, name.title())
            self._rooms[name] = await self._people[name].create_room(self._bot.user_id, is_direct=True)
        self._rooms[GROUP] = await self._people[ADA].create_room(self._people[BEN].user_id, self._bot.user_id)
        await self._people[BEN].join(self._rooms[GROUP])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def build_settings(self) -> dict[str, Any]:
        return {"homeserver": self._proxy.url, "access_token": self._bot.access_token, "encryption": False}

    async def say(self, person: str, chat: str, text: str) -> None:
        mentions = {} if chat == person else {"m.mentions": {"user_ids": [self._bot.user_id]}}
        await self._people[person].say(self._rooms[chat], text, **mentions)

    async def list_answers(self, chat: str) -> list[str]:
        person = self._people[ADA if chat == GROUP else chat]
        await person.sync(wait=False)
        texts: dict[str, str] = {}  # by event
        for event in person.events.get(self._rooms[chat], ()):
            if event["type"] == "m.room.message" and event["sender"] == self._bot.user_id and event["content"]:
                relation = event["content"].get("m.relates_to", {})
                is_edit = relation.get("rel_type") == "m.replace"
                content = event["content"]["m.new_content"] if is_edit else event["content"]
                texts[relation["event_id"] if is_edit else event["event_id"]] = content["body"]
        return list(texts.values())

    async def disturb(self, fault: Fault) -> None:
        if fault is Fault.CONNECTION_CUT:
            await self._proxy.cut_connections()
        else:
            self._proxy.break_next_message(fault)

    def has_pending_fault(self, fault: Fault) -> bool:
        return fault is not Fault.CONNECTION_CUT and self._proxy.has_pending_fault

"""What every adapter must keep, on a real homeserver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2
import pytest

from palaver.core.source import Platform
from palaver.sessions.delivery import Address
from palaver.testing.contract_platform import ContractPlatform, Fault, ShownMessage
from palaver.testing.platform_contract import PlatformContract

from .fault_proxy import ANSWERS, FaultProxy
from .homeserver import Person

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from palaver.platforms.matrix.adapter import MatrixAdapter
    from palaver.testing.account_link import MemoryInbox

    from .conftest import MakeAdapter

pytestmark = pytest.mark.slow


class MatrixPlatform(ContractPlatform):
    """A direct chat between Ada and Palaver."""

    faults = frozenset(Fault)

    def __init__(self, bot: Person, ada: Person, room_id: str, proxy: FaultProxy, make: MakeAdapter) -> None:
        self.bot, self.ada, self.room_id = bot, ada, room_id
        self.secrets = [bot.access_token]
        self._proxy = proxy
        self._make = make

    @property
    def address(self) -> Address:
        return Address(Platform.MATRIX, self.room_id)

    def make_adapter(self) -> MatrixAdapter:
        return self._make(self.bot, url=self._proxy.url)

    async def say(self, text: str) -> str:
        return await self.ada.say(self.room_id, text)

    async def say_with_file(self, name: str, data: bytes) -> str:
        url = await self.ada.upload(data, "text/plain")
        content = {"msgtype": "m.file", "body": name, "filename": name, "url": url, "info": {"size": len(data)}}
        return await self.ada.send(self.room_id, "m.room.message", content)

    async def list_messages(self) -> list[ShownMessage]:
        shown = []
        for event in await self.ada.list_events(self.room_id):
            content = event["content"]
            is_edit = content.get("m.relates_to", {}).get("rel_type") == "m.replace"
            if event["sender"] == self.bot.user_id and event["type"] == "m.room.message" and content and not is_edit:
                edit = event.get("unsigned", {}).get("m.relations", {}).get("m.replace")
                text = edit["content"]["m.new_content"]["body"] if edit else content["body"]
                files = (content["filename"],) if "url" in content else ()
                shown.append(ShownMessage(event["event_id"], text, files))
        return shown

    async def break_platform(self, fault: Fault) -> None:
        if fault in {*ANSWERS, Fault.ANSWER_LOST}:
            self._proxy.break_next_message(fault)
        elif fault is Fault.CHAT_GONE:
            await self.bot.call("POST", f"rooms/{quote(self.room_id)}/leave", {})
        elif fault is Fault.CHAT_MOVED:
            await self.ada.call("POST", f"rooms/{quote(self.room_id)}/upgrade", {"new_version": "11"})
        elif fault is Fault.UNREACHABLE:
            await self._proxy.stop()
        elif fault is Fault.REVOKED:
            await self.bot.call("POST", "logout", {})
        else:
            await self._proxy.cut_connections()

    async def edit_as_person(self, message_id: str, text: str) -> None:
        await self.ada.edit(self.room_id, message_id, text)

    async def delete_as_person(self, message_id: str) -> None:
        await self.ada.redact(self.room_id, message_id)

    async def react_as_person(self, message_id: str, emoji: str) -> None:
        await self.ada.react(self.room_id, message_id, emoji)

    async def is_typing(self) -> bool:
        while not self.ada.typing.get(self.room_id):
            await self.ada.sync()
        return self.ada.typing[self.room_id] == [self.bot.user_id]


class TestMatrixContract(PlatformContract):
    known_people: tuple[Person, Person] | None = None  # accounts are used for several tests: creating them takes time

    @pytest.fixture
    async def platform(self, synapse: str, make_adapter: MakeAdapter) -> AsyncIterator[MatrixPlatform]:
        async with httpx2.AsyncClient(timeout=60) as http, FaultProxy(synapse).running() as proxy:
            known = type(self).known_people
            if known is None or known[0].url != synapse:
                known = (await Person.register(synapse, http, "Palaver"), await Person.register(synapse, http, "Ada"))
            type(self).known_people = None
            bot, ada = (replace(person, http=http, events={}, typing={}) for person in known)
            room_id = await ada.create_room(bot.user_id, preset="private_chat", room_version="10")
            await bot.join(room_id)
            yield MatrixPlatform(bot, ada, room_id, proxy, make_adapter)
            response = await http.get(
                f"{synapse}/_matrix/client/v3/account/whoami", headers={"Authorization": f"Bearer {bot.access_token}"}
            )
            if response.status_code == 200:
                type(self).known_people = known

    async def test_it_stops_when_another_process_runs_the_account(
        self, platform: ContractPlatform, inbox: MemoryInbox
    ) -> None:
        async with self._run(platform, inbox):
            pass  # the first start reads no old messages
        await super().test_it_stops_when_another_process_runs_the_account(platform, inbox)

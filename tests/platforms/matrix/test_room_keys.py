"""Room keys reach exactly those who are in the room at that moment, with the real library on both sides."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from palaver.core.errors import SendRetryable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from palaver.platforms.matrix.client import MatrixClient
    from palaver.platforms.matrix.encryption import RoomEncryption

BOT, ADA, BEN = "@palaver:example.org", "@ada:example.org", "@ben:example.org"
ROOM, OTHER_ROOM = "!one:example.org", "!two:example.org"


class Device:
    """A device of a person, with its keys."""

    def __init__(self, user_id: str, device_id: str, folder: Path) -> None:
        from nio.crypto import Olm
        from nio.store import SqliteStore

        self.user_id, self.device_id = user_id, device_id
        self._store = SqliteStore(user_id, device_id, str(folder), "KEY", f"{device_id}.db")
        keys = Olm(user_id, device_id, self._store).share_keys()
        self.keys, self.one_time_keys = keys["device_keys"], keys["one_time_keys"]

    def close(self) -> None:
        self._store.database.close()


class KeyServer:
    """The requests about keys that a homeserver answers; `before` is called before each answer."""

    def __init__(self, *devices: Device) -> None:
        self.user_id = BOT
        self.devices = list(devices)
        self.members = [BOT, ADA]
        self.before: Callable[[str], Awaitable[None]] = self.answer_at_once
        self.shared_with: list[set[str]] = []  # the devices that a room key was sent to, by request

    async def answer_at_once(self, _path: str) -> None:
        pass

    async def fetch_joined_members(self, _room_id: str) -> dict[str, Any]:
        return {"joined": {member: {} for member in self.members}}

    async def send_to_devices(self, event_type: str, body: dict[str, Any]) -> None:
        await self.request("PUT", f"sendToDevice/{event_type}", body=body)

    async def request(self, _method: str, path: str, *, body: dict[str, Any]) -> dict[str, Any]:
        body = json.loads(json.dumps(body))
        found = [each for each in self.devices if each.user_id in body.get("device_keys", {})]  # at this moment
        devices = {user: {each.device_id: each.keys for each in found if each.user_id == user} for user in (ADA, BEN)}
        await self.before(path)
        if path.endswith("keys/upload"):
            return {"one_time_key_counts": {"signed_curve25519": 50}}
        if path.endswith("keys/query"):
            return {"device_keys": {user: each for user, each in devices.items() if each}, "failures": {}}
        if path.endswith("keys/claim"):
            wanted = body["one_time_keys"]
            claimed: dict[str, Any] = {}
            for each in self.devices:
                if each.device_id in wanted.get(each.user_id, {}):
                    claimed.setdefault(each.user_id, {})[each.device_id] = dict([each.one_time_keys.popitem()])
            return {"one_time_keys": claimed, "failures": {}}
        self.shared_with.append({device for devices in body["messages"].values() for device in devices})
        return {}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[KeyServer]:
    devices = [Device(ADA, "ADAPHONE", tmp_path), Device(ADA, "ADALAPTOP", tmp_path), Device(BEN, "BENPHONE", tmp_path)]
    server = KeyServer(devices[0], devices[2])
    server.new_device = devices[1]  # type: ignore[attr-defined]
    yield server
    for device in devices:
        device.close()


@pytest.fixture
async def encryption(server: KeyServer, tmp_path: Path) -> AsyncIterator[RoomEncryption]:
    from palaver.platforms.matrix.encryption import RoomEncryption

    encryption = RoomEncryption(cast("MatrixClient", server), "PALAVER", tmp_path)
    yield encryption
    encryption.close()


def change_devices(encryption: RoomEncryption, *users: str) -> None:
    encryption.receive({"device_lists": {"changed": list(users)}, "device_one_time_keys_count": {}})


async def encrypt(encryption: RoomEncryption, room_id: str = ROOM) -> str:
    content = await encryption.encrypt(room_id, "m.room.message", {"body": "hello"})
    return str(content["session_id"])


async def test_a_device_that_appears_while_a_key_is_shared_gets_the_next_key(
    server: KeyServer, encryption: RoomEncryption
) -> None:
    async def add_device(path: str) -> None:
        if "sendToDevice" in path and len(server.shared_with) == 0:
            server.before = server.answer_at_once
            server.devices.append(server.new_device)  # type: ignore[attr-defined]
            change_devices(encryption, ADA)
            await encryption.exchange_keys()  # as the task that receives does it

    await encrypt(encryption, OTHER_ROOM)
    server.shared_with.clear()
    server.before = add_device
    await encrypt(encryption)
    assert server.shared_with == [{"ADAPHONE"}, {"ADAPHONE", "ADALAPTOP"}]


async def test_a_person_who_leaves_while_a_key_is_shared_does_not_get_it(
    server: KeyServer, encryption: RoomEncryption
) -> None:
    async def leave(path: str) -> None:
        if "keys/claim" in path:
            server.before = server.answer_at_once
            server.members = [BOT, ADA]
            encryption.forget_members(ROOM)

    server.members = [BOT, ADA, BEN]
    server.before = leave
    await encrypt(encryption)
    assert server.shared_with == [{"ADAPHONE"}]


async def test_devices_that_change_while_they_are_asked_for_are_asked_for_again(
    server: KeyServer, encryption: RoomEncryption
) -> None:
    async def add_device(path: str) -> None:
        if "keys/query" in path:
            server.before = server.answer_at_once
            server.devices.append(server.new_device)  # type: ignore[attr-defined]
            change_devices(encryption, ADA)

    await encrypt(encryption)
    change_devices(encryption, ADA)
    server.before = add_device
    await encryption.exchange_keys()
    await encrypt(encryption)
    assert server.shared_with[-1] == {"ADAPHONE", "ADALAPTOP"}


async def test_two_rooms_at_once_know_all_devices(server: KeyServer, encryption: RoomEncryption) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def hold(path: str) -> None:
        if "keys/query" in path:
            arrived.set()
            await go_on.wait()

    server.before = hold
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(encrypt(encryption))
        await arrived.wait()
        tasks.create_task(encrypt(encryption, OTHER_ROOM))
        await asyncio.sleep(0)
        go_on.set()
    assert server.shared_with == [{"ADAPHONE"}, {"ADAPHONE"}]


async def test_a_key_that_cannot_be_shared_because_members_come_and_go_is_tried_again_later(
    server: KeyServer, encryption: RoomEncryption
) -> None:
    async def change(path: str) -> None:
        if "sendToDevice" in path:
            encryption.forget_members(ROOM)

    server.before = change
    with pytest.raises(SendRetryable):
        await encrypt(encryption)


async def test_a_failed_question_for_devices_is_asked_again(server: KeyServer, encryption: RoomEncryption) -> None:
    async def fail(path: str) -> None:
        if "keys/query" in path:
            server.before = server.answer_at_once
            raise ConnectionError

    server.before = fail
    with pytest.raises(ConnectionError):
        await encrypt(encryption)
    await encrypt(encryption)
    assert server.shared_with == [{"ADAPHONE"}]

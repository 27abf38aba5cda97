"""Encrypted rooms: a person with an ordinary encrypting client on one side, the adapter on the other."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from palaver.delivery.adapter import OutgoingFile, OutgoingMessage
from palaver.platforms.matrix import receiver
from palaver.sessions.delivery import Address
from support.gateway import TIMEOUT_SECONDS
from support.platform_adapters import connect_adapter, wait_for_texts

from .test_adapter import make_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from palaver.testing.account_link import MemoryInbox

    from .conftest import MakeAdapter
    from .homeserver import Person

pytestmark = pytest.mark.slow

ENCRYPTION = [{"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]


class EncryptingClient:
    """A client with its own device and keys."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.events: list[Any] = []

    async def sync(self) -> None:
        answer = await self.client.sync(timeout=10_000, full_state=not self.client.next_batch)
        for room in answer.rooms.join.values():
            self.events.extend(room.timeline.events)
        if self.client.should_upload_keys:
            await self.client.keys_upload()
        if self.client.should_query_keys:
            await self.client.keys_query()

    async def learn_devices(self, person: Person) -> None:
        """Wait until the keys of a person's devices are known: only those can read what is sent."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not list(self.client.device_store.active_user_devices(person.user_id)):
                if self.client.should_query_keys:
                    await self.client.keys_query()
                else:
                    await self.sync()

    async def wait_for(self, condition: Callable[[Any], object]) -> Any:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not (found := [event for event in self.events if condition(event)]):
                await self.sync()
        return found[-1]

    async def say(self, room_id: str, text: str, **content: Any) -> str:
        body = {"msgtype": "m.text", "body": text, **content}
        answer = await self.client.room_send(room_id, "m.room.message", body, ignore_unverified_devices=True)
        event_id: str = answer.event_id
        return event_id


@asynccontextmanager
async def open_client(person: Person, folder: Path) -> AsyncIterator[EncryptingClient]:
    import nio

    folder.mkdir(exist_ok=True)  # noqa: ASYNC240
    config = nio.AsyncClientConfig(
        encryption_enabled=True, max_limit_exceeded=0, max_timeouts=0, store=nio.store.SqliteStore
    )
    client = nio.AsyncClient(person.url, person.user_id, store_path=str(folder), config=config)
    client.restore_login(person.user_id, person.device_id, person.access_token)
    try:
        yield EncryptingClient(client)
    finally:
        client.store.database.close()
        await client.close()


def is_join_of(person: Person) -> Callable[[Any], bool]:
    def matches(event: Any) -> bool:
        return getattr(event, "state_key", None) == person.user_id and event.membership == "join"

    return matches


async def send_nonsense(ben: Person, bot: Person) -> None:
    """Send what only looks like keys and encrypted messages."""
    algorithms = {"olm": "m.olm.v1.curve25519-aes-sha2", "megolm": "m.megolm.v1.aes-sha2"}
    [own_key] = [
        key
        for name, key in (await ben.call("POST", "keys/query", {"device_keys": {bot.user_id: []}}))["device_keys"][
            bot.user_id
        ][bot.device_id]["keys"].items()
        if name.startswith("curve25519")
    ]
    for ciphertext in ({own_key: {"type": 0, "body": "nonsense"}}, {own_key: {"type": 1, "body": "AwgA"}}, "nonsense"):
        content = {"algorithm": algorithms["olm"], "sender_key": "A" * 43, "ciphertext": ciphertext}
        messages = {bot.user_id: {bot.device_id: content}}
        await ben.call("PUT", f"sendToDevice/m.room.encrypted/{secrets.token_hex(4)}", {"messages": messages})
    room_id = await ben.create_room(bot.user_id, initial_state=ENCRYPTION)
    for nonsense in (
        {"algorithm": algorithms["megolm"], "sender_key": "", "session_id": "", "device_id": "X", "ciphertext": ""},
        {"algorithm": algorithms["megolm"], "ciphertext": {}},
        {"algorithm": "org.example.unknown"},
    ):
        await ben.send(room_id, "m.room.encrypted", nonsense)


def is_clear(event: Any) -> bool:
    return getattr(event, "decrypted", False) is True


class HeldKeys:
    """Room keys that a client believes to have sent."""

    def __init__(self, client: EncryptingClient) -> None:
        self._client = client
        self._original_send = client.client.send
        self._requests: list[tuple[Any, ...]] = []

    async def hold(self, method: str, path: str, *arguments: Any, **options: Any) -> Any:
        if "/sendToDevice/" in path:
            self._requests.append((method, path, *arguments))
            path = path.replace("m.room.encrypted", "org.example.held")
        return await self._original_send(method, path, *arguments, **options)

    async def send(self) -> None:
        for request in self._requests:
            (await self._original_send(*request)).release()
        self._requests.clear()
        self._client.client.send = self._original_send


def hold_keys_back(client: EncryptingClient, monkeypatch: pytest.MonkeyPatch) -> HeldKeys:
    held = HeldKeys(client)
    monkeypatch.setattr(client.client, "send", held.hold)
    return held


async def test_messages_and_files_in_an_encrypted_room(
    make_adapter: MakeAdapter, inbox: MemoryInbox, bot: Person, ada: Person, ben: Person, tmp_path: Path
) -> None:
    from nio.crypto.attachments import decrypt_attachment, encrypt_attachment

    adapter = make_adapter(bot, encryption=True)
    room_id = await ada.create_room(bot.user_id, is_direct=True, initial_state=ENCRYPTION)
    async with open_client(ada, tmp_path / "ada") as client, connect_adapter(adapter, inbox):
        assert (await adapter.probe()).warnings == ()
        await client.wait_for(is_join_of(bot))
        await client.learn_devices(bot)
        await send_nonsense(ben, bot)
        event_id = await client.say(room_id, "A secret question")
        [question] = await wait_for_texts(inbox, "A secret question")
        assert question.message_id == event_id

        sent = await adapter.send(make_message(adapter, room_id, "A secret *answer*"))
        answer = await client.wait_for(lambda event: is_clear(event) and "answer" in event.body)
        assert (answer.event_id, answer.formatted_body) == (sent, "<p>A secret <em>answer</em></p>")
        raw = await ada.call("GET", f"rooms/{quote(room_id)}/event/{quote(str(sent))}")
        assert raw["type"] == "m.room.encrypted"
        assert "secret" not in json.dumps(raw)

        request = {"to": bot.user_id, "from_device": ada.device_id, "methods": []}
        requested = await client.say(room_id, "Verify me", msgtype="m.key.verification.request", **request)
        cancel = await client.wait_for(lambda event: event.source.get("type") == "m.key.verification.cancel")
        assert cancel.source["content"]["m.relates_to"]["event_id"] == requested
        assert cancel.decrypted
        await client.wait_for(lambda event: is_clear(event) and "can't verify devices" in getattr(event, "body", ""))

        assert sent is not None
        await adapter.edit(sent, make_message(adapter, room_id, "Another answer"))
        await client.wait_for(lambda event: is_clear(event) and event.source["content"].get("m.new_content"))

        ciphertext, keys = encrypt_attachment(b"plain")
        file = {**keys, "url": await ada.upload(ciphertext, "application/octet-stream")}
        await client.say(room_id, "in.txt", msgtype="m.file", file=file, info={"size": 5, "mimetype": "text/plain"})
        await inbox.wait_until(lambda: len(inbox.messages) == 2, TIMEOUT_SECONDS)
        [received] = inbox.messages[-1].files
        assert b"".join([chunk async for chunk in received.open()]) == b"plain"

        async def read() -> AsyncIterator[bytes]:
            yield b"hidden"

        outgoing = OutgoingFile("out.txt", "text/plain", 6, read)
        await adapter.send(
            OutgoingMessage(key="d_f.1", address=Address(adapter.platform, room_id), body="", file=outgoing)
        )
        event = await client.wait_for(lambda event: is_clear(event) and getattr(event, "body", "") == "out.txt")
        stored = event.source["content"]["file"]
        encrypted = await ada.download(stored["url"])
        assert encrypted != b"hidden"
        clear = decrypt_attachment(encrypted, stored["key"]["k"], stored["hashes"]["sha256"], stored["iv"])
        assert clear == b"hidden"

    async with open_client(ada, tmp_path / "ada") as client, connect_adapter(make_adapter(bot, encryption=True), inbox):
        await client.sync()
        await client.say(room_id, "After a restart of both")
        await inbox.wait_until(lambda: inbox.texts[-1] == "After a restart of both", TIMEOUT_SECONDS)
    assert [path.name for path in (tmp_path / "matrix").glob("keys-*.db")] == [f"keys-{bot.device_id}.db"]


async def test_our_device_is_signed_so_that_clients_trust_it(
    make_adapter: MakeAdapter, bot: Person, ada: Person, tmp_path: Path
) -> None:
    sign_in: dict[str, Any] = {"user_id": bot.user_id, "password": bot.password}
    for _ in range(2):
        assert (await make_adapter(bot, encryption=True, **sign_in).probe()).warnings == ()
    stored = tmp_path / "matrix"
    assert (stored / "signing-keys.json").stat().st_mode & 0o777 == 0o600
    device_id = json.loads((stored / "sign-in.json").read_text())["device_id"]
    answer = await ada.call("POST", "keys/query", {"device_keys": {bot.user_id: []}})
    [self_signing] = answer["self_signing_keys"][bot.user_id]["keys"]
    assert self_signing in answer["device_keys"][bot.user_id][device_id]["signatures"][bot.user_id]

    # Another device of the account, without the signing keys: a person has to verify it.
    [warning] = (await make_adapter(bot, encryption=True, folder=tmp_path / "other").probe()).warnings
    assert bot.device_id in warning


async def test_a_message_whose_key_comes_later_is_read_then(
    make_adapter: MakeAdapter,
    inbox: MemoryInbox,
    bot: Person,
    ada: Person,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The key is sent only when the gateway has been restarted: what waits for it is not forgotten."""
    monkeypatch.setattr(receiver, "KEY_GRACE_SECONDS", 0.0)
    monkeypatch.setattr("palaver.platforms.matrix.client.SYNC_SECONDS", 0.1)
    room_id = await ada.create_room(bot.user_id, is_direct=True, initial_state=ENCRYPTION)
    async with open_client(ada, tmp_path / "ada") as client:
        async with connect_adapter(make_adapter(bot, encryption=True), inbox):
            await client.wait_for(is_join_of(bot))
            await client.learn_devices(bot)
            keys = hold_keys_back(client, monkeypatch)
            await client.say(room_id, "Too early")
            await inbox.wait_until(
                lambda: "Too early" not in inbox.texts and "waiting" in inbox.cursors, TIMEOUT_SECONDS
            )
            await client.wait_for(lambda event: is_clear(event) and "can't read your message yet" in event.body)
        assert not inbox.texts
        async with connect_adapter(make_adapter(bot, encryption=True), inbox):
            await keys.send()
            [message] = await wait_for_texts(inbox, "Too early")
            await inbox.wait_until(lambda: inbox.cursors["waiting"] == "[]", TIMEOUT_SECONDS)
            await client.say(room_id, "And go on")
            await wait_for_texts(inbox, "Too early", "And go on")
    assert message.source.user_id == ada.user_id
    notices = [event for event in client.events if event.sender == bot.user_id and hasattr(event, "body")]
    assert len(notices) == 1

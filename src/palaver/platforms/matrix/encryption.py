"""Encrypted rooms: nio's Olm machine, with our own requests.

The keys are in a database in the account's folder, named after the device: a new device never uses the keys of another.
Everything here runs on the event loop, one step after the other, as the machine requires.

Always true: a room key is shared with every device of every member before something is encrypted with it, and thrown
away as soon as a member or a device has changed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nio.crypto import Olm
from nio.crypto.async_attachments import async_encrypt_attachment
from nio.crypto.attachments import decrypt_attachment
from nio.events import MegolmEvent, ToDeviceEvent
from nio.exceptions import EncryptionError, LocalProtocolError
from nio.responses import (
    KeysClaimResponse,
    KeysQueryResponse,
    KeysUploadResponse,
    ShareGroupSessionResponse,
    ToDeviceResponse,
)
from nio.store import SqliteStore

from palaver.core.errors import SendRetryable
from palaver.core.files import write_file_atomically
from palaver.core.texts import say
from palaver.platforms.matrix.client import API, MatrixClient, RequestRefused
from palaver.platforms.matrix.inbound import FileReference, JsonObject, read_events, read_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path


log = logging.getLogger(__name__)
logging.getLogger("nio").setLevel(logging.CRITICAL)  # it logs the content of events that are not valid

FILE_NAME = "signing-keys.json"
MAX_SHARE_ATTEMPTS = 5  # while members come and go, or get other devices
USAGES = ("master", "self_signing", "user_signing")


class RoomEncryption:
    """The keys of one device."""

    def __init__(self, client: MatrixClient, device_id: str, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"keys-{device_id}.db"
        (folder / name).touch(mode=0o600)
        store = SqliteStore(client.user_id, device_id, str(folder), "DEFAULT_KEY", name)
        self._store = store
        self._client = client
        self._machine = Olm(client.user_id, device_id, store)
        self._members: dict[str, list[str]] = {}  # of rooms; forgotten when one changes
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._querying = asyncio.Lock()  # who needs the devices waits for those that another task is asking for

    def close(self) -> None:
        self._store.database.close()

    def receive(self, sync: JsonObject) -> bool:
        """Take over the keys that a sync has brought; return whether messages may have become readable."""
        has_keys = False
        for event in read_events(sync.get("to_device")):
            if event.get("type") == "m.room.encrypted" and read_object(event, "content"):
                try:
                    parsed = ToDeviceEvent.parse_event(event)
                    has_keys |= parsed is not None and self._machine.handle_to_device_event(parsed) is not None
                except Exception as error:  # noqa: BLE001  (strangers can send us anything, and it must not stop the account)
                    log.warning("matrix_key_not_valid", extra={"error": type(error).__name__})
        changed = read_object(sync, "device_lists").get("changed")
        if isinstance(changed, list):
            self._machine.add_changed_users(self._machine.tracked_users.intersection(changed))
        count = read_object(sync, "device_one_time_keys_count").get("signed_curve25519")
        self._machine.uploaded_key_count = count if isinstance(count, int) else 0
        return has_keys

    def forget_members(self, room_id: str) -> None:
        """Make sure that the next message uses a new key, shared with those who are members then."""
        self._members.pop(room_id, None)
        self._machine.outbound_group_sessions.pop(room_id, None)

    async def exchange_keys(self) -> None:
        """Make the requests that the machine asks for. What the homeserver refuses is tried again later."""
        try:
            await self._exchange_keys()
        except RequestRefused as error:
            if error.is_bad_token:
                raise
            log.warning("matrix_keys_not_exchanged", extra={"error": str(error)})

    async def _exchange_keys(self) -> None:
        if self._machine.should_upload_keys:
            answer = await self._client.request("POST", f"{API}/keys/upload", body=self._machine.share_keys())
            count = read_object(answer, "one_time_key_counts").get("signed_curve25519")
            self._machine.handle_response(KeysUploadResponse(0, count if isinstance(count, int) else 0))
        await self._query_keys()
        if self._machine.wedged_devices:
            await self._claim_keys(self._machine.get_users_for_key_claiming())
        for message in list(self._machine.outgoing_to_device_messages):
            await self._client.send_to_devices(message.type, message.as_dict())
            self._machine.handle_response(ToDeviceResponse(message))

    async def _query_keys(self) -> None:
        async with self._querying:
            waiting = self._machine.users_for_key_query
            if not waiting:
                return
            users = sorted(waiting)
            waiting.clear()  # from here on it has those whose devices change while the homeserver answers
            try:
                answer = await self._client.request(
                    "POST", f"{API}/keys/query", body={"device_keys": {user: [] for user in users}}
                )
                response = KeysQueryResponse.from_dict(answer)
                if not isinstance(response, KeysQueryResponse):
                    raise EncryptionError("The homeserver's list of devices is not valid.")
            except BaseException:
                waiting.update(users)
                raise
            changed_meanwhile = set(waiting)
            self._machine.handle_response(response)
            waiting.update(changed_meanwhile)  # the machine takes out everyone whom it got an answer about
            if response.changed:
                self._machine.outbound_group_sessions.clear()

    async def _claim_keys(self, devices: Mapping[str, list[str]]) -> None:
        wanted = {user: dict.fromkeys(names, "signed_curve25519") for user, names in devices.items()}
        response = KeysClaimResponse.from_dict(
            await self._client.request("POST", f"{API}/keys/claim", body={"one_time_keys": wanted})
        )
        if isinstance(response, KeysClaimResponse):
            self._machine.handle_response(response)

    def decrypt(self, room_id: str, event: JsonObject) -> dict[str, Any] | None:
        """Return an event in clear; None if its key is not there."""
        try:
            return self._decrypt(room_id, event)
        except EncryptionError as error:
            log.info("matrix_event_not_decrypted", extra={"room": room_id, "error": str(error)})
        except Exception as error:  # noqa: BLE001  (what people send must not stop the account)
            log.warning("matrix_event_not_valid", extra={"room": room_id, "error": type(error).__name__})
        return None

    def _decrypt(self, room_id: str, event: JsonObject) -> dict[str, Any]:
        megolm_event = MegolmEvent.from_dict(dict(event) | {"room_id": room_id})
        if not isinstance(megolm_event, MegolmEvent):
            raise EncryptionError("This is not an encrypted event.")
        decrypted = self._machine.decrypt_megolm_event(megolm_event, room_id)
        device = self._machine.device_store[megolm_event.sender].get(megolm_event.device_id)
        if device is not None and device.curve25519 != megolm_event.sender_key:
            raise EncryptionError("The key does not belong to the device of the sender.")
        return {**event, **{name: decrypted.source.get(name) for name in ("type", "content")}}

    async def encrypt(self, room_id: str, event_type: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of the `m.room.encrypted` event for a room; share its key before. Raises SendRetryable."""
        async with self._locks[room_id]:
            try:
                await self._share_room_key(room_id)  # nothing is awaited after it, so its key is the one that is used
                encrypted: dict[str, Any] = self._machine.group_encrypt(
                    room_id, {"type": event_type, "content": dict(content)}
                )
            except (EncryptionError, LocalProtocolError) as error:
                raise SendRetryable.say(
                    "matrix.not_encrypted", "The message could not be encrypted: {reason}", reason=error
                ) from error
        if "m.relates_to" in content:  # homeservers group threads and edits by it
            encrypted["m.relates_to"] = content["m.relates_to"]
        return encrypted

    async def _share_room_key(self, room_id: str) -> None:
        for _ in range(MAX_SHARE_ATTEMPTS):
            if await self._try_sharing_room_key(room_id):
                return
        raise EncryptionError("Members or devices keep changing.")

    async def _try_sharing_room_key(self, room_id: str) -> bool:
        """Make sure that all members have the room's key. False: while it was sent, other tasks have thrown it away."""
        if room_id not in self._members:
            members = read_object((await self._client.fetch_joined_members(room_id)).get("joined"))
            self._members[room_id] = list(members)
        members_now = self._members[room_id]
        self._machine.add_changed_users(set(members_now) - self._machine.tracked_users)
        await self._query_keys()
        if self._machine.should_share_group_session(room_id):
            if missing := self._machine.get_missing_sessions(members_now):
                await self._claim_keys(missing)
            if self._members.get(room_id) is not members_now:
                return False
            requests = self._machine.share_group_session_parallel(room_id, members_now, ignore_unverified_devices=True)
            for devices, content in requests:
                session = self._machine.outbound_group_sessions[room_id]
                await self._client.send_to_devices("m.room.encrypted", content)
                if self._machine.outbound_group_sessions.get(room_id) is not session:
                    return False
                self._machine.handle_response(ShareGroupSessionResponse(room_id, devices))
            session = self._machine.outbound_group_sessions[room_id]
            session.shared = True
            log.debug("matrix_room_key_shared", extra={"room": room_id, "session": session.id})
        return self._members.get(room_id) is members_now


async def encrypt_file(chunks: AsyncIterator[bytes], keys: dict[str, Any]) -> AsyncIterator[bytes]:
    """Encrypt a file while it is uploaded; afterwards `keys` has what the event must contain."""
    async for chunk in async_encrypt_attachment(chunks):
        if isinstance(chunk, bytes):
            yield chunk
        else:
            keys.update(chunk)


async def decrypt_file(chunks: AsyncIterator[bytes], file: FileReference, max_bytes: int) -> bytes:
    """Decrypt a file after its hash was checked, which needs the whole of it."""
    assert file.keys is not None  # noqa: S101
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) > max_bytes:
            raise EncryptionError(f"An encrypted file is larger than {max_bytes} bytes.")
    keys = file.keys
    decrypted: bytes = await asyncio.to_thread(
        decrypt_attachment, bytes(content), keys["key"], keys["sha256"], keys["iv"]
    )
    return decrypted


class SigningKey:
    """An Ed25519 key, as Matrix writes it."""

    def __init__(self, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = _encode(self._private.public_key().public_bytes_raw())

    def sign(self, user_id: str, content: JsonObject) -> dict[str, Any]:
        """Return a JSON object with our signature beside those that it has."""
        signed = {name: value for name, value in content.items() if name not in {"signatures", "unsigned"}}
        canonical = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        signatures = {user: dict(values) for user, values in read_object(content, "signatures").items()}
        signatures.setdefault(user_id, {})[f"ed25519:{self.public}"] = _encode(self._private.sign(canonical.encode()))
        return {**signed, "signatures": signatures}


async def sign_own_device(client: MatrixClient, device_id: str, folder: Path, password: str | None) -> str | None:
    """Sign our device: many clients send keys only to devices that their owner has signed.

    The first device of an account creates the account's signing keys and keeps them in its folder. If another client
    has made them, a person has to verify our device there: then return what to do.
    """
    user_id = client.user_id
    answer = await client.request("POST", f"{API}/keys/query", body={"device_keys": {user_id: []}})
    device = read_object(answer, "device_keys", user_id, device_id)
    master = _read_public_key(answer, "master_keys", user_id)
    self_signing = _read_public_key(answer, "self_signing_keys", user_id)
    signatures = read_object(device, "signatures", user_id)
    if self_signing is not None and f"ed25519:{self_signing}" in signatures:
        return None
    keys = _load_keys(folder)
    if master is None:
        keys = keys or _create_keys(folder)
        is_own = await _upload_keys(client, keys, password)
    else:
        is_own = keys is not None and keys["master"].public == master
    if keys is None or not is_own:
        return say(
            "matrix.not_verified",
            "Our session is not verified, so some clients don't send us the keys of encrypted messages."
            " Sign in to the account in Element, open Settings > Sessions, and verify the session"
            " {device}.",
            device=device_id,
        )
    signed = keys["self_signing"].sign(user_id, device)
    await client.request("POST", f"{API}/keys/signatures/upload", body={user_id: {device_id: signed}})
    return None


def _read_public_key(answer: JsonObject, section: str, user_id: str) -> str | None:
    keys = read_object(answer, section, user_id, "keys")
    return next((str(value) for value in keys.values()), None)


async def _upload_keys(client: MatrixClient, keys: Mapping[str, SigningKey], password: str | None) -> bool:
    """Upload the public keys; the homeserver may ask for the password. Return False if it does and there is none."""
    body: dict[str, Any] = {}
    for usage in USAGES:
        public = keys[usage].public
        key: dict[str, Any] = {"user_id": client.user_id, "usage": [usage], "keys": {f"ed25519:{public}": public}}
        body[f"{usage}_key"] = key if usage == "master" else keys["master"].sign(client.user_id, key)
    path = f"{API}/keys/device_signing/upload"
    try:
        await client.request("POST", path, body=body)
    except RequestRefused as error:
        if error.status != 401 or error.is_bad_token or password is None:
            if error.status in {401, 403}:
                return False
            raise
        identifier = {"type": "m.id.user", "user": client.user_id}
        auth = {"type": "m.login.password", "identifier": identifier, "password": password, "session": error.session}
        await client.request("POST", path, body={**body, "auth": auth})
    return True


def _load_keys(folder: Path) -> dict[str, SigningKey] | None:
    try:
        stored = json.loads((folder / FILE_NAME).read_text("utf-8"))
        return {usage: SigningKey(base64.b64decode(stored[usage])) for usage in USAGES}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _create_keys(folder: Path) -> dict[str, SigningKey]:
    """Create the keys, and store them before the homeserver is told about them."""
    seeds = {usage: secrets.token_bytes(32) for usage in USAGES}
    stored = {usage: base64.b64encode(seed).decode() for usage, seed in seeds.items()}
    write_file_atomically(folder / FILE_NAME, json.dumps(stored), overwrite=True)
    return {usage: SigningKey(seed) for usage, seed in seeds.items()}


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode().rstrip("=")

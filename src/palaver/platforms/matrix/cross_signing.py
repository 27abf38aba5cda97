"""Signs our own device. Many clients send keys only to devices that their owner has signed.

The first device of an account creates the account's signing keys and keeps them in its folder. If the account already
has signing keys, made by another client, a person has to verify our device there.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from palaver.platforms.matrix.client import API, RequestRefused
from palaver.platforms.matrix.rooms import JsonObject, read_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from palaver.platforms.matrix.client import MatrixClient

FILE_NAME = "signing-keys.json"
USAGES = ("master", "self_signing", "user_signing")
NOT_VERIFIED = (
    "Our session is not verified, so some clients don't send us the keys of encrypted messages. Sign in to the account "
    "in Element, open Settings > Sessions, and verify the session {device}."
)


class SigningKey:
    """An Ed25519 key, as Matrix writes it."""

    def __init__(self, seed: bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = _encode(self._private.public_key().public_bytes_raw())

    def sign(self, user_id: str, content: JsonObject) -> dict[str, Any]:
        """Return a JSON object with our signature beside those that it has."""
        signed = {name: value for name, value in content.items() if name not in {"signatures", "unsigned"}}
        canonical = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        signatures = {user: dict(values) for user, values in read_object(content.get("signatures")).items()}
        signatures.setdefault(user_id, {})[f"ed25519:{self.public}"] = _encode(self._private.sign(canonical.encode()))
        return {**signed, "signatures": signatures}


async def sign_own_device(client: MatrixClient, device_id: str, folder: Path, password: str | None) -> str | None:
    """Sign our device with the account's signing keys; return what a person has to do if that is not possible."""
    user_id = client.user_id
    answer = await client.request("POST", f"{API}/keys/query", body={"device_keys": {user_id: []}})
    device = read_object(read_object(read_object(answer.get("device_keys")).get(user_id)).get(device_id))
    master = _read_public_key(answer, "master_keys", user_id)
    self_signing = _read_public_key(answer, "self_signing_keys", user_id)
    signatures = read_object(read_object(device.get("signatures")).get(user_id))
    if self_signing is not None and f"ed25519:{self_signing}" in signatures:
        return None
    keys = _load_keys(folder)
    if master is None:
        keys = keys or _create_keys(folder)
        if not await _upload_keys(client, keys, password):
            return NOT_VERIFIED.format(device=device_id)
    elif keys is None or keys["master"].public != master:
        return NOT_VERIFIED.format(device=device_id)
    signed = keys["self_signing"].sign(user_id, device)
    await client.request("POST", f"{API}/keys/signatures/upload", body={user_id: {device_id: signed}})
    return None


def _read_public_key(answer: JsonObject, section: str, user_id: str) -> str | None:
    keys = read_object(read_object(read_object(answer.get(section)).get(user_id)).get("keys"))
    return next((str(value) for value in keys.values()), None)


async def _upload_keys(client: MatrixClient, keys: Mapping[str, SigningKey], password: str | None) -> bool:
    """Upload the public keys; the homeserver may ask for the password. Return False if it does and there is none."""
    body: dict[str, Any] = {}
    for usage in USAGES:
        public = keys[usage].public
        key: dict[str, Any] = {
            "user_id": client.user_id,
            "usage": [usage],
            "keys": {f"ed25519:{public}": public},
        }
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
    path = folder / FILE_NAME
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({usage: base64.b64encode(seed).decode() for usage, seed in seeds.items()}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    return {usage: SigningKey(seed) for usage, seed in seeds.items()}


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode().rstrip("=")

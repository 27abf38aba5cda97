"""Passkeys, with a software authenticator: its keys, signatures and CBOR are real."""

from __future__ import annotations

import hashlib
import json
import secrets
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cbor2
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from palaver.testing import FakeClock

if TYPE_CHECKING:
    import httpx2

    from support.web import StartWebServer, WebServer

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def b64_encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def b64_decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """A device with one key per site that verifies its user."""

    origin: str
    verifies_user: bool = True
    sign_count: int = 0
    keys: dict[str, tuple[bytes, ec.EllipticCurvePrivateKey]] = field(default_factory=dict)

    def create(self, options: dict[str, Any], credential_id: bytes = b"") -> dict[str, Any]:
        """Do what `navigator.credentials.create()` does."""
        assert options["authenticatorSelection"]["residentKey"] == "required"
        assert -7 in [each["alg"] for each in options["pubKeyCredParams"]]
        credential_id, key = credential_id or secrets.token_bytes(32), ec.generate_private_key(ec.SECP256R1())
        self.keys[options["rp"]["id"]] = (credential_id, key)
        numbers = key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        attested = bytes(16) + struct.pack(">H", 32) + credential_id + cbor2.dumps(cose)
        data = self._build_authenticator_data(options["rp"]["id"], ATTESTED) + attested
        response = {
            "clientDataJSON": self._build_client_data("webauthn.create", options),
            "attestationObject": b64_encode(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})),
        }
        return self._build_credential(credential_id, response)

    def get(self, options: dict[str, Any], site: str | None = None) -> dict[str, Any]:
        """Do what `navigator.credentials.get()` does."""
        assert "allowCredentials" not in options or options["allowCredentials"] == []
        credential_id, key = self.keys[site or options["rpId"]]
        self.sign_count += 1
        data = self._build_authenticator_data(options["rpId"])
        client_data = self._build_client_data("webauthn.get", options)
        signature = key.sign(data + hashlib.sha256(b64_decode(client_data)).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": client_data,
            "authenticatorData": b64_encode(data),
            "signature": b64_encode(signature),
        }
        return self._build_credential(credential_id, response)

    def _build_authenticator_data(self, site: str, flags: int = 0) -> bytes:
        flags |= PRESENT | (VERIFIED if self.verifies_user else 0)
        return hashlib.sha256(site.encode()).digest() + struct.pack(">BI", flags, self.sign_count)

    def _build_client_data(self, kind: str, options: dict[str, Any]) -> str:
        client_data = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return b64_encode(json.dumps(client_data).encode())

    def _build_credential(self, credential_id: bytes, response: dict[str, str]) -> dict[str, Any]:
        encoded_id = b64_encode(credential_id)
        return {"id": encoded_id, "rawId": encoded_id, "type": "public-key", "response": response}


def host_headers(web: WebServer, host: str = "localhost") -> dict[str, str]:
    """The headers of a page opened by host name, because passkeys do not work with an IP address."""
    name = f"{host}:{web.url.rpartition(':')[2]}"
    return {"Host": name, "Origin": f"http://{name}"}


@dataclass
class PasskeyHolder:
    """A person with a passkey."""

    client: httpx2.AsyncClient
    device: Authenticator
    passkey: dict[str, Any]


async def register(web: WebServer, person: str = "owner", **options: Any) -> PasskeyHolder:
    client = await web.sign_in(person)
    client.headers.update(host_headers(web))
    device = Authenticator(client.headers["Origin"], **options)
    challenge = await client.post("/api/me/passkeys/options")
    assert challenge.status_code == 200, challenge.text
    body = {"name": "My phone", "credential": device.create(challenge.json())}
    created = await client.post("/api/me/passkeys", json=body)
    assert created.status_code == 201, created.text
    return PasskeyHolder(client, device, created.json())


async def request_challenge(web: WebServer, **headers: str) -> tuple[httpx2.AsyncClient, dict[str, Any]]:
    """Return an anonymous client and the options it has to sign."""
    client = await web.open_anonymous_client()
    client.headers.update(host_headers(web) | headers)
    response = await client.post("/api/sign-in/passkey/options")
    assert response.status_code == 200, response.text
    return client, response.json()


async def sign_in_with(client: httpx2.AsyncClient, credential: dict[str, Any]) -> int:
    return (await client.post("/api/sign-in/passkey", json={"credential": credential})).status_code


@pytest.mark.both_engines
async def test_a_passkey_signs_in_without_a_name(web: WebServer) -> None:
    ada = await register(web, "ada")
    client, options = await request_challenge(web)
    response = await client.post("/api/sign-in/passkey", json={"credential": ada.device.get(options)})
    assert response.status_code == 200, response.text
    assert response.json()["person"]["name"] == "ada"
    me = (await client.get("/api/me")).json()
    assert me["sign_in_methods"] == {"has_password": False, "passkey_count": 1}
    [passkey] = (await client.get("/api/me/passkeys")).json()["passkeys"]
    assert (passkey["name"], passkey["site"]) == ("My phone", "localhost")
    assert passkey["last_used_at"] is not None
    assert (await client.get("/api/me/devices")).json()["devices"][0]["sign_in_method"] == "passkey"
    assert (await client.get("/api/sign-in")).json()["passkey"] is True


async def test_an_owners_passkey_allows_listening_beyond_this_machine(web: WebServer) -> None:
    await register(web, "ada")
    assert not await web.state.accounts.can_listen_on("0.0.0.0")
    await register(web)
    assert await web.state.accounts.can_listen_on("0.0.0.0")


async def test_a_signature_works_once(web: WebServer) -> None:
    holder = await register(web)
    client, options = await request_challenge(web)
    credential = holder.device.get(options)
    assert await sign_in_with(client, credential) == 200
    assert await sign_in_with(await open_client(web), credential) == 401


async def open_client(web: WebServer) -> httpx2.AsyncClient:
    client = await web.open_anonymous_client()
    client.headers.update(host_headers(web))
    return client


async def test_a_foreign_challenge_is_rejected(web: WebServer) -> None:
    holder = await register(web)
    client, options = await request_challenge(web)
    assert (
        await sign_in_with(client, holder.device.get(options | {"challenge": b64_encode(secrets.token_bytes(32))}))
        == 401
    )
    assert await sign_in_with(client, holder.device.get(options)) == 200


async def test_a_challenge_expires(start_web: StartWebServer) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    holder = await register(web)
    client, options = await request_challenge(web)
    clock.advance(minutes=6)
    assert await sign_in_with(client, holder.device.get(options)) == 401


async def test_a_registration_challenge_does_not_sign_in(web: WebServer) -> None:
    holder = await register(web)
    registration = (await holder.client.post("/api/me/passkeys/options")).json()
    client, options = await request_challenge(web)
    assert await sign_in_with(client, holder.device.get(options | {"challenge": registration["challenge"]})) == 401


async def test_a_signature_of_another_key_is_rejected(web: WebServer) -> None:
    holder = await register(web)
    client, options = await request_challenge(web)
    credential_id, _ = holder.device.keys["localhost"]
    holder.device.keys["localhost"] = (credential_id, ec.generate_private_key(ec.SECP256R1()))
    assert await sign_in_with(client, holder.device.get(options)) == 401
    assert (await client.get("/api/me")).status_code == 401


async def test_a_signature_for_another_origin_is_rejected(web: WebServer) -> None:
    holder = await register(web)
    client, options = await request_challenge(web)
    holder.device.origin = "http://localhost.evil.example"
    assert await sign_in_with(client, holder.device.get(options)) == 401


async def test_a_signature_for_another_site_is_rejected(web: WebServer) -> None:
    holder = await register(web)
    client, options = await request_challenge(web)
    assert await sign_in_with(client, holder.device.get(options | {"rpId": "evil.example"}, site="localhost")) == 401


async def test_a_signature_without_user_verification_is_rejected(web: WebServer) -> None:
    holder = await register(web)
    client, options = await request_challenge(web)
    holder.device.verifies_user = False
    assert await sign_in_with(client, holder.device.get(options)) == 401


async def test_a_cloned_key_is_detected_by_its_counter(web: WebServer) -> None:
    holder = await register(web)
    holder.device.sign_count = 10
    client, options = await request_challenge(web)
    assert await sign_in_with(client, holder.device.get(options)) == 200
    holder.device.sign_count = 5
    client, options = await request_challenge(web)
    assert await sign_in_with(client, holder.device.get(options)) == 401


@pytest.mark.both_engines
async def test_a_removed_passkey_no_longer_works(web: WebServer) -> None:
    holder = await register(web)
    assert (await holder.client.delete(f"/api/me/passkeys/{holder.passkey['id']}")).status_code == 204
    client, options = await request_challenge(web)
    assert await sign_in_with(client, holder.device.get(options)) == 401
    assert (await holder.client.delete(f"/api/me/passkeys/{holder.passkey['id']}")).status_code == 404


async def test_removing_someone_elses_passkey_fails(web: WebServer) -> None:
    owner, ada = await register(web), await register(web, "ada")
    assert (await ada.client.delete(f"/api/me/passkeys/{owner.passkey['id']}")).status_code == 404
    client, options = await request_challenge(web)
    assert await sign_in_with(client, owner.device.get(options)) == 200


async def test_a_passkey_can_only_be_added_by_the_person_who_asked_for_it(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("ada")
    for client in (owner, ada):
        client.headers.update(host_headers(web))
    device = Authenticator(owner.headers["Origin"])
    credential = device.create((await owner.post("/api/me/passkeys/options")).json())
    stolen = await ada.post("/api/me/passkeys", json={"name": "x", "credential": credential})
    assert stolen.status_code == 403
    assert (await ada.get("/api/me/passkeys")).json() == {"passkeys": []}


async def test_the_same_passkey_cannot_be_added_twice(web: WebServer) -> None:
    holder = await register(web)
    options = (await holder.client.post("/api/me/passkeys/options")).json()
    [excluded] = options["excludeCredentials"]
    credential_id = holder.device.keys["localhost"][0]
    assert b64_decode(excluded["id"]) == credential_id
    duplicate = {"name": "Again", "credential": holder.device.create(options, credential_id=credential_id)}
    assert (await holder.client.post("/api/me/passkeys", json=duplicate)).status_code == 422


async def test_an_ip_address_cannot_have_passkeys(web: WebServer) -> None:
    client = await web.sign_in()
    response = await client.post("/api/me/passkeys/options")
    assert response.status_code == 422
    assert "localhost" in response.text
    assert (await client.post("/api/sign-in/passkey/options")).status_code == 422


async def test_challenges_are_rate_limited(start_web: StartWebServer) -> None:
    web = await start_web(clock=FakeClock())
    client = await open_client(web)
    responses = [(await client.post("/api/sign-in/passkey/options")).status_code for _ in range(62)]
    assert responses == [200] * 60 + [429] * 2


INVALID_PARTS: list[dict[str, Any]] = [
    {"response": {}},
    {"response": None},
    {"response": {"clientDataJSON": "***"}},
    {"response": {"clientDataJSON": b64_encode(b"[]")}},
    {"response": {"clientDataJSON": b64_encode(b'{"challenge": 1}')}},
    {"rawId": "AAAA"},
    {"type": "password"},
]


async def test_a_malformed_credential_is_rejected(web: WebServer) -> None:
    holder = await register(web)
    for invalid in [*INVALID_PARTS, {"id": 5}, {"id": "\0"}, {"id": ""}]:
        client, options = await request_challenge(web)
        assert await sign_in_with(client, holder.device.get(options) | invalid) == 401, invalid
    for invalid in INVALID_PARTS:
        registration = (await holder.client.post("/api/me/passkeys/options")).json()
        broken = holder.device.create(registration) | invalid
        response = await holder.client.post("/api/me/passkeys", json={"name": "x", "credential": broken})
        assert response.status_code == 403, invalid
    assert len((await holder.client.get("/api/me/passkeys")).json()["passkeys"]) == 1


@pytest.mark.parametrize("part", ["authenticatorData", "signature"])
async def test_a_damaged_signature_is_rejected(web: WebServer, part: str) -> None:
    holder = await register(web)
    for value in ("", "AAAA", "***", None, 7, b64_encode(bytes(37)), b64_encode(b"\xff" * 200)):
        client, options = await request_challenge(web)
        credential = holder.device.get(options)
        credential["response"][part] = value
        assert await sign_in_with(client, credential) == 401, value


async def test_a_damaged_new_passkey_is_rejected(web: WebServer) -> None:
    holder = await register(web)
    for value in ("", "AAAA", None, b64_encode(cbor2.dumps({})), b64_encode(cbor2.dumps({"authData": b"x" * 55}))):
        credential = holder.device.create((await holder.client.post("/api/me/passkeys/options")).json())
        credential["response"]["attestationObject"] = value
        response = await holder.client.post("/api/me/passkeys", json={"name": "x", "credential": credential})
        assert response.status_code == 403, value

"""Passkeys, with an authenticator made of software: its keys, signatures and CBOR are real."""

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

    from support.web import StartWeb, Web

BOTH = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)
PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """A device with one key for each site, which asks its owner for a finger."""

    origin: str
    verifies: bool = True
    counts: int = 0
    keys: dict[str, tuple[bytes, ec.EllipticCurvePrivateKey]] = field(default_factory=dict)

    def create(self, options: dict[str, Any], credential_id: bytes = b"") -> dict[str, Any]:
        """What `navigator.credentials.create()` answers."""
        assert options["authenticatorSelection"]["residentKey"] == "required"
        assert -7 in [each["alg"] for each in options["pubKeyCredParams"]]
        credential_id, key = credential_id or secrets.token_bytes(32), ec.generate_private_key(ec.SECP256R1())
        self.keys[options["rp"]["id"]] = (credential_id, key)
        numbers = key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        attested = bytes(16) + struct.pack(">H", 32) + credential_id + cbor2.dumps(cose)
        data = self._data(options["rp"]["id"], ATTESTED) + attested
        response = {
            "clientDataJSON": self._client("webauthn.create", options),
            "attestationObject": b64(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})),
        }
        return self._credential(credential_id, response)

    def get(self, options: dict[str, Any], site: str | None = None) -> dict[str, Any]:
        """What `navigator.credentials.get()` answers."""
        assert "allowCredentials" not in options or options["allowCredentials"] == []
        credential_id, key = self.keys[site or options["rpId"]]
        self.counts += 1
        data = self._data(options["rpId"])
        client = self._client("webauthn.get", options)
        signature = key.sign(data + hashlib.sha256(unb64(client)).digest(), ec.ECDSA(hashes.SHA256()))
        response = {"clientDataJSON": client, "authenticatorData": b64(data), "signature": b64(signature)}
        return self._credential(credential_id, response)

    def _data(self, site: str, flags: int = 0) -> bytes:
        flags |= PRESENT | (VERIFIED if self.verifies else 0)
        return hashlib.sha256(site.encode()).digest() + struct.pack(">BI", flags, self.counts)

    def _client(self, kind: str, options: dict[str, Any]) -> str:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return b64(json.dumps(said).encode())

    def _credential(self, credential_id: bytes, response: dict[str, str]) -> dict[str, Any]:
        identity = b64(credential_id)
        return {"id": identity, "rawId": identity, "type": "public-key", "response": response}


def at(web: Web, host: str = "localhost") -> dict[str, str]:
    """The headers of a page that was opened by a name: an address can have no passkey."""
    name = f"{host}:{web.url.rpartition(':')[2]}"
    return {"Host": name, "Origin": f"http://{name}"}


@dataclass
class Bearer:
    """Somebody with a passkey."""

    client: httpx2.AsyncClient
    device: Authenticator
    passkey: dict[str, Any]


async def register(web: Web, person: str = "owner", **options: Any) -> Bearer:
    client = await web.client(person)
    client.headers.update(at(web))
    device = Authenticator(client.headers["Origin"], **options)
    asked = await client.post("/api/me/passkeys/options")
    assert asked.status_code == 200, asked.text
    body = {"name": "My phone", "credential": device.create(asked.json())}
    made = await client.post("/api/me/passkeys", json=body)
    assert made.status_code == 201, made.text
    return Bearer(client, device, made.json())


async def ask(web: Web, **headers: str) -> tuple[httpx2.AsyncClient, dict[str, Any]]:
    """A browser that is not signed in, and what it is asked to sign."""
    client = await web.stranger()
    client.headers.update(at(web) | headers)
    answer = await client.post("/api/sign-in/passkey/options")
    assert answer.status_code == 200, answer.text
    return client, answer.json()


async def answered(client: httpx2.AsyncClient, credential: dict[str, Any]) -> int:
    return (await client.post("/api/sign-in/passkey", json={"credential": credential})).status_code


@BOTH
async def test_somebody_makes_a_passkey_and_signs_in_with_it_without_saying_who_they_are(web: Web) -> None:
    ada = await register(web, "ada")
    client, options = await ask(web)
    answer = await client.post("/api/sign-in/passkey", json={"credential": ada.device.get(options)})
    assert answer.status_code == 200, answer.text
    assert answer.json()["person"]["name"] == "ada"
    me = (await client.get("/api/me")).json()
    assert me["ways"] == {"password": False, "passkeys": 1}
    [passkey] = (await client.get("/api/me/passkeys")).json()["passkeys"]
    assert (passkey["name"], passkey["site"]) == ("My phone", "localhost")
    assert passkey["used_at"] is not None
    assert (await client.get("/api/me/devices")).json()["devices"][0]["way"] == "passkey"
    assert (await client.get("/api/sign-in")).json()["passkey"] is True


async def test_an_owner_with_a_passkey_may_open_the_server_to_others(web: Web) -> None:
    await register(web, "ada")
    assert not await web.state.accounts.may_bind("0.0.0.0")
    await register(web)
    assert await web.state.accounts.may_bind("0.0.0.0")


async def test_a_signature_works_once(web: Web) -> None:
    bearer = await register(web)
    client, options = await ask(web)
    credential = bearer.device.get(options)
    assert await answered(client, credential) == 200
    assert await answered(await fresh(web), credential) == 401


async def fresh(web: Web) -> httpx2.AsyncClient:
    client = await web.stranger()
    client.headers.update(at(web))
    return client


async def test_a_challenge_that_was_not_ours_is_refused(web: Web) -> None:
    bearer = await register(web)
    client, options = await ask(web)
    assert await answered(client, bearer.device.get(options | {"challenge": b64(secrets.token_bytes(32))})) == 401
    assert await answered(client, bearer.device.get(options)) == 200


async def test_a_challenge_is_answered_soon_or_not_at_all(start_web: StartWeb) -> None:
    clock = FakeClock()
    web = await start_web(clock=clock)
    bearer = await register(web)
    client, options = await ask(web)
    clock.advance(minutes=6)
    assert await answered(client, bearer.device.get(options)) == 401


async def test_a_challenge_for_making_a_passkey_is_not_one_for_signing_in(web: Web) -> None:
    bearer = await register(web)
    making = (await bearer.client.post("/api/me/passkeys/options")).json()
    client, options = await ask(web)
    assert await answered(client, bearer.device.get(options | {"challenge": making["challenge"]})) == 401


async def test_what_another_key_has_signed_is_refused(web: Web) -> None:
    bearer = await register(web)
    client, options = await ask(web)
    known, _ = bearer.device.keys["localhost"]
    bearer.device.keys["localhost"] = (known, ec.generate_private_key(ec.SECP256R1()))
    assert await answered(client, bearer.device.get(options)) == 401
    assert (await client.get("/api/me")).status_code == 401


async def test_what_was_signed_for_another_page_is_refused(web: Web) -> None:
    bearer = await register(web)
    client, options = await ask(web)
    bearer.device.origin = "http://localhost.evil.example"
    assert await answered(client, bearer.device.get(options)) == 401


async def test_what_was_signed_for_another_site_is_refused(web: Web) -> None:
    bearer = await register(web)
    client, options = await ask(web)
    assert await answered(client, bearer.device.get(options | {"rpId": "evil.example"}, site="localhost")) == 401


async def test_a_device_that_did_not_make_sure_of_the_human_is_refused(web: Web) -> None:
    bearer = await register(web)
    client, options = await ask(web)
    bearer.device.verifies = False
    assert await answered(client, bearer.device.get(options)) == 401


async def test_a_copied_key_is_noticed_by_its_count(web: Web) -> None:
    bearer = await register(web)
    bearer.device.counts = 10
    client, options = await ask(web)
    assert await answered(client, bearer.device.get(options)) == 200
    bearer.device.counts = 5
    client, options = await ask(web)
    assert await answered(client, bearer.device.get(options)) == 401


async def test_a_passkey_that_was_removed_is_worthless(web: Web) -> None:
    bearer = await register(web)
    assert (await bearer.client.delete(f"/api/me/passkeys/{bearer.passkey['id']}")).status_code == 204
    client, options = await ask(web)
    assert await answered(client, bearer.device.get(options)) == 401
    assert (await bearer.client.delete(f"/api/me/passkeys/{bearer.passkey['id']}")).status_code == 404


async def test_nobody_removes_somebody_elses_passkey(web: Web) -> None:
    owner, ada = await register(web), await register(web, "ada")
    assert (await ada.client.delete(f"/api/me/passkeys/{owner.passkey['id']}")).status_code == 404
    client, options = await ask(web)
    assert await answered(client, owner.device.get(options)) == 200


async def test_a_passkey_is_kept_for_whoever_was_asked_to_make_it(web: Web) -> None:
    owner, ada = await web.client(), await web.client("ada")
    for client in (owner, ada):
        client.headers.update(at(web))
    device = Authenticator(owner.headers["Origin"])
    credential = device.create((await owner.post("/api/me/passkeys/options")).json())
    stolen = await ada.post("/api/me/passkeys", json={"name": "x", "credential": credential})
    assert stolen.status_code == 403
    assert (await ada.get("/api/me/passkeys")).json() == {"passkeys": []}


async def test_the_same_passkey_is_not_kept_twice(web: Web) -> None:
    bearer = await register(web)
    options = (await bearer.client.post("/api/me/passkeys/options")).json()
    [excluded] = options["excludeCredentials"]
    known = bearer.device.keys["localhost"][0]
    assert unb64(excluded["id"]) == known
    again = {"name": "Again", "credential": bearer.device.create(options, credential_id=known)}
    assert (await bearer.client.post("/api/me/passkeys", json=again)).status_code == 422


async def test_an_address_can_have_no_passkey_and_says_so(web: Web) -> None:
    client = await web.client()
    answer = await client.post("/api/me/passkeys/options")
    assert answer.status_code == 422
    assert "localhost" in answer.text
    assert (await client.post("/api/sign-in/passkey/options")).status_code == 422


async def test_challenges_are_not_handed_out_without_end(start_web: StartWeb) -> None:
    web = await start_web(clock=FakeClock())
    client = await fresh(web)
    answers = [(await client.post("/api/sign-in/passkey/options")).status_code for _ in range(62)]
    assert answers == [200] * 60 + [429] * 2


DAMAGES: list[dict[str, Any]] = [
    {"response": {}},
    {"response": None},
    {"response": {"clientDataJSON": "***"}},
    {"response": {"clientDataJSON": b64(b"[]")}},
    {"response": {"clientDataJSON": b64(b'{"challenge": 1}')}},
    {"rawId": "AAAA"},
    {"type": "password"},
]


async def test_an_answer_that_no_browser_would_give_is_refused(web: Web) -> None:
    bearer = await register(web)
    for damage in [*DAMAGES, {"id": 5}, {"id": "\0"}, {"id": ""}]:
        client, options = await ask(web)
        assert await answered(client, bearer.device.get(options) | damage) == 401, damage
    for damage in DAMAGES:
        making = (await bearer.client.post("/api/me/passkeys/options")).json()
        broken = bearer.device.create(making) | damage
        answer = await bearer.client.post("/api/me/passkeys", json={"name": "x", "credential": broken})
        assert answer.status_code == 403, damage
    assert len((await bearer.client.get("/api/me/passkeys")).json()["passkeys"]) == 1


@pytest.mark.parametrize("part", ["authenticatorData", "signature"])
async def test_a_damaged_signature_is_refused(web: Web, part: str) -> None:
    bearer = await register(web)
    for value in ("", "AAAA", "***", None, 7, b64(bytes(37)), b64(b"\xff" * 200)):
        client, options = await ask(web)
        credential = bearer.device.get(options)
        credential["response"][part] = value
        assert await answered(client, credential) == 401, value


async def test_a_damaged_new_passkey_is_refused(web: Web) -> None:
    bearer = await register(web)
    for value in ("", "AAAA", None, b64(cbor2.dumps({})), b64(cbor2.dumps({"authData": b"x" * 55}))):
        credential = bearer.device.create((await bearer.client.post("/api/me/passkeys/options")).json())
        credential["response"]["attestationObject"] = value
        answer = await bearer.client.post("/api/me/passkeys", json={"name": "x", "credential": credential})
        assert answer.status_code == 403, value

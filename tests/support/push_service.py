"""A push service of a browser on loopback: it checks every request as RFC 8030, 8291 and 8292 say, and decrypts it.

The decryption is written from the RFCs, not with the code that encrypts.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

if TYPE_CHECKING:
    from types import TracebackType

HOST = "127.0.0.1"


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class PushBrowser:
    """The keys of one browser, which only it has, and its subscription."""

    url: str
    private_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth_secret: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    path: str = field(default_factory=lambda: f"/push/{secrets.token_hex(8)}")

    @property
    def public_bytes(self) -> bytes:
        return self.private_key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def subscription(self) -> dict[str, Any]:
        keys = {"p256dh": encode(self.public_bytes), "auth": encode(self.auth_secret)}
        return {"endpoint": f"{self.url}{self.path}", "keys": keys}

    def decrypt(self, body: bytes) -> Any:
        """Decrypt a message (RFC 8291 and 8188); raises an error if it is not for this browser."""
        salt, record_size, id_length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        assert id_length == 65
        assert len(body) <= record_size <= 4096
        sender, sealed = body[21:86], body[86:]
        sender_key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.private_key.exchange(ec.ECDH(), sender_key)
        info = b"WebPush: info\0" + self.public_bytes + sender
        input_key = _expand(_extract(self.auth_secret, shared), info, 32)
        pseudo_random_key = _extract(salt, input_key)
        key = _expand(pseudo_random_key, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _expand(pseudo_random_key, b"Content-Encoding: nonce\0", 12)
        text = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert text.endswith(b"\x02")
        return json.loads(text[:-1])


def _extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.new(salt, secret, hashlib.sha256).digest()


def _expand(key: bytes, info: bytes, length: int) -> bytes:
    return hmac.new(key, info + b"\x01", hashlib.sha256).digest()[:length]


class PushService:
    """Takes notifications. `status` and `headers` are its next answers; it keeps what browsers would show."""

    def __init__(self) -> None:
        self.status = 201
        self.headers: dict[str, str] = {}
        self.body = b""
        self.messages: list[tuple[str, Any]] = []  # path and content of what was taken
        self.requests: list[dict[str, str]] = []
        self.problems: list[str] = []
        self.browsers: dict[str, PushBrowser] = {}
        self.server_key: str | None = None  # that browsers have subscribed to

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._handle, HOST, 0)
        self.url = f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        assert self.problems == []

    def add_browser(self) -> PushBrowser:
        browser = PushBrowser(self.url)
        self.browsers[browser.path] = browser
        return browser

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            request, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = request.split()
            self.requests.append(headers)
            try:
                content = self.check_request(method, path, headers, body)
            except (AssertionError, ValueError, KeyError, InvalidSignature, InvalidTag) as error:
                self.problems.append(repr(error))
                status = 400
            else:
                status = self.status
                if status == 201:
                    self.messages.append((path, content))
            lines = [f"HTTP/1.1 {status} X", f"content-length: {len(self.body)}", "connection: close"]
            lines += [f"{name}: {value}" for name, value in self.headers.items()]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + self.body)
            await writer.drain()
        finally:
            writer.close()

    def check_request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
        """Return the content of a notification. Raises an error if a push service or the browser would refuse it."""
        assert method == "POST"
        assert headers["content-encoding"] == "aes128gcm"
        assert 0 < int(headers["ttl"]) <= 28 * 86400  # RFC 8030 §5.2
        assert headers["urgency"] in {"very-low", "low", "normal", "high"}
        assert 0 < len(headers["topic"]) <= 32
        assert all(each.isalnum() or each in "-_" for each in headers["topic"])  # §5.4
        self._check_vapid(headers["authorization"])
        return self.browsers[path].decrypt(body)

    def _check_vapid(self, authorization: str) -> None:
        scheme, _, rest = authorization.partition(" ")
        assert scheme == "vapid"
        fields = dict(part.strip().split("=", 1) for part in rest.split(","))
        key_bytes = decode(fields["k"])
        if self.server_key is not None:
            assert fields["k"] == self.server_key
        head, claims, signature = fields["t"].split(".")
        assert json.loads(decode(head)) == {"typ": "JWT", "alg": "ES256"}
        data = json.loads(decode(claims))
        assert data["aud"] == self.url
        assert time.time() < data["exp"] <= time.time() + 86400
        assert data["sub"].startswith(("mailto:", "https://"))
        raw = decode(signature)
        assert len(raw) == 64
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key_bytes)
        key.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))  # raises InvalidSignature

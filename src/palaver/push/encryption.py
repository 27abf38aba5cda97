"""Encrypts notifications for one browser (RFC 8291, `aes128gcm`), and signs who sends them (RFC 8292, VAPID).

Written on `cryptography`, which is installed anyway: the libraries for this bring a second HTTP client that blocks and
that would not go through our guard for addresses.
"""

from __future__ import annotations

import json
import os
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput
from palaver.push.model import AUTH_SECRET_BYTES, PUBLIC_KEY_BYTES, PushSubscription, decode_base64url, encode_base64url

RECORD_BYTES: Final = 4096  # of the whole body: what every push service takes
MAX_PAYLOAD_BYTES: Final = 3000
TOKEN_SECONDS: Final = 12 * 3600  # RFC 8292 allows 24 hours
_SALT_BYTES: Final = 16
_LAST_RECORD: Final = b"\x02"


@dataclass(frozen=True, slots=True)
class ServerKey:
    private_key: ec.EllipticCurvePrivateKey

    @classmethod
    def from_number(cls, number: int) -> ServerKey:
        return cls(ec.derive_private_key(number, ec.SECP256R1()))

    @property
    def public_text(self) -> str:
        """The public key in base64url, as browsers want it (`applicationServerKey`)."""
        return encode_base64url(_encode_point(self.private_key.public_key()))

    def sign_token(self, audience: str, contact: str, now_seconds: int) -> str:
        """Return the value of the header `Authorization` for a push service."""
        claims = {"aud": audience, "exp": now_seconds + TOKEN_SECONDS, "sub": contact}
        parts = [_encode_json({"typ": "JWT", "alg": "ES256"}), _encode_json(claims)]
        signature = self.private_key.sign(".".join(parts).encode(), ec.ECDSA(hashes.SHA256()))
        r, s = decode_dss_signature(signature)
        token = ".".join([*parts, encode_base64url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))])
        return f"vapid t={token}, k={self.public_text}"


def check_keys(public_key: str, auth_secret: str) -> None:
    """Raise InvalidInput unless these are the keys of a browser's subscription."""
    _load_point(public_key)
    decode_base64url(auth_secret, "auth", AUTH_SECRET_BYTES)


def encrypt(payload: bytes, subscription: PushSubscription) -> bytes:
    """Return the body of a request to the push service: only this browser can read it."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise InvalidInput(f"A notification can have up to {MAX_PAYLOAD_BYTES} bytes.")
    browser_key = _load_point(subscription.public_key)
    auth_secret = decode_base64url(subscription.auth_secret, "auth", AUTH_SECRET_BYTES)
    one_time_key = ec.generate_private_key(ec.SECP256R1())
    own_point = _encode_point(one_time_key.public_key())
    shared = one_time_key.exchange(ec.ECDH(), browser_key)
    info = b"WebPush: info\0" + _encode_point(browser_key) + own_point
    input_key = _derive(auth_secret, shared, info, 32)
    salt = os.urandom(_SALT_BYTES)
    key = _derive(salt, input_key, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(salt, input_key, b"Content-Encoding: nonce\0", 12)
    sealed = AESGCM(key).encrypt(nonce, payload + _LAST_RECORD, None)
    return salt + RECORD_BYTES.to_bytes(4, "big") + bytes([len(own_point)]) + own_point + sealed


def _derive(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


def _load_point(text: str) -> ec.EllipticCurvePublicKey:
    point = decode_base64url(text, "p256dh", PUBLIC_KEY_BYTES)
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        raise InvalidInput("p256dh: this is not a point of the curve P-256.", key="p256dh") from None


def _encode_point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _encode_json(data: dict[str, object]) -> str:
    return encode_base64url(json.dumps(data, separators=(",", ":")).encode())

"""Requests that Slack sends to our webhook: whether they are from Slack, and what they contain. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from slack_sdk.signature import Clock, SignatureVerifier

if TYPE_CHECKING:
    from palaver.delivery.adapter import WebhookRequest

MAX_FORM_FIELDS: Final = 50


class _FixedClock(Clock):
    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now


def is_signed(request: WebhookRequest, signing_secret: str, now: float) -> bool:
    """Whether Slack has signed this body within the last five minutes."""
    timestamp = request.headers.get("x-slack-request-timestamp", "")
    signature = request.headers.get("x-slack-signature", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 16 and signature.isascii()):
        return False
    verifier = SignatureVerifier(signing_secret, _FixedClock(now))
    try:
        return verifier.is_valid(request.body, timestamp, signature)
    except UnicodeDecodeError:
        return False


def read_request(request: WebhookRequest) -> tuple[str, dict[str, Any]] | None:
    """Return what a request that was verified contains, under the names of Socket Mode; None if it can't be read."""
    try:
        if "json" in request.headers.get("content-type", ""):
            return _read_event(json.loads(request.body))
        fields = dict(parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
        if "payload" in fields:
            payload = json.loads(fields["payload"])
            return ("interactive", payload) if isinstance(payload, dict) else None
    except (ValueError, RecursionError):
        return None
    if "ssl_check" in fields:  # Slack looks at the certificate from time to time
        return "ssl_check", {}
    return ("slash_commands", dict(fields)) if "command" in fields else None


def _read_event(body: object) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(body, dict):
        return None
    return ("url_verification" if body.get("type") == "url_verification" else "events_api"), body

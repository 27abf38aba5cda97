"""Turns an answer into the body of a request, and the receiver's answer to it into an outcome."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from palaver.core.errors import SendRejected, SendRetryable, SendUncertain, TargetUnreachable

if TYPE_CHECKING:
    from palaver.core.errors import DeliveryError
    from palaver.delivery.adapter import OutgoingMessage

DEFAULT_RETRY_SECONDS = 30.0  # after a status of 429 or 503 without `Retry-After`


def make_body(message: OutgoingMessage) -> bytes:
    """Return the JSON that the receiver gets."""
    fields = {
        "id": message.key,
        "kind": message.kind.value,
        "conversation": message.address.chat_id,
        "text": message.body,
        "reply_to": message.reply_to,
    }
    return json.dumps(fields, ensure_ascii=False).encode()


def find_error(status: int, retry_after: float | None, host: str) -> DeliveryError | None:
    """Return what the status of the receiver's answer means; None if it has taken the message."""
    if 200 <= status < 300:
        return None
    answer = f"{host} has answered with status {status}."
    if status in {429, 503}:
        return SendRetryable(answer, retry_after=retry_after or DEFAULT_RETRY_SECONDS, whole_account=True)
    if status in {502, 504}:  # of a proxy: the receiver may have taken the message all the same
        return SendUncertain(answer)
    if status >= 500 or status in {408, 425}:
        return SendRetryable(answer, retry_after=retry_after)
    return _make_refusal(status, answer)


def _make_refusal(status: int, answer: str) -> SendRejected:
    if status == 410:
        return TargetUnreachable(f"{answer} It takes no more answers for this conversation.")
    if status < 400:
        return SendRejected(f"{answer} Redirects are not followed: set the final address as url.")
    return SendRejected(answer)

"""A webhook: signed requests of a program are messages to the agent, and answers are signed requests to the program.

In: the size is checked first, then the signature, and only then is the body read. Out: one request for each message,
which the outbox repeats; its id is the key of the delivery, so that the receiver can tell a repetition.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from palaver.core.errors import DeliveryError, SendRejected, SendRetryable, SendUncertain, TargetUnreachable
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import say
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingMessage, WebhookRequest, WebhookResponse
from palaver.delivery.model import Capabilities
from palaver.inbox import MAX_MESSAGE_CHARS
from palaver.platforms.common.failures import make_unreachable_error, parse_retry_after
from palaver.platforms.common.http import NOT_SENT_ERRORS, HttpConnections
from palaver.platforms.common.send_mark import mark_before_request
from palaver.platforms.webhook.manifest import (
    SignatureRefused,
    WebhookSettings,
    read_key,
    sign_request,
    verify_request,
)
from palaver.sessions.inbound import Inbound, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.platforms.manifest import AccountPlace

DEFAULT_RETRY_SECONDS = 30.0  # after a status of 429 or 503 without `Retry-After`
REQUEST_SECONDS = 30.0
MAX_BODY_BYTES = 1024 * 1024
REPORT_SECONDS = 30.0
JSON_TYPE = "application/json"


class WebhookPayload(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str = Field(min_length=1, max_length=MAX_MESSAGE_CHARS)
    conversation: str = Field("default", min_length=1, max_length=100)  # a name, within this webhook only

    @field_validator("conversation")
    @classmethod
    def _check_conversation(cls, value: str) -> str:
        if not value.isprintable() or value != value.strip():
            raise ValueError("a conversation has a name without control characters, and without spaces around it")
        return value


def find_error(status: int, retry_after: float | None, host: str) -> DeliveryError | None:
    """Return what the status of the receiver's answer means; None if it has taken the message."""
    if 200 <= status < 300:
        return None
    answer = say("webhook.answered_status", "{host} has answered with status {status}.", host=host, status=str(status))
    if status in {429, 503}:
        return SendRetryable(answer, retry_after=retry_after or DEFAULT_RETRY_SECONDS, whole_account=True)
    if status in {502, 504}:  # of a proxy: the receiver may have taken the message all the same
        return SendUncertain(answer)
    if status >= 500 or status in {408, 425}:
        return SendRetryable(answer, retry_after=retry_after)
    if status == 410:
        return TargetUnreachable(answer + " " + say("webhook.gone", "It takes no more answers for this conversation."))
    if status < 400:
        answer += " " + say("webhook.redirected", "Redirects are not followed: set the final address as url.")
    return SendRejected(answer)


class WebhookAdapter(Adapter):
    """One webhook with its own secret, and with its own conversations."""

    platform = Platform.WEBHOOK
    marks_sending = True
    max_webhook_bytes = MAX_BODY_BYTES

    def __init__(self, settings: WebhookSettings, place: AccountPlace) -> None:
        self.account = place.account
        self.capabilities = Capabilities(key_lifetime=timedelta(hours=settings.key_lifetime_hours))
        self._settings = settings
        self._webhook_url = place.webhook_url
        self._connections = HttpConnections(settings.host, REQUEST_SECONDS)

    async def probe(self) -> AccountInfo:
        """Say what people should know; there is nowhere to sign in."""
        warning = say(
            "webhook.answers_unencrypted", "Answers are sent without encryption. Use an address with https:// as url."
        )
        return AccountInfo(name=self._webhook_url, warnings=() if self._settings.is_encrypted_or_local else (warning,))

    async def run(self, link: AccountLink) -> None:
        """Be ready until canceled: requests come in through `handle_webhook`."""
        while True:
            link.report_connected()
            await asyncio.sleep(REPORT_SECONDS)

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        if request.method != "POST":
            return _refuse(405, "method_not_allowed", "Use POST.")
        if len(request.body) > MAX_BODY_BYTES:
            return _refuse(413, "too_large", f"A request has at most {MAX_BODY_BYTES} bytes.", limit=MAX_BODY_BYTES)
        try:
            message_id = verify_request(self._get_key(), request.headers, request.body, time.time())
            payload = await asyncio.to_thread(WebhookPayload.model_validate_json, request.body)
        except SignatureRefused as error:
            return _refuse(401, "signature_refused", str(error))
        except ValidationError as errors:
            first = errors.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(map(str, first["loc"]))
            message = f"{where}: {first['msg']}" if where else first["msg"]
            return _refuse(422, "invalid_request", message, field=where)
        # The caller names a conversation of its own, never another caller's.
        source = SessionSource(
            Platform.WEBHOOK,
            payload.conversation,
            chat_name=payload.conversation,
            chat_type=ChatType.DM,
            user_id=self.account or "default",
            user_name=self._settings.user_name,
            account=self.account,
        )
        receipt = await link.accept(Inbound(source=source, content=payload.text, message_id=message_id))
        if receipt.outcome is Outcome.REJECTED:
            facts = {"conversation": payload.conversation, **(receipt.facts or {})}
            code, message = str(facts.pop("error", "rejected")), receipt.reply or "The message was not accepted."
            return _refuse(403 if facts.get("retry_after") is None else 429, code, message, **facts)
        fields = {"outcome": receipt.outcome.value, "conversation": payload.conversation, "reply": receipt.reply}
        return WebhookResponse(status=202, body=_encode(fields), media_type=JSON_TYPE)

    async def send(self, message: OutgoingMessage) -> str | None:
        """Send a message to the address in the settings; without one, people read it in the conversation."""
        if self._settings.url is None:
            return None
        fields = {
            "id": message.key,
            "kind": message.kind.value,
            "conversation": message.address.chat_id,
            "text": message.body,
            "reply_to": message.reply_to,
        }
        body = _encode(fields)
        headers = sign_request(self._get_key(), message.key, time.time(), body)
        with mark_before_request(message.mark_sending):
            status, retry_after = await self._post(self._settings.url, body, headers)
        if (error := find_error(status, retry_after, self._settings.host)) is not None:
            raise error
        return message.key

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, float | None]:
        """Make one request; return the status of the answer, and the seconds that it asks to wait.

        The address comes from the settings, never from a message. The body of the answer is not read.
        Raises SendRetryable and SendUncertain.
        """
        headers = {**headers, "content-type": JSON_TYPE, "user-agent": "palaver"}
        try:
            http = await self._connections.open()
            async with asyncio.timeout(REQUEST_SECONDS):
                async with http.stream("POST", url, content=body, headers=headers) as response:
                    retry_after = parse_retry_after(response.headers.get("retry-after"), datetime.now(UTC))
                    return response.status_code, retry_after
        except NOT_SENT_ERRORS as error:
            raise make_unreachable_error(self._settings.host, error) from None
        except (httpx2.RequestError, TimeoutError) as error:
            raise SendUncertain.say(
                "webhook.not_answer",
                "{host} did not answer ({error}).",
                host=self._settings.host,
                error=type(error).__name__,
            ) from None

    async def close(self) -> None:
        await self._connections.close()

    def _get_key(self) -> bytes:
        return read_key(self._settings.secret.get_secret_value())


def _refuse(status: int, code: str, message: str, **facts: Any) -> WebhookResponse:
    """Refuse a request in the form of every error of the server."""
    return WebhookResponse(
        status=status,
        body=_encode({"error": {"code": code, "message": message, "facts": facts}}),
        media_type=JSON_TYPE,
        retry_after=facts.get("retry_after"),  # of a refusal that ends by itself
    )


def _encode(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, default=str).encode()

"""A webhook: signed requests of a program are messages to the agent, and answers are signed requests to the program.

In: the size is checked first, then the signature, and only then is the body read. Out: one request for each message,
which the outbox repeats; its id is the key of the delivery, so that the receiver can tell a repetition.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.core.source import Platform
from palaver.delivery.adapter import AccountInfo, Adapter, WebhookResponse
from palaver.platforms.webhook.capabilities import CAPABILITIES
from palaver.platforms.webhook.client import WebhookClient
from palaver.platforms.webhook.inbound import PayloadRefused, make_message, parse_payload
from palaver.platforms.webhook.outbound import find_error, make_body
from palaver.platforms.webhook.settings import LOCAL_HOSTS
from palaver.platforms.webhook.signatures import SignatureRefused, read_key, sign_request, verify_request
from palaver.sessions.inbound import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.delivery.adapter import AccountLink, OutgoingMessage, WebhookRequest
    from palaver.platforms.manifest import AccountPlace
    from palaver.platforms.webhook.settings import WebhookSettings
    from palaver.sessions.inbound import Receipt

MAX_BODY_BYTES = 1024 * 1024
REPORT_SECONDS = 30.0


class WebhookAdapter(Adapter):
    """One webhook with its own secret, and with its own conversations."""

    platform = Platform.WEBHOOK
    capabilities = CAPABILITIES
    max_webhook_bytes = MAX_BODY_BYTES

    def __init__(
        self, settings: WebhookSettings, place: AccountPlace, *, get_time: Callable[[], float] = time.time
    ) -> None:
        self.account = place.account
        self.capabilities = replace(CAPABILITIES, key_lifetime=settings.key_lifetime)
        self._settings = settings
        self._webhook_url = place.webhook_url
        self._get_time = get_time
        is_local = settings.host in LOCAL_HOSTS
        self._client = WebhookClient(settings.url, settings.host, is_local=is_local) if settings.url else None

    async def probe(self) -> AccountInfo:
        """Say what people should know; there is nowhere to sign in."""
        warnings = []
        if not self._settings.is_encrypted_or_local:
            warnings.append("Answers are sent without encryption. Use an address with https:// as url.")
        return AccountInfo(name=self._webhook_url, warnings=tuple(warnings))

    async def run(self, link: AccountLink) -> None:
        """Be ready until canceled: requests come in through `handle_webhook`."""
        while True:
            link.report_connected()
            await asyncio.sleep(REPORT_SECONDS)

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        if request.method != "POST":
            return _answer(405, error="Use POST.")
        if len(request.body) > MAX_BODY_BYTES:
            return _answer(413, error=f"A request has at most {MAX_BODY_BYTES} bytes.")
        try:
            message_id = verify_request(self._get_key(), request.headers, request.body, self._get_time())
        except SignatureRefused as error:
            return _answer(401, error=str(error))
        try:
            payload = await asyncio.to_thread(parse_payload, request.body)
        except PayloadRefused as error:
            return _answer(422, error=str(error))
        message = make_message(payload, message_id, account=self.account, user_name=self._settings.user_name)
        return _answer_receipt(await link.accept(message), payload.conversation)

    async def send(self, message: OutgoingMessage) -> str | None:
        """Send a message to the address in the settings; without one, people read it in the conversation."""
        if self._client is None:
            return None
        body = make_body(message)
        headers = sign_request(self._get_key(), message.key, self._get_time(), body)
        status, retry_after = await self._client.post(body, headers)
        if (error := find_error(status, retry_after, self._settings.host)) is not None:
            raise error
        return message.key

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    def _get_key(self) -> bytes:
        return read_key(self._settings.secret.get_secret_value())


def _answer(status: int, *, retry_after: int | None = None, **fields: Any) -> WebhookResponse:
    return WebhookResponse(
        status=status,
        body=json.dumps(fields, ensure_ascii=False).encode(),
        media_type="application/json",
        retry_after=retry_after,
    )


def _answer_receipt(receipt: Receipt, conversation: str) -> WebhookResponse:
    fields: dict[str, Any] = {"outcome": receipt.outcome.value, "conversation": conversation, "reply": receipt.reply}
    if receipt.outcome is not Outcome.REJECTED:
        return _answer(202, **fields)
    retry_after = (receipt.facts or {}).get("retry_after")  # of a refusal that ends by itself
    return _answer(403 if retry_after is None else 429, retry_after=retry_after, **fields)


def create_adapter(settings: WebhookSettings, place: AccountPlace) -> Adapter:
    return WebhookAdapter(settings, place)

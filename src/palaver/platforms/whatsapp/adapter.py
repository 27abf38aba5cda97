"""One business number: signed webhooks in, the Graph API out.

Meta sends a request again, for days, until it is answered with a success; so that answer is given only when everything
in the request is stored. What comes twice is recognized by its id.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import ConnectionLost, DeliveryError, PlatformError
from palaver.core.recent_entries import RecentEntries
from palaver.core.source import Platform
from palaver.core.tasks import wait_for_event
from palaver.core.texts import say
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingMessage, WebhookRequest, WebhookResponse
from palaver.gateway.intake import WebhookIntake
from palaver.platforms.common.inbound import parse_json_object
from palaver.platforms.common.send_mark import mark_before_request
from palaver.platforms.common.whatsapp_markdown import format_whatsapp_text, render_whatsapp_messages
from palaver.platforms.whatsapp import outbound
from palaver.platforms.whatsapp.client import GraphClient, GraphRefusal, make_late_error
from palaver.platforms.whatsapp.inbound import MessageStatus, parse_webhook
from palaver.platforms.whatsapp.manifest import CAPABILITIES, WhatsAppSettings
from palaver.sessions.inbound import AnyUpdate, ButtonPressed, Outcome, Receipt

if TYPE_CHECKING:
    from palaver.platforms.manifest import AccountPlace
    from palaver.sessions.delivery import Address

log = logging.getLogger(__name__)

MAX_WEBHOOK_BYTES: Final = 3 * 1024 * 1024  # Meta puts up to 1,000 updates into one request
CHECK_SECONDS: Final = 60.0
RETRY_CHECK_SECONDS: Final = 10.0
MAX_REMEMBERED_DELIVERIES: Final = 1000
SIGNATURE_HEADER: Final = "x-hub-signature-256"
NEEDED_PERMISSIONS: Final = ("whatsapp_business_messaging", "whatsapp_business_management")
NUMBER_FIELDS: Final = ("id", "display_phone_number", "verified_name", "quality_rating", "webhook_configuration")
WEBHOOK_LEVELS: Final = ("phone_number", "whatsapp_business_account", "application")  # the first one set is used
_SIGNATURE: Final = re.compile(r"sha256=[0-9a-f]{64}")
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")

NO_PUBLIC_URL: Final = say(
    "whatsapp.no_public_url",
    "Messages arrive only at an address that Meta can reach: set web.public_url in the server"
    " settings to the https:// address of this server, and this check tells you whether Meta uses"
    " it.",
)
NOT_SUBSCRIBED: Final = say(
    "whatsapp.not_subscribed",
    "No app is subscribed to this WhatsApp Business Account, so no messages arrive. At"
    " developers.facebook.com open your app, WhatsApp, Configuration, and subscribe to the"
    " webhook field messages.",
)


class WhatsAppAdapter(Adapter):
    platform = Platform.WHATSAPP
    capabilities = CAPABILITIES
    marks_sending = True
    silence_seconds = 3 * CHECK_SECONDS
    max_webhook_bytes = MAX_WEBHOOK_BYTES

    def __init__(self, settings: WhatsAppSettings, place: AccountPlace) -> None:
        self.account = place.account
        self._settings = settings
        self._webhook_url = place.webhook_url
        self._client = GraphClient(settings)
        self._check_now = asyncio.Event()  # a send was refused because of our account
        self._intake = WebhookIntake(self._answer_press)
        # Of the latest messages that people have received.
        self._delivered_keys: RecentEntries[str, None] = RecentEntries(MAX_REMEMBERED_DELIVERIES)

    # ---- the account -----------------------------------------------------------------------------------------

    async def probe(self) -> AccountInfo:
        """Read our number, and say what is missing: a permission, a subscription, the webhook."""
        number = await self._client.get_number(*NUMBER_FIELDS)
        warnings = self._find_webhook_problems(number)
        details = []
        if rating := str(number.get("quality_rating") or ""):
            details.append(say("whatsapp.quality_rating", "Quality rating: {rating}", rating=rating.lower()))
        if rating.upper() == "RED":
            warnings.append(
                say(
                    "whatsapp.low_quality",
                    "Meta rates the quality of this number as low. It may limit or block the number.",
                )
            )
        checks = {"access token": self._check_token, "subscription of the webhook": self._check_subscription}
        for name, check in checks.items():
            try:
                warnings += await check()
            except PlatformError as error:  # the number itself works
                details.append(
                    say(
                        "whatsapp.could_not_checked",
                        "The {subject} could not be checked: {error}",
                        subject=name,
                        error=error,
                    )
                )
        if self._settings.business_account_id is None:
            details.append(
                say(
                    "whatsapp.subscription_unchecked",
                    "Set business_account_id to have the subscription of the webhook checked.",
                )
            )
        shown = " ".join(str(number[each]) for each in ("verified_name", "display_phone_number") if number.get(each))
        return AccountInfo(
            user_id=self._settings.phone_number_id,
            name=shown or None,
            warnings=tuple(warnings),
            details=tuple(details),
        )

    def _find_webhook_problems(self, number: dict[str, Any]) -> list[str]:
        if self._webhook_url is None:
            return [NO_PUBLIC_URL]
        configured = number.get("webhook_configuration")
        if not isinstance(configured, dict):  # it is not said to every token
            return []
        address = next((str(configured[each]) for each in WEBHOOK_LEVELS if configured.get(each)), None)
        if address == self._webhook_url:
            return []
        missing = say(
            "whatsapp.no_webhook",
            "Meta has no webhook. At developers.facebook.com open your app, WhatsApp, Configuration, and"
            " set the callback URL to {url} with your verify_token.",
            url=self._webhook_url,
        )
        other = say(
            "whatsapp.other_webhook",
            "Meta sends the messages of this number to {address}. At developers.facebook.com open your"
            " app, WhatsApp, Configuration, and set the callback URL to {url} with your verify_token.",
            address=address,
            url=self._webhook_url,
        )
        return [other if address else missing]

    async def _check_token(self) -> list[str]:
        token = await self._client.inspect_token()
        warnings: list[str] = []
        scopes = token.get("scopes")
        missing = [each for each in NEEDED_PERMISSIONS if isinstance(scopes, list) and each not in scopes]
        if missing:
            warnings.append(
                say(
                    "whatsapp.token_lacks_permissions",
                    "The access token lacks {permissions}. Generate it again with both permissions.",
                    permissions=" and ".join(missing),
                )
            )
        expires_at = token.get("expires_at")
        if isinstance(expires_at, int) and expires_at > 0:
            day = datetime.fromtimestamp(expires_at, UTC).date().isoformat()
            warnings.append(
                say(
                    "whatsapp.token_expires",
                    "The access token expires on {day}. Use the token of a system user, which never expires: Meta"
                    " Business Suite, Settings, System users, Generate token.",
                    day=day,
                )
            )
        return warnings

    async def _check_subscription(self) -> list[str]:
        account_id = self._settings.business_account_id
        if account_id is None or (await self._client.get(f"{account_id}/subscribed_apps")).get("data"):
            return []
        return [NOT_SUBSCRIBED]

    async def run(self, link: AccountLink) -> None:
        """Be ready for webhooks. They come only when a person writes, so a request from time to time shows life."""
        while True:
            self._check_now.clear()
            pause = CHECK_SECONDS
            try:
                await self._client.get_number("id")
                link.report_connected()
            except ConnectionLost as error:  # webhooks may arrive all the same
                log.info("whatsapp_check_failed", extra={"reason": str(error)})
                pause = RETRY_CHECK_SECONDS
            await wait_for_event(self._check_now, pause)

    async def close(self) -> None:
        await self._intake.close()
        await self._client.close()

    # ---- webhook ---------------------------------------------------------------------------------------------

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        """Check the signature, then store everything in the request. Meta repeats it until that has worked."""
        if request.method == "GET":
            return self._answer_challenge(request)
        if (refusal := self._find_problem(request)) is not None:
            return WebhookResponse(status=refusal)
        payload = await asyncio.to_thread(parse_json_object, request.body)
        if payload is None or payload.get("object") != "whatsapp_business_account":
            return WebhookResponse(status=400)
        updates, statuses = parse_webhook(payload, self._settings.phone_number_id, self._client.download)
        link.report_connected()
        is_complete = await self._intake.accept(link, updates)
        for status in statuses:
            is_complete &= await self._accept_status(link, status)
        return WebhookResponse(status=200 if is_complete else 503)

    def _answer_challenge(self, request: WebhookRequest) -> WebhookResponse:
        """Prove to Meta that this address is ours, when the webhook is set up."""
        token = self._settings.verify_token.get_secret_value()
        given = request.query.get("hub.verify_token", "")
        challenge = request.query.get("hub.challenge", "")
        is_valid = hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
        if request.query.get("hub.mode") != "subscribe" or not is_valid or not _CHALLENGE.fullmatch(challenge):
            return WebhookResponse(status=403)
        return WebhookResponse(body=challenge.encode())

    def _find_problem(self, request: WebhookRequest) -> int | None:
        """Return the status that refuses a request; None if it is Meta's. Nothing of its body is read before that."""
        if request.method != "POST":
            return 405
        if len(request.body) > MAX_WEBHOOK_BYTES:
            return 413
        secret = self._settings.app_secret.get_secret_value().encode()
        expected = "sha256=" + hmac.new(secret, request.body, hashlib.sha256).hexdigest()
        given = request.headers.get(SIGNATURE_HEADER, "")
        if hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
            return None
        if _SIGNATURE.fullmatch(given):
            log.warning("whatsapp_signature_wrong", extra={"account": self.account, "setting": "app_secret"})
        return 401

    async def _accept_status(self, link: AccountLink, status: MessageStatus) -> bool:
        """Record what became of a message of ours; return False if that has to be told again."""
        if status.status == "failed":
            has_arrived = status.key in self._delivered_keys  # it failed for one of several devices
            error = make_late_error(GraphRefusal.from_error(status.error))
            return has_arrived or await link.report_failed(status.key, error)
        if status.status != "sent":
            self._delivered_keys.remember(status.key, None)
        await link.confirm(status.key, status.message_id)
        return True

    # ---- sending ---------------------------------------------------------------------------------------------

    def render(self, markdown: str) -> list[str]:
        return render_whatsapp_messages(markdown, self.capabilities)

    async def send(self, message: OutgoingMessage) -> str:
        outbound.build_address(message.address.chat_id)  # raises before a file is uploaded in vain
        try:
            if message.file is None:
                with mark_before_request(message.mark_sending):
                    return await self._client.send(outbound.build_text(message))
            kind, media_type = outbound.choose_media(message.file)
            media_id = await self._client.upload(message.file, media_type)
            with mark_before_request(message.mark_sending):
                return await self._client.send(outbound.build_media(message, kind, media_id))
        except DeliveryError as error:
            if getattr(error, "whole_account", False):
                self._check_now.set()
            raise

    async def show_typing(self, address: Address) -> None:
        """Show nothing: WhatsApp shows it only for a message."""

    async def show_typing_for(self, address: Address, message_id: str | None) -> None:
        """Mark the message as read, and show that it is being answered, for up to 25 seconds."""
        if message_id is not None:
            await self._client.call(outbound.build_typing(message_id))

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        await self._client.call(outbound.build_reaction(address.chat_id, message_id, emoji))

    async def _answer_press(self, update: AnyUpdate, receipt: Receipt) -> None:
        """Say what a press has done. People have seen their choice as a message, and wait for an answer."""
        if not isinstance(update, ButtonPressed) or receipt.outcome is Outcome.DUPLICATE or not receipt.reply:
            return
        reply = format_whatsapp_text(receipt.reply)[: self.capabilities.max_length]
        try:
            await self._client.call(outbound.build_reply(update.source.chat_id, update.press_id, reply))
        except DeliveryError as error:
            log.info("whatsapp_press_not_answered", extra={"reason": str(error)})

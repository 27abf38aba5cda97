"""The Graph API over HTTP: the only module that talks to Meta.

Always true: every failure is one of Palaver's errors, and says honestly whether Meta may have acted. A request that
sends a message is made once: the outbox decides whether it is repeated. The access token is sent to the Graph API and
to Meta's own file servers only, and is in no error and no log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    InvalidInput,
    PlatformError,
    SendRejected,
    SendRetryable,
    SendUncertain,
)
from palaver.core.texts import say
from palaver.platforms.common import failures
from palaver.platforms.common.failures import Refusal, describe_outage
from palaver.platforms.common.http import NOT_SENT_ERRORS, FileFetcher, HttpConnections
from palaver.platforms.common.inbound import parse_json_object

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from palaver.delivery.adapter import OutgoingFile
    from palaver.platforms.whatsapp.manifest import WhatsAppSettings

JSON = dict[str, Any]

ANSWER_SECONDS: Final = 30.0
UPLOAD_SECONDS: Final = 180.0
MAX_ANSWER_BYTES: Final = 1024 * 1024
META_FILE_DOMAINS: Final = ("fbsbx.com", "fbcdn.net", "facebook.com", "whatsapp.net")

ACCESS_REFUSED: Final = say(
    "whatsapp.access_refused",
    "Meta refuses the access token. It has expired, or was revoked. Create a token of a system"
    " user that never expires (Meta Business Suite, Settings, System users, Generate token) and"
    " put it into access_token.",
)
PERMISSION_MISSING: Final = say(
    "whatsapp.permission_missing",
    "The access token lacks a permission. Generate it again with whatsapp_business_messaging and"
    " whatsapp_business_management, and give its system user full control of the WhatsApp"
    " account.",
)
WRONG_NUMBER_ID: Final = say(
    "whatsapp.wrong_number_id",
    "Meta knows no number with this phone_number_id, or the access token may not use it. Copy the"
    " id from developers.facebook.com: your app, WhatsApp, API Setup. It is not the phone number"
    " itself.",
)
WINDOW_CLOSED: Final = say(
    "whatsapp.window_closed",
    "WhatsApp lets a business write only within 24 hours after the person's last message. It can"
    " be sent after they have written again.",
)
NOT_REGISTERED: Final = say(
    "whatsapp.not_registered", "This number is not registered for the Cloud API. Register it in the WhatsApp Manager."
)

MAX_DETAIL_CHARS: Final = 300
PERSON_WAIT_SECONDS: Final = 6.0  # until the next message to the same person
ACCOUNT_WAIT_SECONDS: Final = 2.0
HOUR_WAIT_SECONDS: Final = 60.0  # limits that count calls in an hour
SPAM_WAIT_SECONDS: Final = 300.0
_NO_SUCH_OBJECT: Final = (100, 33)  # code and subcode

# Of our account: it works again when its operator has done something.
_ACCOUNT_REASONS: Final = {
    0: ACCESS_REFUSED,
    190: ACCESS_REFUSED,
    3: PERMISSION_MISSING,
    10: PERMISSION_MISSING,
    131005: PERMISSION_MISSING,
    368: say(
        "whatsapp.business_blocked",
        "Meta has blocked this business for a policy violation. Look at Account quality in the Meta Business Suite.",
    ),
    131031: say(
        "whatsapp.account_locked",
        "Meta has locked this business account. Look at Account quality in the Meta Business Suite.",
    ),
    131037: say(
        "whatsapp.name_not_approved",
        "The display name of this number is not approved yet. Look at it in the WhatsApp Manager.",
    ),
    131042: say(
        "whatsapp.payment_problem",
        "WhatsApp sends nothing until the payment method of the business account works. Fix it in the"
        " WhatsApp Manager under Billing.",
    ),
    131045: NOT_REGISTERED,
    133010: NOT_REGISTERED,
}
# Nothing reaches this person, until they write again.
_UNREACHABLE_REASONS: Final = {
    131026: say(
        "whatsapp.undeliverable",
        "WhatsApp can't deliver to this person: they have no WhatsApp, have blocked this number, or"
        " use an old version.",
    ),
    131030: say(
        "whatsapp.test_number",
        "This number of Meta is only for tests: add the person's number under API Setup, To, Manage"
        " phone number list, or use a number of your own.",
    ),
    131047: WINDOW_CLOSED,
    130497: say("whatsapp.country_refused", "Meta does not let this business write to people in this country."),
    137000: say(
        "whatsapp.new_phone",
        "The person has a new phone. They have to write again before WhatsApp delivers to it.",
    ),
}
_REJECTION_REASONS: Final = {
    130472: say(
        "whatsapp.person_in_experiment",
        "WhatsApp did not deliver this message, because the person takes part in an experiment of Meta.",
    ),
    131021: say("whatsapp.own_number", "A number can't write to itself."),
    131049: say(
        "whatsapp.person_limit",
        "WhatsApp did not deliver this message, to limit what businesses send to this person.",
    ),
    131050: say("whatsapp.unwanted", "The person does not want messages of this kind from this business."),
    131052: say("whatsapp.file_not_opened", "WhatsApp could not open the file."),
    131053: say("whatsapp.file_not_taken", "WhatsApp could not take the file. Its type may not be supported."),
    131062: say(
        "whatsapp.number_hidden",
        "WhatsApp needs the person's phone number for this message, and they hide it.",
    ),
    131064: say(
        "whatsapp.daily_limit",
        "This business has written to as many people as Meta allows it in a day.",
    ),
}
# It was certainly not taken: how long to wait, and whether the whole account has to.
_WAITS: Final = {
    4: (HOUR_WAIT_SECONDS, True),
    80007: (HOUR_WAIT_SECONDS, True),
    130429: (ACCOUNT_WAIT_SECONDS, True),
    131048: (SPAM_WAIT_SECONDS, True),
    131056: (PERSON_WAIT_SECONDS, False),
    131057: (HOUR_WAIT_SECONDS, True),
    131016: (ACCOUNT_WAIT_SECONDS, False),
    133004: (HOUR_WAIT_SECONDS, True),
}
_CODE: Final = re.compile(r"[0-9]{1,9}")
_UNKNOWN_OUTCOMES: Final = frozenset({1, 2, 131000, 135000})  # Meta's own failures: it may have acted


class GraphRefusal(Refusal):
    """The Graph API has answered with an error."""

    account_wait_seconds = HOUR_WAIT_SECONDS

    def __init__(self, status: int, code: int | None, subcode: int | None = None, text: str = "") -> None:
        self.status = status
        self.code = code  # None: the answer does not come from the Graph API
        self.reason = text or f"HTTP status {status}"
        super().__init__(self.reason)
        self.account_reason = _find_account_reason(status, code, subcode)
        if code in _WAITS or status == 429:
            self.wait_seconds, self.is_for_account = _WAITS.get(code or 0, (HOUR_WAIT_SECONDS, True))
        self.chat_reason = _UNREACHABLE_REASONS.get(code or 0)
        self.message_reason = _REJECTION_REASONS.get(code or 0)
        self.may_have_arrived = code in _UNKNOWN_OUTCOMES or status >= 500

    @classmethod
    def from_response(cls, status: int, payload: bytes) -> Self:
        return cls.from_error((parse_json_object(payload) or {}).get("error"), status)

    @classmethod
    def from_error(cls, error: object, status: int = 400) -> Self:
        """Read an error as answers and webhooks contain it. One that cannot be read has no code."""
        fields = error if isinstance(error, dict) else {}
        data = fields.get("error_data")
        details = data.get("details") if isinstance(data, dict) else None
        text = str(details or fields.get("message") or fields.get("title") or "")[:MAX_DETAIL_CHARS]
        return cls(status, _read_code(fields.get("code")), _read_code(fields.get("error_subcode")), text)


def _find_account_reason(status: int, code: int | None, subcode: int | None) -> str | None:
    """Return what the operator has to fix, if it is about our account."""
    if code is None:
        return ACCESS_REFUSED if status in {401, 403} else None
    if (code, subcode) == _NO_SUCH_OBJECT:
        return WRONG_NUMBER_ID
    return PERMISSION_MISSING if 200 <= code < 300 else _ACCOUNT_REASONS.get(code)


def _read_code(value: object) -> int | None:
    text = str(value)
    return int(text) if _CODE.fullmatch(text) else None


def make_platform_error(refusal: GraphRefusal) -> PlatformError:
    if refusal.account_reason is not None:
        return AccountRefused(refusal.account_reason)
    return ConnectionLost(describe_outage("WhatsApp", refusal))


make_delivery_error = partial(failures.make_delivery_error, "WhatsApp")


def make_late_error(refusal: GraphRefusal) -> SendRejected:
    """Return why a message that WhatsApp had taken has not arrived. Sending it again is for a person to decide."""
    error = make_delivery_error(refusal)
    if isinstance(error, SendRejected):
        return error
    reason = refusal.account_reason or say(
        "platform.message_not_delivered",
        "{platform} could not deliver the message: {reason}",
        platform="WhatsApp",
        reason=refusal.reason,
    )
    return SendRejected(reason)


class GraphClient:
    def __init__(self, settings: WhatsAppSettings) -> None:
        logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every address, and one of them has the token
        self._settings = settings
        self._base_url = f"{settings.api_url}/{settings.api_version}"
        self._fetcher = FileFetcher({settings.api_host})
        self._connections = HttpConnections(settings.api_host, ANSWER_SECONDS)
        self.close = self._connections.close

    # ---- requests that send nothing --------------------------------------------------------------------------

    async def get(self, path: str, parameters: Mapping[str, str] | None = None) -> JSON:
        """Read something. Raises AccountRefused or ConnectionLost."""
        try:
            return await self._request("GET", path, params=parameters)
        except GraphRefusal as refusal:
            raise make_platform_error(refusal) from None
        except (httpx2.RequestError, TimeoutError) as error:
            raise ConnectionLost(_describe_silence(error)) from None

    async def get_number(self, *fields: str) -> JSON:
        return await self.get(self._settings.phone_number_id, {"fields": ",".join(fields)})

    async def inspect_token(self) -> JSON:
        """Return what Meta says about our access token: its permissions, and when it expires."""
        found = (await self.get("debug_token", {"input_token": self._get_token()})).get("data")
        return found if isinstance(found, dict) else {}

    async def download(self, media_id: str) -> AsyncIterator[bytes]:
        """Download a file that a person has sent. Its address is valid for a few minutes, so it is asked for first."""
        media = await self.get(media_id, {"phone_number_id": self._settings.phone_number_id})
        url = str(media.get("url") or "")
        if not self._is_own_file_server(url):
            raise InvalidInput("its address is not one of Meta's file servers")
        async for chunk in self._fetcher.fetch(url, self._make_headers()):
            yield chunk

    def _is_own_file_server(self, url: str) -> bool:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        is_of_meta = any(f".{host}".endswith(f".{domain}") for domain in META_FILE_DOMAINS)
        return host == self._settings.api_host or (parts.scheme == "https" and is_of_meta)

    # ---- requests about a chat -------------------------------------------------------------------------------

    async def send(self, message: JSON) -> str:
        """Send a message; return its id. Raises a DeliveryError."""
        answer = await self._deliver(message, is_repeatable=False)
        try:
            return str(answer["messages"][0]["id"])
        except (KeyError, IndexError, TypeError):
            raise SendUncertain.say(
                "whatsapp.not_confirmed", "WhatsApp did not say whether it has taken the message."
            ) from None

    async def call(self, request: JSON) -> None:
        """Make a request that does no harm when it is repeated, such as a reaction. Raises a DeliveryError."""
        await self._deliver(request, is_repeatable=True)

    async def upload(self, file: OutgoingFile, media_type: str) -> str:
        """Upload a file; return its id. If that fails, nothing was sent. Raises a DeliveryError."""
        boundary = f"palaver-{secrets.token_hex(16)}"
        head, tail = _frame_upload(boundary, file.name, media_type)

        async def stream() -> AsyncIterator[bytes]:
            yield head
            async for chunk in file.read():
                yield chunk
            yield tail

        headers = {
            "content-type": f"multipart/form-data; boundary={boundary}",
            "content-length": str(len(head) + file.size + len(tail)),
        }
        path = f"{self._settings.phone_number_id}/media"
        try:
            answer = await self._request("POST", path, content=stream(), headers=headers, seconds=UPLOAD_SECONDS)
            return str(answer["id"])
        except GraphRefusal as refusal:
            raise make_delivery_error(refusal, is_repeatable=True) from None
        except (httpx2.RequestError, TimeoutError, KeyError) as error:
            raise SendRetryable.say(
                "whatsapp.upload_failed",
                "The file could not be uploaded to WhatsApp ({error}).",
                error=type(error).__name__,
            ) from None

    async def _deliver(self, message: JSON, *, is_repeatable: bool) -> JSON:
        path = f"{self._settings.phone_number_id}/messages"
        content = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        try:
            return await self._request("POST", path, content=content, headers={"content-type": "application/json"})
        except GraphRefusal as refusal:
            raise make_delivery_error(refusal, is_repeatable=is_repeatable) from None
        except NOT_SENT_ERRORS as error:
            raise SendRetryable(_describe_silence(error)) from None
        except (httpx2.RequestError, TimeoutError) as error:
            reason = f"WhatsApp did not answer ({type(error).__name__})."
            raise (SendRetryable(reason) if is_repeatable else SendUncertain(reason)) from None

    # ---- HTTP ------------------------------------------------------------------------------------------------

    async def _request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
        **options: Any,
    ) -> JSON:
        """Make one request. Raises GraphRefusal, and the errors of the HTTP client."""
        http = await self._connections.open()
        sent_headers = {**self._make_headers(), **(headers or {})}
        async with asyncio.timeout(seconds):
            async with http.stream(method, f"{self._base_url}/{path}", headers=sent_headers, **options) as response:
                payload = b""
                async for chunk in response.aiter_bytes():
                    payload += chunk
                    if len(payload) > MAX_ANSWER_BYTES:
                        raise GraphRefusal(502, None, text="the answer is too long")
        if response.status_code != httpx2.codes.OK:
            raise GraphRefusal.from_response(response.status_code, payload)
        answer = parse_json_object(payload)
        if answer is None:
            raise GraphRefusal(502, None, text="the answer is not JSON")
        return answer

    def _make_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._get_token()}", "user-agent": "palaver"}

    def _get_token(self) -> str:
        return self._settings.access_token.get_secret_value()


def _describe_silence(error: Exception) -> str:
    return say(
        "platform.not_reachable_because",
        "{platform} can't be reached right now ({reason}).",
        platform="WhatsApp",
        reason=type(error).__name__,
    )


def _frame_upload(boundary: str, name: str, media_type: str) -> tuple[bytes, bytes]:
    """Return what stands before and after the content of a file in a form."""
    safe_name = re.sub(r'["\\\r\n]', "_", name)
    parts = (
        'form-data; name="messaging_product"\r\n\r\nwhatsapp',
        f'form-data; name="type"\r\n\r\n{media_type}',
        f'form-data; name="file"; filename="{safe_name}"\r\nContent-Type: {media_type}\r\n\r\n',
    )
    head = "\r\n".join(f"--{boundary}\r\nContent-Disposition: {part}" for part in parts)
    return head.encode("utf-8", "replace"), f"\r\n--{boundary}--\r\n".encode()

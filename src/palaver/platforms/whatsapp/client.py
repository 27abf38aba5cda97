"""The Graph API over HTTP: the only module that talks to Meta.

Always true: every failure is one of Palaver's errors, and says honestly whether Meta may have acted. A request that
sends a message is made once: the outbox decides whether it is repeated. The access token is sent to the Graph API and
to Meta's own file servers only, and is in no error and no log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2

from palaver.core.errors import ConnectionLost, InvalidInput, SendRetryable, SendUncertain
from palaver.platforms.common.failures import make_repeatable
from palaver.platforms.common.fetching import NOT_SENT_ERRORS, FileFetcher, HttpConnections
from palaver.platforms.common.receiving import parse_json_object
from palaver.platforms.whatsapp.failures import GraphRefusal, make_delivery_error, make_platform_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from palaver.delivery.adapter import OutgoingFile
    from palaver.platforms.whatsapp.manifest import WhatsAppSettings

JSON = dict[str, Any]

ANSWER_SECONDS: Final = 30.0
UPLOAD_SECONDS: Final = 180.0
MAX_ANSWER_BYTES: Final = 1024 * 1024
META_FILE_DOMAINS: Final = ("fbsbx.com", "fbcdn.net", "facebook.com", "whatsapp.net")


class GraphClient:
    """Requests of one business number."""

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
            return await self._request("GET", path, params=dict(parameters or {}))
        except GraphRefusal as refusal:
            raise make_platform_error(refusal) from None
        except (httpx2.RequestError, TimeoutError) as error:
            raise ConnectionLost(f"WhatsApp can't be reached right now ({type(error).__name__}).") from None

    async def get_number(self, *fields: str) -> JSON:
        """Return what Meta says about our number."""
        return await self.get(self._settings.phone_number_id, {"fields": ",".join(fields)})

    async def inspect_token(self) -> JSON:
        """Return what Meta says about our access token: its permissions, and when it expires."""
        answer = await self.get("debug_token", {"input_token": self._get_token()})
        found = answer.get("data")
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
        if host == self._settings.api_host:
            return True
        return parts.scheme == "https" and any(
            host == domain or host.endswith(f".{domain}") for domain in META_FILE_DOMAINS
        )

    # ---- requests about a chat -------------------------------------------------------------------------------

    async def send(self, message: JSON) -> str:
        """Send a message; return its id. Raises a DeliveryError."""
        answer = await self._deliver(message, is_repeatable=False)
        try:
            return str(answer["messages"][0]["id"])
        except (KeyError, IndexError, TypeError):
            raise SendUncertain("WhatsApp did not say whether it has taken the message.") from None

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
            error = make_delivery_error(refusal)
            raise make_repeatable(error) from None
        except (httpx2.RequestError, TimeoutError, KeyError) as error:
            raise SendRetryable(f"The file could not be uploaded to WhatsApp ({type(error).__name__}).") from None

    async def _deliver(self, message: JSON, *, is_repeatable: bool) -> JSON:
        path = f"{self._settings.phone_number_id}/messages"
        content = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        try:
            return await self._request("POST", path, content=content, headers={"content-type": "application/json"})
        except GraphRefusal as refusal:
            error = make_delivery_error(refusal)
            raise (make_repeatable(error) if is_repeatable else error) from None
        except NOT_SENT_ERRORS as error:
            raise SendRetryable(f"WhatsApp can't be reached right now ({type(error).__name__}).") from None
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
                payload = await _read_answer(response)
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


async def _read_answer(response: httpx2.Response) -> bytes:
    payload = b""
    async for chunk in response.aiter_bytes():
        payload += chunk
        if len(payload) > MAX_ANSWER_BYTES:
            raise GraphRefusal(502, None, text="the answer is too long")
    return payload


def _frame_upload(boundary: str, name: str, media_type: str) -> tuple[bytes, bytes]:
    """Return what stands before and after the content of a file in a form."""
    safe_name = name.replace('"', "_").replace("\\", "_").replace("\r", "_").replace("\n", "_")
    fields = {"messaging_product": "whatsapp", "type": media_type}
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        for field, value in fields.items()
    )
    head += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{safe_name}"\r\n'
        f"Content-Type: {media_type}\r\n\r\n"
    )
    return head.encode("utf-8", "replace"), f"\r\n--{boundary}--\r\n".encode()

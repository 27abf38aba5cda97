"""The HTTP API of a homeserver. The only module of this adapter that uses the network.

Every request is made once: the caller decides what is repeated. An answer that is an error raises `RequestRefused`, no
answer raises `RequestFailed`, which says whether the request may have arrived.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import httpx2

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.core.texts import say
from palaver.platforms.common.failures import RequestError, RequestFailed
from palaver.platforms.common.http import NOT_SENT_ERRORS
from palaver.platforms.common.inbound import parse_json_object
from palaver.platforms.common.send_mark import trace_httpx_request
from palaver.platforms.matrix.inbound import FileReference, read_object, read_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 60.0
TRANSFER_SECONDS = 60.0  # without a byte of a file
SYNC_SECONDS = 30.0  # how long the homeserver waits for news
CHUNK_BYTES = 64 * 1024
LARGE_RESPONSE_BYTES = 256 * 1024  # parsed in a thread
API = "/_matrix/client/v3"

TOKEN_RETRY_SECONDS = 60.0  # until the supervisor has found out that the account is refused, or signed in again


class RequestRefused(RequestError):
    """The homeserver has answered with an error."""

    def __init__(self, status: int, answer: Mapping[str, Any]) -> None:
        self.status = status
        self.may_have_arrived = status >= 500
        self.code = read_text(answer.get("errcode")) or ""
        self.explanation = (read_text(answer.get("error")) or "")[:300]
        delay = answer.get("retry_after_ms")
        self.retry_after = max(delay, 0) / 1000 if isinstance(delay, int | float) else None
        self.session = read_text(answer.get("session"))  # of a request that has to be confirmed with the password
        self.is_soft_logout = answer.get("soft_logout") is True  # the device and its keys still exist
        super().__init__(f"{status} {self.code} {self.explanation}".strip())

    @property
    def is_rate_limit(self) -> bool:
        return self.status == 429 or self.code == "M_LIMIT_EXCEEDED"

    @property
    def is_bad_token(self) -> bool:
        return self.code in {"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"}


class MatrixClient:
    """Requests to one homeserver, as one user."""

    def __init__(self, homeserver: str) -> None:
        self.homeserver = homeserver
        self.access_token: str | None = None
        self.user_id = ""
        self.device_id: str | None = None  # an access token that was created by hand may have none
        self._connections: httpx2.AsyncClient | None = None

    @property
    def _http(self) -> httpx2.AsyncClient:
        if self._connections is None:
            self._connections = httpx2.AsyncClient(event_hooks={"request": [trace_httpx_request]})
        return self._connections

    async def close(self) -> None:
        """Close all connections. A later request opens new ones."""
        if self._connections is not None:
            await self._connections.aclose()
            self._connections = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        read_seconds: float = REQUEST_SECONDS,
    ) -> Mapping[str, Any]:
        return await self._request(
            method,
            path,
            params=query,
            content=None if body is None else json.dumps(body).encode(),
            headers=self._build_headers("application/json"),
            timeout=httpx2.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS, read=read_seconds),
        )

    async def _request(self, method: str, path: str, **options: Any) -> Mapping[str, Any]:
        try:
            response = await self._http.request(method, self.homeserver + path, **options)
        except httpx2.RequestError as error:
            raise _make_failure(error) from error
        return await _read_answer(response.status_code, response.content)

    def _build_headers(self, content_type: str) -> dict[str, str]:
        headers = {"Content-Type": content_type}
        if self.access_token:
            headers["Authorization"] = f"Bearer {self.access_token}"
        return headers

    async def log_in(
        self, user_id: str, password: str, *, device_name: str, device_id: str | None
    ) -> Mapping[str, Any]:
        body: dict[str, Any] = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": user_id},
            "password": password,
            "initial_device_display_name": device_name,
        }
        if device_id:
            body["device_id"] = device_id
        return await self.request("POST", f"{API}/login", body=body)

    async def fetch_display_name(self) -> str | None:
        try:
            answer = await self.request("GET", f"{API}/profile/{_quote(self.user_id)}/displayname")
        except RequestRefused as error:
            if error.is_bad_token:
                raise
            return None  # the account has no profile
        return read_text(answer.get("displayname"))

    async def fetch_upload_limit(self) -> int | None:
        """Return the largest file in bytes that the homeserver accepts; None if it does not say."""
        try:
            answer = await self.request("GET", "/_matrix/client/v1/media/config")
        except RequestRefused:
            return None
        limit = answer.get("m.upload.size")
        return limit if isinstance(limit, int) and limit > 0 else None

    async def sync(self, since: str | None, *, sync_filter: Mapping[str, Any], wait: bool) -> Mapping[str, Any]:
        """Return what is new since a position; wait for it if `wait`. Without a position: the current state."""
        query = {"filter": json.dumps(sync_filter), "set_presence": "offline"}
        query["timeout"] = str(int(SYNC_SECONDS * 1000)) if wait else "0"
        if since is not None:
            query["since"] = since
        seconds = REQUEST_SECONDS + (SYNC_SECONDS if wait else 0)
        return await self.request("GET", f"{API}/sync", query=query, read_seconds=seconds)

    async def fetch_messages(
        self, room_id: str, start: str, end: str | None, *, event_filter: Mapping[str, Any], limit: int
    ) -> Mapping[str, Any]:
        """Return events before a position, newest first."""
        query = {"dir": "b", "from": start, "limit": str(limit), "filter": json.dumps(event_filter)}
        if end is not None:
            query["to"] = end
        return await self.request("GET", f"{API}/rooms/{_quote(room_id)}/messages", query=query)

    async def fetch_event(self, room_id: str, event_id: str) -> Mapping[str, Any] | None:
        """Return an event; None if it does not exist or we may not see it."""
        return await self._fetch_optional(f"{API}/rooms/{_quote(room_id)}/event/{_quote(event_id)}")

    async def fetch_state(self, room_id: str, event_type: str) -> Mapping[str, Any] | None:
        """Return the content of a state event; None if there is none or we may not see it."""
        return await self._fetch_optional(f"{API}/rooms/{_quote(room_id)}/state/{_quote(event_type)}/")

    async def _fetch_optional(self, path: str) -> Mapping[str, Any] | None:
        try:
            return await self.request("GET", path)
        except RequestRefused as error:
            if error.status in {403, 404}:
                return None
            raise

    async def list_joined_rooms(self) -> list[str]:
        rooms = (await self.request("GET", f"{API}/joined_rooms")).get("joined_rooms")
        return [str(room) for room in rooms] if isinstance(rooms, list) else []

    async def fetch_joined_members(self, room_id: str) -> Mapping[str, Any]:
        return await self.request("GET", f"{API}/rooms/{_quote(room_id)}/joined_members")

    async def send_event(
        self, room_id: str, event_type: str, content: Mapping[str, Any], transaction_id: str
    ) -> str | None:
        """Send an event and return its id; the same one if this transaction id was used before."""
        path = f"{API}/rooms/{_quote(room_id)}/send/{_quote(event_type)}/{_quote(transaction_id)}"
        return read_text((await self.request("PUT", path, body=content)).get("event_id"))

    async def send_to_devices(self, event_type: str, body: Mapping[str, Any]) -> None:
        """Send to each device its own content: the `messages` of `body`, by user id and device id."""
        await self.request("PUT", f"{API}/sendToDevice/{_quote(event_type)}/{uuid4()}", body=body)

    async def redact_event(self, room_id: str, event_id: str, transaction_id: str) -> None:
        path = f"{API}/rooms/{_quote(room_id)}/redact/{_quote(event_id)}/{_quote(transaction_id)}"
        await self.request("PUT", path, body={})

    async def fetch_reactions(self, room_id: str, event_id: str) -> list[Any]:
        """Return reactions to a message, the newest ones first."""
        path = f"/_matrix/client/v1/rooms/{_quote(room_id)}/relations/{_quote(event_id)}/m.annotation/m.reaction"
        chunk = (await self._fetch_optional(path) or {}).get("chunk")
        return chunk if isinstance(chunk, list) else []

    async def set_typing(self, room_id: str, *, seconds: float) -> None:
        """Show that we are typing, for at most `seconds`; 0 takes it back."""
        body: dict[str, Any] = {"typing": seconds > 0}
        if seconds > 0:
            body["timeout"] = int(seconds * 1000)
        await self.request("PUT", f"{API}/rooms/{_quote(room_id)}/typing/{_quote(self.user_id)}", body=body)

    async def join_room(self, room_id: str, *, via: str | None = None) -> None:
        """Join a room, with the help of another homeserver if ours does not know the room."""
        query = {"server_name": via, "via": via} if via else None
        await self.request("POST", f"{API}/join/{_quote(room_id)}", body={}, query=query)

    async def upload(self, chunks: AsyncIterator[bytes], *, size: int, media_type: str, name: str) -> str:
        """Upload a file and return its `mxc://` address."""
        answer = await self._request(
            "POST",
            "/_matrix/media/v3/upload",
            params={"filename": name},
            content=chunks,
            headers=self._build_headers(media_type) | {"Content-Length": str(size)},
            timeout=httpx2.Timeout(TRANSFER_SECONDS, connect=CONNECT_SECONDS),
        )
        return read_text(answer.get("content_uri")) or ""

    async def download(self, file: FileReference) -> AsyncIterator[bytes]:
        """Download a file in chunks, as it is stored: an encrypted one is not decrypted here."""
        path = f"/_matrix/client/v1/media/download/{_quote(file.server)}/{_quote(file.media_id)}"
        try:
            async with self._http.stream(
                "GET",
                self.homeserver + path,
                headers=self._build_headers("application/json"),
                timeout=httpx2.Timeout(TRANSFER_SECONDS, connect=CONNECT_SECONDS),
            ) as response:
                if response.status_code != 200:
                    await response.aread()
                    await _read_answer(response.status_code, response.content)
                async for chunk in response.aiter_bytes(CHUNK_BYTES):
                    yield chunk
        except httpx2.RequestError as error:
            raise _make_failure(error) from error


def _make_failure(error: httpx2.RequestError) -> RequestFailed:
    is_sent = not isinstance(error, NOT_SENT_ERRORS)
    return RequestFailed(str(error) or type(error).__name__, may_have_arrived=is_sent)


async def _read_answer(status: int, content: bytes) -> Mapping[str, Any]:
    is_large = len(content) > LARGE_RESPONSE_BYTES
    answer = await asyncio.to_thread(parse_json_object, content) if is_large else parse_json_object(content)
    if status != 200 or answer is None:
        # A proxy in front of a homeserver that is down answers with a page.
        raise RequestRefused(status if status != 200 else 502, read_object(answer))
    return answer


def _quote(part: str) -> str:
    return quote(part, safe="")


def to_delivery_error(error: RequestError) -> DeliveryError:
    """Return what the failure of a send means for the message."""
    if not isinstance(error, RequestRefused):
        broke = say(
            "matrix.connection_homeserver_broke", "The connection to the homeserver broke: {reason}", reason=error
        )
        return SendUncertain(broke) if error.may_have_arrived else SendRetryable(_describe_outage(error))
    if error.is_rate_limit:
        return SendRetryable(
            say("matrix.asks_slower", "The homeserver asks us to send more slowly."),
            retry_after=error.retry_after,
            whole_account=True,
        )
    if error.is_bad_token:
        return SendRetryable(
            say("matrix.token_no_longer_accepted", "The homeserver no longer accepts the access token."),
            retry_after=TOKEN_RETRY_SECONDS,
            whole_account=True,
        )
    if error.may_have_arrived:
        return SendUncertain(_describe_outage(error))
    if error.code == "M_NOT_FOUND":
        return TargetUnreachable.say(
            "matrix.room_or_message_unknown",
            "The homeserver does not know this room or message: {reason}",
            reason=error,
        )
    return SendRejected.say(
        "matrix.homeserver_rejected_message", "The homeserver rejected the message: {reason}", reason=error
    )


def to_platform_error(error: RequestError) -> PlatformError:
    """Return what the failure of a request means for the account."""
    if isinstance(error, RequestRefused) and error.is_bad_token:
        return AccountRefused.say(
            "matrix.token_refused",
            "The homeserver does not accept the access token. Sign in with the account again, and set the"
            " new token as access_token or MATRIX_ACCESS_TOKEN. It said: {reason}",
            reason=error.explanation,
        )
    return ConnectionLost(_describe_outage(error))


def _describe_outage(error: RequestError) -> str:
    if isinstance(error, RequestRefused):
        return say("matrix.homeserver_problem", "The homeserver has a problem: {reason}", reason=error)
    return say("matrix.homeserver_cant_reached", "The homeserver can't be reached: {reason}", reason=error)

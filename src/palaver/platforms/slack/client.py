"""Slack's Web API, through slack-sdk's `AsyncWebClient`: the only module that sends requests to Slack.

Always true: every failure is one of Palaver's errors, and says honestly whether Slack may have acted. The SDK repeats
nothing by itself: it would post a message twice when a connection breaks.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from palaver.core.errors import ConnectionLost, InvalidInput, SendRetryable
from palaver.platforms.common.failures import RequestError
from palaver.platforms.common.http import FileFetcher
from palaver.platforms.common.send_mark import make_aiohttp_request_class, mark_before_request
from palaver.platforms.slack.failures import (
    APP_ACCESS_REFUSED,
    APP_SCOPE_MISSING,
    ApiRefusal,
    SlackUnreachable,
    make_delivery_error,
    make_platform_error,
)
from palaver.platforms.slack.outbound import build_blocks, build_fallback_text, build_metadata, disarm_broadcasts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

    from slack_sdk.web.async_slack_response import AsyncSlackResponse

    from palaver.delivery.adapter import OutgoingFile, OutgoingMessage
    from palaver.platforms.slack.manifest import SlackSettings
    from palaver.sessions.delivery import Address

    JSON = Mapping[str, Any]

CONNECT_TIMEOUT_SECONDS: Final = 10.0
ANSWER_TIMEOUT_SECONDS: Final = 30.0
UPLOAD_TIMEOUT_SECONDS: Final = 600.0
PAGE_SIZE: Final = 200

_GONE: Final = frozenset({"message_not_found", "thread_not_found"})


class SlackClient:
    def __init__(self, settings: SlackSettings) -> None:
        logging.getLogger("slack_sdk").setLevel(logging.WARNING)  # it logs whole requests and answers
        self._settings = settings
        self._api_host = (urlsplit(settings.api_url).hostname or "").lower()
        self._fetcher = FileFetcher({self._api_host})
        self._session: aiohttp.ClientSession | None = None
        self._web: AsyncWebClient | None = None
        self.is_token_doubted = asyncio.Event()  # set when a message was refused for the token

    def __repr__(self) -> str:
        return f"<SlackClient of {self._settings.api_url}>"

    async def open(self) -> None:
        """Allow requests, also again after `close`."""
        if self._session is not None:
            return
        timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        self._session = aiohttp.ClientSession(timeout=timeout, request_class=make_aiohttp_request_class())
        self._web = AsyncWebClient(
            self._settings.bot_token.get_secret_value(),
            base_url=f"{self._settings.api_url}/",
            session=self._session,
            retry_handlers=[],
        )

    async def close(self) -> None:
        session, self._session, self._web = self._session, None, None
        if session is not None:
            await session.close()

    # ---- signing in and receiving ----------------------------------------------------------------------------

    async def sign_in(self) -> tuple[JSON, frozenset[str] | None]:
        """Return our app as Slack describes it, and the scopes of its token; None if Slack does not tell them."""
        response = await self._connect("auth_test")
        scopes = response.headers.get("x-oauth-scopes")
        names = None if scopes is None else frozenset(name.strip() for name in scopes.split(",") if name.strip())
        return _read(response), names

    async def open_socket(self) -> str:
        """Return the address of a new connection for Socket Mode; it can be used once, and soon."""
        token = self._settings.app_token.get_secret_value() if self._settings.app_token else ""
        try:
            response = await self._request("apps_connections_open", app_token=token)
        except RequestError as error:
            if isinstance(error, ApiRefusal) and error.code == "missing_scope":
                raise make_platform_error(ApiRefusal("invalid_auth"), APP_SCOPE_MISSING) from error
            raise make_platform_error(error, APP_ACCESS_REFUSED) from error
        return str(response["url"])

    async def connect_socket(self, url: str) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket. Pings are left to the caller: they tell that the connection lives."""
        if self._session is None or self._web is None:
            raise ConnectionLost("The connection to Slack is closed.")
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                return await self._session.ws_connect(url, autoping=False, proxy=self._web.proxy)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # The address contains a ticket for the connection: it is not shown.
            raise ConnectionLost.say(
                "slack.socket_silent",
                "Slack does not answer at its socket ({error}).",
                error=type(error).__name__,
            ) from None

    async def find_user(self, user_id: str) -> JSON:
        return _read(await self._connect("users_info", user=user_id), "user")

    async def find_channel(self, channel_id: str) -> JSON:
        return _read(await self._connect("conversations_info", channel=channel_id), "channel")

    async def list_channels(self, max_pages: int) -> list[JSON]:
        """Return the channels and direct messages that the app is in."""
        types = "im,mpim,public_channel,private_channel"
        return await self._read_pages("channels", max_pages, "users_conversations", types=types, exclude_archived=True)

    async def list_messages(
        self, channel_id: str, oldest: float, max_pages: int, *, thread_ts: str | None = None
    ) -> list[JSON]:
        """Return the messages of a channel after a time, the newest first; of a thread its first one and the replies.

        What was written in a thread is not among the messages of its channel.
        """
        fields = {"channel": channel_id, "oldest": f"{max(0.0, oldest):.6f}", "include_all_metadata": True}
        if thread_ts is None:
            return await self._read_pages("messages", max_pages, "conversations_history", **fields)
        return await self._read_pages("messages", max_pages, "conversations_replies", ts=thread_ts, **fields)

    async def find_file(self, file_id: str) -> JSON:
        return _read(await self._connect("files_info", file=file_id), "file")

    async def download(self, file: JSON) -> AsyncIterator[bytes]:
        """Download a file that a person has sent. Our token goes to Slack's own hosts only."""
        if file.get("file_access") == "check_file_info":  # of another workspace: Slack tells the address on request
            file = await self.find_file(file["id"])
        url = file.get("url_private_download") or file.get("url_private") or ""
        host = (urlsplit(url).hostname or "").lower()
        is_own = any(host == own or host.endswith(f".{own}") for own in (self._api_host, "slack.com"))
        headers = {"Authorization": f"Bearer {self._settings.bot_token.get_secret_value()}"} if is_own else {}
        is_first = True
        async for chunk in self._fetcher.fetch(url, headers):
            is_page = chunk[:200].lstrip().lower().startswith((b"<!doctype html", b"<html"))
            if is_first and is_page and not str(file.get("mimetype", "")).startswith("text/"):
                raise InvalidInput("Slack asks to sign in for it: the app lacks the scope files:read")
            is_first = False
            yield chunk

    # ---- sending ---------------------------------------------------------------------------------------------

    async def post_message(self, message: OutgoingMessage) -> str:
        address = message.address
        with mark_before_request(message.mark_sending):
            response = await self._deliver(
                "chat_postMessage",
                channel=address.chat_id,
                thread_ts=address.thread_id,
                **_build_content(message),
                unfurl_links=False,
                unfurl_media=False,
            )
        return str(response["ts"])

    async def update_message(self, message_id: str, message: OutgoingMessage) -> None:
        fields = {"channel": message.address.chat_id, "ts": message_id, **_build_content(message)}
        await self._deliver("chat_update", is_repeatable=True, **fields)

    async def delete_message(self, address: Address, message_id: str) -> None:
        place = {"channel": address.chat_id, "ts": message_id}
        await self._deliver("chat_delete", is_repeatable=True, ignored=_GONE, **place)

    async def start_stream(self, address: Address, markdown: str, recipient: tuple[str, str] | None) -> str:
        """Send a message that Slack shows as growing; return its ts. `recipient` is a person and their workspace."""
        user_id, team_id = recipient or (None, None)
        response = await self._deliver(
            "chat_startStream",
            channel=address.chat_id,
            thread_ts=address.thread_id or "",
            markdown_text=disarm_broadcasts(markdown),
            recipient_user_id=user_id,
            recipient_team_id=team_id,
        )
        return str(response["ts"])

    async def append_stream(self, address: Address, message_id: str, markdown: str) -> None:
        text = disarm_broadcasts(markdown)
        await self._deliver("chat_appendStream", channel=address.chat_id, ts=message_id, markdown_text=text)

    async def stop_stream(self, address: Address, message_id: str) -> None:
        """Let a message grow no more; one that does not grow is no error."""
        ignored = {"message_not_in_streaming_state", *_GONE}
        place = {"channel": address.chat_id, "ts": message_id}
        await self._deliver("chat_stopStream", is_repeatable=True, ignored=ignored, **place)

    async def upload_file(self, file: OutgoingFile) -> str:
        """Upload a file that people can't see yet; return its id."""
        ticket = await self._deliver(
            "files_getUploadURLExternal", is_repeatable=True, filename=file.name, length=file.size
        )
        if self._session is None or self._web is None:
            raise SendRetryable("The connection to Slack is closed.")
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.size)}
        timeout = aiohttp.ClientTimeout(total=UPLOAD_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        try:
            async with self._session.post(
                ticket["upload_url"], data=file.read(), headers=headers, timeout=timeout, proxy=self._web.proxy
            ) as response:
                if response.status != 200:
                    raise SendRetryable.say(
                        "slack.file_not_taken",
                        "Slack did not take the file: HTTP status {status}.",
                        status=str(response.status),
                    )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise SendRetryable.say(
                "slack.upload_broke", "The upload to Slack broke off ({error}).", error=type(error).__name__
            ) from error
        return str(ticket["file_id"])

    async def share_file(self, message: OutgoingMessage, file_id: str, title: str) -> str | None:
        """Send a file that was uploaded; return the ts of its message if Slack tells it at once."""
        address = message.address
        place = {"channel_id": address.chat_id} | ({"thread_ts": address.thread_id} if address.thread_id else {})
        with mark_before_request(message.mark_sending):
            response = await self._deliver(
                "api_call",
                api_method="files.completeUploadExternal",
                params={"files": json.dumps([{"id": file_id, "title": title}]), **place},
            )
        [shared, *_] = response.get("files") or [{}]
        return find_share(shared, address.chat_id)

    async def set_status(self, address: Address, status: str) -> None:
        fields = {"channel_id": address.chat_id, "thread_ts": address.thread_id or "", "status": status}
        await self._deliver("assistant_threads_setStatus", is_repeatable=True, **fields)

    async def add_reaction(self, address: Address, message_id: str, name: str) -> None:
        fields = {"channel": address.chat_id, "timestamp": message_id, "name": name}
        await self._deliver("reactions_add", is_repeatable=True, ignored={"already_reacted"}, **fields)

    async def remove_reactions(self, address: Address, message_id: str, user_id: str) -> None:
        place = {"channel": address.chat_id, "timestamp": message_id}
        # `full`: otherwise Slack leaves users out where many have reacted.
        response = await self._deliver("reactions_get", is_repeatable=True, full=True, **place)
        for reaction in (response.get("message") or {}).get("reactions") or []:
            if user_id in reaction["users"]:
                fields = {**place, "name": reaction["name"]}
                await self._deliver("reactions_remove", is_repeatable=True, ignored={"no_reaction"}, **fields)

    async def post_ephemeral(self, address: Address, user_id: str, text: str) -> None:
        await self._deliver(
            "chat_postEphemeral",
            channel=address.chat_id,
            user=user_id,
            text=build_fallback_text(text),
            blocks=build_blocks(text),
            thread_ts=address.thread_id,
        )

    # ---- requests and their failures -------------------------------------------------------------------------

    async def _request(self, method: str, **fields: Any) -> AsyncSlackResponse:
        """Call a method of the SDK's client. Raises RequestError."""
        if self._web is None:
            raise SlackUnreachable("the connection is closed", may_have_arrived=False)
        call: Callable[..., Awaitable[AsyncSlackResponse]] = getattr(self._web, method)
        try:
            return await call(**fields)
        except SlackApiError as error:
            raise ApiRefusal.from_error(error) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise SlackUnreachable(type(error).__name__, may_have_arrived=False) from error
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, AttributeError) as error:
            reason = f"the connection broke ({type(error).__name__})"
            raise SlackUnreachable(reason, may_have_arrived=True) from error

    async def _connect(self, method: str, **fields: Any) -> AsyncSlackResponse:
        """Make a request that sends no message. Raises AccountRefused or ConnectionLost."""
        try:
            return await self._request(method, **fields)
        except RequestError as error:
            raise make_platform_error(error) from error

    async def _deliver(
        self, method: str, *, is_repeatable: bool = False, ignored: Collection[str] = (), **fields: Any
    ) -> JSON:
        """Make a request about a chat; raises a DeliveryError, unless Slack refuses with an `ignored` code."""
        try:
            return _read(await self._request(method, **fields))
        except RequestError as error:
            if isinstance(error, ApiRefusal) and error.code in ignored:
                return {}
            if isinstance(error, ApiRefusal) and error.is_about_token:
                self.is_token_doubted.set()
            raise make_delivery_error(error, is_repeatable=is_repeatable) from error

    async def _read_pages(self, field: str, max_pages: int, method: str, **fields: Any) -> list[JSON]:
        """Return the entries of some pages; wait where Slack asks for it."""
        entries: list[JSON] = []
        cursor: str | None = None
        while max_pages > 0:
            try:
                data = _read(await self._request(method, limit=PAGE_SIZE, cursor=cursor, **fields))
            except ApiRefusal as error:
                if error.wait_seconds is None:
                    raise
                await asyncio.sleep(error.wait_seconds)
                continue
            entries += data.get(field) or []
            cursor = (data.get("response_metadata") or {}).get("next_cursor") or None
            max_pages = max_pages - 1 if cursor else 0
        return entries


def _build_content(message: OutgoingMessage) -> dict[str, Any]:
    return {
        "text": build_fallback_text(message.body),
        "blocks": build_blocks(message.body, message.buttons),
        "metadata": build_metadata(message.key),
    }


def find_share(file: JSON, channel_id: str) -> str | None:
    """Return the ts of the message with which a file was sent to a channel; None if it was not."""
    for shares in (file.get("shares") or {}).values():
        for share in shares.get(channel_id) or []:
            return str(share["ts"])
    return None


def _read(response: AsyncSlackResponse, field: str | None = None) -> JSON:
    data: JSON = response.data if isinstance(response.data, dict) else {}
    return data if field is None else data[field]

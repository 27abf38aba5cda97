"""Calls Discord: the account, sending, fetching messages. The only place besides the gateway that does I/O."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import aiohttp
from discord.gateway import DiscordClientWebSocketResponse
from discord.http import HTTPClient, Route
from discord.utils import MISSING

from palaver.core.errors import InvalidInput
from palaver.core.texts import say
from palaver.delivery.adapter import AccountInfo
from palaver.platforms.common.failures import RequestError, RequestFailed
from palaver.platforms.common.http import FileFetcher
from palaver.platforms.common.send_mark import make_aiohttp_request_class
from palaver.platforms.discord.failures import (
    UNKNOWN_INTERACTION,
    RequestRefused,
    make_delivery_error,
    make_platform_error,
)
from palaver.platforms.discord.inbound import COMMAND_INTERACTION
from palaver.platforms.discord.manifest import DEFAULT_API_URL, DiscordSettings
from palaver.platforms.discord.outbound import EPHEMERAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence


log = logging.getLogger(__name__)

JSON = dict[str, Any]

CONNECT_TIMEOUT_SECONDS: Final = 15.0
ANSWER_TIMEOUT_SECONDS: Final = 30.0
UPLOAD_TIMEOUT_SECONDS: Final = 180.0
CLOSE_TIMEOUT_SECONDS: Final = 5.0  # for the other side to confirm that the socket ends
FILE_HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
MAX_GUILDS: Final = 200  # that are checked for missing permissions
INTERACTION_SECONDS: Final = 3.0  # then Discord tells the person that we did not answer
DEFERRED_REPLY: Final = 5
DEFERRED_UPDATE: Final = 6
# The flags of an application that may read messages: one for small bots, one for those that Discord has verified.
CONTENT_FLAGS: Final = (1 << 18) | (1 << 19)
ADMINISTRATOR: Final = 1 << 3
PERMISSIONS: Final = {
    1 << 10: "View Channels",
    1 << 11: "Send Messages",
    1 << 38: "Send Messages in Threads",
    1 << 16: "Read Message History",
    1 << 15: "Attach Files",
    1 << 6: "Add Reactions",
}
MAX_NAMED_SERVERS: Final = 5

NO_CONTENT_WARNING: Final = say(
    "discord.no_content_warning",
    "In servers the bot reads only messages that mention it, and not what was written before: the"
    " Message Content Intent is off. To turn it on, open"
    " https://discord.com/developers/applications, choose your application, then Bot, and turn on"
    " Message Content Intent under Privileged Gateway Intents. Press Save Changes, and test the"
    " connection again: then it has an effect.",
)
ENDPOINT_WARNING: Final = say(
    "discord.endpoint_warning",
    "Slash commands and buttons don't work: Discord sends them to another program. Open"
    " https://discord.com/developers/applications, choose your application, then General"
    " Information, and empty Interactions Endpoint URL.",
)


class DiscordClient(HTTPClient):
    """One bot's requests. Raises AccountRefused and ConnectionLost, or a DeliveryError where a chat is concerned.

    The gateway uses it, too: `request` raises RequestRefused and RequestFailed.
    """

    def __init__(self, settings: DiscordSettings) -> None:
        super().__init__(MISSING)  # the requests are made by our own session
        self.token = settings.bot_token.get_secret_value()
        self._api_url = settings.api_url
        self._session: aiohttp.ClientSession | None = None
        hosts = set() if settings.api_url == DEFAULT_API_URL else {urlsplit(settings.api_url).hostname or ""}
        self._file_hosts = FILE_HOSTS | hosts
        self._fetcher = FileFetcher(hosts)

    def open(self) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                ws_response_class=DiscordClientWebSocketResponse,
                cookie_jar=aiohttp.DummyCookieJar(),
                request_class=make_aiohttp_request_class(),
            )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def ws_connect(self, url: str, *, compress: int = 0) -> aiohttp.ClientWebSocketResponse:
        return await self._get_session().ws_connect(
            url,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_SECONDS),
            max_msg_size=0,
            autoclose=False,
            headers={"User-Agent": self.user_agent},
            compress=compress,
        )

    async def request(self, route: Route, *, form: Iterable[JSON] | None = None, **options: Any) -> Any:
        headers = {"User-Agent": self.user_agent, "Authorization": f"Bot {self.token}"}
        data: aiohttp.FormData | bytes | None = None
        if form is not None:
            data = aiohttp.FormData(quote_fields=False)  # Discord does not read escaped brackets in `files[0]`
            for fields in form:
                data.add_field(**fields)
        elif "json" in options:
            data = json.dumps(options["json"], ensure_ascii=False).encode()
            headers["Content-Type"] = "application/json"
        seconds = options.get("timeout") or (UPLOAD_TIMEOUT_SECONDS if form else ANSWER_TIMEOUT_SECONDS)
        status, payload, retry_after = await self._exchange(
            route.method,
            self._api_url + route.url.removeprefix(Route.BASE),
            headers=headers,
            data=data,
            params=options.get("params"),
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_TIMEOUT_SECONDS),
        )
        if not 200 <= status < 300:
            raise RequestRefused(status, payload, retry_after)
        try:
            return json.loads(payload) if payload else None
        except ValueError:
            raise RequestFailed("its answer is not JSON", may_have_arrived=True) from None

    async def _exchange(self, method: str, url: str, **options: Any) -> tuple[int, bytes, str | None]:
        try:
            async with self._get_session().request(method, url, **options) as response:
                return response.status, await response.read(), response.headers.get("Retry-After")
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise RequestFailed(_describe(error), may_have_arrived=False) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise RequestFailed(_describe(error), may_have_arrived=True) from None

    def _get_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RequestFailed("the connection is closed", may_have_arrived=False)
        return self._session

    async def load_account(self) -> tuple[JSON, JSON, list[JSON]]:
        """Return the bot as a user, its application, and the servers that it is in."""
        user = await self._call("GET", "/users/@me")
        application = await self._call("GET", "/applications/@me")
        return user, application, await self._call("GET", "/users/@me/guilds", params={"limit": str(MAX_GUILDS)})

    async def set_commands(self, application_id: str, commands: Sequence[JSON]) -> None:
        await self._call("PUT", f"/applications/{application_id}/commands", json=list(commands))

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        try:
            return await self._request(method, path, **options)
        except RequestError as error:
            raise make_platform_error(error) from None

    async def fetch_channel(self, channel_id: str) -> JSON:
        """Return a channel. Raises RequestRefused if the bot can't see it."""
        channel: JSON = await self._request("GET", f"/channels/{channel_id}")
        return channel

    async def list_messages(self, channel_id: str, *, before: str | None, limit: int) -> list[JSON]:
        """Return messages of a channel, the newest first. Raises RequestRefused if the bot can't read it."""
        parameters = {"limit": str(limit)} | ({"before": before} if before else {})
        found: list[JSON] = await self._request("GET", f"/channels/{channel_id}/messages", params=parameters)
        return found

    async def download(self, url: str) -> AsyncIterator[bytes]:
        if (urlsplit(url).hostname or "").lower() not in self._file_hosts:
            raise InvalidInput("its address is not one of Discord")
        async for chunk in self._fetcher.fetch(url):
            yield chunk

    async def defer(self, interaction: JSON) -> bool:
        """Tell Discord at once that a command or a press has arrived; return whether that was in time."""
        is_command = interaction["type"] == COMMAND_INTERACTION
        answer: JSON = {"type": DEFERRED_REPLY if is_command else DEFERRED_UPDATE}
        if is_command:
            answer["data"] = {"flags": EPHEMERAL}
        path = f"/interactions/{interaction['id']}/{quote(interaction['token'], safe='')}/callback"
        try:
            await self._request("POST", path, json=answer, timeout=INTERACTION_SECONDS)
        except RequestError as error:
            is_late = isinstance(error, RequestRefused) and error.code == UNKNOWN_INTERACTION
            name = "discord_interaction_late" if is_late else "discord_interaction_not_deferred"
            log.info(name, extra={"reason": str(error)})
            return isinstance(error, RequestFailed)  # then it may have arrived
        return True

    async def answer_interaction(
        self, method: str, application_id: str, token: str, rest: str = "", **options: Any
    ) -> None:
        """Change what a person sees of a command or a press."""
        try:
            await self._request(method, f"/webhooks/{application_id}/{quote(token, safe='')}{rest}", **options)
        except RequestError as error:
            log.info("discord_interaction_not_answered", extra={"reason": str(error)})

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        return await self.request(Route(method, path), **options)

    async def deliver(self, method: str, path: str, *, is_repeatable: bool = False, **options: Any) -> Any:
        """Make a request about a chat; raises a DeliveryError."""
        try:
            return await self._request(method, path, **options)
        except RequestError as error:
            raise make_delivery_error(error, is_repeatable=is_repeatable) from error


def _describe(error: Exception) -> str:
    """Return the reason in words, without the address, which may hold the token of an interaction."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name can't be resolved. Check the network connection of this machine"
    if isinstance(error, aiohttp.ClientSSLError):
        return "the encrypted connection failed"
    if isinstance(error, aiohttp.ClientConnectorError):
        is_refused = isinstance(error.os_error, ConnectionRefusedError)
        return "the connection was refused" if is_refused else "no connection could be made"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return "the connection broke"


def has_content_intent(application: JSON) -> bool:
    """Return whether the bot may read messages that do not mention it."""
    return bool(application.get("flags", 0) & CONTENT_FLAGS)


def describe_account(user: JSON, application: JSON, guilds: Sequence[JSON]) -> AccountInfo:
    """Return the bot's name, and what is missing."""
    warnings = []
    if not has_content_intent(application):
        warnings.append(NO_CONTENT_WARNING)
    if application.get("interactions_endpoint_url"):
        warnings.append(ENDPOINT_WARNING)
    invite = (  # to a server, with the permissions that it needs
        f"https://discord.com/oauth2/authorize?client_id={application['id']}&scope=bot+applications.commands"
        f"&permissions={sum(PERMISSIONS)}"
    )
    if not guilds:
        warnings.append(
            say(
                "discord.no_server",
                "The bot is in no server yet, and people can only write to it if they share one with it. Open"
                " this link in a browser, choose a server, and press Authorize: {link}",
                link=invite,
            )
        )
    granted = [(guild["name"], int(guild["permissions"])) for guild in guilds]
    lacking = [(name, bits) for name, bits in granted if not bits & ADMINISTRATOR and ~bits & sum(PERMISSIONS)]
    for name, bits in lacking[:MAX_NAMED_SERVERS]:
        warnings.append(
            say(
                "discord.lacks_permissions",
                'In the server "{server}" the bot lacks: {permissions}. Let an administrator open Server'
                " Settings, then Roles, choose the role of the bot, and turn these on under Permissions.",
                server=name,
                permissions=", ".join(named for bit, named in PERMISSIONS.items() if not bits & bit),
            )
        )
    if len(lacking) > MAX_NAMED_SERVERS:
        warnings.append(
            say(
                "discord.more_servers_lack_permissions",
                "It lacks permissions in {count} more servers.",
                count=len(lacking) - MAX_NAMED_SERVERS,
            )
        )
    places = f"In {len(guilds)} server{'' if len(guilds) == 1 else 's'}"
    details = (places, say("discord.add_server", "Add it to a server: {link}", link=invite))
    return AccountInfo(user_id=user["id"], name=f"@{user['username']}", warnings=tuple(warnings), details=details)

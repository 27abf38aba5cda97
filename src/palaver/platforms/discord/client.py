"""Calls Discord: the account, sending, fetching messages. The only place besides the gateway that does I/O."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

from discord.http import Route

from palaver.core.errors import InvalidInput, SendRejected
from palaver.platforms.common.fetching import FileFetcher
from palaver.platforms.discord.failures import (
    NO_HISTORY_FOR_REPLY,
    UNKNOWN_INTERACTION,
    UNKNOWN_MESSAGE,
    RequestFailed,
    RequestRefused,
    make_delivery_error,
    make_platform_error,
)
from palaver.platforms.discord.http import DiscordHttp
from palaver.platforms.discord.inbound import COMMAND_INTERACTION
from palaver.platforms.discord.outbound import EPHEMERAL, build_edit, build_message, build_press_answer, get_channel_id
from palaver.platforms.discord.settings import DEFAULT_API_URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from palaver.delivery.adapter import OutgoingFile, OutgoingMessage
    from palaver.platforms.discord.settings import DiscordSettings
    from palaver.sessions.delivery import Address

log = logging.getLogger(__name__)

FILE_HOSTS: Final = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
MAX_GUILDS: Final = 200  # that are checked for missing permissions
INTERACTION_SECONDS: Final = 3.0  # then Discord tells the person that we did not answer
DEFERRED_REPLY: Final = 5
DEFERRED_UPDATE: Final = 6

JSON = dict[str, Any]
T = TypeVar("T")


class DiscordClient:
    """One bot's requests. Raises AccountRefused and ConnectionLost, or a DeliveryError where a chat is concerned."""

    def __init__(self, settings: DiscordSettings) -> None:
        self._settings = settings
        self._http: DiscordHttp | None = None
        hosts = set() if settings.api_url == DEFAULT_API_URL else {urlsplit(settings.api_url).hostname or ""}
        self._file_hosts = FILE_HOSTS | hosts
        self._fetcher = FileFetcher(hosts)

    @property
    def http(self) -> DiscordHttp:
        if self._http is None:
            raise RequestFailed("the connection is closed", was_sent=False)
        return self._http

    def open(self) -> None:
        if self._http is None:
            self._http = DiscordHttp(self._settings.api_url, self._settings.bot_token.get_secret_value())
            self._http.open()

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.close()

    # ---- the account -----------------------------------------------------------------------------------------

    async def get_user(self) -> JSON:
        user: JSON = await self._call("GET", "/users/@me")
        return user

    async def get_application(self) -> JSON:
        application: JSON = await self._call("GET", "/applications/@me")
        return application

    async def list_guilds(self) -> list[JSON]:
        guilds: list[JSON] = await self._call("GET", "/users/@me/guilds", params={"limit": str(MAX_GUILDS)})
        return guilds

    async def set_commands(self, application_id: str, commands: Sequence[JSON]) -> None:
        """Replace the slash commands of the bot."""
        await self._call("PUT", f"/applications/{application_id}/commands", json=list(commands))

    async def _call(self, method: str, path: str, **options: Any) -> Any:
        try:
            return await self._request(method, path, **options)
        except (RequestRefused, RequestFailed) as error:
            raise make_platform_error(error) from None

    # ---- receiving -------------------------------------------------------------------------------------------

    async def get_channel(self, channel_id: str) -> JSON:
        """Return a channel. Raises RequestRefused if the bot can't see it."""
        channel: JSON = await self._request("GET", f"/channels/{channel_id}")
        return channel

    async def list_messages(self, channel_id: str, *, before: str | None, limit: int) -> list[JSON]:
        """Return messages of a channel, the newest first. Raises RequestRefused if the bot can't read it."""
        parameters = {"limit": str(limit)} | ({"before": before} if before else {})
        found: list[JSON] = await self._request("GET", f"/channels/{channel_id}/messages", params=parameters)
        return found

    async def download(self, url: str) -> AsyncIterator[bytes]:
        """Download a file that a person has sent."""
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
        except (RequestRefused, RequestFailed) as error:
            is_late = isinstance(error, RequestRefused) and error.code == UNKNOWN_INTERACTION
            name = "discord_interaction_late" if is_late else "discord_interaction_not_deferred"
            log.info(name, extra={"reason": str(error)})
            return isinstance(error, RequestFailed)  # then it may have arrived
        return True

    async def remove_placeholder(self, application_id: str, token: str) -> None:
        """Remove the sign that a command is worked on: its reply is a message of its own."""
        path = f"/webhooks/{application_id}/{quote(token, safe='')}/messages/@original"
        await self._tell_person("DELETE", path)

    async def answer_press(self, application_id: str, token: str, text: str) -> None:
        """Show a text only to the person who has pressed a button."""
        path = f"/webhooks/{application_id}/{quote(token, safe='')}"
        await self._tell_person("POST", path, json=build_press_answer(text))

    async def _tell_person(self, method: str, path: str, **options: Any) -> None:
        try:
            await self._request(method, path, **options)
        except (RequestRefused, RequestFailed) as error:
            log.info("discord_interaction_not_answered", extra={"reason": str(error)})

    # ---- sending ---------------------------------------------------------------------------------------------

    async def send(self, message: OutgoingMessage) -> str:
        """Send a text or a file; return the id of the message."""
        fields = build_message(message)
        try:
            return await self._send(message, fields)
        except SendRejected as error:
            if not (_has_code(error, NO_HISTORY_FOR_REPLY) and fields.pop("message_reference", None)):
                raise
        return await self._send(message, fields)

    async def _send(self, message: OutgoingMessage, fields: JSON) -> str:
        path = f"/channels/{get_channel_id(message.address)}/messages"
        body = {"form": await _build_upload(fields, message.file)} if message.file else {"json": fields}
        sent = await self._deliver(self._request("POST", path, **body))
        return str(sent["id"])

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        path = _build_message_path(message.address, message_id)
        await self._deliver(self._request("PATCH", path, json=build_edit(message)), is_repeatable=True)

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message; one that no longer exists is no error."""
        try:
            await self._deliver(self._request("DELETE", _build_message_path(address, message_id)), is_repeatable=True)
        except SendRejected as error:
            if not _has_code(error, UNKNOWN_MESSAGE):
                raise

    async def send_typing(self, address: Address) -> None:
        path = f"/channels/{get_channel_id(address)}/typing"
        await self._deliver(self._request("POST", path), is_repeatable=True)

    async def add_reaction(self, address: Address, message_id: str, emoji: str) -> None:
        path = f"{_build_message_path(address, message_id)}/reactions/{quote(emoji, safe='')}/@me"
        await self._deliver(self._request("PUT", path), is_repeatable=True)

    async def remove_reactions(self, address: Address, message_id: str) -> None:
        """Take back all our reactions to a message."""
        path = _build_message_path(address, message_id)
        message: JSON = await self._deliver(self._request("GET", path), is_repeatable=True)
        for reaction in message.get("reactions", ()):
            if reaction.get("me"):
                emoji = reaction["emoji"]
                name = f"{emoji['name']}:{emoji['id']}" if emoji.get("id") else emoji["name"]
                removal = self._request("DELETE", f"{path}/reactions/{quote(name, safe='')}/@me")
                await self._deliver(removal, is_repeatable=True)

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        return await self.http.request(Route(method, path), **options)

    @staticmethod
    async def _deliver(call: Awaitable[T], *, is_repeatable: bool = False) -> T:
        """Make a request about a chat; raises a DeliveryError."""
        try:
            return await call
        except (RequestRefused, RequestFailed) as error:
            raise make_delivery_error(error, is_repeatable=is_repeatable) from error


def _has_code(error: SendRejected, code: int) -> bool:
    """Whether Discord has refused a request with this error code."""
    return isinstance(error.__cause__, RequestRefused) and error.__cause__.code == code


def _build_message_path(address: Address, message_id: str) -> str:
    if not (message_id.isascii() and message_id.isdigit()):
        raise SendRejected("There is no such message on Discord: a slash command is none.")
    return f"/channels/{get_channel_id(address)}/messages/{message_id}"


async def _build_upload(fields: JSON, file: OutgoingFile) -> list[JSON]:
    content = b"".join([chunk async for chunk in file.read()])
    return [
        {"name": "payload_json", "value": json.dumps(fields), "content_type": "application/json"},
        {"name": "files[0]", "value": content, "filename": file.name, "content_type": file.media_type},
    ]

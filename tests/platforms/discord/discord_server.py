"""Discord on loopback, REST and gateway. It checks everything against Discord's published types, and fails on demand.

Requests are checked before they are answered, events before they are sent. What does not match is answered with an
error and listed in `problems`; the fixture fails the test for it. Beyond the types it behaves like Discord where
adapters get it wrong: a nonce is recognized, sessions can be resumed only while it keeps them, what a bot missed
otherwise is in the history of a channel alone, direct chats are not listed, an interaction is to be answered in time.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self

from .discord_api import (
    BAD_GATEWAY,
    INVALID_BODY,
    LATE_INTERACTION,
    ROUTES,
    UNAUTHORIZED,
    UNKNOWN_CHANNEL,
    ApiRequest,
    Fault,
    Interaction,
    Refused,
    check_limits,
    number_components,
    read_body,
    remove_nonce,
    to_snake_case,
)
from .discord_data import (
    ADA,
    ADA_DM_ID,
    ALL_PERMISSIONS,
    APPLICATION_ID,
    BEN,
    BEN_DM_ID,
    BOT,
    BOT_ID,
    FORUM_ID,
    GENERAL_ID,
    GUILD_ID,
    HIDDEN_ID,
    JSON,
    TOKEN,
    format_now,
    make_application,
    make_attachment,
    make_channel,
    make_direct,
    make_guild,
    make_member,
    make_message,
    make_thread,
)
from .discord_gateway import GatewaySide
from .discord_schemas import list_problems

if TYPE_CHECKING:
    from aiohttp import web

FIRST_SNOWFLAKE_MS = 1_420_070_400_000
MENTION = f"<@{BOT_ID}>"


class DiscordServer:
    """The server; use it as a context manager. Ada and Ben share the server "Engines" with the bot."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.requests: list[ApiRequest] = []
        self.application = make_application()
        self.guild_permissions = ALL_PERMISSIONS
        self.guild_count = 1
        self.session_starts_left = 1000
        self.is_revoked = False
        self.commands: list[JSON] = []
        self.typing: list[str] = []  # the channels in which the bot types
        self.files: dict[str, bytes] = {}
        self.sends_files = asyncio.Event()  # while it is not set, downloads wait
        self.sends_files.set()
        self.interactions: dict[str, Interaction] = {}  # by token
        self.messages: dict[str, dict[str, JSON]] = defaultdict(dict)  # channel → id → message
        self.channels: dict[str, JSON] = {
            GENERAL_ID: make_channel(GENERAL_ID, "general"),
            FORUM_ID: make_channel(FORUM_ID, "ideas", type=15, available_tags=[], default_reaction_emoji=None)
            | {"default_sort_order": None, "default_forum_layout": 0},
            HIDDEN_ID: make_channel(HIDDEN_ID, "secrets"),
            ADA_DM_ID: make_direct(ADA_DM_ID, ADA),
            BEN_DM_ID: make_direct(BEN_DM_ID, BEN),
        }
        self.gateway = GatewaySide(self)
        self.url = ""
        self._port = 0
        self._nonces: dict[str, JSON] = {}
        self._last_snowflake = 0
        self.channels_without_history: set[str] = set()  # Discord fails to return their messages
        self._faults: defaultdict[str, list[Fault | None]] = defaultdict(list)
        self._runner: web.AppRunner | None = None
        self._listeners: list[int] = []  # the sockets that accept connections

    async def __aenter__(self) -> Self:
        from aiohttp import web

        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/gateway/", self.gateway.serve)
        app.router.add_get("/files/{file_id}/{name}", self._send_file)
        app.router.add_route("*", "/api/v10/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        assert isinstance(site._server, asyncio.Server)
        self._listeners = [listener.fileno() for listener in site._server.sockets]
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}/api/v10"
        self.gateway.url = f"ws://127.0.0.1:{self._port}/gateway/"
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self._runner is not None
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
        self._listeners = []
        for _ in range(5):
            await asyncio.sleep(0)  # asyncio would never close a connection that it was just accepting
        self.gateway.cut()
        await self._runner.cleanup()

    # ---- what people do --------------------------------------------------------------------------------------

    def say(
        self, text: str, *, channel_id: str = ADA_DM_ID, author: JSON = ADA, is_sent: bool = True, **fields: Any
    ) -> JSON:
        """Write a message as a person; return it. In a server, a mention of the bot in the text is one."""
        channel = self.channels[channel_id]
        if MENTION in text:
            fields.setdefault("mentions", [BOT])
        message = make_message(self.make_id(), channel_id, author, text, **fields)
        self.messages[channel_id][message["id"]] = message
        channel["last_message_id"] = message["id"]
        if is_sent:
            self.send_created(message)
        return message

    def send_created(self, message: JSON) -> None:
        """Report a message to the bot, once more if it was reported before."""
        mentions = [user | {"member": make_member()} for user in message["mentions"]]
        self.dispatch("MESSAGE_CREATE", self._add_place(message | {"mentions": mentions}, message["author"]))

    def edit(self, message: JSON, text: str) -> None:
        message |= {"content": text, "edited_timestamp": format_now()}
        self.dispatch("MESSAGE_UPDATE", self._add_place(message, message["author"]))

    def delete(self, message: JSON) -> None:
        del self.messages[message["channel_id"]][message["id"]]
        self.dispatch("MESSAGE_DELETE", self._add_place({"id": message["id"], "channel_id": message["channel_id"]}))

    def react(
        self, message_id: str, channel_id: str, emoji: JSON, *, user: JSON = ADA, is_removed: bool = False
    ) -> None:
        fields = {"user_id": user["id"], "message_id": message_id, "channel_id": channel_id, "emoji": emoji}
        fields |= {"burst": False, "type": 0}
        placed = self._add_place(fields)
        if not is_removed and "guild_id" in placed:
            placed["member"] = make_member(user)
        self.dispatch("MESSAGE_REACTION_REMOVE" if is_removed else "MESSAGE_REACTION_ADD", placed)

    def call_command(
        self, name: str, text: str | None = None, *, channel_id: str = ADA_DM_ID, **more: Any
    ) -> Interaction:
        options = [] if text is None else [{"type": 3, "name": "text", "value": text}]
        data: JSON = {"id": self.make_id(), "name": name, "type": 1}
        return self._interact(2, data | ({"options": options} if options else {}), channel_id, **more)

    def press(self, message_id: str, label: str, *, channel_id: str = ADA_DM_ID) -> Interaction:
        message = self.messages[channel_id][message_id]
        [data] = [
            button["custom_id"]
            for row in message.get("components", ())
            for button in row["components"]
            if button["label"] == label
        ]
        return self._interact(3, {"custom_id": data, "component_type": 2}, channel_id, message=message)

    def start_thread(self, name: str, *, parent_id: str = GENERAL_ID) -> str:
        """Start a thread, or a post in a forum; return its id."""
        thread = make_thread(self.make_id(), name, parent_id)
        self.channels[thread["id"]] = thread
        self.dispatch("THREAD_CREATE", thread | {"newly_created": True})
        return str(thread["id"])

    def attach(self, name: str, content: bytes, **fields: Any) -> JSON:
        """Upload a file as a person; return the attachment for a message."""
        file_id = self.make_id()
        self.files[file_id] = content
        url = f"{self.url.removesuffix('/api/v10')}/files/{file_id}/{name}"
        return make_attachment(file_id, name, url, len(content), **fields)

    # ---- for tests -------------------------------------------------------------------------------------------

    def fail(self, route: str, *faults: Fault | None) -> None:
        """Let the next requests to a route fail; None lets one pass."""
        self._faults[route] += faults

    def has_pending_fault(self, route: str) -> bool:
        """Whether a fault still waits for the next request to a route."""
        return bool(self._faults[route])

    def list_requests(self, *routes: str) -> list[ApiRequest]:
        return [request for request in self.requests if request.route in routes]

    def list_own(self, channel_id: str) -> list[JSON]:
        """Return the messages of the bot in a channel, the oldest first."""
        return [each for each in self.messages[channel_id].values() if each["author"]["id"] == BOT_ID]

    def list_texts(self, channel_id: str) -> list[str]:
        return [message["content"] for message in self.list_own(channel_id)]

    def list_placeholders(self) -> list[Interaction]:
        return [each for each in self.interactions.values() if each.has_placeholder]

    def make_id(self) -> str:
        now = (int(time.time() * 1000) - FIRST_SNOWFLAKE_MS) << 22
        self._last_snowflake = max(self._last_snowflake + 1, now)
        return str(self._last_snowflake)

    def dispatch(self, name: str, data: JSON) -> None:
        self.gateway.dispatch(name, data)

    def list_guilds(self) -> list[JSON]:
        """Return the servers as the gateway reports them."""
        channels = [each for each in self.channels.values() if each["type"] in {0, 15}]
        threads = [
            each for each in self.channels.values() if each["type"] == 11 and not each["thread_metadata"]["archived"]
        ]
        return [make_guild(channels, threads)] if self.guild_count else []

    def _add_place(self, fields: JSON, author: JSON | None = None) -> JSON:
        channel = self.channels[fields["channel_id"]]
        if "guild_id" not in channel:
            return fields
        return fields | {"guild_id": channel["guild_id"]} | ({"member": make_member()} if author else {})

    def _interact(self, kind: int, data: JSON, channel_id: str, **more: Any) -> Interaction:
        channel = self.channels[channel_id]
        is_direct = "guild_id" not in channel
        place = {name: channel[name] for name in ("id", "type", "name", "parent_id") if channel.get(name) is not None}
        fields: JSON = {
            "id": self.make_id(),
            "application_id": APPLICATION_ID,
            "type": kind,
            "data": data,
            "token": f"interaction-token-{self.make_id()}",
            "version": 1,
            "channel_id": channel_id,
            "channel": channel | {"flags": 0} if is_direct else place,
            "locale": "en-US",
            "app_permissions": ALL_PERMISSIONS,
            "entitlements": [],
            "authorizing_integration_owners": {"0": GUILD_ID},
            "attachment_size_limit": 10 * 1024 * 1024,
            **more,
        }
        if is_direct:
            fields["user"] = ADA
        else:
            fields |= {"guild_id": GUILD_ID, "member": make_member(ADA, permissions=ALL_PERMISSIONS)}
        interaction = self.interactions[fields["token"]] = Interaction(fields)
        self.dispatch("INTERACTION_CREATE", fields)
        return interaction

    # ---- requests --------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        if self.is_revoked or request.headers.get("Authorization") != f"Bot {TOKEN}":
            return UNAUTHORIZED.response
        try:
            arrived = await self._read_request(request)
        except Refused as error:
            self.problems.append(str(error))
            return error.fault.response
        self.requests.append(arrived)
        faults = self._faults[arrived.route]
        fault = faults.pop(0) if faults else None
        if fault is not None and not fault.acts_first:
            return self._fail(request, fault)
        try:
            result = getattr(self, f"_{to_snake_case(arrived.route)}")(arrived)
        except Refused as error:
            return error.fault.response
        if fault is not None:
            return self._fail(request, fault)
        return web.Response(status=204) if result is None else web.json_response(result)

    async def _read_request(self, request: web.Request) -> ApiRequest:
        path = f"/{request.match_info['path']}"
        found = [
            (name, match, schema)
            for name, method, pattern, schema in ROUTES
            if method == request.method and (match := re.fullmatch(pattern, path))
        ]
        if not found:
            raise Refused(Fault(404, {"message": f"404: {request.method} {path}", "code": 0}))
        [(name, match, schema)] = found
        body, files = await read_body(request)
        problems = list_problems(schema, body) if schema else [] if body is None else [f"{name}: a body"]
        query = dict(request.query)
        if name == "listMessages":
            problems += list_problems("ListMessages", query | {"limit": int(query["limit"])})
        if problems:
            raise Refused(Fault(400, {"message": "; ".join(problems), "code": 50035}))
        return ApiRequest(name, match.groups(), body, query, files)

    @staticmethod
    def _fail(request: web.Request, fault: Fault) -> web.Response:
        from aiohttp import web

        if fault.cuts:
            assert request.transport is not None
            request.transport.abort()
        return fault.response if fault.status else web.Response()

    def _get_user(self, _request: ApiRequest) -> JSON:
        return self._check("User", BOT)

    def _get_application(self, _request: ApiRequest) -> JSON:
        return self._check("Application", self.application)

    def _list_guilds(self, _request: ApiRequest) -> list[JSON]:
        guild: JSON = {"id": GUILD_ID, "name": "Engines", "icon": None, "banner": None, "owner": False, "features": []}
        guilds = [guild | {"permissions": self.guild_permissions}] * self.guild_count
        self.problems += list_problems("Guilds", guilds)
        return guilds

    def _get_gateway(self, _request: ApiRequest) -> JSON:
        limit = {"total": 1000, "remaining": self.session_starts_left, "reset_after": 600_000, "max_concurrency": 1}
        return self._check("GatewayBot", {"url": self.gateway.url, "shards": 1, "session_start_limit": limit})

    def _put_commands(self, request: ApiRequest) -> list[JSON]:
        for command in request.body:
            if not re.fullmatch(r"[-_a-z0-9]{1,32}", command["name"]) or not 1 <= len(command["description"]) <= 100:
                raise Refused(INVALID_BODY)
        self.commands = request.body
        return self.commands

    def _get_channel(self, request: ApiRequest) -> JSON:
        return self._check("Channel", self._find_channel(request.path[0]))

    def _list_messages(self, request: ApiRequest) -> list[JSON]:
        channel_id = request.path[0]
        if channel_id in self.channels_without_history:
            raise Refused(BAD_GATEWAY)
        self._find_channel(channel_id)
        before, limit = int(request.query.get("before", 2**63)), int(request.query["limit"])
        found = [each for number, each in self.messages[channel_id].items() if int(number) < before]
        return [remove_nonce(each) for each in found[::-1][:limit]]

    def _create_message(self, request: ApiRequest) -> JSON:
        channel_id, body = request.path[0], request.body
        self._find_channel(channel_id)
        if not body.get("content") and not request.files:
            raise Refused(Fault(400, {"message": "Cannot send an empty message", "code": 50006}))
        check_limits(body, request.files)
        nonce = body.get("nonce")
        if nonce and body.get("enforce_nonce") and nonce in self._nonces:
            return self._nonces[nonce]
        attachments = [self.attach(name, content) for name, content in request.files]
        message = make_message(
            self.make_id(),
            channel_id,
            BOT,
            body.get("content", ""),
            attachments=attachments,
            flags=body.get("flags", 0),
            components=number_components(body.get("components", [])),
            nonce=nonce,
        )
        self._check("Message", message)
        self.messages[channel_id][message["id"]] = self._nonces[nonce] = message
        self.channels[channel_id]["last_message_id"] = message["id"]
        self.dispatch("MESSAGE_CREATE", self._add_place(message, BOT))
        return message

    def _get_message(self, request: ApiRequest) -> JSON:
        return self._find_message(request)

    def _edit_message(self, request: ApiRequest) -> JSON:
        message = self._find_message(request)
        check_limits(request.body, ())
        message |= {"content": request.body["content"], "edited_timestamp": format_now()}
        message["components"] = number_components(request.body.get("components", []))
        return self._check("Message", message)

    def _delete_message(self, request: ApiRequest) -> None:
        message = self._find_message(request)
        self.delete(message)

    def _show_typing(self, request: ApiRequest) -> None:
        self._find_channel(request.path[0])
        self.typing.append(request.path[0])

    def _add_reaction(self, request: ApiRequest) -> None:
        message = self._find_message(request)
        count = {"burst": 0, "normal": 1}
        reaction = {"count": 1, "me": True, "me_burst": False, "burst_colors": [], "count_details": count}
        message.setdefault("reactions", []).append(reaction | {"emoji": {"id": None, "name": request.path[2]}})

    def _remove_reaction(self, request: ApiRequest) -> None:
        message = self._find_message(request)
        message["reactions"] = [each for each in message["reactions"] if each["emoji"]["name"] != request.path[2]]

    def _answer_interaction(self, request: ApiRequest) -> None:
        interaction = self._find_interaction(request.path[1])
        if interaction.is_acknowledged:
            raise Refused(Fault(400, {"message": "Interaction has already been acknowledged.", "code": 40060}))
        interaction.is_acknowledged = True
        interaction.has_placeholder = request.body["type"] == 5

    def _follow_up(self, request: ApiRequest) -> JSON:
        interaction = self._find_interaction(request.path[1])
        if not request.body["flags"] & 64:
            raise Refused(INVALID_BODY)
        interaction.answers.append(request.body["content"])
        interaction.has_placeholder = False  # the first answer takes its place
        return make_message(self.make_id(), interaction.fields["channel_id"], BOT, request.body["content"], flags=64)

    def _delete_original(self, request: ApiRequest) -> None:
        interaction = self._find_interaction(request.path[1])
        if interaction.fields["type"] != 2:
            self.problems.append("The message with the button was deleted.")
        interaction.has_placeholder = False

    def _find_interaction(self, token: str) -> Interaction:
        if token not in self.interactions:
            raise Refused(LATE_INTERACTION)
        return self.interactions[token]

    def _find_channel(self, channel_id: str) -> JSON:
        if channel_id == HIDDEN_ID:
            raise Refused(Fault(403, {"message": "Missing Access", "code": 50001}))
        if channel_id not in self.channels:
            raise Refused(UNKNOWN_CHANNEL)
        return self.channels[channel_id]

    def _find_message(self, request: ApiRequest) -> JSON:
        self._find_channel(request.path[0])
        message = self.messages[request.path[0]].get(request.path[1])
        if message is None:
            raise Refused(Fault(404, {"message": "Unknown Message", "code": 10008}))
        return message

    def _check(self, name: str, value: JSON) -> JSON:
        self.problems += list_problems(name, value)
        return value

    async def _send_file(self, request: web.Request) -> web.Response:
        from aiohttp import web

        await self.sends_files.wait()
        content = self.files.get(request.match_info["file_id"])
        return web.Response(status=404) if content is None else web.Response(body=content)

"""The REST API of the local Discord server: its routes, its refusals, and what it checks besides published types."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import web

    from .discord_data import JSON


@dataclass(frozen=True)
class Fault:
    """How the next request to a route fails."""

    status: int = 0
    body: JSON | None = None  # None: an answer that is not from the API itself
    acts_first: bool = False  # it is done all the same
    cuts: bool = False  # the connection breaks instead of an answer

    @property
    def response(self) -> web.Response:
        from aiohttp import web  # slow to import, and every worker imports this file

        if self.body is None:
            return web.Response(status=self.status or 500, text="<html>error</html>", content_type="text/html")
        return web.json_response(self.body, status=self.status)


LOSE_ANSWER = Fault(acts_first=True, cuts=True)
CUT_LINE = Fault(cuts=True)
BAD_GATEWAY = Fault(502)
UNKNOWN_CHANNEL = Fault(404, {"message": "Unknown Channel", "code": 10003})
NO_PERMISSION = Fault(403, {"message": "Missing Permissions", "code": 50013})
NO_HISTORY = Fault(400, {"message": "Cannot reply without permission to read message history", "code": 160002})
BLOCKED = Fault(403, {"message": "Cannot send messages to this user", "code": 50007})
INVALID_BODY = Fault(400, {"message": "Invalid Form Body", "code": 50035, "errors": {}})
UNAUTHORIZED = Fault(401, {"message": "401: Unauthorized", "code": 0})
LATE_INTERACTION = Fault(404, {"message": "Unknown interaction", "code": 10062})


def limit_rate(seconds: float, *, is_global: bool = False) -> Fault:
    return Fault(429, {"message": "You are being rate limited.", "retry_after": seconds, "global": is_global})


class Refused(Exception):
    """A request that Discord would refuse."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault.body))
        self.fault = fault


@dataclass(frozen=True)
class ApiRequest:
    """A request that has arrived."""

    route: str
    path: tuple[str, ...]  # the ids and other parts of the path that vary
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    files: tuple[tuple[str, bytes], ...] = ()  # names and contents


@dataclass
class Interaction:
    """A command that was called, or a button that was pressed."""

    fields: JSON
    is_acknowledged: bool = False
    has_placeholder: bool = False
    answers: list[str] = field(default_factory=list)  # that only the person sees


# The name of a route, its method and path, and the published type of its body.
ROUTES = [
    ("getUser", "GET", r"/users/@me", None),
    ("getApplication", "GET", r"/applications/@me", None),
    ("listGuilds", "GET", r"/users/@me/guilds", None),
    ("getGateway", "GET", r"/gateway/bot", None),
    ("putCommands", "PUT", r"/applications/(\d+)/commands", "PutCommands"),
    ("getChannel", "GET", r"/channels/(\d+)", None),
    ("listMessages", "GET", r"/channels/(\d+)/messages", None),
    ("createMessage", "POST", r"/channels/(\d+)/messages", "CreateMessage"),
    ("getMessage", "GET", r"/channels/(\d+)/messages/(\d+)", None),
    ("editMessage", "PATCH", r"/channels/(\d+)/messages/(\d+)", "EditMessage"),
    ("deleteMessage", "DELETE", r"/channels/(\d+)/messages/(\d+)", None),
    ("showTyping", "POST", r"/channels/(\d+)/typing", None),
    ("addReaction", "PUT", r"/channels/(\d+)/messages/(\d+)/reactions/(.+)/@me", None),
    ("removeReaction", "DELETE", r"/channels/(\d+)/messages/(\d+)/reactions/(.+)/@me", None),
    ("answerInteraction", "POST", r"/interactions/(\d+)/([^/]+)/callback", "InteractionCallback"),
    ("followUp", "POST", r"/webhooks/(\d+)/([^/]+)", "InteractionFollowup"),
    ("deleteOriginal", "DELETE", r"/webhooks/(\d+)/([^/]+)/messages/@original", None),
]


async def read_body(request: web.Request) -> tuple[Any, tuple[tuple[str, bytes], ...]]:
    from aiohttp import BodyPartReader

    if request.content_type == "application/json":
        return await request.json(), ()
    if not request.content_type.startswith("multipart/"):
        return None, ()
    body, files = None, []
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.name == "payload_json":
            body = json.loads(await part.text())
        elif re.fullmatch(r"files\[\d\]", part.name or ""):
            files.append((part.filename or "", bytes(await part.read())))
    return body, tuple(files)


def check_limits(body: JSON, files: tuple[tuple[str, bytes], ...]) -> None:
    buttons = [button for row in body.get("components", ()) for button in row["components"]]
    is_long = len(body.get("content") or "") > 2000 or len(body.get("nonce") or "") > 25
    is_bad_button = any(len(each["custom_id"]) > 100 or len(each["label"]) > 80 for each in buttons)
    if is_long or is_bad_button or any(len(row["components"]) > 5 for row in body.get("components", ())):
        raise Refused(INVALID_BODY)
    if any(len(content) > 10 * 1024 * 1024 for _, content in files):
        raise Refused(Fault(413, {"message": "Request entity too large", "code": 40005}))
    announced = [each["filename"] for each in body.get("attachments", ())]
    if files and announced != [name for name, _ in files]:
        raise Refused(INVALID_BODY)


def number_components(rows: list[JSON]) -> list[JSON]:
    """Return components as Discord returns them: each has a number."""
    return [
        row
        | {
            "id": 10 * number,
            "components": [each | {"id": 10 * number + i} for i, each in enumerate(row["components"], 1)],
        }
        for number, row in enumerate(rows, 1)
    ]


def remove_nonce(message: JSON) -> JSON:
    return {name: value for name, value in message.items() if name != "nonce"}


def to_snake_case(name: str) -> str:
    return re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", name)

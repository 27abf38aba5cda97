"""A Bot API server on loopback, which checks everything against Telegram's published types, and fails on demand.

Requests of the SDK are checked against the parameters of their method, updates and messages before they are sent. What
does not match is answered with an error and listed in `problems`; the fixture fails the test for it. Beyond the types
it behaves like Telegram where adapters get it wrong: a second poll ends the first, an unchanged edit is refused, the
topic General has no id, drafts exist in private chats only, and texts are counted in UTF-16.
"""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web
    from jsonschema import Draft7Validator

JSON = dict[str, Any]
SCHEMA_FILE = Path(__file__).parents[3] / "build" / "schemas" / "telegram.json"
TOKEN = "8312345678:AAHk3-fJ2_local0Server1Check2Only34"
BOT: JSON = {
    "id": 8312345678,
    "is_bot": True,
    "first_name": "Palaver",
    "username": "palaver_bot",
    "can_join_groups": True,
    "can_read_all_group_messages": True,
}
ADA: JSON = {"id": 42, "is_bot": False, "first_name": "Ada", "last_name": "Lovelace", "username": "ada"}
PRIVATE: JSON = {"id": 42, "type": "private", "first_name": "Ada", "last_name": "Lovelace", "username": "ada"}
GROUP: JSON = {"id": -1001234567890, "type": "supergroup", "title": "Engines"}
CHANNEL: JSON = {"id": -1005550001111, "type": "channel", "title": "News"}
FORUM: JSON = {"id": -1009876543210, "type": "supergroup", "title": "Workshop", "is_forum": True}


# ---- schemas -------------------------------------------------------------------------------------------------


@functools.cache
def load_schema() -> JSON:
    if not SCHEMA_FILE.exists():
        pytest.fail(f"The schemas of Telegram are missing. Run: make {SCHEMA_FILE.relative_to(SCHEMA_FILE.parents[2])}")
    schema: JSON = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return schema


@functools.cache
def get_validator(name: str) -> Draft7Validator:
    from jsonschema import Draft7Validator

    return Draft7Validator({**load_schema(), "$ref": f"#/definitions/{name}"})


def list_problems(name: str, value: JSON) -> list[str]:
    """Return how a value differs from a published type."""
    if name not in load_schema()["definitions"]:
        return [f"{name} does not exist"]
    return [
        f"{name}: {'.'.join(map(str, error.path))} {error.message[:200]}"
        for error in get_validator(name).iter_errors(value)
    ]


def make_message(text: str | None = "hello", *, chat: JSON = PRIVATE, message_id: int = 1, **fields: Any) -> JSON:
    """Return a message of a person; `sender` is who wrote it."""
    message: JSON = {"message_id": message_id, "date": 1_790_000_000, "chat": chat, "from": fields.pop("sender", ADA)}
    if text is not None:
        message["text"] = text
    message |= fields
    return {name: value for name, value in message.items() if value is not None}


# ---- failures on demand --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """How the next request to a method fails."""

    status: int = 0
    description: str = ""
    parameters: JSON = field(default_factory=dict)
    acts_first: bool = False  # the message is there, but its answer is lost
    cuts: bool = False  # the connection breaks instead of an answer

    @property
    def response(self) -> web.Response:
        from aiohttp import web  # slow to import, and every worker imports this file

        if not self.description:
            return web.Response(status=self.status, text="<html>Bad Gateway</html>", content_type="text/html")
        fields = {"ok": False, "error_code": self.status, "description": self.description}
        return web.json_response(
            fields | ({"parameters": self.parameters} if self.parameters else {}), status=self.status
        )


LOSE_ANSWER = Fault(acts_first=True, cuts=True)
CUT_LINE = Fault(cuts=True)
BAD_GATEWAY = Fault(502)
BLOCKED = Fault(403, "Forbidden: bot was blocked by the user")
CHAT_NOT_FOUND = Fault(400, "Bad Request: chat not found")
UNAUTHORIZED = Fault(401, "Unauthorized")
OTHER_POLL = Fault(
    409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)


def flood(seconds: int) -> Fault:
    return Fault(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})


def build_move_fault(new_chat_id: int) -> Fault:
    description = "Bad Request: group chat was upgraded to a supergroup chat"
    return Fault(400, description, {"migrate_to_chat_id": new_chat_id})


class _Refused(Exception):
    def __init__(self, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.fault = Fault(status, description)


@dataclass(frozen=True)
class ApiRequest:
    """A request that has arrived."""

    method: str
    parameters: JSON
    files: dict[str, tuple[str, bytes]]  # parameter → name and content


class BotApiServer:
    """The server; use it as a context manager."""

    def __init__(self) -> None:
        self.bot = dict(BOT)
        self.requests: list[ApiRequest] = []
        self.problems: list[str] = []
        self.messages: dict[tuple[int, int], JSON] = {}  # what people see in the chats
        self.reactions: dict[tuple[int, int], list[str]] = {}
        self.drafts: dict[int, tuple[int, str]] = {}  # chat → draft id and its text
        self.files: dict[str, bytes] = {}
        self.commands: list[JSON] = []
        self.webhook: JSON = {"url": "", "has_custom_certificate": False, "pending_update_count": 0}
        self.webhook_secret: str | None = None
        self.is_revoked = False
        self.has_lost_files = False
        self.sends_files = asyncio.Event()  # while it is not set, downloads wait
        self.sends_files.set()
        self.confirmed_offset = 0
        self.url = ""
        self.pending: list[JSON] = []  # updates that the bot has not confirmed
        self._next_update = 1000
        self._next_message = 500
        self._faults: defaultdict[str, list[Fault | None]] = defaultdict(list)
        self._changed = asyncio.Event()
        self._poll: object = None  # the newest one
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        from aiohttp import web

        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        app.router.add_get("/file/bot{token}/{name}", self._send_file)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # ---- for tests -------------------------------------------------------------------------------------------

    def push(self, *, update_id: int | None = None, **fields: Any) -> JSON:
        """Put an update into the queue of the bot; return it."""
        update = self.make_update(update_id=update_id, **fields)
        self.pending.append(update)
        self._changed.set()
        return update

    def make_update(self, *, update_id: int | None = None, **fields: Any) -> JSON:
        """Return an update with the next number, after checking it."""
        if update_id is None:
            update_id, self._next_update = self._next_update, self._next_update + 1
        update = {"update_id": update_id, **fields}
        self.problems += list_problems("TelegramUpdate", update)
        return update

    def push_text(self, text: str, *, message_id: int, **fields: Any) -> JSON:
        return self.push(message=make_message(text, message_id=message_id, **fields))

    def push_post(self, text: str, *, message_id: int, **fields: Any) -> JSON:
        """Let a member post in the channel."""
        sender: JSON = {"chat": CHANNEL, "sender": None, "sender_chat": CHANNEL}
        return self.push(channel_post=make_message(text, message_id=message_id, **sender, **fields))

    def fail(self, method: str, *faults: Fault | None) -> None:
        """Let the next requests to a method fail; None lets one pass."""
        self._faults[method] += faults

    def has_pending_fault(self, method: str) -> bool:
        """Whether a fault still waits for the next request to a method."""
        return bool(self._faults[method])

    def list_requests(self, *methods: str) -> list[ApiRequest]:
        return [request for request in self.requests if request.method in methods]

    def list_texts(self, chat_id: int) -> list[str]:
        """Return what people see in a chat."""
        return [
            message["text"]
            for (chat, _), message in sorted(self.messages.items())
            if chat == chat_id and "text" in message
        ]

    # ---- requests --------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        method = request.match_info["method"]
        if self.is_revoked or request.match_info["token"] != TOKEN:
            return UNAUTHORIZED.response
        try:
            arrived = await _read_request(method, request)
        except _Refused as error:
            self.problems.append(str(error))
            return error.fault.response
        self.requests.append(arrived)
        fault = self._faults[method].pop(0) if self._faults[method] else None
        if fault is not None and not fault.acts_first:
            return self._fail(request, fault)
        try:
            result = await self._act(arrived)
        except _Refused as error:
            return error.fault.response
        return self._fail(request, fault) if fault else web.json_response({"ok": True, "result": result})

    @staticmethod
    def _fail(request: web.Request, fault: Fault) -> web.Response:
        from aiohttp import web

        if fault.cuts:
            assert request.transport is not None
            request.transport.abort()
        return fault.response if fault.status else web.Response()

    async def _act(self, request: ApiRequest) -> Any:
        if request.method == "getUpdates":
            return await self._get_updates(request.parameters)
        if request.method.startswith("send") and request.method not in {"sendChatAction", "sendMessageDraft"}:
            return self._send(request)
        actions: dict[str, Callable[[JSON], Any]] = {
            "getMe": lambda _: self.bot,
            "getWebhookInfo": lambda _: self.webhook,
            "setWebhook": self._set_webhook,
            "deleteWebhook": lambda _: self._set_webhook({"url": ""}),
            "setMyCommands": self._set_commands,
            "getFile": self._get_file,
            "sendChatAction": self._show_action,
            "sendMessageDraft": self._show_draft,
            "editMessageText": self._edit,
            "deleteMessage": self._delete,
            "setMessageReaction": self._react,
            "answerCallbackQuery": lambda _: True,
        }
        return actions[request.method](request.parameters)

    async def _get_updates(self, parameters: JSON) -> list[JSON]:
        if self.webhook["url"]:
            description = (
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it"
            )
            raise _Refused(description, 409)
        offset = parameters.get("offset", 0)
        self.confirmed_offset = max(self.confirmed_offset, offset)
        self.pending = [update for update in self.pending if update["update_id"] >= offset]
        poll = self._poll = object()
        self._changed.set()  # an older poll ends
        deadline = time.monotonic() + parameters.get("timeout", 0)
        while not self.pending and (left := deadline - time.monotonic()) > 0:
            self._changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                break
            if self._poll is not poll:
                raise _Refused(OTHER_POLL.description, 409)
        return self.pending[: parameters.get("limit", 100)]

    def _send(self, request: ApiRequest) -> JSON:
        parameters = request.parameters
        self._check_thread(parameters)
        if request.method == "sendMessage":
            _check_text(parameters["text"], parameters.get("entities", []))
        for row in parameters.get("reply_markup", {}).get("inline_keyboard", []):
            for button in row:
                if len(button["callback_data"].encode()) > 64:
                    raise _Refused("Bad Request: BUTTON_DATA_INVALID")
        self._next_message += 1
        chat_id = int(parameters["chat_id"])
        chat = PRIVATE | {"id": chat_id} if chat_id > 0 else GROUP | {"id": chat_id}
        sender = {name: self.bot[name] for name in ("id", "is_bot", "first_name", "username")}
        fields: JSON = {"chat": chat, "sender": sender}
        if chat_id == CHANNEL["id"]:  # there, nothing says who has written a post
            fields = {"chat": CHANNEL, "sender": None, "sender_chat": CHANNEL}
        message = make_message(None, message_id=self._next_message, **fields)
        if request.method == "sendMessage":
            message |= {name: parameters[name] for name in ("text", "entities") if name in parameters}
        elif request.method == "sendRichMessage":
            message["text"] = parameters["rich_message"]["markdown"]
        self.problems += list_problems("TelegramMessage", message)
        self.messages[chat_id, self._next_message] = message | {"files": request.files, "asked": parameters}
        self.drafts.pop(chat_id, None)
        return message

    def _edit(self, parameters: JSON) -> JSON:
        message = self.messages.get((int(parameters["chat_id"]), parameters["message_id"]))
        if message is None:
            raise _Refused("Bad Request: message to edit not found")
        _check_text(parameters["text"], parameters.get("entities", []))
        content = {name: parameters.get(name) for name in ("text", "entities", "reply_markup")}
        if content == {name: message.get(name) or message["asked"].get(name) for name in content}:
            raise _Refused(
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the "
                "same as a current content and reply markup of the message"
            )
        message |= {"text": parameters["text"], "entities": parameters.get("entities")}
        message["asked"] = parameters
        return {name: value for name, value in message.items() if name not in {"files", "asked"} and value is not None}

    def _delete(self, parameters: JSON) -> bool:
        if self.messages.pop((int(parameters["chat_id"]), parameters["message_id"]), None) is None:
            raise _Refused("Bad Request: message to delete not found")
        return True

    def _react(self, parameters: JSON) -> bool:
        emoji = [reaction["emoji"] for reaction in parameters.get("reaction", [])]
        self.reactions[int(parameters["chat_id"]), parameters["message_id"]] = emoji
        return True

    def _show_draft(self, parameters: JSON) -> bool:
        self._check_thread(parameters)
        if int(parameters["chat_id"]) < 0 or parameters["draft_id"] == 0:
            raise _Refused("Bad Request: TEXTDRAFT_PEER_INVALID")
        self.drafts[int(parameters["chat_id"])] = (parameters["draft_id"], parameters.get("text", ""))
        return True

    def _show_action(self, parameters: JSON) -> bool:
        if int(parameters["chat_id"]) == CHANNEL["id"]:
            raise _Refused("Bad Request: chat actions can't be sent to channels")
        return self._check_thread(parameters)

    @staticmethod
    def _check_thread(parameters: JSON) -> bool:
        if parameters.get("message_thread_id") == 1:
            raise _Refused("Bad Request: message thread not found")
        return True

    def _set_webhook(self, parameters: JSON) -> bool:
        self.webhook |= {"url": parameters["url"]}
        self.webhook_secret = parameters.get("secret_token")
        return True

    def _set_commands(self, parameters: JSON) -> bool:
        self.commands = parameters["commands"]
        return True

    def _get_file(self, parameters: JSON) -> JSON:
        file_id = parameters["file_id"]
        content = self.files.get(file_id)
        if content is None:
            raise _Refused("Bad Request: wrong file_id or the file is temporarily unavailable")
        if len(content) > 20 * 1024 * 1024:
            raise _Refused("Bad Request: file is too big")
        return {"file_id": file_id, "file_unique_id": file_id, "file_size": len(content), "file_path": file_id}

    async def _send_file(self, request: web.Request) -> web.Response:
        from aiohttp import web

        await self.sends_files.wait()
        content = self.files.get(request.match_info["name"])
        is_there = content is not None and not self.has_lost_files
        return web.Response(body=content) if is_there else web.Response(status=404)


async def _read_request(method: str, request: web.Request) -> ApiRequest:
    """Read the parameters of a request, and check them against the published type of its method."""
    from aiohttp import web

    name = f"{method[0].upper()}{method[1:]}Params"
    properties: JSON = load_schema()["definitions"].get(name, {}).get("properties", {})
    parameters: JSON = {}
    files: dict[str, tuple[str, bytes]] = {}
    for key, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files[key] = (value.filename, value.file.read())
        else:
            parameters[key] = _read_parameter(str(value), properties.get(key, {}))
    with_files = parameters | {key: "attach://file" for key in files if key in properties}
    if problems := (list_problems(name, with_files) if properties or with_files else []):
        raise _Refused(f"Bad Request: {method}: {'; '.join(problems)}")
    return ApiRequest(method, parameters, files)


def _read_parameter(text: str, schema: JSON) -> Any:
    """Read a value of a form: everything but texts is JSON."""
    kinds = [schema, *schema.get("anyOf", [])]
    if any(kind.get("type") == "string" for kind in kinds):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check_text(text: str, entities: list[JSON]) -> None:
    units = len(text.encode("utf-16-le")) // 2
    if not text.strip():
        raise _Refused("Bad Request: message text is empty")
    if units > 4096:
        raise _Refused("Bad Request: message is too long")
    for entity in entities:
        if entity["length"] <= 0 or entity["offset"] + entity["length"] > units:
            raise _Refused("Bad Request: entity is outside of the text")

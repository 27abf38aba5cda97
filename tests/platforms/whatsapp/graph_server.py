"""A Graph API server on loopback, which checks everything against published types, and fails on demand.

Requests are checked against `@whatsapp-cloudapi/types` and against what Meta's documentation adds to them; webhooks
before they are sent. What does not match is answered with an error and listed in `problems`; the fixture fails the test
for it. Like Meta it signs webhooks, repeats them until they are answered with a success, reports what became of each
message under the key that it was sent with, and refuses what comes after the window of 24 hours.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Self

from .cloud_types import check_request, check_webhook, list_problems

if TYPE_CHECKING:
    from aiohttp import web

JSON = dict[str, Any]
# The body and the headers of a webhook → the status of the answer.
SendWebhook = Callable[[bytes, Mapping[str, str]], Awaitable[int]]

TOKEN = "EAAlocalServerChecksThisTokenOnly0123456789"
APP_SECRET = "0123456789abcdef0123456789abcdef"
VERIFY_TOKEN = "a-verify-token-of-our-own"
NUMBER_ID = "106500000000001"
BUSINESS_ID = "102200000000001"
OWN_NUMBER = "15550001111"
ADAS_NUMBER, ADAS_BSUID = "4917011111111", "DE.11111111"
BENS_NUMBER, BENS_BSUID = "4917022222222", "DE.22222222"
NAMES = {ADAS_NUMBER: "Ada", BENS_NUMBER: "Ben"}
BSUIDS = {ADAS_NUMBER: ADAS_BSUID, BENS_NUMBER: BENS_BSUID}
SENT_AT = 1_790_000_000
RETRY_SECONDS = 0.01


# ---- webhooks ------------------------------------------------------------------------------------------------


def make_contact(number: str | None = ADAS_NUMBER, bsuid: str | None = None, name: str | None = None) -> JSON:
    contact: JSON = {"profile": {"name": name or NAMES.get(number or "", "Ada")}}
    return contact | ({"wa_id": number} if number else {}) | ({"user_id": bsuid} if bsuid else {})


def make_message(
    kind: str = "text",
    content: Any = None,
    *,
    number: str | None = ADAS_NUMBER,
    bsuid: str | None = None,
    **fields: Any,
) -> JSON:
    """Return a message of a person, as a webhook contains it."""
    message: JSON = {"id": fields.pop("message_id", "wamid.in1"), "timestamp": str(SENT_AT), "type": kind}
    message |= ({"from": number} if number else {}) | ({"from_user_id": bsuid} if bsuid else {})
    if content is not None:
        message[kind] = {"body": content} if kind == "text" and isinstance(content, str) else content
    return message | fields


def make_webhook(
    *messages: JSON, contacts: list[JSON] | None = None, statuses: list[JSON] | None = None, number_id: str = NUMBER_ID
) -> JSON:
    """Return the body of a webhook."""
    value: JSON = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": OWN_NUMBER, "phone_number_id": number_id},
    }
    if messages:
        senders = {(each.get("from"), each.get("from_user_id")): None for each in messages if each["type"] != "system"}
        value["contacts"] = [make_contact(*each) for each in senders] if contacts is None else contacts
        value["messages"] = list(messages)
    if statuses:
        value["statuses"] = statuses
    changes = [{"field": "messages", "value": value}]
    return {"object": "whatsapp_business_account", "entry": [{"id": BUSINESS_ID, "changes": changes}]}


def make_status(message_id: str, status: str, key: str | None, recipient: str = ADAS_NUMBER, code: int = 0) -> JSON:
    fields: JSON = {"id": message_id, "status": status, "timestamp": str(SENT_AT), "recipient_id": recipient}
    if key is not None:
        fields["biz_opaque_callback_data"] = key
    if code:
        fields["errors"] = [{"code": code, "title": "Failed", "message": "Failed", "error_data": {"details": "Why"}}]
    return fields


def sign(body: bytes, secret: str = APP_SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


# ---- failures on demand --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GraphFault:
    """How the next request of a kind fails."""

    status: int = 0
    code: int | None = None
    subcode: int | None = None
    acts_first: bool = False  # the message is there, but its answer is lost
    cuts: bool = False  # the connection breaks instead of an answer

    @property
    def response(self) -> web.Response:
        from aiohttp import web  # slow to import, and every worker imports this file

        if self.code is None:
            return web.Response(status=self.status, text="<html>Bad Gateway</html>", content_type="text/html")
        error: JSON = {"message": f"(#{self.code}) refused", "type": "OAuthException", "code": self.code}
        if self.subcode is not None:
            error["error_subcode"] = self.subcode
        return web.json_response({"error": error}, status=self.status)


LOSE_ANSWER = GraphFault(acts_first=True, cuts=True)
CUT_LINE = GraphFault(cuts=True)
BAD_GATEWAY = GraphFault(502)
PAIR_RATE = GraphFault(400, 131056)
ACCOUNT_RATE = GraphFault(400, 130429)
WINDOW_CLOSED = GraphFault(400, 131047)
NO_WHATSAPP = GraphFault(400, 131026)
INVALID = GraphFault(400, 131009)
EXPIRED = GraphFault(401, 190, 463)
UNKNOWN_OBJECT = GraphFault(400, 100, 33)


class GraphServer:
    """The server; use it as a context manager."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, JSON]] = []  # path without the version, and the body
        self.problems: list[str] = []
        self.messages: list[JSON] = []  # that people see, with `id` and, for files, `file`
        self.reactions: dict[str, str] = {}  # message id → emoji
        self.read_ids: list[str] = []  # messages of people that were marked as read, with the sign of typing
        self.media: dict[str, tuple[str, str, bytes]] = {}  # id → name, type and content
        self.number: JSON = {
            "id": NUMBER_ID,
            "display_phone_number": "+1 555-000-1111",
            "verified_name": "Palaver",
            "quality_rating": "GREEN",
        }
        self.token_info: JSON = {
            "is_valid": True,
            "expires_at": 0,
            "scopes": ["whatsapp_business_messaging", "whatsapp_business_management"],
        }
        self.subscribed_apps: list[JSON] = [{"whatsapp_business_api_data": {"id": "1", "name": "Palaver"}}]
        self.is_revoked = False
        self.sends_statuses = True
        self.later_failures: dict[str, int] = {}  # recipient → the code with which a message fails after it was taken
        self.sends_files = asyncio.Event()  # while it is not set, downloads wait
        self.sends_files.set()
        self.pending: list[JSON] = []  # webhooks that were not answered with a success
        self.send_webhook: SendWebhook | None = None
        self.url = ""
        self._numbers = count(1)
        self._faults: defaultdict[str, list[GraphFault | None]] = defaultdict(list)
        self._has_pending = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        from aiohttp import web

        app = web.Application(client_max_size=128 * 1024 * 1024)
        app.router.add_get("/files/{id}", self._send_file)
        app.router.add_route("*", "/v24.0/{path:.+}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._pump = asyncio.create_task(self._send_pending())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        await self._runner.cleanup()

    def build_settings(self) -> JSON:
        """Return the settings of our account, as they stand in config.yaml."""
        return {
            "access_token": TOKEN,
            "app_secret": APP_SECRET,
            "verify_token": VERIFY_TOKEN,
            "phone_number_id": NUMBER_ID,
            "business_account_id": BUSINESS_ID,
            "api_url": self.url,
        }

    # ---- for tests -------------------------------------------------------------------------------------------

    def push(self, payload: JSON) -> JSON:
        """Send a webhook, again and again until it is answered with a success."""
        self.problems += check_webhook(payload)
        self.pending.append(payload)
        self._has_pending.set()
        return payload

    def push_text(self, text: str, *, number: str | None = ADAS_NUMBER, bsuid: str | None = None, **fields: Any) -> str:
        """Let a person write; return the id of the message."""
        message_id = str(fields.pop("message_id", None) or f"wamid.in{next(self._numbers)}")
        self.push(make_webhook(make_message("text", text, number=number, bsuid=bsuid, message_id=message_id, **fields)))
        return message_id

    def add_media(self, content: bytes, media_type: str, name: str = "") -> str:
        media_id = f"7000{next(self._numbers)}"
        self.media[media_id] = (name, media_type, content)
        return media_id

    def fail(self, kind: str, *faults: GraphFault | None) -> None:
        """Let the next requests of a kind (messages, typing, media, number) fail; None lets one pass."""
        self._faults[kind] += faults

    def has_pending_fault(self, kind: str) -> bool:
        """Whether a fault still waits for the next request of a kind."""
        return bool(self._faults[kind])

    def list_texts(self, recipient: str = ADAS_NUMBER) -> list[str]:
        """Return the texts that a person sees."""
        return [find_text(each) for each in self.messages if recipient in {each.get("to"), each.get("recipient")}]

    # ---- webhooks --------------------------------------------------------------------------------------------

    async def _send_pending(self) -> None:
        while True:
            await self._has_pending.wait()
            self._has_pending.clear()
            while self.pending:
                payload = self.pending[0]
                body = json.dumps(payload).encode()
                headers = {"x-hub-signature-256": sign(body), "content-type": "application/json"}
                status = 0 if self.send_webhook is None else await self._try_to_send(body, headers)
                if status == 200 and payload in self.pending:
                    self.pending.remove(payload)
                else:
                    await asyncio.sleep(RETRY_SECONDS)

    async def _try_to_send(self, body: bytes, headers: Mapping[str, str]) -> int:
        assert self.send_webhook is not None
        try:
            return await self.send_webhook(body, headers)
        except Exception:  # noqa: BLE001  (whatever it is, the webhook was not taken)
            return 500

    # ---- requests --------------------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        path = request.match_info["path"]
        kind = {f"{NUMBER_ID}/messages": "messages", f"{NUMBER_ID}/media": "media", NUMBER_ID: "number"}.get(path, path)
        if self.is_revoked or request.headers.get("authorization") != f"Bearer {TOKEN}":
            return EXPIRED.response
        body = await self._read_media(request) if kind == "media" else await self._read_body(request)
        self.requests.append((path, body))
        if kind == "messages" and (found := check_request(body)):
            self.problems += found
            return INVALID.response
        if body.get("status") == "read":
            kind = "typing"
        fault = self._faults[kind].pop(0) if self._faults[kind] else None
        if fault is not None and not fault.acts_first:
            return self._fail(request, fault)
        answer = self._act(request.method, path, body)
        if answer is None:
            return UNKNOWN_OBJECT.response
        return self._fail(request, fault) if fault else web.json_response(answer)

    @staticmethod
    def _fail(request: web.Request, fault: GraphFault) -> web.Response:
        from aiohttp import web

        if fault.cuts:
            assert request.transport is not None
            request.transport.abort()
        return fault.response if fault.status else web.Response()

    @staticmethod
    async def _read_body(request: web.Request) -> JSON:
        body: JSON = await request.json() if request.can_read_body else dict(request.query)
        return body

    async def _read_media(self, request: web.Request) -> JSON:
        form = await request.post()
        file: Any = form["file"]
        if form.get("messaging_product") != "whatsapp" or form.get("type") != file.content_type:
            self.problems.append(
                f"media: {form.get('messaging_product')!r}, {form.get('type')!r}, {file.content_type!r}"
            )
        return {"name": file.filename, "type": file.content_type, "content": file.file.read()}

    def _act(self, method: str, path: str, body: JSON) -> JSON | None:
        if path in self.media and method == "GET":
            name, media_type, content = self.media[path]
            url = f"{self.url}/files/{path}"
            return {"url": url, "mime_type": media_type, "file_size": len(content), "id": path, "name": name}
        actions: dict[str, Callable[[], JSON]] = {
            f"{NUMBER_ID}/messages": lambda: self._take(body),
            f"{NUMBER_ID}/media": lambda: {"id": self.add_media(body["content"], body["type"], body["name"])},
            NUMBER_ID: lambda: self.number,
            "debug_token": lambda: {"data": self.token_info},
            f"{BUSINESS_ID}/subscribed_apps": lambda: {"data": self.subscribed_apps},
        }
        return actions[path]() if path in actions else None

    def _take(self, body: JSON) -> JSON:
        if body.get("status") == "read":
            self.read_ids.append(body["message_id"])
            return {"success": True}
        recipient = body.get("to") or body["recipient"]
        message_id = f"wamid.out{next(self._numbers)}"
        if body["type"] == "reaction":
            self.reactions[body["reaction"]["message_id"]] = body["reaction"]["emoji"]
        else:
            media_id = body.get(body["type"], {}).get("id")
            self.messages.append(body | {"id": message_id, "file": self.media.get(media_id) if media_id else None})
            self._report(message_id, recipient, body.get("biz_opaque_callback_data"))
        answer = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": recipient, "wa_id": recipient}],
            "messages": [{"id": message_id}],
        }
        self.problems += list_problems("CloudAPIResponse", answer)
        return answer

    def _report(self, message_id: str, recipient: str, key: str | None) -> None:
        """Tell what became of a message, under the key that it was sent with."""
        if not self.sends_statuses:
            return
        code = self.later_failures.get(recipient, 0)
        for status in ("sent", "failed") if code else ("sent", "delivered"):
            is_failed = status == "failed"
            fields = make_status(message_id, status, key, recipient, code if is_failed else 0)
            self.push(make_webhook(statuses=[fields]))

    async def _send_file(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        await self.sends_files.wait()
        _, media_type, content = self.media[request.match_info["id"]]
        return web.Response(body=content, content_type=media_type)


def find_text(message: JSON) -> str:
    """Return the text of a message of ours."""
    if message["type"] == "interactive":
        return str(message["interactive"]["body"]["text"])
    return str(message["text"]["body"]) if message["type"] == "text" else ""

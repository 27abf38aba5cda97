"""One linked WhatsApp account: runs the child, stores what it received before it acknowledges it, and sends.

Always true: one child runs for an account at a time. The keys of a device that WhatsApp has logged out are put aside,
never deleted, and the account can be linked again at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from palaver.core.errors import AccountRefused, ConnectionLost, SendRejected, SendRetryable
from palaver.core.files import write_file_atomically
from palaver.core.source import Platform
from palaver.core.texts import read_message, unpack_text
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingMessage
from palaver.gateway.intake import Intake
from palaver.platforms.common.inbound import UNREADABLE_ERRORS, parse_json_object
from palaver.platforms.common.send_mark import mark_before_request
from palaver.platforms.common.whatsapp_markdown import render_whatsapp_messages
from palaver.platforms.whatsapp_web.inbound import EventContext, is_group, parse_event
from palaver.platforms.whatsapp_web.linking import (
    ACCOUNT_FILE,
    LINKING_EXPIRED,
    MAX_LINKING_ROUNDS,
    RecentMessages,
    describe_failed_start,
    make_prompt,
    put_session_aside,
    raise_refusal,
)
from palaver.platforms.whatsapp_web.manifest import CAPABILITIES, WhatsAppWebSettings
from palaver.platforms.whatsapp_web.outbound import describe_file, make_delivery_error, parse_address
from palaver.platforms.whatsapp_web.process import CHILD_COMMAND, ChildEnded, ChildProcess, FileExchange
from palaver.platforms.whatsapp_web.protocol import HEARTBEAT_SECONDS, RequestError, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.platforms.manifest import AccountPlace
    from palaver.sessions.delivery import Address
    from palaver.sessions.inbound import AnyUpdate, Receipt

log = logging.getLogger(__name__)

START_SECONDS: Final = 40.0  # to load the library, on a busy machine
CONNECT_SECONDS: Final = 20.0  # to open the folder; WhatsApp itself is waited for with `silence_seconds`
SEND_SECONDS: Final = 40.0
FILE_SECONDS: Final = 300.0
SHORT_SECONDS: Final = 10.0  # for what is not important
MAX_UNHEARD_SECONDS: Final = 3 * HEARTBEAT_SECONDS  # then a test of the connection fails
MAX_GROUP_NAMES: Final = 1000
MAX_RELINKS: Final = 3  # in a row, without having been connected


class _LoggedOut(Exception):
    """WhatsApp has ended the link."""


class _LinkingEnded(Exception):
    """The codes were not used in time."""


class WhatsAppWebAdapter(Adapter):
    platform = Platform.WHATSAPP_WEB
    capabilities = CAPABILITIES
    marks_sending = True
    silence_seconds = 200.0  # longer than a code to type is valid

    def __init__(self, settings: WhatsAppWebSettings, place: AccountPlace) -> None:
        self.account = place.account
        self._settings = settings
        self._folder = place.folder
        self._files = FileExchange(place.folder)
        self._child: ChildProcess | None = None
        self._is_fresh = True  # no child was started yet: later only `run` starts one
        self._version = ""
        self._identity: Mapping[str, Any] = {}  # as WhatsApp says when it is connected
        self._is_connected = False
        self._is_linking = False
        self._heard_at = 0.0  # by the monotonic clock: when the connection last worked
        self._notice = ""  # why the account has to be linked again
        self._recent = RecentMessages()
        self._group_names: dict[str, str | None] = {}
        self._numbers: dict[int, int] = {}  # id of an update that is being accepted → number of its event

    # ---- receiving -------------------------------------------------------------------------------------------

    async def probe(self) -> AccountInfo:
        """Load the library; while the account runs, say whether it is connected."""
        if self._is_fresh:
            self._is_fresh = False
            await self._start_child()
            self._identity = await asyncio.to_thread(self._load_account)
        elif self._child is None or not self._child.is_running or not (self._is_connected or self._is_linking):
            raise ConnectionLost.say(
                "whatsapp_web.not_connected", "WhatsApp is not connected right now. It is being connected again."
            )
        elif self._is_connected and time.monotonic() - self._heard_at > MAX_UNHEARD_SECONDS:
            raise ConnectionLost.say(
                "whatsapp_web.not_answering",
                "WhatsApp does not answer right now. If that goes on, it is connected again.",
            )
        phone = self._identity.get("phone")
        name = self._identity.get("name") or (f"+{phone}" if phone else None)
        details = (self._version,) if self._version else ()
        return AccountInfo(user_id=phone, name=name, is_linked=bool(phone), details=details)

    async def run(self, link: AccountLink) -> None:
        """Receive, and let the account be linked when it is not, until canceled."""
        relinks = rounds = 0
        self._is_fresh = False
        while True:
            if self._child is None:
                await self._start_child()
            try:
                await self._serve(self._get_child(), link)
            except _LoggedOut as error:
                relinks = 1 if self._is_connected else relinks + 1
                self._notice = read_message(error)
                log.warning("whatsapp_web_logged_out", extra={"account": self.account, "reason": self._notice})
                await self._close_child()
                await asyncio.to_thread(put_session_aside, self._folder)
                self._identity = {}
                if relinks > MAX_RELINKS:
                    raise ConnectionLost.say(
                        "whatsapp_web.links_end", "WhatsApp ends every new link. {notice}", notice=self._notice
                    ) from None
            except _LinkingEnded:
                rounds += 1
                await self._close_child()
                if rounds >= MAX_LINKING_ROUNDS:
                    raise AccountRefused(LINKING_EXPIRED) from None

    async def _start_child(self) -> None:
        if self._settings.child_command is None and find_spec("neonize") is None:
            raise AccountRefused(describe_failed_start("neonize", ""))
        self._child = child = await ChildProcess.start(self._settings.child_command or CHILD_COMMAND)
        try:
            async with asyncio.timeout(START_SECONDS):
                first = await child.receive()
        except TimeoutError:
            raise ConnectionLost.say(
                "whatsapp_web.library_timeout", "The WhatsApp library did not start in time."
            ) from None
        if first.get("state") == State.FAILED:
            raise AccountRefused(describe_failed_start(str(first.get("module")), str(first.get("error"))))
        self._version = str(first.get("version", ""))

    async def _serve(self, child: ChildProcess, link: AccountLink) -> None:
        """Connect, and handle what the child sends. Raises why the connection has ended."""
        proxy = self._settings.proxy_url
        try:
            await child.request(
                "connect",
                seconds=CONNECT_SECONDS,
                folder=str(self._folder.absolute()),
                chats=self._settings.chats,
                phone_number=self._settings.phone_number,
                device_name=self._settings.device_name,
                proxy_url=urlsplit(proxy.get_secret_value()).geturl() if proxy else None,
            )
        except RequestError as error:
            raise ConnectionLost(error.text) from error
        async with Intake(link, self._acknowledge) as intake:
            while True:
                fields = await child.receive()
                if "seq" in fields:
                    await self._handle_event(fields["seq"], fields["event"], intake, link)
                else:
                    await self._handle_state(State(fields["state"]), fields, link)
                    if intake.is_busy:
                        await intake.wait_for_change(0)  # raises what has happened in the background

    async def _handle_event(self, number: int, event: Mapping[str, Any], intake: Intake, link: AccountLink) -> None:
        if event.get("kind") == "sent":  # the proof may come after the process that has sent it is gone
            await link.confirm(event["key"], event["id"])
        elif (update := await self._parse(event)) is not None:
            self._numbers[id(update)] = number
            await intake.accept(update)
            return
        await self._get_child().acknowledge(number)

    async def _acknowledge(self, update: AnyUpdate, _receipt: Receipt) -> None:
        await self._get_child().acknowledge(self._numbers.pop(id(update)))

    async def _parse(self, event: Mapping[str, Any]) -> AnyUpdate | None:
        try:
            chat = str(event["chat"])
            if event["kind"] == "members" or len(self._group_names) >= MAX_GROUP_NAMES:
                self._group_names.clear()  # one may have changed
            context = EventContext(
                open_file=lambda media: self._files.download(self._get_child(), media),
                sent_ids=self._recent.sent_ids,
                group_name=await self._find_group_name(chat) if is_group(chat) else None,
                removed_emoji=self._recent.remember_reaction(event),
            )
            update = parse_event(event, context)
            self._recent.remember_received(event)
        except (*UNREADABLE_ERRORS, OSError) as error:  # OSError: a time that does not exist
            extra = {"account": self.account, "reason": type(error).__name__}
            log.warning("whatsapp_web_event_unreadable", extra=extra)
            return None
        return update

    async def _find_group_name(self, chat: str) -> str | None:
        """Ask for the name of a group, once in a connection: everybody's messages wait for the answer."""
        if chat not in self._group_names:
            self._group_names[chat] = None
            with contextlib.suppress(RequestError):
                answer = await self._get_child().request("group", seconds=SHORT_SECONDS, chat=chat)
                self._group_names[chat] = answer.get("name") or None
        return self._group_names[chat]

    async def _handle_state(self, state: State, fields: Mapping[str, Any], link: AccountLink) -> None:
        match state:
            case State.CONNECTED | State.ALIVE:
                if state is State.CONNECTED:
                    await self._handle_connected(fields["identity"])
                self._heard_at = time.monotonic()
                link.report_connected()
            case State.UNREADABLE:
                extra = {"account": self.account, "reason": str(fields.get("reason"))[:100]}
                log.warning("whatsapp_web_event_unreadable", extra=extra)
            case State.DISCONNECTED:
                self._is_connected = False  # the library connects again, and the supervisor watches for how long
            case State.QR_CODE | State.PAIRING_CODE:
                self._is_linking = True
                link.report_linking(make_prompt(state, fields, self._notice))
            case State.LINKING_ENDED:
                raise _LinkingEnded
            case State.LOGGED_OUT:
                raise _LoggedOut(unpack_text(fields["reason"]))
            case _:
                raise_refusal(state, unpack_text(fields.get("reason", "")))

    async def _handle_connected(self, identity: Mapping[str, Any]) -> None:
        self._is_connected, self._is_linking, self._notice = True, False, ""
        self._group_names.clear()
        if identity != self._identity:
            self._identity = identity
            path, text = self._folder / ACCOUNT_FILE, json.dumps(identity)
            await asyncio.to_thread(write_file_atomically, path, text, overwrite=True)

    def _load_account(self) -> Mapping[str, Any]:
        try:
            return parse_json_object((self._folder / ACCOUNT_FILE).read_bytes()) or {}
        except OSError:
            return {}

    def _get_child(self) -> ChildProcess:
        if self._child is None:
            raise ChildEnded("The process for WhatsApp was ended.")
        return self._child

    async def close(self) -> None:
        self._is_fresh = False
        await self._close_child()

    async def _close_child(self) -> None:
        child, self._child = self._child, None
        self._is_connected = self._is_linking = False
        if child is not None:
            await child.close()

    # ---- sending ---------------------------------------------------------------------------------------------

    def render(self, markdown: str) -> list[str]:
        return render_whatsapp_messages(markdown, self.capabilities)

    async def send(self, message: OutgoingMessage) -> str:
        chat = parse_address(message.address)
        quoted = self._recent.find_quote(chat, message.reply_to) if message.reply_to else None
        fields: dict[str, Any] = {"key": message.key, "chat": chat, "quoted": quoted}
        if message.file is None:
            with mark_before_request(message.mark_sending):
                answer = await self._deliver("send_text", SEND_SECONDS, text=message.body, **fields)
        else:
            fields |= describe_file(message.file.name, message.file.media_type, message.file.size)
            self._get_connected_child()  # it has made the folder for the file
            async with self._files.lend(message.file) as name:
                with mark_before_request(message.mark_sending):
                    answer = await self._deliver("send_file", FILE_SECONDS, file=name, **fields)
        self._recent.remember_sent(chat, answer["id"], message.body)
        return str(answer["id"])

    async def delete(self, address: Address, message_id: str) -> None:
        """Delete a message of ours for everybody; WhatsApp accepts that also for one that is gone."""
        chat = parse_address(address)
        await self._deliver("delete", SEND_SECONDS, is_repeatable=True, chat=chat, target=message_id)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """React to a message that came since the start; in a group, WhatsApp needs to know whose it is."""
        chat = parse_address(address)
        seen = self._recent.find(message_id)
        if seen is None and is_group(chat):
            raise SendRejected("This message is too old to react to.")
        author = {"sender": seen.sender if seen else chat, "is_own": seen is not None and seen.is_own}
        fields = {"chat": chat, "target": message_id, "emoji": emoji, **author}
        await self._deliver("react", SEND_SECONDS, is_repeatable=True, **fields)

    async def show_typing(self, address: Address) -> None:
        """Show that the agent is typing; phones take it back after some seconds."""
        await self._set_typing(address, is_typing=True)

    async def stop_typing(self, address: Address) -> None:
        await self._set_typing(address, is_typing=False)

    async def _set_typing(self, address: Address, *, is_typing: bool) -> None:
        chat = parse_address(address)
        await self._deliver("typing", SHORT_SECONDS, is_repeatable=True, chat=chat, is_typing=is_typing)

    def _get_connected_child(self) -> ChildProcess:
        if self._child is None or not self._is_connected:
            raise SendRetryable.say("whatsapp_web.offline", "WhatsApp is not connected.")
        return self._child

    async def _deliver(
        self, name: str, seconds: float, /, *, is_repeatable: bool = False, **fields: Any
    ) -> dict[str, Any]:
        """Ask the child to send something; raises a DeliveryError."""
        try:
            return await self._get_connected_child().request(name, seconds=seconds, **fields)
        except RequestError as error:
            raise make_delivery_error(error, is_repeatable=is_repeatable) from None

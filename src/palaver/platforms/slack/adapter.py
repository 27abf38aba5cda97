"""One Slack app: receives by Socket Mode or HTTP, acknowledges what is stored; sends, edits, streams and reacts."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    SendRejected,
    SendUncertain,
)
from palaver.core.source import Platform
from palaver.core.tasks import run_together, wait_for_event
from palaver.core.texts import say
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingMessage, WebhookRequest, WebhookResponse
from palaver.gateway.intake import Intake, WebhookIntake
from palaver.inbox.registry import COMMANDS
from palaver.platforms.common.inbound import UNREADABLE_ERRORS
from palaver.platforms.slack.catch_up import (
    Confirmations,
    GrowingMessages,
    UnconfirmedMessage,
    read_missed_messages,
)
from palaver.platforms.slack.client import SlackClient
from palaver.platforms.slack.directory import Directory, describe_missing_scopes
from palaver.platforms.slack.inbound import (
    AppIdentity,
    PressId,
    ReadingContext,
    is_own_message,
    is_ts,
    list_named_ids,
    parse_command,
    parse_event,
    parse_press,
)
from palaver.platforms.slack.manifest import CAPABILITIES, SlackSettings
from palaver.platforms.slack.outbound import find_emoji_name, read_key
from palaver.platforms.slack.socket_mode import Envelope, SlackSocket, is_signed, read_request
from palaver.sessions.delivery import Address
from palaver.sessions.inbound import AnyUpdate, ButtonPressed, Cursor, Inbound, Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.delivery.adapter import OutgoingFile
    from palaver.platforms.manifest import AccountPlace

    JSON = Mapping[str, Any]

log = logging.getLogger(__name__)

MAX_WEBHOOK_BYTES: Final = 1024 * 1024
SOCKET_URL_SECONDS: Final = 15.0  # an address for a connection is used within this time, or not at all
MAX_CATCH_UP_RETRY_SECONDS: Final = 600.0
PRESS_ANSWER_SECONDS: Final = 5.0  # other updates wait for it
STATUS: Final = "is thinking…"
NO_PUBLIC_ADDRESS: Final = say(
    "slack.no_public_address",
    "The mode http needs an address that Slack can reach: set web.public_url in the server"
    " settings, or use the mode socket.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackTiming:
    """The waits of the adapter, in seconds."""

    ping: float = 10.0  # between two pings
    sign_in_check: float = 60.0  # between two checks of the token, where Slack calls us
    catch_up: float = 2.0  # new events wait so long for older ones that are read from the history
    catch_up_retry: float = 15.0  # before the history is read again if that failed; twice as long each time
    confirmation_delays: Sequence[float] = (2.0, 10.0, 60.0)  # before each look: Slack may still be at work on it
    preview_delays: Sequence[float] = (0.5, 1.5)  # of a growing message: the answer replaces it, if found in time
    get_time: Callable[[], float] = field(default=time.monotonic, repr=False)


class SlackAdapter(Adapter):
    platform = Platform.SLACK
    capabilities = CAPABILITIES
    marks_sending = True
    silence_seconds = 60.0  # six pings

    def __init__(
        self,
        settings: SlackSettings,
        place: AccountPlace,
        *,
        commands: Sequence[str] = (),
        timing: SlackTiming | None = None,
    ) -> None:
        self.account = place.account
        self._settings = settings
        self._uses_socket = settings.mode == "socket"
        self.max_webhook_bytes = 0 if self._uses_socket else MAX_WEBHOOK_BYTES
        self._webhook_url = place.webhook_url
        self._commands = frozenset(commands)
        self._timing = timing or SlackTiming()
        if not self._uses_socket:
            self.silence_seconds = 3 * self._timing.sign_in_check
        self._client = SlackClient(settings)
        self._directory = Directory(self._client)
        self._growing = GrowingMessages(self._client, self._timing.get_time)
        self._confirmations = Confirmations(self._client, self._growing.has_stream, self._timing.confirmation_delays)
        self._webhook_intake = WebhookIntake(self._acknowledge_accepted)
        self._app = AppIdentity()  # known since `probe`
        self._socket: SlackSocket | None = None
        self._socket_url: tuple[str, float] | None = None  # an address that was not used yet, and since when
        self._envelopes: dict[int, Envelope] = {}  # by the identity of the update that it became
        self._cursor = ""  # the newest message that was accepted
        self._has_caught_up = asyncio.Event()
        self._receiving = asyncio.Lock()

    # ---- signing in ------------------------------------------------------------------------------------------

    async def probe(self) -> AccountInfo:
        """Sign in, and name the scopes that are missing."""
        if not self._uses_socket and self._webhook_url is None:
            raise AccountRefused(NO_PUBLIC_ADDRESS)
        await self._client.open()
        me, scopes = await self._client.sign_in()
        self._app = AppIdentity(
            user_id=me["user_id"],
            bot_id=me.get("bot_id") or "",
            team_id=me.get("team_id") or "",
            name=me.get("user") or "",
            commands=self._commands,
        )
        if self._uses_socket and self._socket is None:
            self._socket_url = (await self._client.open_socket(), time.monotonic())
        missing = describe_missing_scopes(scopes)
        details = [say("slack.workspace", "Workspace: {name}", name=me.get("team") or self._app.team_id)]
        if not self._uses_socket:
            details.append(say("slack.request_url", "Request URL: {url}", url=self._webhook_url))
        return AccountInfo(
            user_id=self._app.user_id,
            name=f"@{self._app.name}",
            warnings=(missing,) if missing else (),
            details=tuple(details),
        )

    async def _watch_token(self) -> None:
        """End when Slack no longer accepts the token: a socket stays open without it."""
        while True:
            await self._client.is_token_doubted.wait()
            self._client.is_token_doubted.clear()
            await self._client.sign_in()

    # ---- receiving -------------------------------------------------------------------------------------------

    async def run(self, link: AccountLink) -> None:
        async with self._receiving:
            if not self._app.user_id:
                await self.probe()
            await self._client.open()
            missed_from = self._cursor = await link.load_cursor() or ""
            if not missed_from:
                self._has_caught_up.set()  # the first start: nothing was missed
            async with Intake(link, self._acknowledge_accepted) as intake:
                try:
                    if self._uses_socket:
                        self._socket = await self._open_socket(link)
                        receiving = self._read_socket(link, intake)
                    else:
                        receiving = self._watch_http(link)
                    await run_together(
                        receiving,
                        self._catch_up(link, intake, missed_from),
                        self._confirmations.run(link, self._app),
                        self._watch_token(),
                        intake.watch(),
                        until=asyncio.FIRST_EXCEPTION,
                    )
                    raise ConnectionLost.say("slack.connection_slack_ended", "The connection to Slack has ended.")
                finally:
                    socket, self._socket = self._socket, None
                    if socket is not None:
                        await socket.close()

    async def _open_socket(self, link: AccountLink) -> SlackSocket:
        kept, self._socket_url = self._socket_url, None
        is_fresh = kept is not None and time.monotonic() - kept[1] < SOCKET_URL_SECONDS
        url = kept[0] if kept is not None and is_fresh else await self._client.open_socket()
        return await SlackSocket.open(
            self._client,
            url,
            link.report_connected,
            ping_seconds=self._timing.ping,
            known_connections=1 if self._socket is None else 2,
        )

    async def _read_socket(self, link: AccountLink, intake: Intake) -> None:
        """Handle one envelope after the other; when Slack asks for it, open a new connection and close the old one."""
        await wait_for_event(self._has_caught_up, self._timing.catch_up)
        while True:
            assert self._socket is not None  # noqa: S101  (set by `run`)
            envelope = await self._socket.receive()
            if envelope is not None:
                await self._handle(link, intake, envelope)
                continue
            old, self._socket = self._socket, await self._open_socket(link)
            for waiting in old.take_waiting():
                await self._handle(link, intake, waiting)
            await old.close()  # Slack sends again what was still on its way through it

    async def _handle(self, link: AccountLink, intake: Intake, envelope: Envelope) -> None:
        update = await self._read(link, envelope.kind, envelope.payload)
        if update is None:
            await envelope.acknowledge()
            return
        self._envelopes[id(update)] = envelope
        await intake.accept(update, cursor=self._advance_cursor(update))

    async def _acknowledge_accepted(self, update: AnyUpdate, receipt: Receipt) -> None:
        envelope = self._envelopes.pop(id(update), None)
        if envelope is not None:
            await envelope.acknowledge()
        if isinstance(update, ButtonPressed):
            try:
                async with asyncio.timeout(PRESS_ANSWER_SECONDS):
                    await self.answer_press(update.press_id, receipt.reply)
            except (DeliveryError, TimeoutError) as error:
                log.info("slack_press_not_answered", extra={"reason": str(error)})

    async def _catch_up(self, link: AccountLink, intake: Intake, cursor: str) -> None:
        """Read what was missed; if that fails, again later: receiving goes on, and only the cursor waits for it."""
        if self._has_caught_up.is_set():
            return
        pause = self._timing.catch_up_retry
        while not self._has_caught_up.is_set():
            try:
                async for event in read_missed_messages(self._client, cursor):
                    if (update := await self._read(link, "events_api", {"event": event})) is not None:
                        await intake.accept(update, cursor=self._advance_cursor(update))
                self._has_caught_up.set()
            except ConnectionLost as error:
                log.warning("slack_catch_up_failed", extra={"reason": str(error)})
                await asyncio.sleep(pause)
                pause = min(2 * pause, MAX_CATCH_UP_RETRY_SECONDS)
        await intake.save_cursor(Cursor(self._cursor))

    def _advance_cursor(self, update: AnyUpdate) -> Cursor | None:
        """Return the cursor to store with an update; none until everything before it was read."""
        ts = update.message_id if isinstance(update, Inbound) else None
        if ts is None or not is_ts(ts) or (is_ts(self._cursor) and float(ts) <= float(self._cursor)):
            return None
        self._cursor = ts
        return Cursor(ts) if self._has_caught_up.is_set() else None

    # ---- reading what Slack sends ----------------------------------------------------------------------------

    async def _read(self, link: AccountLink, kind: str, payload: JSON) -> AnyUpdate | None:
        """Return what was sent. What cannot be read is left out, so that it does not stop the rest."""
        try:
            if kind == "events_api":
                return await self._read_event(link, payload)
            if kind == "slash_commands":
                return parse_command(payload, await self._make_context({payload["channel_id"]}))
            if kind == "interactive":
                return parse_press(payload, await self._make_context(set()))
        except UNREADABLE_ERRORS as error:
            log.warning("slack_event_unreadable", extra={"kind": kind, "reason": repr(error)})
        return None

    async def _read_event(self, link: AccountLink, payload: JSON) -> AnyUpdate | None:
        event = payload.get("event") or {}
        if event.get("type") in {"tokens_revoked", "app_uninstalled"}:
            self._client.is_token_doubted.set()
        if event.get("type") == "message" and is_own_message(event, self._app):
            if key := read_key(event):
                await link.confirm(key, event["ts"])
            return None
        update = parse_event(event, await self._make_context(list_named_ids(event)))
        if isinstance(update, Inbound) and update.source.thread_id and update.source.user_id:
            address = Address(Platform.SLACK, update.source.chat_id, update.source.thread_id, self.account)
            team_id = event.get("team") or payload.get("team_id") or self._app.team_id
            self._growing.remember_writer(address, update.source.user_id, team_id)
        return update

    async def _make_context(self, ids: set[str]) -> ReadingContext:
        names = await self._directory.load(ids)
        return ReadingContext(app=self._app, names=names, open_file=self._client.download)

    # ---- HTTP ------------------------------------------------------------------------------------------------

    async def _watch_http(self, link: AccountLink) -> None:
        while True:
            await self._client.sign_in()
            link.report_connected()
            await asyncio.sleep(self._timing.sign_in_check)

    async def handle_webhook(self, link: AccountLink, request: WebhookRequest) -> WebhookResponse:
        """Store what a request contains. Slack repeats it unless the answer is a success."""
        secret = self._settings.signing_secret
        if self._uses_socket or secret is None or request.method != "POST":
            return WebhookResponse(status=404)
        if not is_signed(request, secret.get_secret_value()):
            return WebhookResponse(status=401)
        read = read_request(request)
        if read is None:
            return WebhookResponse(status=400)
        kind, payload = read
        if kind == "events_api" and payload.get("type") == "url_verification":
            return WebhookResponse(body=str(payload.get("challenge") or "").encode())
        is_complete = bool(self._app.user_id)
        if is_complete and (update := await self._read(link, kind, payload)) is not None:
            is_complete = await self._webhook_intake.accept(link, [update], cursor=self._advance_cursor(update))
        return WebhookResponse(status=200 if is_complete else 503)

    async def close(self) -> None:
        await self._webhook_intake.close()
        await self._client.close()

    # ---- sending ---------------------------------------------------------------------------------------------

    async def send(self, message: OutgoingMessage) -> str | None:
        address = message.address
        if message.file is not None:
            return await self._send_file(message, message.file)
        is_stream = message.is_preview and self._growing.can_stream(address)
        try:
            return await (self._growing.start(message) if is_stream else self._client.post_message(message))
        except (SendUncertain, asyncio.CancelledError) as error:
            unconfirmed = UnconfirmedMessage(key=message.key, address=address, is_stream=is_stream)
            found = None
            try:
                if message.is_preview and isinstance(error, SendUncertain):
                    found = await self._confirmations.find(self._app, unconfirmed, self._timing.preview_delays)
            finally:  # also if the caller does not wait so long
                if found is None:
                    self._confirmations.add(unconfirmed)
            if found is None:
                raise
            return found

    async def _send_file(self, message: OutgoingMessage, file: OutgoingFile) -> str | None:
        file_id = await self._client.upload_file(file)
        try:
            return await self._client.share_file(message, file_id, file.name)
        except (SendUncertain, asyncio.CancelledError):
            self._confirmations.add(UnconfirmedMessage(key=message.key, address=message.address, file_id=file_id))
            raise

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        """Replace the text and the buttons of a message, or let it grow."""
        await self._growing.edit(message_id, message)

    async def delete(self, address: Address, message_id: str) -> None:
        await self._growing.delete(address, message_id)

    async def show_typing(self, address: Address) -> None:
        """Show below a thread that the app is at work."""
        if address.thread_id is None:
            raise SendRejected("Slack shows this in threads only.")
        await self._client.set_status(address, STATUS)

    async def stop_typing(self, address: Address) -> None:
        if address.thread_id is not None:
            await self._client.set_status(address, "")

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """React to a message. An empty emoji takes all our reactions back."""
        if not is_ts(message_id):
            raise SendRejected("This is not a message on Slack: nothing to react to.")
        if not emoji:
            await self._client.remove_reactions(address, message_id, self._app.user_id)
            return
        name = find_emoji_name(emoji)
        if name is None:
            raise SendRejected(f"The name of {emoji} on Slack is not known.")
        await self._client.add_reaction(address, message_id, name)

    async def answer_press(self, press_id: str, text: str | None) -> None:
        if text:
            press = PressId.parse(press_id)
            address = Address(Platform.SLACK, press.channel_id, press.thread_ts or None, self.account)
            await self._client.post_ephemeral(address, press.user_id, text)


def create_adapter(settings: SlackSettings, place: AccountPlace) -> Adapter:
    return SlackAdapter(settings, place, commands=[command.name for command in COMMANDS])

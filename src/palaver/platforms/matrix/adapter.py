"""One Matrix account: signs in, receives, sends."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import secrets
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.core.errors import AccountRefused, ChatMovedAway, ConnectionLost, SendRejected, TargetUnreachable
from palaver.core.recent_entries import RecentEntries
from palaver.core.source import ChatType, Platform
from palaver.core.texts import say
from palaver.delivery.adapter import AccountInfo, AccountLink, Adapter, OutgoingFile, OutgoingMessage
from palaver.platforms.common.failures import RequestError, RequestFailed, make_repeatable
from palaver.platforms.common.send_mark import mark_before_request
from palaver.platforms.matrix import outbound
from palaver.platforms.matrix.client import MatrixClient, RequestRefused, to_delivery_error, to_platform_error
from palaver.platforms.matrix.inbound import FileReference, Reader, RoomDirectory, read_object, read_text
from palaver.platforms.matrix.manifest import CAPABILITIES, MAX_FILE_BYTES, TYPING_SECONDS, MatrixSettings
from palaver.platforms.matrix.receiver import OWN_TRANSACTION_PREFIX, Receiver
from palaver.platforms.matrix.sign_in import sign_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from palaver.core.errors import DeliveryError, PalaverError
    from palaver.platforms.manifest import AccountPlace
    from palaver.platforms.matrix.encryption import RoomEncryption
    from palaver.sessions.delivery import Address

log = logging.getLogger(__name__)

MAX_REMEMBERED = 1_000  # uploads and reactions


class MatrixAdapter(Adapter):
    platform = Platform.MATRIX
    capabilities = CAPABILITIES
    marks_sending = True

    def __init__(self, settings: MatrixSettings, place: AccountPlace) -> None:
        self.account = place.account
        self._settings = settings
        self._folder = place.folder
        self._client = MatrixClient(settings.homeserver)
        self._rooms = RoomDirectory()
        self._is_signed_in = False
        self._display_name = ""
        self._encryption: RoomEncryption | None = None
        self._connecting = asyncio.Lock()
        self._is_closed = False
        self._uploads: RecentEntries[str, Mapping[str, Any]] = RecentEntries(MAX_REMEMBERED)
        self._reactions: RecentEntries[tuple[str, str], str] = RecentEntries(MAX_REMEMBERED)

    async def probe(self) -> AccountInfo:
        """Sign in, read the limits of the homeserver, and say whether encrypted rooms can be read."""
        self._is_closed = False
        with _translating(to_platform_error):
            await self._connect()
            limit = await self._client.fetch_upload_limit()
            warning = await self._check_encryption()
        self.capabilities = replace(CAPABILITIES, max_file_bytes=limit or MAX_FILE_BYTES)
        user_id = self._client.user_id
        return AccountInfo(user_id=user_id, name=user_id, warnings=() if warning is None else (warning,))

    async def _check_encryption(self) -> str | None:
        """Prepare our device for encrypted rooms; return what is missing for them."""
        device_id = self._client.device_id
        if self._encryption is not None and device_id is not None:
            from palaver.platforms.matrix.encryption import sign_own_device

            await self._encryption.exchange_keys()
            password = self._settings.password.get_secret_value() if self._settings.password else None
            try:
                return await sign_own_device(self._client, device_id, self._folder, password)
            except RequestRefused as error:
                if error.is_bad_token:
                    raise
                return say(
                    "matrix.session_not_signed",
                    "The homeserver did not let us sign our own session: {reason}",
                    reason=error,
                )
        if self._settings.encryption is False:
            return "Encrypted rooms can't be read, because encryption is off in the settings of this account."
        if device_id is None:
            return (
                "Encrypted rooms can't be read, because the access token belongs to no device. Use a token from "
                "signing in, or user_id and password."
            )
        return "Encrypted rooms can't be read. To read them, run: pip install 'palaver[matrix-encryption]'"

    async def _connect(self) -> None:
        """Sign in, unless that has been done."""
        async with self._connecting:
            if self._is_signed_in:
                return
            if self._is_closed:
                raise RequestFailed("the account is not connected", may_have_arrived=False)
            await sign_in(self._client, self._settings, self._folder)
            localpart = self._client.user_id.removeprefix("@").partition(":")[0]
            self._display_name = await self._client.fetch_display_name() or localpart
            self._open_encryption()
            self._is_signed_in = True

    def _open_encryption(self) -> None:
        self._close_encryption()
        if self._settings.encryption is False:
            return
        device_id, problem = self._client.device_id, None
        if importlib.util.find_spec("nio") is None or importlib.util.find_spec("vodozemac") is None:
            problem = say(
                "matrix.encryption_not_installed",
                "Encryption is on, but its packages are not installed. Run: pip install"
                " 'palaver[matrix-encryption]', or set encryption to false.",
            )
        elif device_id is None:
            problem = say(
                "matrix.token_without_device",
                "Encryption is on, but the access token belongs to no device. Use a token from signing in.",
            )
        else:
            from palaver.platforms.matrix.encryption import RoomEncryption

            self._encryption = RoomEncryption(self._client, device_id, self._folder)
        if problem is not None and self._settings.encryption is True:
            raise AccountRefused(problem)

    async def run(self, link: AccountLink) -> None:
        self._is_closed = False
        try:
            await self._connect()
            reader = Reader(self._client.user_id, self._display_name, self._open_file)
            await Receiver(self._client, self._rooms, reader, self._encryption, link).run()
        except RequestError as error:
            if isinstance(error, RequestRefused) and error.is_bad_token:
                self._is_signed_in = False
                if self._settings.access_token is None:
                    raise ConnectionLost.say(
                        "matrix.token_ended", "The access token has ended. Signing in again."
                    ) from error
            raise to_platform_error(error) from error

    async def close(self) -> None:
        self._is_closed = True
        self._is_signed_in = False
        await self._client.close()
        self._close_encryption()

    def _close_encryption(self) -> None:
        if self._encryption is not None:
            self._encryption.close()
            self._encryption = None

    def render(self, markdown: str) -> list[str]:
        return outbound.render_messages(markdown, self.capabilities)

    async def send(self, message: OutgoingMessage) -> str | None:
        """Send a text or a file. The key is the transaction id: sent again, it is the same event."""
        room_id, thread_id = message.address.chat_id, message.address.thread_id
        # An answer shows what it answers in groups, where others may have written meanwhile.
        room = self._rooms.get(room_id)
        is_quoting = thread_id or room is None or room.chat_type is not ChatType.DM
        with _translating(_to_unsent_error):
            is_encrypted = await self._is_encrypted(room_id)
            if message.file is None:
                content = outbound.build_content(message, send_as=self._settings.send_as)
            else:
                location = await self._upload(message.key, message.file, is_encrypted=is_encrypted)
                content = outbound.build_file_content(message.file, location)
        content |= outbound.build_relation(reply_to=message.reply_to if is_quoting else None, thread_id=thread_id)
        return await self._send_message(room_id, content, message.key, message.mark_sending)

    async def edit(self, message_id: str, message: OutgoingMessage) -> None:
        content = outbound.build_edit(message_id, message, send_as=self._settings.send_as)
        await self._send_message(message.address.chat_id, content, _new_transaction_id())

    async def _send_message(
        self,
        room_id: str,
        content: Mapping[str, Any],
        transaction_id: str,
        mark: Callable[[], Awaitable[None]] | None = None,
    ) -> str | None:
        event_type = "m.room.message"
        with _translating(_to_unsent_error):
            if await self._is_encrypted(room_id):
                assert self._encryption is not None  # noqa: S101
                content = await self._encryption.encrypt(room_id, event_type, content)
                event_type = "m.room.encrypted"
        async with self._explaining_refusals(room_id):
            with mark_before_request(mark):
                return await self._client.send_event(room_id, event_type, content, transaction_id)

    async def delete(self, address: Address, message_id: str) -> None:
        """Redact a message: its content is removed, for everyone."""
        async with self._explaining_refusals(address.chat_id):
            await self._connect()
            try:
                await self._client.redact_event(address.chat_id, message_id, _new_transaction_id())
            except RequestRefused as error:
                if error.code != "M_NOT_FOUND":
                    raise

    async def show_typing(self, address: Address) -> None:
        await self._set_typing(address, TYPING_SECONDS)

    async def stop_typing(self, address: Address) -> None:
        await self._set_typing(address, 0)

    async def _set_typing(self, address: Address, seconds: float) -> None:
        with _translating(to_delivery_error):
            await self._connect()
            await self._client.set_typing(address.chat_id, seconds=seconds)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        """Set our reaction to a message; there is one at a time."""
        room_id = address.chat_id
        async with self._explaining_refusals(room_id):
            await self._connect()
            if (earlier := await self._find_reaction(room_id, message_id)) is not None:
                await self._client.redact_event(room_id, earlier, _new_transaction_id())
                self._reactions.pop((room_id, message_id), None)
            if emoji:
                relation = {"rel_type": "m.annotation", "event_id": message_id, "key": emoji}
                # Reactions are not encrypted: homeservers count them.
                event_id = await self._client.send_event(
                    room_id, "m.reaction", {"m.relates_to": relation}, _new_transaction_id()
                )
                self._reactions.remember((room_id, message_id), event_id or "")

    async def _find_reaction(self, room_id: str, message_id: str) -> str | None:
        """Return our reaction to a message; after a restart the homeserver is asked."""
        if (known := self._reactions.get((room_id, message_id))) is not None:
            return known
        for event in await self._client.fetch_reactions(room_id, message_id):
            if read_object(event).get("sender") == self._client.user_id:
                return read_text(event.get("event_id"))
        return None

    async def _is_encrypted(self, room_id: str) -> bool:
        """Return whether a room is encrypted. Raises SendRejected if it is, and we have no keys: nothing leaks."""
        await self._connect()
        room = self._rooms.get(room_id)
        if room is not None:
            is_encrypted = room.is_encrypted
        else:
            is_encrypted = await self._client.fetch_state(room_id, "m.room.encryption") is not None
        if is_encrypted and self._encryption is None:
            raise SendRejected.say(
                "matrix.room_encrypted",
                "This room is encrypted, and encryption is not set up. Run: pip install"
                " 'palaver[matrix-encryption]', and set encryption to true for this account.",
            )
        return is_encrypted

    async def _upload(self, key: str, file: OutgoingFile, *, is_encrypted: bool) -> Mapping[str, Any]:
        """Upload a file, once for all attempts to send it, and return where it is."""
        if (known := self._uploads.get(key)) is not None:
            return known
        if is_encrypted:
            from palaver.platforms.matrix.encryption import encrypt_file

            keys: dict[str, Any] = {}
            chunks = encrypt_file(file.read(), keys)
            url = await self._client.upload(chunks, size=file.size, media_type="application/octet-stream", name="file")
            location: dict[str, Any] = {"file": {**keys, "url": url}}
        else:
            url = await self._client.upload(file.read(), size=file.size, media_type=file.media_type, name=file.name)
            location = {"url": url}
        self._uploads.remember(key, location)
        return location

    async def _open_file(self, file: FileReference) -> AsyncIterator[bytes]:
        chunks = self._client.download(file)
        with _translating(to_platform_error):
            if file.keys is None:
                async for chunk in chunks:
                    yield chunk
            else:
                from palaver.platforms.matrix.encryption import decrypt_file

                yield await decrypt_file(chunks, file, self.capabilities.max_file_bytes)

    @asynccontextmanager
    async def _explaining_refusals(self, room_id: str) -> AsyncIterator[None]:
        """Raise what a failed request means. A refusal may mean that the room was replaced, or that we left it."""
        try:
            yield
        except RequestError as error:
            if isinstance(error, RequestRefused) and error.status == 403 and not error.is_bad_token:
                await self._check_room(room_id, error)
            raise to_delivery_error(error) from error

    async def _check_room(self, room_id: str, refusal: RequestRefused) -> None:
        with _translating(to_delivery_error):
            joined = room_id in await self._client.list_joined_rooms()
            tombstone = await self._client.fetch_state(room_id, "m.room.tombstone")
        if tombstone and (replacement := read_text(tombstone.get("replacement_room"))):
            raise ChatMovedAway("The room was replaced by another one.", new_chat_id=replacement) from refusal
        if not joined:
            raise TargetUnreachable.say(
                "matrix.we_not_room", "We are not in this room: {reason}", reason=refusal.explanation
            ) from refusal


@contextmanager
def _translating(translate: Callable[[RequestError], PalaverError]) -> Iterator[None]:
    """Raise what a failed request means."""
    try:
        yield
    except RequestError as error:
        raise translate(error) from error


def _to_unsent_error(error: RequestError) -> DeliveryError:
    return make_repeatable(to_delivery_error(error))


def _new_transaction_id() -> str:
    return f"{OWN_TRANSACTION_PREFIX}{secrets.token_hex(12)}"

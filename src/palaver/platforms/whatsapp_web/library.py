"""The WhatsApp library: neonize, which is whatsmeow in Go. Imported only by the child.

The library calls back from threads of Go. Nothing may be raised there, and nothing that is received may be printed:
Python prints what a callback raises, with its text, to the standard error.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections import deque
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neonize._binder import ProxySettings
from neonize.client import NewClient
from neonize.exc import NeonizeError
from neonize.proto import Neonize_pb2 as neonize
from neonize.proto.waCompanionReg.WAWebProtobufsCompanionReg_pb2 import DeviceProps
from neonize.utils.enum import ChatPresence, ChatPresenceMedia, ClientName, ClientType, MediaType, Presence
from neonize.utils.log import log as library_log

from palaver.platforms.whatsapp_web import translation
from palaver.platforms.whatsapp_web.library_errors import (
    OWNER_LOGOUTS,
    classify_error,
    describe_ban,
    describe_library_error,
    translate_failure,
)
from palaver.platforms.whatsapp_web.outbound import measure_seconds
from palaver.platforms.whatsapp_web.protocol import FILES_FOLDER, SESSION_FILE, ErrorKind, RequestError, State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.platforms.whatsapp_web.protocol import Receive, Report


FIRST_CODE_SECONDS: Final = 60
NEXT_CODE_SECONDS: Final = 20
PAIRING_CODE_SECONDS: Final = 160
LINKING_GRACE_SECONDS: Final = 15.0  # after a code has expired without a new one
MAX_REMEMBERED_IDS: Final = 1000
_MEDIA_TYPES: Final = {
    "imageMessage": MediaType.MediaImage,
    "videoMessage": MediaType.MediaVideo,
    "audioMessage": MediaType.MediaAudio,
    "documentMessage": MediaType.MediaDocument,
}


library_log.setLevel(logging.CRITICAL)


def _never_raise(handler: Callable[..., None]) -> Callable[..., None]:
    """Report an error in a callback, but not what was received: Python would print it. The connection goes on."""

    @functools.wraps(handler)
    def call(self: NeonizeLibrary, *arguments: Any) -> None:
        try:
            handler(self, *arguments)
        except Exception as error:  # noqa: BLE001  (Go can't be told; its text may hold what was received)
            self._report(State.UNREADABLE, {"reason": type(error).__name__})

    return call


class NeonizeLibrary:
    """One linked device."""

    def __init__(self) -> None:
        self.version = f"neonize {version('neonize')}"
        self._client: NewClient | None = None
        self._options: Mapping[str, Any] = {}
        self._identity: dict[str, Any] | None = None
        self._report: Report = lambda _state, _fields: None
        self._receive: Receive = lambda _event: None
        self._sent_ids: deque[str] = deque(maxlen=MAX_REMEMBERED_IDS)
        self._misses_answers = False  # WhatsApp has not answered the last keep-alive
        self._code_ends_at: float | None = None  # by the monotonic clock
        self._codes = 0
        self._is_done = threading.Event()

    # ---- connection ------------------------------------------------------------------------------------------

    def connect(self, options: Mapping[str, Any], *, report: Report, receive: Receive) -> None:
        self._options, self._report, self._receive = options, report, receive
        properties = DeviceProps(os=options["device_name"], platformType=DeviceProps.CHROME)
        self._client = client = NewClient(SESSION_FILE, props=properties, uuid="palaver")
        client.event.qr(self._on_code)
        for event, handler in self._list_handlers().items():
            client.event(event)(functools.partial(self._handle, handler))
        proxy = options.get("proxy_url")
        threading.Thread(target=self._watch_linking, daemon=True).start()
        try:
            client.connect(ProxySettings(proxy) if proxy else None)
        except NeonizeError as error:
            raise RequestError(ErrorKind.NOT_SENT, describe_library_error(str(error))) from None
        finally:
            self._is_done.set()

    @_never_raise
    def _handle(self, handler: Callable[[Any], None], _client: Any, event: Any) -> None:
        handler(event)

    def _list_handlers(self) -> dict[Any, Callable[[Any], None]]:
        return {
            neonize.Message: self._on_message,
            neonize.GroupInfoEvent: lambda changed: self._on_group_event(
                translation.translate_group_change(changed, self._load_identity())
            ),
            neonize.JoinedGroup: lambda joined: self._on_group_event(translation.translate_joined_group(joined)),
            neonize.Connected: self._on_connected,
            neonize.Disconnected: lambda _: self._report(State.DISCONNECTED, {}),
            neonize.KeepAliveTimeout: lambda _: self._set_keep_alive(is_missed=True),
            neonize.KeepAliveRestored: lambda _: self._set_keep_alive(is_missed=False),
            neonize.LoggedOut: self._on_logged_out,
            neonize.StreamReplaced: lambda _: self._report(State.REPLACED, {}),
            neonize.TemporaryBan: lambda ban: self._report(State.BANNED, {"reason": describe_ban(ban)}),
            neonize.ClientOutdated: lambda _: self._report(State.OUTDATED, {}),
            neonize.ConnectFailure: lambda failure: self._report(*translate_failure(failure)),
            neonize.PairStatus: self._on_pair_status,
        }

    def is_alive(self) -> bool:
        client = self._client
        if client is None or self._identity is None or self._misses_answers or self._is_done.is_set():
            return False
        return bool(client.is_connected and client.is_logged_in)

    def stop(self) -> None:
        if self._client is not None:
            self._client.stop()

    # ---- linking ---------------------------------------------------------------------------------------------

    @_never_raise
    def _on_code(self, _client: Any, code: bytes) -> None:
        """Report a QR code; with a phone number, ask once for a code to type instead."""
        self._codes += 1
        phone = self._options.get("phone_number")
        if phone is None:
            seconds = FIRST_CODE_SECONDS if self._codes == 1 else NEXT_CODE_SECONDS
            self._code_ends_at = time.monotonic() + seconds
            self._report(State.QR_CODE, {"code": code.decode(), "seconds": seconds})
        elif self._codes == 1:
            self._code_ends_at = time.monotonic() + PAIRING_CODE_SECONDS
            threading.Thread(target=self._request_pairing_code, args=[phone], daemon=True).start()

    def _request_pairing_code(self, phone: str) -> None:
        try:
            code = self._get_client().PairPhone(phone, True, ClientName.LINUX, ClientType.CHROME)
        except NeonizeError as error:
            self._report(State.UNAVAILABLE, {"reason": describe_library_error(str(error))})
            return
        self._report(State.PAIRING_CODE, {"code": code, "seconds": PAIRING_CODE_SECONDS})

    def _watch_linking(self) -> None:
        """Notice that the codes were not used in time: the library does not report it."""
        while not self._is_done.wait(1.0):
            ends_at = self._code_ends_at
            if ends_at is not None and time.monotonic() > ends_at + LINKING_GRACE_SECONDS:
                self._code_ends_at = None
                self._report(State.LINKING_ENDED, {})

    def _on_pair_status(self, status: neonize.PairStatus) -> None:
        self._code_ends_at = None  # linked: WhatsApp ends this connection, and the library makes another
        if status.Error:
            self._report(State.UNAVAILABLE, {"reason": f"The phone could not be linked: {status.Error[:200]}"})

    # ---- receiving -------------------------------------------------------------------------------------------

    def _on_connected(self, _connected: Any) -> None:
        self._misses_answers = False
        self._code_ends_at = None
        self._identity = None  # the name may have changed
        self._report(State.CONNECTED, {"identity": self._load_identity()})
        # Others see that the agent is typing only if it is available. But then the phone stays silent for new messages,
        # which people don't want on their own phone.
        presence = Presence.AVAILABLE if self._options["chats"] == "all" else Presence.UNAVAILABLE
        with contextlib.suppress(NeonizeError):
            self._get_client().send_presence(presence)

    def _load_identity(self) -> dict[str, Any]:
        """Return who our account is. Messages that waited may come before WhatsApp says that we are connected."""
        if self._identity is None:
            self._identity = translation.describe_identity(self._get_client().get_me())
        return self._identity

    def _get_client(self) -> NewClient:
        assert self._client is not None  # noqa: S101  (set before it connects)
        return self._client

    def _set_keep_alive(self, *, is_missed: bool) -> None:
        self._misses_answers = is_missed

    def _on_logged_out(self, logged_out: neonize.LoggedOut) -> None:
        reason = neonize.ConnectFailureReason.Name(logged_out.Reason) if logged_out.HasField("Reason") else "LOGGED_OUT"
        self._report(State.LOGGED_OUT, {"reason": OWNER_LOGOUTS.get(reason, OWNER_LOGOUTS["LOGGED_OUT"])})

    def _on_message(self, received: neonize.Message) -> None:
        if received.Info.ID in self._sent_ids:
            return
        self._fill_in_number(received.Info.MessageSource)
        event = translation.translate_message(received, self._load_identity(), self._options["chats"])
        if event is not None:
            self._receive(event)

    def _fill_in_number(self, source: neonize.MessageSource) -> None:
        """Look up the number of a sender whom WhatsApp names only by a LID; the library knows many."""
        if source.Sender.Server != "lid" or source.SenderAlt.User:
            return
        try:
            source.SenderAlt.CopyFrom(self._get_client().get_pn_from_lid(source.Sender))
        except NeonizeError:  # it does not know this one, and the LID is enough
            pass
        except Exception as error:  # noqa: BLE001  (whatever it is: the message must not be lost)
            self._report(State.UNREADABLE, {"reason": f"number of a sender ({type(error).__name__})"})

    def _on_group_event(self, event: dict[str, Any] | None) -> None:
        if event is not None and self._options["chats"] != "self":
            self._receive(event)

    # ---- requests --------------------------------------------------------------------------------------------

    def perform(self, name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        if self._client is None or self._identity is None:
            raise RequestError(ErrorKind.NOT_SENT, "WhatsApp is not connected.")
        try:
            return _download(self._client, fields) if name == "download" else self._act(self._client, name, fields)
        except NeonizeError as error:
            raise RequestError(classify_error(str(error)), describe_library_error(str(error))) from None

    def _act(self, client: NewClient, name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Do something in a chat; return the id of a message that was sent."""
        chat = translation.parse_jid(fields["chat"])
        match name:
            case "send_text":
                message = translation.build_text(fields["text"], fields.get("quoted"))
            case "send_file":
                message = _upload(client, fields)
            case "delete":
                message = translation.build_deletion(fields["chat"], fields["target"])
            case "react":
                message = translation.build_reaction(fields, time.time_ns() // 1_000_000)
            case "typing":
                presence = "COMPOSING" if fields["is_typing"] else "PAUSED"
                media = ChatPresenceMedia.CHAT_PRESENCE_MEDIA_TEXT
                client.send_chat_presence(chat, ChatPresence[f"CHAT_PRESENCE_{presence}"], media)
                return {}
            case "group":
                return {"name": client.get_group_info(chat).GroupName.Name[: translation.MAX_NAME_CHARS]}
            case _:
                raise KeyError(name)
        response = client.send_message(chat, message)
        self._sent_ids.append(response.ID)
        return {"id": response.ID}


def _upload(client: NewClient, fields: Mapping[str, Any]) -> Any:
    content = _get_file_path(fields["file"]).read_bytes()
    try:
        upload = client.upload(content, _MEDIA_TYPES[fields["field"]])
    except NeonizeError as error:  # nothing was sent yet
        raise RequestError(ErrorKind.NOT_SENT, describe_library_error(str(error))) from None
    return translation.build_file(fields, upload, seconds=measure_seconds(content) if fields["is_voice"] else None)


def _download(client: NewClient, fields: Mapping[str, Any]) -> dict[str, Any]:
    content = client.download_any(translation.parse_reference(fields["reference"]))
    if len(content) > fields["max_bytes"]:
        raise RequestError(ErrorKind.TOO_LARGE, "The file is larger than WhatsApp had said.")
    with _get_file_path(fields["file"]).open("xb") as file:
        file.write(content)
    return {"size": len(content)}


def _get_file_path(name: str) -> Path:
    """Return where a file lies that is passed between the processes, by its name."""
    return Path(FILES_FOLDER) / Path(name).name

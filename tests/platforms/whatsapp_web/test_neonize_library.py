"""How the library is used: what its callbacks report, and what a request makes it do. Its Go part is replaced."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from palaver.platforms.whatsapp_web.protocol import ErrorKind, RequestError, State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPTIONS = {"chats": "all", "phone_number": None, "device_name": "Palaver", "proxy_url": None}


class GoClient:
    """What the Go part would do."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.calls: list[tuple[Any, ...]] = []
        self.error: str | None = None
        self.content = b"content"
        self.knows_numbers = True
        self.is_connected = self.is_logged_in = True

    def get_me(self) -> Any:
        make_jid = self._library.translation.parse_jid
        own = make_jid("491700000001@s.whatsapp.net")
        own.Device = 7
        return self._library.neonize.Device(JID=own, LID=make_jid("70@lid"), PushName="Palaver")

    def get_pn_from_lid(self, _jid: Any) -> Any:
        if not self.knows_numbers:
            raise ValueError("something unexpected")
        return self._library.translation.parse_jid("49171@s.whatsapp.net")

    def send_message(self, to: Any, message: Any) -> Any:
        self._fail()
        self.calls.append(("send", to.User, message))
        return SimpleNamespace(ID=f"3EB{len(self.calls)}")

    def send_presence(self, presence: Any) -> None:
        self.calls.append(("presence", presence.name))

    def send_chat_presence(self, jid: Any, state: Any, _media: Any) -> None:
        self.calls.append(("typing", jid.User, state.name))

    def upload(self, content: bytes, media_type: Any) -> Any:
        self._fail()
        self.calls.append(("upload", content, media_type.name))
        return self._library.neonize.UploadResponse(url="u", DirectPath="/d", MediaKey=b"k", FileEncSHA256=b"e",
                                                    FileSHA256=b"s", FileLength=3)  # fmt: skip

    def download_any(self, message: Any) -> bytes:
        self.calls.append(("download", message.documentMessage.directPath))
        return self.content

    def get_group_info(self, _jid: Any) -> Any:
        return SimpleNamespace(GroupName=SimpleNamespace(Name="Engines"))

    def PairPhone(self, phone: str, *_: Any) -> str:  # noqa: N802
        self._fail()
        return f"CODE-{phone}"

    def stop(self) -> None:
        self.calls.append(("stop",))

    def _fail(self) -> None:
        from neonize.exc import NeonizeError

        if self.error:
            raise NeonizeError(self.error)


class ConnectedClient:
    """A library as it is after `connect`."""

    def __init__(self, library: Any, **options: Any) -> None:
        self.states: list[tuple[State, dict[str, Any]]] = []
        self.events: list[dict[str, Any]] = []
        self.reported = threading.Event()
        self.client = GoClient(library)
        self.library = library.NeonizeLibrary()
        self.library._client = self.client
        self.library._options = OPTIONS | options
        self.library._report = self.report
        self.library._receive = self.events.append
        self.handlers = self.library._list_handlers()

    def report(self, state: State, fields: dict[str, Any]) -> None:
        self.states.append((state, fields))
        self.reported.set()

    def fire(self, event: Any) -> None:
        self.library._handle(self.handlers[type(event)], self.client, event)


@pytest.fixture
def connect(library: Any) -> Callable[..., ConnectedClient]:
    def make(**options: Any) -> ConnectedClient:
        return ConnectedClient(library, **options)

    return make


@pytest.fixture
def message(library: Any) -> Callable[..., Any]:
    def make(text: str = "Hello", **fields: Any) -> Any:
        make_jid = library.translation.parse_jid
        source = library.neonize.MessageSource(Chat=make_jid("71@lid"), Sender=make_jid("71@lid"))
        info = library.neonize.MessageInfo(MessageSource=source, **{"ID": "3A01", **fields})
        return library.neonize.Message(Info=info, Message=library.messages.Message(conversation=text))

    return make


def test_codes_are_reported_with_the_time_that_they_are_shown(connect: Callable[..., ConnectedClient]) -> None:
    found = connect()
    for code in (b"2@one", b"2@two"):
        found.library._on_code(None, code)
    assert found.states == [
        (State.QR_CODE, {"code": "2@one", "seconds": 60}),
        (State.QR_CODE, {"code": "2@two", "seconds": 20}),
    ]


@pytest.mark.parametrize("error", [None, "international phone number required"])
def test_with_a_phone_number_one_code_to_type_is_asked_for(
    connect: Callable[..., ConnectedClient], error: str | None
) -> None:
    found = connect(phone_number="49170")
    found.client.error = error
    for code in (b"2@one", b"2@two"):
        found.library._on_code(None, code)
    assert found.reported.wait(60)
    state, fields = found.states[0]
    if error:
        assert (state, fields["reason"]) == (State.UNAVAILABLE, f"WhatsApp: {error}")
    else:
        assert (state, fields["code"]) == (State.PAIRING_CODE, "CODE-49170")


def test_codes_that_are_never_scanned_are_noticed(
    connect: Callable[..., ConnectedClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.platforms.whatsapp_web.library.LINKING_GRACE_SECONDS", -100.0)
    found = connect()
    found.library._on_code(None, b"2@one")
    found.reported.clear()
    watching = threading.Thread(target=found.library._watch_linking)
    watching.start()
    assert found.reported.wait(60)
    found.library._is_done.set()
    watching.join()
    assert found.states[-1] == (State.LINKING_ENDED, {})


@pytest.mark.parametrize(("chats", "presence"), [("all", "AVAILABLE"), ("self", "UNAVAILABLE")])
def test_the_phone_of_the_owner_keeps_ringing(
    library: Any, connect: Callable[..., ConnectedClient], chats: str, presence: str
) -> None:
    found = connect(chats=chats)
    found.fire(library.neonize.Connected())
    assert found.states[0][0] is State.CONNECTED
    assert found.states[0][1]["identity"] == {"phone": "491700000001", "lid": "70", "device": 7, "name": "Palaver"}
    assert found.client.calls == [("presence", presence)]


def test_a_connection_that_gets_no_answers_is_not_alive_until_it_does(
    library: Any, connect: Callable[..., ConnectedClient]
) -> None:
    found = connect()
    assert not found.library.is_alive()  # nothing is known yet
    found.fire(library.neonize.Connected())
    assert found.library.is_alive()
    found.fire(library.neonize.KeepAliveTimeout(ErrorCount=1))
    assert not found.library.is_alive()
    found.fire(library.neonize.KeepAliveRestored())
    assert found.library.is_alive()
    found.fire(library.neonize.KeepAliveTimeout(ErrorCount=1))
    found.fire(library.neonize.Connected())  # a new connection starts from the beginning
    assert found.library.is_alive()
    found.client.is_connected = False
    assert not found.library.is_alive()


def test_each_end_of_a_connection_is_reported(library: Any, connect: Callable[..., ConnectedClient]) -> None:
    neonize = library.neonize
    found = connect()
    found.fire(neonize.LoggedOut(OnConnect=True, Reason=neonize.ConnectFailureReason.Value("UNKNOWN_LOGOUT")))
    found.fire(neonize.LoggedOut())
    found.fire(neonize.StreamReplaced())
    found.fire(neonize.TemporaryBan(Code=1, Expire=0))
    found.fire(neonize.ClientOutdated())
    found.fire(neonize.Disconnected())
    found.fire(neonize.PairStatus(Error="no such phone"))
    assert [state for state, _ in found.states] == [
        *(State.LOGGED_OUT, State.LOGGED_OUT, State.REPLACED, State.BANNED, State.OUTDATED, State.DISCONNECTED),
        State.UNAVAILABLE,
    ]
    assert "banned" in found.states[0][1]["reason"]
    assert "Linked devices" in found.states[1][1]["reason"]


def test_a_message_that_comes_before_anything_else_is_kept_with_the_number_of_its_sender(
    connect: Callable[..., ConnectedClient], message: Callable[..., Any]
) -> None:
    found = connect()
    found.fire(message())  # messages that waited come at once
    found.client.knows_numbers = False
    found.fire(message("Again"))
    first, second = found.events
    assert (first["text"], first["sender"], first["sender_alt"]) == ("Hello", "71@lid", "49171@s.whatsapp.net")
    assert (second["text"], second["sender"], second["sender_alt"]) == ("Again", "71@lid", None)


def test_our_own_messages_do_not_come_back(
    connect: Callable[..., ConnectedClient], message: Callable[..., Any]
) -> None:
    found = connect()
    found.library._load_identity()
    sent = found.library.perform("send_text", {"chat": "71@lid", "text": "Hi", "quoted": None})
    found.fire(message(ID=sent["id"]))
    assert found.events == []


def test_an_error_in_a_callback_prints_nothing_of_a_message(
    connect: Callable[..., ConnectedClient], message: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    found = connect()

    def break_down(_event: dict[str, Any]) -> None:
        raise OSError("secret text")

    found.library._receive = break_down
    found.fire(message("secret text"))
    assert found.states == [(State.UNREADABLE, {"reason": "OSError"})]
    assert "secret" not in "".join(capfd.readouterr())


def test_requests(
    library: Any, connect: Callable[..., ConnectedClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "out-1").write_bytes(b"abc")
    found = connect()
    perform = found.library.perform
    with pytest.raises(RequestError, match="not connected"):
        perform("group", {"chat": "1@g.us"})
    found.library._load_identity()
    assert perform("group", {"chat": "1@g.us"}) == {"name": "Engines"}
    perform("typing", {"chat": "71@lid", "is_typing": True})
    fields = {"field": "imageMessage", "media_type": "image/png", "name": "a", "is_voice": False, "file": "out-1"}
    assert perform("send_file", fields | {"chat": "71@lid"})["id"]
    assert found.client.calls[:2] == [
        ("typing", "71", "CHAT_PRESENCE_COMPOSING"),
        ("upload", b"abc", "MediaImage"),
    ]
    media = library.messages.Message(documentMessage=library.messages.DocumentMessage(directPath="/d"))
    reference = library.translation.describe_media(media)["reference"]
    request = {"reference": reference, "file": "../in-1", "max_bytes": 7}
    assert perform("download", request) == {"size": 7}
    assert (tmp_path / "files" / "in-1").read_bytes() == b"content"  # never outside of its folder
    with pytest.raises(RequestError) as too_large:
        perform("download", request | {"max_bytes": 6, "file": "in-2"})
    assert too_large.value.kind is ErrorKind.TOO_LARGE
    found.client.error = "server returned error 479"
    with pytest.raises(RequestError) as refused:
        perform("delete", {"chat": "71@lid", "target": "3EB0"})
    assert refused.value.kind is ErrorKind.REFUSED
    with pytest.raises(RequestError) as not_sent:
        perform("send_file", fields | {"chat": "71@lid"})
    assert not_sent.value.kind is ErrorKind.NOT_SENT  # it was not even uploaded


def test_the_library_calls_us_back_with_what_it_encodes(
    library: Any, message: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way that an event takes from Go to our handlers: as bytes at an address, with a number for its type."""
    received: list[dict[str, Any]] = []
    states: list[tuple[State, dict[str, Any]]] = []

    def run(client: Any, _proxy: Any) -> None:
        client.event._qr(client, b"2@one")
        for code, event in ((3, library.neonize.Connected()), (17, message("By bytes"))):
            data = ctypes.create_string_buffer(event.SerializePartialToString())
            client.event.execute(0, ctypes.addressof(data), len(data) - 1, code)

    from neonize.client import NewClient

    go = GoClient(library)
    for name in ("get_me", "get_pn_from_lid", "send_presence"):
        monkeypatch.setattr(NewClient, name, lambda _client, *arguments, name=name: getattr(go, name)(*arguments))
    monkeypatch.setattr(NewClient, "connect", run)
    child_library = library.NeonizeLibrary()
    child_library.connect(OPTIONS, report=lambda state, fields: states.append((state, fields)), receive=received.append)
    assert [state for state, _ in states] == [State.QR_CODE, State.CONNECTED]
    assert [event["text"] for event in received] == ["By bytes"]


def test_a_library_that_cannot_connect_says_why(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from neonize.client import NewClient
    from neonize.exc import NeonizeError

    def fail(_client: Any, proxy: Any) -> None:
        assert proxy.proxy_address == "socks5://127.0.0.1:1"
        raise NeonizeError("failed to dial whatsapp web websocket: dial tcp: lookup web.whatsapp.com: no such host")

    monkeypatch.setattr(NewClient, "connect", fail)
    with pytest.raises(RequestError, match=r"Check the network connection of this machine \(tcp: lookup web"):
        library.NeonizeLibrary().connect(
            OPTIONS | {"proxy_url": "socks5://127.0.0.1:1"}, report=lambda *_: None, receive=lambda _: None
        )

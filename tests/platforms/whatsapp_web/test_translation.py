"""What the library delivers becomes events, and what is sent becomes its messages: with its real protocol buffers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from palaver.platforms.whatsapp_web.library_errors import (
    classify_error,
    describe_ban,
    describe_library_error,
    translate_failure,
)
from palaver.platforms.whatsapp_web.protocol import MAX_LINE_BYTES, ErrorKind, State

if TYPE_CHECKING:
    from collections.abc import Callable

IDENTITY = {"phone": "491700000001", "lid": "700000000000001", "device": 7, "name": "Palaver"}


@pytest.fixture
def receive(library: Any) -> Callable[..., dict[str, Any] | None]:
    """Translates a message with these fields; from Ada in a direct chat, unless something else is said."""

    def translate(
        *, chats: str = "all", chat: str = "49171@s.whatsapp.net", info: Any = None, edit: str = "", **fields: Any
    ) -> Any:
        make_jid = library.translation.parse_jid
        source = library.neonize.MessageSource(
            Chat=make_jid(chat), Sender=make_jid("49171@s.whatsapp.net"), SenderAlt=make_jid("71@lid"),
            IsGroup=chat.endswith("g.us"), IsFromMe=False,
        )  # fmt: skip
        for name, value in (info or {}).items():
            target = getattr(source, name)
            target.CopyFrom(value) if hasattr(target, "CopyFrom") else setattr(source, name, value)
        message_info = library.neonize.MessageInfo(
            MessageSource=source, ID="3A01", Pushname="Ada", Timestamp=1_790_000_000, Edit=edit
        )
        received = library.neonize.Message(Info=message_info, Message=library.messages.Message(**fields))
        event = library.translation.translate_message(received, IDENTITY, chats)
        assert len(json.dumps(event)) < MAX_LINE_BYTES
        return event

    return translate


def test_a_text_has_its_sender_under_both_ids(receive: Callable[..., Any]) -> None:
    event = receive(conversation="Hello")
    assert event == {
        "kind": "message",
        "id": "3A01",
        "chat": "49171@s.whatsapp.net",
        "chat_alt": "71@lid",
        "sender": "49171@s.whatsapp.net",
        "sender_alt": "71@lid",
        "is_group": False,
        "is_self": False,
        "own": ["491700000001@s.whatsapp.net", "700000000000001@lid"],
        "name": "Ada",
        "at": 1_790_000_000.0,
        "text": "Hello",
        "media": None,
        "mentions": [],
        "quoted": None,
        "is_forwarded": False,
        "album": None,
    }


def test_a_reply_with_a_mention_in_a_group(library: Any, receive: Callable[..., Any]) -> None:
    quoted = library.messages.Message(imageMessage=library.messages.ImageMessage(caption=""))
    context = library.messages.ContextInfo(
        stanzaID="3EB0", participant="700000000000001@lid", quotedMessage=quoted, mentionedJID=["72@lid"]
    )
    context.isForwarded = True
    text = library.messages.ExtendedTextMessage(text="Look", contextInfo=context)
    event = receive(chat="120363@g.us", extendedTextMessage=text)
    assert (event["chat"], event["chat_alt"], event["is_group"]) == ("120363@g.us", None, True)
    assert event["quoted"] == {"id": "3EB0", "sender": "700000000000001@lid", "text": "[Photo]"}
    assert (event["mentions"], event["is_forwarded"]) == (["72@lid"], True)


@pytest.mark.parametrize("own", ["491700000001@s.whatsapp.net", "700000000000001@lid"])
def test_only_own_notes_are_kept_when_only_they_are_answered(
    library: Any, receive: Callable[..., Any], own: str
) -> None:
    make_jid = library.translation.parse_jid
    note = {"IsFromMe": True, "Sender": make_jid(own)}
    assert receive(chats="self", conversation="Hello") is None
    assert receive(chats="self", chat="120363@g.us", conversation="Hello") is None
    event = receive(chats="self", chat=own, info=note, conversation="Note")
    assert (event["is_self"], event["text"]) == (True, "Note")


def test_what_our_own_device_has_sent_does_not_come_back(library: Any, receive: Callable[..., Any]) -> None:
    own_device = library.translation.parse_jid("491700000001@s.whatsapp.net")
    own_device.Device = 7
    info = {"IsFromMe": True, "Sender": own_device}
    assert receive(chat="491700000001@s.whatsapp.net", info=info, conversation="Answer") is None
    assert receive(info=info | {"Sender": library.translation.parse_jid("491700000001@s.whatsapp.net")},
                   conversation="From the owner's phone to Ada") is None  # fmt: skip


@pytest.mark.parametrize("chat", ["status@broadcast", "120363@newsletter", "1@bot"])
def test_status_updates_and_channels_are_left_out(receive: Callable[..., Any], chat: str) -> None:
    assert receive(chat=chat, conversation="News") is None


def test_edits_deletions_and_reactions(library: Any, receive: Callable[..., Any]) -> None:
    messages = library.messages
    make_change = messages.ProtocolMessage
    key = {"ID": "3A00"}
    edited = messages.Message(conversation="Hello")
    edit = receive(protocolMessage=make_change(type=make_change.MESSAGE_EDIT, key=key, editedMessage=edited))
    assert (edit["kind"], edit["target"], edit["text"]) == ("edit", "3A00", "Hello")
    deletion = receive(protocolMessage=make_change(type=make_change.REVOKE, key=key))
    assert (deletion["kind"], deletion["target"], deletion["is_admin"]) == ("delete", "3A00", False)
    by_admin = receive(protocolMessage=make_change(type=make_change.REVOKE, key=key), edit="8")
    assert by_admin["is_admin"] is True
    assert receive(protocolMessage=make_change(type=make_change.APP_STATE_SYNC_KEY_SHARE)) is None
    reaction = receive(reactionMessage=messages.ReactionMessage(key=key, text="👍"))
    assert (reaction["kind"], reaction["target"], reaction["emoji"]) == ("reaction", "3A00", "👍")
    assert receive(senderKeyDistributionMessage=messages.SenderKeyDistributionMessage(groupID="1")) is None


def test_a_file_can_be_downloaded_later_by_its_reference(library: Any, receive: Callable[..., Any]) -> None:
    document = library.messages.DocumentMessage(
        URL="https://mmg.whatsapp.net/x", directPath="/x", mediaKey=b"k" * 32, fileSHA256=b"s" * 32,
        fileEncSHA256=b"e" * 32, fileLength=10,
        mimetype="text/plain", fileName="notes.txt", caption="See this", JPEGThumbnail=b"j" * 900_000,
    )  # fmt: skip
    event = receive(documentMessage=document)
    media = event["media"]
    assert (event["text"], media["name"], media["size"], media["type"]) == ("See this", "notes.txt", 10, "document")
    bare = library.translation.parse_reference(media["reference"]).documentMessage
    assert (bare.URL, bare.directPath) == ("https://mmg.whatsapp.net/x", "/x")
    assert (bare.mediaKey, bare.JPEGThumbnail) == (b"k" * 32, b"")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://127.0.0.1:8080/reboot", ""),
        ("http://mmg.whatsapp.net/x", "@127.0.0.1/x"),
        ("https://mmg.whatsapp.net@169.254.169.254/x", ".example.org/x"),
        ("https://mmg.whatsapp.net.example.org/x", "//example.org/x"),
        ("https://mmg.whatsapp.net:8443/x", ""),
        ("https://[::1", ""),
    ],
)
def test_a_file_is_downloaded_only_from_whatsapp(
    library: Any, receive: Callable[..., Any], url: str, path: str
) -> None:
    event = receive(imageMessage=library.messages.ImageMessage(URL=url, directPath=path, caption="Sea"))
    bare = library.translation.parse_reference(event["media"]["reference"]).imageMessage
    assert (bare.URL, bare.directPath, event["text"]) == ("", "", "Sea")


def test_a_voice_message_and_a_picture_of_an_album(library: Any, receive: Callable[..., Any]) -> None:
    audio = library.messages.AudioMessage(mimetype="audio/ogg; codecs=opus", fileLength=5, seconds=7, PTT=True)
    media = receive(audioMessage=audio)["media"]
    assert (media["is_voice"], media["seconds"], media["name"]) == (True, 7, None)
    association = library.messages.MessageAssociation(associationType=1, parentMessageKey={"ID": "3AAA"})
    context = library.messages.MessageContextInfo(messageAssociation=association)
    event = receive(imageMessage=library.messages.ImageMessage(caption="Sea"), messageContextInfo=context)
    assert (event["album"], event["text"], event["media"]["type"]) == ("3AAA", "Sea", "image")


def test_what_is_neither_text_nor_file_is_described(library: Any, receive: Callable[..., Any]) -> None:
    messages = library.messages
    place = messages.LocationMessage(degreesLatitude=52.5, degreesLongitude=13.25, name="Zoo", address="Berlin")
    contact = messages.ContactMessage(displayName="Ben", vcard="BEGIN:VCARD\nTEL;waid=49172:+49 172\nEND:VCARD")
    option = messages.PollCreationMessage.Option
    poll = messages.PollCreationMessage(name="When?", options=[option(optionName="Now"), option(optionName="Later")])
    found = [
        receive(locationMessage=place),
        receive(contactMessage=contact),
        receive(pollCreationMessageV3=poll),
        receive(groupInviteMessage=messages.GroupInviteMessage(groupName="Trains")),
        receive(buttonsResponseMessage=messages.ButtonsResponseMessage(selectedDisplayText="Yes")),
    ]
    assert [event["text"] for event in found] == [
        "[Place: Zoo, Berlin (52.5, 13.25)]",
        "[Contact: Ben, +49 172]",
        "[Poll: When?: Now; Later]",
        "[Invitation to the group Trains]",
        "Yes",
    ]


def test_whatever_is_received_fits_into_a_line(library: Any, receive: Callable[..., Any]) -> None:
    huge = "😀" * 200_000
    context = library.messages.ContextInfo(
        stanzaID=huge, participant=huge, quotedMessage=library.messages.Message(conversation=huge),
        mentionedJID=["😀" * 200] * 2000,
    )  # fmt: skip
    assert receive(extendedTextMessage=library.messages.ExtendedTextMessage(text=huge, contextInfo=context))
    change = library.messages.ProtocolMessage(type=library.messages.ProtocolMessage.REVOKE, key={"ID": huge})
    assert receive(protocolMessage=change)
    assert receive(reactionMessage=library.messages.ReactionMessage(key={"ID": huge}, text=huge))
    association = library.messages.MessageAssociation(associationType=1, parentMessageKey={"ID": huge})
    album = library.messages.MessageContextInfo(messageAssociation=association)
    assert receive(imageMessage=library.messages.ImageMessage(caption=huge), messageContextInfo=album)
    document = library.messages.DocumentMessage(directPath="/" + "x" * 100_000, fileName=huge)
    assert receive(documentMessage=document) is None  # no path of WhatsApp's is that long


def test_members_of_a_group(library: Any) -> None:
    make_jid = library.translation.parse_jid
    changed = library.neonize.GroupInfoEvent(
        JID=make_jid("120363@g.us"), Sender=make_jid("71@lid"), Leave=[make_jid("700000000000001@lid")]
    )
    event = library.translation.translate_group_change(changed, IDENTITY)
    assert (event["chat"], event["left"], event["is_own"]) == ("120363@g.us", ["700000000000001@lid"], True)
    silent = library.neonize.GroupInfoEvent(JID=make_jid("120363@g.us"))
    assert library.translation.translate_group_change(silent, IDENTITY) is None
    joined = library.neonize.JoinedGroup(GroupInfo=library.neonize.GroupInfo(JID=make_jid("120363@g.us")))
    assert library.translation.translate_joined_group(joined)["is_own"]


def test_what_is_sent(library: Any) -> None:
    translation = library.translation
    assert translation.build_text("Hi", None).conversation == "Hi"
    reply = translation.build_text("Hi", {"id": "3A", "sender": "49171@s.whatsapp.net", "text": "Hello"})
    context = reply.extendedTextMessage.contextInfo
    assert (context.stanzaID, context.participant, context.quotedMessage.conversation) == (
        "3A",
        "49171@s.whatsapp.net",
        "Hello",
    )
    assert reply.SerializeToString()  # raises if a field is missing that the Go part needs
    assert translation.parse_jid("71@lid").SerializeToString()
    deletion = translation.build_deletion("1@g.us", "3EB0").protocolMessage
    assert (deletion.type, deletion.key.ID, deletion.key.fromMe) == (0, "3EB0", True)
    fields = {"chat": "1@g.us", "target": "3A", "sender": "71@lid", "is_own": False, "emoji": "👀"}
    reaction = translation.build_reaction(fields, 5).reactionMessage
    assert (reaction.key.participant, reaction.key.fromMe, reaction.text) == ("71@lid", False, "👀")
    assert not translation.build_reaction(fields | {"chat": "49171@s.whatsapp.net"}, 5).reactionMessage.key.participant


@pytest.mark.parametrize("field", ["imageMessage", "videoMessage", "audioMessage", "documentMessage"])
def test_a_file_that_was_uploaded_is_sent_as_what_it_is(library: Any, field: str) -> None:
    upload = library.neonize.UploadResponse(
        url="https://mmg.example", DirectPath="/d", MediaKey=b"k", FileEncSHA256=b"e", FileSHA256=b"s", FileLength=3
    )  # fmt: skip
    quoted = {"id": "3A", "sender": "71@lid", "text": ""}
    fields = {"field": field, "media_type": "x/y", "name": "a.bin", "is_voice": True, "quoted": quoted}
    media = getattr(library.translation.build_file(fields, upload, seconds=4), field)
    assert (media.directPath, media.fileLength, media.mimetype) == ("/d", 3, "x/y")
    assert media.contextInfo.stanzaID == "3A"
    if field == "audioMessage":
        assert (media.PTT, media.seconds) == (True, 4)


# ---- failures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("timed out waiting for message send response", ErrorKind.UNCERTAIN),
        ("websocket disconnected before message send returned response", ErrorKind.UNCERTAIN),
        ("failed to get device list: websocket disconnected before info query returned response", ErrorKind.NOT_SENT),
        ("failed to send message node: websocket not connected", ErrorKind.NOT_SENT),
        ("the store doesn't contain a device JID", ErrorKind.NOT_SENT),
        ("info query returned status 429: rate-overlimit", ErrorKind.RATE_LIMITED),
        ("failed to get group members: you're not participating in that group", ErrorKind.UNREACHABLE),
        ("that group does not exist", ErrorKind.UNREACHABLE),
        ("server returned error 479", ErrorKind.REFUSED),
        ("some unknown error", ErrorKind.UNCERTAIN),
    ],
)
def test_a_failed_request_is_understood(text: str, kind: ErrorKind) -> None:
    assert classify_error(text) is kind


def test_no_number_of_a_person_is_in_an_error() -> None:
    text = describe_library_error("can't send to\n4917012345678@s.whatsapp.net")
    assert text == "WhatsApp: can't send to …@s.whatsapp.net"


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("LOGGED_OUT", State.LOGGED_OUT),
        ("MAIN_DEVICE_GONE", State.LOGGED_OUT),
        ("UNKNOWN_LOGOUT", State.LOGGED_OUT),
        ("TEMP_BANNED", State.BANNED),
        ("CLIENT_OUTDATED", State.OUTDATED),
        ("SERVICE_UNAVAILABLE", State.UNAVAILABLE),
    ],
)
def test_a_refused_connection_is_understood(library: Any, reason: str, state: State) -> None:
    failure = library.neonize.ConnectFailure(Reason=library.neonize.ConnectFailureReason.Value(reason))
    assert translate_failure(failure)[0] is state


def test_a_ban_says_why_and_until_when(library: Any) -> None:
    now = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    ban = library.neonize.TemporaryBan(Code=2, Expire=2 * 3600 * 10**9)
    assert describe_ban(ban, now) == (
        "WhatsApp has banned this number until 2026-11-16 14:00 UTC: too many people have blocked this number."
    )
    assert "for a while" in describe_ban(library.neonize.TemporaryBan(Code=2, Expire=0), now)

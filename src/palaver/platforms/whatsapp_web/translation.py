"""What the library delivers → events of our lines, and what is sent → messages of the library. Pure.

Imported only by the child: it loads the protocol buffers of the library.

Always true: an event is smaller than a line may be, whatever was received, and has only what Palaver uses. A file is
downloaded only from WhatsApp's servers, whatever address its sender has written into the message.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

from neonize.proto.Neonize_pb2 import JID
from neonize.proto.waCommon.WACommon_pb2 import MessageKey
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import (
    ContextInfo,
    ExtendedTextMessage,
    Message,
    MessageAssociation,
    ProtocolMessage,
    ReactionMessage,
)

from palaver.platforms.whatsapp_web.inbound import (
    FILE_DESCRIPTIONS,
    GROUP_SERVER,
    LID_SERVER,
    PHONE_SERVER,
    describe_content,
)
from palaver.platforms.whatsapp_web.protocol import MAX_TEXT_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neonize.proto import Neonize_pb2 as neonize

MAX_NAME_CHARS: Final = 200
MAX_ID_CHARS: Final = 200
MAX_QUOTE_CHARS: Final = 1000
MAX_MENTIONS: Final = 1000
MAX_MENTION_CHARS: Final = 100
MAX_REFERENCE_BYTES: Final = 16 * 1024
CHAT_SERVERS: Final = frozenset({PHONE_SERVER, LID_SERVER, GROUP_SERVER})  # not status updates, channels, broadcasts
# The library downloads from the address in a message, whatever it is; the path is added to a server of WhatsApp.
_FILE_URL: Final = re.compile(r"https://[a-z0-9.-]+\.whatsapp\.net/[^\s\\]*")
_FILE_PATH: Final = re.compile(r"/[^/\s\\][^\s\\]*")
_ADMIN_DELETION: Final = "8"  # said by WhatsApp's server, not by the sender
_LATEST_MILLISECOND: Final = 10**11  # a time in seconds is below


# ---- identity ------------------------------------------------------------------------------------------------


def describe_identity(device: neonize.Device) -> dict[str, Any]:
    return {
        "phone": device.JID.User,
        "lid": device.LID.User,
        "device": device.JID.Device,
        "name": device.PushName[:MAX_NAME_CHARS],
    }


def format_jid(jid: neonize.JID) -> str | None:
    """Return an address without the device; None if it is empty."""
    return f"{jid.User}@{jid.Server}" if jid.User and jid.Server else None


def parse_jid(text: str) -> neonize.JID:
    user, _, server = text.partition("@")
    return JID(User=user, Server=server, Device=0, RawAgent=0, Integrator=0, IsEmpty=False)


def list_own_jids(identity: Mapping[str, Any]) -> list[str]:
    """Return the addresses of our account. Each event has them: it may be read before we are connected again."""
    known = ((identity["phone"], PHONE_SERVER), (identity["lid"], LID_SERVER))
    return [f"{user}@{server}" for user, server in known if user]


# ---- received ------------------------------------------------------------------------------------------------


def translate_message(received: neonize.Message, identity: Mapping[str, Any], chats: str) -> dict[str, Any] | None:
    """Return the event of a message, an edit, a deletion or a reaction; None for what does not concern Palaver."""
    source = received.Info.MessageSource
    own = list_own_jids(identity)
    is_self_chat = format_jid(source.Chat) in own
    if source.Chat.Server not in CHAT_SERVERS or (chats == "self" and not is_self_chat):
        return None
    if source.IsFromMe and (not is_self_chat or source.Sender.Device == identity["device"]):
        return None  # what the owner writes to others, and what Palaver itself has sent
    event = _describe_envelope(received.Info, own, is_self_chat=is_self_chat)
    message = received.Message
    if message.HasField("protocolMessage"):
        return _describe_change(event, message.protocolMessage, is_admin=received.Info.Edit == _ADMIN_DELETION)
    if message.HasField("reactionMessage"):
        reaction = message.reactionMessage
        return event | {"kind": "reaction", "target": reaction.key.ID[:MAX_ID_CHARS], "emoji": reaction.text[:64]}
    return _describe_content(event, message)


def _describe_envelope(info: neonize.MessageInfo, own: list[str], *, is_self_chat: bool) -> dict[str, Any]:
    source = info.MessageSource
    alternative = source.RecipientAlt if source.IsFromMe else source.SenderAlt
    seconds = info.Timestamp / 1000 if info.Timestamp > _LATEST_MILLISECOND else float(info.Timestamp)
    return {
        "id": info.ID[:MAX_ID_CHARS],
        "chat": format_jid(source.Chat),
        "chat_alt": None if source.IsGroup else format_jid(alternative),
        "sender": format_jid(source.Sender),
        "sender_alt": format_jid(source.SenderAlt),
        "is_group": source.IsGroup,
        "is_self": is_self_chat,
        "own": own,
        "name": info.Pushname[:MAX_NAME_CHARS],
        "at": seconds,
    }


def _describe_change(event: dict[str, Any], change: ProtocolMessage, *, is_admin: bool) -> dict[str, Any] | None:
    target = change.key.ID[:MAX_ID_CHARS]
    if change.type == ProtocolMessage.REVOKE and target:
        return event | {"kind": "delete", "target": target, "is_admin": is_admin}
    if change.type == ProtocolMessage.MESSAGE_EDIT and target:
        return event | {"kind": "edit", "target": target, "text": read_text(change.editedMessage)}
    return None  # keys, settings, history


def _describe_content(event: dict[str, Any], message: Message) -> dict[str, Any] | None:
    media = describe_media(message)
    text = read_text(message) or ("" if media else describe_content(message))
    if not text and not media:
        return None
    context, album = find_context(message), message.messageContextInfo.messageAssociation
    is_in_album = album.associationType == MessageAssociation.MEDIA_ALBUM
    return event | {
        "kind": "message",
        "text": text,
        "media": media,
        "mentions": [jid for jid in context.mentionedJID[:MAX_MENTIONS] if is_short_address(jid)],
        "quoted": _describe_quote(context),
        "is_forwarded": context.isForwarded,
        "album": album.parentMessageKey.ID[:MAX_ID_CHARS] or None if is_in_album else None,
    }


def read_text(message: Message) -> str:
    """Return what a person wrote, also below a picture."""
    if message.conversation:
        return str(message.conversation)[:MAX_TEXT_CHARS]
    for field in ("extendedTextMessage", "imageMessage", "videoMessage", "documentMessage"):
        if message.HasField(field):
            content = getattr(message, field)
            return str(content.text if field == "extendedTextMessage" else content.caption)[:MAX_TEXT_CHARS]
    return ""


def find_context(message: Message) -> ContextInfo:
    """Return what a message refers to; empty if it refers to nothing."""
    for descriptor, content in message.ListFields():
        if descriptor.message_type is not None and "contextInfo" in descriptor.message_type.fields_by_name:
            found: ContextInfo = content.contextInfo
            return found
    return ContextInfo()


def is_short_address(jid: str) -> bool:
    """Return whether a text that a person has sent may be an address."""
    return len(jid) <= MAX_MENTION_CHARS and jid.isascii()


def _describe_quote(context: ContextInfo) -> dict[str, Any] | None:
    if not context.stanzaID:
        return None
    quoted = context.quotedMessage
    text = read_text(quoted) or describe_content(quoted, names_files=True)
    sender = context.participant if is_short_address(context.participant) else None
    return {"id": context.stanzaID[:MAX_ID_CHARS], "sender": sender or None, "text": text[:MAX_QUOTE_CHARS]}


def describe_media(message: Message) -> dict[str, Any] | None:
    """Return the file of a message, with all that is needed to download it later."""
    field = next((field for field in FILE_DESCRIPTIONS if message.HasField(field)), None)
    if field is None:
        return None
    media = getattr(message, field)
    kept = ("mediaKey", "fileSHA256", "fileEncSHA256", "fileLength", "mimetype")
    download = {name: getattr(media, name) for name in kept} | {
        "URL": media.URL if _FILE_URL.fullmatch(media.URL) else "",
        "directPath": media.directPath if _FILE_PATH.fullmatch(media.directPath) else "",
    }
    reference = Message(**{field: download}).SerializeToString()
    if len(reference) > MAX_REFERENCE_BYTES:
        return None
    is_document, is_audio = field == "documentMessage", field == "audioMessage"
    seconds = media.seconds if "seconds" in media.DESCRIPTOR.fields_by_name else 0
    return {
        "type": field.removesuffix("Message"),
        "media_type": media.mimetype[:MAX_NAME_CHARS] or None,
        "size": media.fileLength,
        "name": (media.fileName or media.title)[:MAX_NAME_CHARS] if is_document else None,
        "is_voice": media.PTT if is_audio else False,
        "seconds": seconds or None,
        "reference": base64.b64encode(reference).decode(),
    }


def translate_group_change(changed: neonize.GroupInfoEvent, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the event of people who join or leave a group, or of a new name."""
    joined, left = list(changed.Join), list(changed.Leave)
    if not joined and not left and not changed.HasField("Name"):
        return None
    is_own = not set(map(format_jid, [*joined, *left])).isdisjoint(list_own_jids(identity))
    return _describe_members(changed.JID, changed.Sender, joined, left, is_own=is_own)


def translate_joined_group(joined: neonize.JoinedGroup) -> dict[str, Any]:
    """Return the event of our account that was added to a group."""
    return _describe_members(joined.GroupInfo.JID, joined.Sender, [], [], is_own=True)


def _describe_members(
    group: neonize.JID, sender: neonize.JID, joined: list[neonize.JID], left: list[neonize.JID], *, is_own: bool
) -> dict[str, Any]:
    return {
        "kind": "members",
        "chat": format_jid(group),
        "sender": format_jid(sender),
        "joined": [format_jid(jid) for jid in joined[:MAX_MENTIONS]],
        "left": [format_jid(jid) for jid in left[:MAX_MENTIONS]],
        "is_own": is_own,
    }


# ---- sent ----------------------------------------------------------------------------------------------------


def build_text(text: str, quoted: Mapping[str, Any] | None) -> Message:
    """Return a text, as a reply if it quotes a message."""
    if quoted is None:
        return Message(conversation=text)
    return Message(extendedTextMessage=ExtendedTextMessage(text=text, contextInfo=build_context(quoted)))


def build_context(quoted: Mapping[str, Any]) -> ContextInfo:
    """Return the reference to a message that is replied to; phones show the text that it carries."""
    return ContextInfo(
        stanzaID=quoted["id"], participant=quoted["sender"], quotedMessage=Message(conversation=quoted["text"])
    )


def build_file(fields: Mapping[str, Any], upload: neonize.UploadResponse, *, seconds: int | None = None) -> Message:
    """Return the message of a file that was uploaded: `field` says how phones show it."""
    media: dict[str, Any] = {
        "URL": upload.url,
        "directPath": upload.DirectPath,
        "mediaKey": upload.MediaKey,
        "fileEncSHA256": upload.FileEncSHA256,
        "fileSHA256": upload.FileSHA256,
        "fileLength": upload.FileLength,
        "mimetype": fields["media_type"],
    }
    if fields["field"] == "documentMessage":
        media |= {"fileName": fields["name"], "title": fields["name"]}
    if fields["field"] == "audioMessage":
        media |= {"PTT": fields["is_voice"], "seconds": seconds or 0}
    if fields.get("quoted"):
        media["contextInfo"] = build_context(fields["quoted"])
    return Message(**{fields["field"]: media})


def build_deletion(chat: str, message_id: str) -> Message:
    """Return what deletes a message of ours for everybody."""
    key = MessageKey(remoteJID=chat, fromMe=True, ID=message_id)
    return Message(protocolMessage=ProtocolMessage(type=ProtocolMessage.REVOKE, key=key))


def build_reaction(fields: Mapping[str, Any], milliseconds: int) -> Message:
    """Return a reaction; an empty emoji takes it back."""
    key = MessageKey(remoteJID=fields["chat"], fromMe=fields["is_own"], ID=fields["target"])
    if fields["sender"] and not fields["is_own"] and fields["chat"].endswith(f"@{GROUP_SERVER}"):
        key.participant = fields["sender"]
    return Message(reactionMessage=ReactionMessage(key=key, text=fields["emoji"], senderTimestampMS=milliseconds))


def parse_reference(reference: str) -> Message:
    return Message.FromString(base64.b64decode(reference))

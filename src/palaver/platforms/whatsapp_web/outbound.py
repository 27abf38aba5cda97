"""Builds the fields of the child's requests, measures voice messages, makes Palaver's errors of failures. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import DeliveryError, SendRejected, SendRetryable, SendUncertain, TargetUnreachable
from palaver.core.texts import say
from palaver.platforms.whatsapp_web.inbound import expand_jid
from palaver.platforms.whatsapp_web.protocol import ErrorKind, RequestError

if TYPE_CHECKING:
    from palaver.sessions.delivery import Address

MAX_PICTURE_BYTES: Final = 16 * 1024 * 1024  # larger ones are sent as documents, which phones do not make smaller
RATE_LIMIT_SECONDS: Final = 60.0
VOICE_TYPE: Final = "audio/ogg; codecs=opus"  # phones play nothing else as a voice message
_FIELDS: Final = {
    "image/jpeg": "imageMessage",
    "image/png": "imageMessage",
    "video/mp4": "videoMessage",
    "audio/ogg": "audioMessage",
    "audio/mpeg": "audioMessage",
    "audio/mp4": "audioMessage",
    "audio/aac": "audioMessage",
}

_PAGE: Final = b"OggS"
_OPUS_RATE: Final = 48_000  # samples in a second, whatever the sound was recorded with
_POSITION_OFFSET: Final = 6
_HEADER_BYTES: Final = 27


def parse_address(address: Address) -> str:
    """Return WhatsApp's form of an address. Raises TargetUnreachable."""
    jid = expand_jid(address.chat_id)
    if jid is None:
        raise TargetUnreachable.say(
            "whatsapp_web.bad_chat",
            "{id} is no chat on WhatsApp. Use a number with its country code, such as"
            " 4917012345678, or the id of a group, which ends with @g.us.",
            id=repr(address.chat_id),
        )
    return jid


def describe_file(name: str, media_type: str, size: int) -> dict[str, Any]:
    """Return how a file is sent, so that people see a picture, hear a voice message, or get a document."""
    plain_type = media_type.partition(";")[0].strip().lower()
    field = _FIELDS.get(plain_type, "documentMessage") if size <= MAX_PICTURE_BYTES else "documentMessage"
    is_voice = field == "audioMessage" and plain_type == "audio/ogg"
    return {
        "field": field,
        "media_type": VOICE_TYPE if is_voice else plain_type or "application/octet-stream",
        "name": name,
        "is_voice": is_voice,
    }


def measure_seconds(content: bytes) -> int | None:
    """Return how long the sound in an Ogg file with Opus lasts; None if it is none."""
    if not content.startswith(_PAGE) or b"OpusHead" not in content[:200]:
        return None
    start = content.rfind(_PAGE)
    if start < 0 or start + _HEADER_BYTES > len(content):
        return None
    position = int.from_bytes(content[start + _POSITION_OFFSET : start + _POSITION_OFFSET + 8], "little", signed=True)
    return max(1, round(position / _OPUS_RATE)) if position > 0 else None


def make_delivery_error(error: RequestError, *, is_repeatable: bool = False) -> DeliveryError:
    """Return what a failed request means for a delivery."""
    match error.kind:
        case ErrorKind.RATE_LIMITED:
            text = say("whatsapp_web.asks_less", "WhatsApp asks to send less.")
            return SendRetryable(text, retry_after=RATE_LIMIT_SECONDS, whole_account=True)
        case ErrorKind.UNREACHABLE:
            return TargetUnreachable.say(
                "whatsapp_web.chat_closed", "Nothing can be sent to this chat. {reason}", reason=error.text
            )
        case ErrorKind.REFUSED | ErrorKind.TOO_LARGE:
            return SendRejected.say(
                "whatsapp_web.message_refused", "WhatsApp has refused the message. {reason}", reason=error.text
            )
        case ErrorKind.UNCERTAIN if not is_repeatable:
            return SendUncertain.say(
                "whatsapp_web.not_confirmed", "WhatsApp did not confirm the message. {reason}", reason=error.text
            )
        case _:
            return SendRetryable(error.text)

"""The source of a message: the platform, the chat, the thread and the user it came from.

Owns `Platform`, `ChatType` and `SessionSource`, and their JSON form. `keys` decides which conversation a source
belongs to; `context` decides how its names are shown to the agent.

Always true: every id is text (a number from an adapter is converted), and unknown values have one form: `chat_id`
is empty, everything optional is None. Ids and names are kept exactly as the platform sent them. They are data,
never instructions, and never a file path.

Which texts are ids of users on a platform: they never change, and no other user can take them over, unlike names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY  # noqa: TC003  (read at run time)
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar, Final, Self

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidSource
from palaver.core.text import encode_json

MAX_CACHED_SOURCES = 1000  # whose JSON is known: the people who write write again
_PLATFORM_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def _to_text(field: str, value: object) -> str | None:
    """Return an id or a name as text; None when it is unknown."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidSource(
        f"The {field} of a source must be text or a whole number, not {type(value).__name__}: {value!r}",
        field=field,
    )


class Platform(str):
    """The name of a platform, such as `telegram`; it compares, hashes and serializes like that string."""

    __slots__ = ()

    LOCAL: ClassVar[Platform]
    WEB: ClassVar[Platform]
    API: ClassVar[Platform]
    TELEGRAM: ClassVar[Platform]
    DISCORD: ClassVar[Platform]
    SLACK: ClassVar[Platform]
    WHATSAPP: ClassVar[Platform]
    WHATSAPP_WEB: ClassVar[Platform]
    SIGNAL: ClassVar[Platform]
    MATRIX: ClassVar[Platform]
    EMAIL: ClassVar[Platform]
    WEBHOOK: ClassVar[Platform]
    CRON: ClassVar[Platform]

    def __new__(cls, name: str) -> Self:
        """Return the platform called `name`, in any letter case; it may also be the platform of a plugin."""
        if isinstance(name, cls):
            return name
        text = _to_text("platform", name) or ""
        if text.isascii() and _PLATFORM_NAME.fullmatch(lowered := text.lower()):
            return super().__new__(cls, lowered)
        raise InvalidSource(
            f"{name!r} is not a valid platform name: use up to 32 letters, digits, '_' or '-', starting with a letter, "
            "such as 'telegram'.",
            platform=name,
        )

    def __repr__(self) -> str:
        return f"Platform({str(self)!r})"

    @property
    def label(self) -> str:
        """The name as people write it: `WhatsApp`, `Terminal`; a plugin's platform in title case."""
        return _LABELS.get(self) or re.sub(r"[_-]+", " ", self).strip().title()


BUILT_IN_PLATFORMS: tuple[Platform, ...] = tuple(
    Platform(name.lower().replace("_", "-")) for name in Platform.__annotations__
)
for _name, _platform in zip(Platform.__annotations__, BUILT_IN_PLATFORMS, strict=True):
    setattr(Platform, _name, _platform)

# Platforms whose label is not just their name in title case.
_LABELS: dict[str, str] = {
    Platform.LOCAL: "Terminal",
    Platform.API: "API",
    Platform.WHATSAPP: "WhatsApp",
    Platform.WHATSAPP_WEB: "WhatsApp Web",
    Platform.EMAIL: "E-mail",
    "chatgpt": "ChatGPT",  # where imported conversations come from
    "open-webui": "Open WebUI",
    "openclaw": "OpenClaw",
}

_PLATFORMS_BY_NAME: dict[object, Platform] = {str(platform): platform for platform in BUILT_IN_PLATFORMS}


class ChatType(StrEnum):
    """The type of a chat; some adapters say `forum`, which counts as a group."""

    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"
    THREAD = "thread"

    @classmethod
    def _missing_(cls, value: object) -> ChatType:
        if value == "forum":
            return cls.GROUP
        raise InvalidSource(f"{value!r} is not a valid chat type: use one of {', '.join(cls)}.", chat_type=value)


@dataclass(frozen=True, slots=True, init=False)
class SessionSource:
    """The origin of a message. An adapter creates it; it decides which conversation the message joins."""

    platform: Platform
    chat_id: str = ""  # empty: unknown
    _: KW_ONLY
    chat_name: str | None = None
    chat_type: ChatType = ChatType.DM
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None  # a second id of the same user, as the platform itself says (Signal UUID, LID)
    chat_id_alt: str | None = None  # a second id of the same chat
    account: str = ""  # which of our accounts on the platform it came to; empty for the only one

    def __init__(
        self,
        platform: Platform | str,
        chat_id: str | int | None = "",
        *,
        chat_name: str | None = None,
        chat_type: ChatType | str = ChatType.DM,
        user_id: str | int | None = None,
        user_name: str | None = None,
        thread_id: str | int | None = None,
        chat_topic: str | None = None,
        user_id_alt: str | int | None = None,
        chat_id_alt: str | int | None = None,
        account: str = "",
    ) -> None:
        # This runs for every message, so the common cases skip the checks.
        set_field = object.__setattr__
        set_field(self, "platform", _PLATFORMS_BY_NAME.get(platform) or Platform(platform))
        set_field(self, "chat_id", _to_text("chat_id", chat_id) or "")
        set_field(self, "chat_name", None if chat_name is None else _to_text("chat_name", chat_name))
        set_field(self, "chat_type", chat_type if type(chat_type) is ChatType else ChatType(chat_type))
        set_field(self, "user_id", None if user_id is None else _to_text("user_id", user_id))
        set_field(self, "user_name", None if user_name is None else _to_text("user_name", user_name))
        set_field(self, "thread_id", None if thread_id is None else _to_text("thread_id", thread_id))
        set_field(self, "chat_topic", None if chat_topic is None else _to_text("chat_topic", chat_topic))
        set_field(self, "user_id_alt", None if user_id_alt is None else _to_text("user_id_alt", user_id_alt))
        set_field(self, "chat_id_alt", None if chat_id_alt is None else _to_text("chat_id_alt", chat_id_alt))
        set_field(self, "account", account)

    @classmethod
    def local_cli(cls) -> Self:
        """Return the source of messages from the terminal on this machine."""
        return cls(Platform.LOCAL, "cli", chat_name=Platform.LOCAL.label, chat_type=ChatType.DM)

    @property
    def participant(self) -> str | None:
        """The most stable known id of the user."""
        return self.user_id_alt or self.user_id

    @property
    def is_written_by_chat(self) -> bool:
        """Whether no person but the chat itself is the sender, as of the posts in a channel."""
        return self.chat_type is ChatType.CHANNEL and bool(self.chat_id) and self.user_id == self.chat_id

    @property
    def sender_name(self) -> str:
        """The name of the account that writes; a post in a channel may also name who has written it."""
        return (self.chat_name if self.is_written_by_chat else None) or self.user_name or self.chat_name or ""

    @property
    def has_chat(self) -> bool:
        """Return whether it names a chat that something can be sent to."""
        return bool(self.chat_id) and self.platform not in PLATFORMS_WITHOUT_CHATS

    @property
    def description(self) -> str:
        """A short description for people. It contains raw names: quote it before the agent reads it."""
        if self.platform == Platform.LOCAL:
            return self.platform.label
        if self.chat_type is ChatType.DM:
            chat = f"DM with {self.user_name or self.user_id or 'user'}"
        else:
            chat = f"{self.chat_type}: {self.chat_name or self.chat_id or 'unknown'}"
        return f"{chat}, thread: {self.thread_id}" if self.thread_id else chat

    def to_dict(self) -> dict[str, str | None]:
        """Return the source as JSON-ready fields; second ids and the account are included only when they are known."""
        fields: dict[str, str | None] = {
            "platform": str(self.platform),
            "chat_id": self.chat_id,
            "chat_name": self.chat_name,
            "chat_type": self.chat_type.value,
            "user_id": self.user_id,
            "user_name": self.user_name,
            "thread_id": self.thread_id,
            "chat_topic": self.chat_topic,
        }
        if self.user_id_alt:
            fields["user_id_alt"] = self.user_id_alt
        if self.chat_id_alt:
            fields["chat_id_alt"] = self.chat_id_alt
        if self.account:
            fields["account"] = self.account
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> Self:
        """Read what `to_dict` returned; fields that a newer version may have added are ignored."""
        if not isinstance(fields, Mapping):
            raise InvalidSource(f"A source is a mapping of fields, not {type(fields).__name__}: {fields!r}")
        platform = fields.get("platform")
        if not isinstance(platform, str):
            raise InvalidSource(
                f"A source needs a 'platform', such as 'telegram'; this one has {platform!r}.", platform=platform
            )

        values: dict[str, Any] = {name: _to_text(name, fields.get(name)) for name in cls.__slots__}
        values["chat_type"] = values["chat_type"] or ChatType.DM
        values["account"] = values["account"] or ""
        return cls(**values)


# Here people read the conversation itself, live: nothing has to be delivered.
PLATFORMS_WITHOUT_DELIVERY = frozenset({Platform.LOCAL, Platform.WEB, Platform.API})
# Here the sender chooses the id of a message and reads the response: what was refused may be sent again under that id.
# Everywhere else the platform chooses it, and sends a message again only until it is acknowledged.
PLATFORMS_WITH_SENDER_IDS = PLATFORMS_WITHOUT_DELIVERY | {Platform.WEBHOOK}
PLATFORMS_WITHOUT_CHATS = PLATFORMS_WITHOUT_DELIVERY | {Platform.CRON}  # nothing can be sent to a run of a job, either


@lru_cache(MAX_CACHED_SOURCES)
def encode_source(source: SessionSource) -> str:
    return encode_json(source.to_dict())


@lru_cache(MAX_CACHED_SOURCES)
def decode_source(text: str) -> SessionSource:
    return SessionSource.from_dict(json.loads(text))


_ID_RULES: Final = {
    Platform.TELEGRAM: (re.compile(r"[0-9]{1,20}"), "a number such as 123456789"),
    Platform.DISCORD: (re.compile(r"[0-9]{5,20}"), "a number such as 80351110224678912"),
    Platform.SLACK: (re.compile(r"[UW][A-Z0-9]{2,20}"), "an id such as U012AB3CD"),
    Platform.EMAIL: (
        re.compile(r"[^\s@,;<>\"A-Z]+@[a-z0-9]+(?:[.-]+[a-z0-9]+)*"),
        "the address in lower case, such as ada@example.org",
    ),
    Platform.MATRIX: (re.compile(r"@[^\s:@]+:[^\s@]+"), "an id with its server, such as @ada:example.org"),
    Platform.SIGNAL: (
        re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
        "the lowercase UUID that the log shows, not the phone number, which can change hands",
    ),
    Platform.WHATSAPP: (
        re.compile(r"[0-9]{5,20}|[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}"),
        "a number such as 4917012345678, without +",
    ),
    Platform.WHATSAPP_WEB: (re.compile(r"[0-9]{5,20}(?:@lid)?"), "a number such as 4917012345678, without +"),
}


def find_user_id_problem(platform: Platform, user_id: str) -> str | None:
    """Return why a text is no id of a user on this platform; None if it is one."""
    pattern, allowed = _ID_RULES.get(platform, (re.compile(r"[^@\s]\S*"), "the id that the platform gives a user"))
    if pattern.fullmatch(user_id):
        return None
    return f"{user_id!r} is not a user's id. Names can be changed and taken over, so use {allowed}"

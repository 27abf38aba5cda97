"""Where a message came from: the platform, the kind of chat, and the addresses inside it.

Owns the values `Platform`, `ChatType` and `SessionSource`, and their JSON form. Which conversation a source
belongs to is the business of `keys`; how its names are shown to the agent is the business of `context`.

Always true: every id is text (a number given by an adapter is written out), and there is one way to say that
something is unknown: `chat_id` is empty, everything optional is None. Ids and names are kept exactly as the
platform sent them. They are data, never instructions, and never a file path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import ClassVar, Self

from palaver.domain.errors import InvalidSource

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def _text(field: str, value: object) -> str | None:
    """An id or a name as text; None when it is unknown."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidSource(
        f"the {field} of a source is text or a whole number, not {type(value).__name__}: {value!r}",
        field=field,
    )


class Platform(str):
    """The name of one way people reach the agent; equal to, hashed as and written to JSON as that name."""

    __slots__ = ()

    LOCAL: ClassVar[Platform]
    WEB: ClassVar[Platform]
    API: ClassVar[Platform]
    TELEGRAM: ClassVar[Platform]
    DISCORD: ClassVar[Platform]
    SLACK: ClassVar[Platform]
    WHATSAPP: ClassVar[Platform]
    SIGNAL: ClassVar[Platform]
    MATRIX: ClassVar[Platform]
    WEBHOOK: ClassVar[Platform]
    CRON: ClassVar[Platform]

    def __new__(cls, name: str) -> Self:
        """The platform called `name`, in any case; the name may also be one that a plugin brings."""
        if isinstance(name, cls):
            return name
        given = _text("platform", name) or ""
        if given.isascii() and _NAME.fullmatch(lowered := given.lower()):
            return super().__new__(cls, lowered)
        raise InvalidSource(
            f"{name!r} is not the name of a platform: a name has up to 32 letters, digits, '_' or '-' "
            "and begins with a letter, like 'telegram'",
            platform=name,
        )

    def __repr__(self) -> str:
        return f"Platform({str(self)!r})"

    @property
    def label(self) -> str:
        """The name as people write it: `WhatsApp`, `CLI`; a plugin's own in title case."""
        return _LABELS.get(self) or re.sub(r"[_-]+", " ", self).strip().title()


Platform.LOCAL = Platform("local")
Platform.WEB = Platform("web")
Platform.API = Platform("api")
Platform.TELEGRAM = Platform("telegram")
Platform.DISCORD = Platform("discord")
Platform.SLACK = Platform("slack")
Platform.WHATSAPP = Platform("whatsapp")
Platform.SIGNAL = Platform("signal")
Platform.MATRIX = Platform("matrix")
Platform.WEBHOOK = Platform("webhook")
Platform.CRON = Platform("cron")

# Those whose label is not simply their name in title case.
_LABELS: dict[str, str] = {Platform.LOCAL: "CLI", Platform.API: "API", Platform.WHATSAPP: "WhatsApp"}

BUILT_IN: tuple[Platform, ...] = (
    Platform.LOCAL,
    Platform.WEB,
    Platform.API,
    Platform.TELEGRAM,
    Platform.DISCORD,
    Platform.SLACK,
    Platform.WHATSAPP,
    Platform.SIGNAL,
    Platform.MATRIX,
    Platform.WEBHOOK,
    Platform.CRON,
)


_KNOWN: dict[object, Platform] = {str(platform): platform for platform in BUILT_IN}


class ChatType(StrEnum):
    """What kind of place a chat is; a `forum`, as some adapters say, is a group."""

    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"
    THREAD = "thread"

    @classmethod
    def _missing_(cls, value: object) -> ChatType:
        if value == "forum":
            return cls.GROUP
        allowed = ", ".join(cls)
        raise InvalidSource(f"{value!r} is not a type of chat: use one of {allowed}", chat_type=value)


@dataclass(frozen=True, slots=True, init=False)
class SessionSource:
    """Where a message came from; made by an adapter, it decides which conversation the message joins."""

    platform: Platform
    chat_id: str = ""  # empty: unknown
    _: KW_ONLY
    chat_name: str | None = None
    chat_type: ChatType = ChatType.DM
    user_id: str | None = None
    user_name: str | None = None
    thread_id: str | None = None
    chat_topic: str | None = None
    user_id_alt: str | None = None  # a second, steadier id of the same user (Signal UUID, WhatsApp number)
    chat_id_alt: str | None = None  # the same for the chat

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
    ) -> None:
        # One for each message: what needs no look gets none.
        put = object.__setattr__
        put(self, "platform", _KNOWN.get(platform) or Platform(platform))
        put(self, "chat_id", _text("chat_id", chat_id) or "")
        put(self, "chat_name", None if chat_name is None else _text("chat_name", chat_name))
        put(self, "chat_type", chat_type if type(chat_type) is ChatType else ChatType(chat_type))
        put(self, "user_id", None if user_id is None else _text("user_id", user_id))
        put(self, "user_name", None if user_name is None else _text("user_name", user_name))
        put(self, "thread_id", None if thread_id is None else _text("thread_id", thread_id))
        put(self, "chat_topic", None if chat_topic is None else _text("chat_topic", chat_topic))
        put(self, "user_id_alt", None if user_id_alt is None else _text("user_id_alt", user_id_alt))
        put(self, "chat_id_alt", None if chat_id_alt is None else _text("chat_id_alt", chat_id_alt))

    @classmethod
    def local_cli(cls) -> Self:
        """The terminal on this machine."""
        return cls(Platform.LOCAL, "cli", chat_name="CLI terminal", chat_type=ChatType.DM)

    @property
    def participant(self) -> str | None:
        """Who speaks, by the steadiest id that is known."""
        return self.user_id_alt or self.user_id

    @property
    def description(self) -> str:
        """The place in a few words for people; names in it are raw, so quote it where the agent reads it."""
        if self.platform == Platform.LOCAL:
            return "CLI terminal"
        if self.chat_type is ChatType.DM:
            place = f"DM with {self.user_name or self.user_id or 'user'}"
        else:
            place = f"{self.chat_type}: {self.chat_name or self.chat_id or 'unknown'}"
        return f"{place}, thread: {self.thread_id}" if self.thread_id else place

    def to_dict(self) -> dict[str, str | None]:
        """The source as JSON-ready fields; the second ids are there only when they are known."""
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
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> Self:
        """The source that `to_dict` wrote; what a newer version may have added is ignored."""
        if not isinstance(fields, Mapping):
            raise InvalidSource(f"a source is a mapping of fields, not {type(fields).__name__}: {fields!r}")
        platform = fields.get("platform")
        if not isinstance(platform, str):
            raise InvalidSource(
                f"a source needs a 'platform', like 'telegram'; this one has {platform!r}", platform=platform
            )

        def known(name: str) -> str | None:
            return _text(name, fields.get(name))

        return cls(
            platform,
            known("chat_id"),
            chat_name=known("chat_name"),
            chat_type=known("chat_type") or ChatType.DM,
            user_id=known("user_id"),
            user_name=known("user_name"),
            thread_id=known("thread_id"),
            chat_topic=known("chat_topic"),
            user_id_alt=known("user_id_alt"),
            chat_id_alt=known("chat_id_alt"),
        )

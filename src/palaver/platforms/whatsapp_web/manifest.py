"""The settings, capabilities and manifest of linked WhatsApp accounts; it loads no library."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import SecretStr, field_validator

from palaver.core.http_url import is_http_url
from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities, LengthUnit, Pace
from palaver.platforms.common.settings import check_text
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

MAX_FILE_BYTES: Final = 64 * 1024 * 1024  # the library holds a file in memory several times while it encrypts it

CAPABILITIES: Final = Capabilities(
    max_length=4096,
    length_unit=LengthUnit.UTF16,
    can_delete=True,
    can_react=True,
    typing_seconds=10.0,
    max_file_bytes=MAX_FILE_BYTES,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(2.0, burst=3),
    pace_per_account=Pace(1.0, burst=3),
)

_CHECK_PHONE_NUMBER = check_text(
    "[1-9][0-9]{6,14}",
    say(
        "whatsapp_web.bad_number",
        "This is not a phone number in international form. Write it with its country code, such as"
        " +49 170 1234567, in quotation marks.",
    ),
    clean=lambda number: re.sub("[ ()./-]", "", number.strip()).removeprefix("+"),
)
_MAX_DEVICE_NAME_CHARS: Final = 32
_CHECK_DEVICE_NAME = check_text(
    lambda name: 0 < len(name) <= _MAX_DEVICE_NAME_CHARS and name.isprintable(),
    say("signal.bad_device_name", "The device name needs 1 to {limit} characters.", limit=_MAX_DEVICE_NAME_CHARS),
    clean=lambda name: " ".join(name.split()),
)
_CHECK_PROXY_URL = check_text(
    lambda url: is_http_url(url, {"http", "https", "socks5"}),
    say("whatsapp_web.bad_proxy", "This is not the address of a proxy; use one such as socks5://127.0.0.1:1080."),
)


class WhatsAppWebSettings(AccountSettings):
    """One account. Nothing is needed: without settings, it is linked by a QR code and answers notes to yourself."""

    chats: Literal["self", "all"] = "self"  # answer only your messages to yourself, or everybody whom the rules allow
    phone_number: Annotated[str, _CHECK_PHONE_NUMBER] | None = None
    device_name: Annotated[str, _CHECK_DEVICE_NAME] = "Palaver"  # in the list of linked devices on the phone
    proxy_url: Annotated[SecretStr, _CHECK_PROXY_URL] | None = None  # it may contain a password
    child_command: tuple[str, ...] | None = None  # a program that speaks the same lines instead of the built-in one

    @field_validator("child_command")
    @classmethod
    def _check_child_command(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (not value or not all(value)):
            raise ValueError(say("whatsapp_web.command_empty", "The command needs at least the path of a program."))
        return value


MANIFEST = PlatformManifest(
    platform=Platform.WHATSAPP_WEB,
    settings=WhatsAppWebSettings,
    create="palaver.platforms.whatsapp_web.adapter:WhatsAppWebAdapter",
    capabilities=CAPABILITIES,
    extra="whatsapp-web",
    modules=("markdown_it",),  # not neonize: it is loaded in a process of its own, never in the server
    environment={
        "WHATSAPP_WEB_CHATS": "chats",
        "WHATSAPP_WEB_PHONE_NUMBER": "phone_number",
        "WHATSAPP_WEB_PROXY_URL": "proxy_url",
    },
    addresses=(),
    summary="Your own WhatsApp account, linked like WhatsApp Web (unofficial)",
    steps=(
        "Save the account.",
        "On your phone, open WhatsApp, Settings, Linked devices, Link a device.",
        "Scan the QR code that appears here.",
    ),
    help={
        "chats": FieldHelp("Answer only your messages to yourself, or everyone whom the rules allow."),
        "phone_number": FieldHelp("Of the account: then it is linked with a code to type instead of a QR code."),
        "device_name": FieldHelp("How Palaver is called in the list of linked devices."),
        "proxy_url": FieldHelp("A proxy to connect through: http, https or socks5."),
        "child_command": FieldHelp("A program to use instead of the built-in one."),
    },
    can_be_linked=True,
    terminal_only=frozenset({"child_command"}),
)

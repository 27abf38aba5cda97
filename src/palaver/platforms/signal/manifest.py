"""The settings, capabilities and manifest of Signal accounts."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import field_validator

from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities, LengthUnit, Pace
from palaver.platforms.common.settings import check_text
from palaver.platforms.manifest import AccountSettings, PlatformManifest

MAX_MESSAGE_BYTES: Final = 2000  # of UTF-8; apps move the rest into a text file
MAX_UPLOAD_BYTES: Final = 100 * 1024 * 1024  # the apps refuse larger ones

CAPABILITIES: Final = Capabilities(
    max_length=MAX_MESSAGE_BYTES,
    length_unit=LengthUnit.BYTES,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=15.0,
    max_file_bytes=MAX_UPLOAD_BYTES,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    pace_per_chat=Pace(1.0, burst=3),
    pace_per_account=Pace(0.5, burst=10),
    # The apps accept ten edits of a message and ignore further ones, so a growing answer is edited rarely.
    edit_pace=Pace(15.0),
)

_NUMBER = re.compile(r"\+[1-9][0-9]{6,14}")
_MAX_DEVICE_NAME_CHARS = 50


_CHECK_PATH = check_text(
    str.strip, say("signal.path_empty", "This path is empty. Leave the setting out to use its default."), clean=str
)
_CHECK_DEVICE_NAME = check_text(
    lambda name: 0 < len(name) <= _MAX_DEVICE_NAME_CHARS,
    say("signal.bad_device_name", "The device name needs 1 to {limit} characters.", limit=_MAX_DEVICE_NAME_CHARS),
)


class SignalSettings(AccountSettings):
    """One account. Nothing has to be set: without a linked account, a code to link one is shown."""

    program: Annotated[str, _CHECK_PATH, "The path of signal-cli, or its name on the PATH."] = "signal-cli"
    config_folder: Annotated[
        Annotated[str, _CHECK_PATH] | None, "Where signal-cli keeps the account; empty: a folder of Palaver."
    ] = None
    account: Annotated[str | None, "The phone number, needed only if the folder has several accounts."] = None
    # Without it: "self" for a linked device, whose account is usually that of a person, and "all" for a number that was
    # registered for the agent.
    chats: Annotated[
        Literal["self", "all"] | None, "Answer only your messages to yourself, or everyone whom the rules allow."
    ] = None
    device_name: Annotated[str, _CHECK_DEVICE_NAME, "How Palaver is called in the list of linked devices."] = "Palaver"

    @field_validator("account", mode="before")
    @classmethod
    def _check_account(cls, value: object) -> object:
        # YAML reads +491701234567 without quotes as a number, and the plus sign is lost.
        text = f"+{value}" if isinstance(value, int) else re.sub(r"[\s()./-]", "", str(value or ""))
        if value is None or _NUMBER.fullmatch(text):
            return None if value is None else text
        raise ValueError(
            say(
                "signal.bad_number",
                "{value} is not a phone number with its country code. Write it with a plus sign and in"
                " quotes, such as '+491701234567'.",
                value=repr(value),
            )
        )


MANIFEST = PlatformManifest(
    platform=Platform.SIGNAL,
    settings=SignalSettings,
    create="palaver.platforms.signal.adapter:SignalAdapter",
    capabilities=CAPABILITIES,
    extra="signal",
    modules=("markdown_it",),
    environment={"SIGNAL_CLI_PROGRAM": "program", "SIGNAL_ACCOUNT": "account"},
    addresses=(),
    summary="Signal through signal-cli: private chats, groups and notes to self",
    steps=(
        "Install signal-cli on the machine of this server.",
        "Save the account.",
        "On your phone, open Signal, Settings, Linked devices, Link a new device.",
        "Scan the QR code that appears here.",
    ),
    can_be_linked=True,
    terminal_only=frozenset({"program"}),
)

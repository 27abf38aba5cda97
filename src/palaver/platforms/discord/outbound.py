"""Builds what is sent to Discord: texts, buttons, replies, the menu of commands. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.delivery.splitting import split_markdown
from palaver.platforms.discord.capabilities import CAPABILITIES, MAX_BUTTONS, MAX_MESSAGE_CHARS
from palaver.platforms.discord.formatting import format_for_discord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.commands.command import Command
    from palaver.delivery.adapter import Button, OutgoingMessage
    from palaver.sessions.delivery import Address

JSON = dict[str, Any]

SUPPRESS_EMBEDS: Final = 1 << 2  # no previews of the links in an answer
EPHEMERAL: Final = 1 << 6  # only the person who pressed or called sees it
ARGUMENT: Final = "text"  # the name of the only argument of our commands
BUTTONS_PER_ROW: Final = 5
MAX_COMMANDS: Final = 100
MAX_LABEL_CHARS: Final = 80
MAX_DESCRIPTION_CHARS: Final = 100


def render_markdown(markdown: str) -> list[str]:
    """Return the messages that a text becomes."""
    return split_markdown(format_for_discord(markdown), CAPABILITIES)


def get_channel_id(address: Address) -> str:
    """Return the channel to send to: to Discord, a thread is a channel of its own."""
    return address.thread_id or address.chat_id


def build_message(message: OutgoingMessage) -> JSON:
    """Return the fields of a new message. Discord recognizes its key for some minutes."""
    fields: JSON = {
        "nonce": message.key,
        "enforce_nonce": True,
        "allowed_mentions": _build_allowed_mentions(),
        "flags": SUPPRESS_EMBEDS,
    }
    if message.body:
        fields["content"] = message.body
    if message.reply_to and message.reply_to.isascii() and message.reply_to.isdigit():
        # The answer also arrives if the question was deleted meanwhile.
        fields["message_reference"] = {"message_id": message.reply_to, "fail_if_not_exists": False}
    if message.buttons:
        fields["components"] = _build_buttons(message.buttons)
    if message.file is not None:
        fields["attachments"] = [{"id": "0", "filename": message.file.name}]
    return fields


def build_edit(message: OutgoingMessage) -> JSON:
    """Return the fields that replace the text and the buttons of a message."""
    return {
        "content": message.body,
        "allowed_mentions": _build_allowed_mentions(),
        "components": _build_buttons(message.buttons),
    }


def build_press_answer(text: str) -> JSON:
    content = text if len(text) <= MAX_MESSAGE_CHARS else f"{text[: MAX_MESSAGE_CHARS - 1]}…"
    return {"content": content, "flags": EPHEMERAL | SUPPRESS_EMBEDS, "allowed_mentions": {"parse": []}}


def _build_allowed_mentions() -> JSON:
    # Whatever the agent writes, it notifies at most the person whom it answers.
    return {"parse": [], "replied_user": True}


def _build_buttons(buttons: Sequence[Button]) -> list[JSON]:
    keys = [
        {"type": 2, "style": 2, "label": button.label[:MAX_LABEL_CHARS], "custom_id": button.data}
        for button in buttons[:MAX_BUTTONS]
    ]
    rows = [keys[start : start + BUTTONS_PER_ROW] for start in range(0, len(keys), BUTTONS_PER_ROW)]
    return [{"type": 1, "components": row} for row in rows]


def build_commands(commands: Sequence[Command]) -> list[JSON]:
    """Return the slash commands of the bot. What follows the name is one argument, as it is typed elsewhere."""
    return [_build_command(command) for command in commands][:MAX_COMMANDS]


def _build_command(command: Command) -> JSON:
    fields: JSON = {
        "type": 1,
        "name": command.name,
        "description": command.summary[:MAX_DESCRIPTION_CHARS],
        "contexts": [0, 1],  # in servers and in direct messages with the bot
        "integration_types": [0],
    }
    if command.usage:
        fields["options"] = [
            {
                "type": 3,
                "name": ARGUMENT,
                "description": command.usage[:MAX_DESCRIPTION_CHARS],
                "required": not command.usage.startswith("["),
            }
        ]
    return fields

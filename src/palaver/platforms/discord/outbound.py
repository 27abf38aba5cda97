"""Builds what is sent to Discord: texts, buttons, replies, the menu of commands. Pure."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from markdown_it import MarkdownIt

from palaver.core.errors import SendRejected
from palaver.core.text import shorten
from palaver.core.texts import chat_language, translate
from palaver.delivery.splitting import split_markdown
from palaver.platforms.common.markdown import TableLines, draw_table, name_cells, read_rows
from palaver.platforms.discord.manifest import CAPABILITIES, MAX_BUTTONS, MAX_MESSAGE_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

    from palaver.commands.command import Command
    from palaver.delivery.adapter import Button, OutgoingFile, OutgoingMessage
    from palaver.sessions.delivery import Address

JSON = dict[str, Any]

TABLE_LINES: Final = TableLines(column="  ", cross="  ")
MAX_TABLE_COLUMNS: Final = 58  # characters of a line of code on a phone in landscape; wider tables become lists
_NEEDS_CHANGE: Final = re.compile(r"\||^ {0,3}#{4}|^ {0,3}[-=*_]|!\[|\[[ xX]\]|````|~~~", re.MULTILINE)
_CODE_OR_IMAGE: Final = re.compile(r"`[^`\n]*`|!(?=\[)")
_TASK: Final = re.compile(r"^(\s*(?:[-*+]|\d{1,9}[.)])\s+)\[([ xX])\](?=\s)")

_FENCE_MARK: Final = re.compile(r"`{3,}|~{3,}")
_FENCE: Final = "```"
_BROKEN_FENCE: Final = "`\u200b``"  # looks like a fence, and ends no code
_QUOTE_TO_END: Final = ">>> "  # Discord quotes everything after it, up to the end of the message

_REMOVED: Final = "\0"  # a line that is part of what was replaced; Markdown cannot contain it

# Whatever the agent writes, it notifies at most the person whom it answers.
ALLOWED_MENTIONS: Final[JSON] = {"parse": [], "replied_user": True}
SUPPRESS_EMBEDS: Final = 1 << 2  # no previews of the links in an answer
EPHEMERAL: Final = 1 << 6  # only the person who pressed or called sees it
ARGUMENT: Final = "text"  # the name of the only argument of our commands
BUTTONS_PER_ROW: Final = 5
MAX_COMMANDS: Final = 100
MAX_LABEL_CHARS: Final = 80
MAX_DESCRIPTION_CHARS: Final = 100


def format_for_discord(markdown: str) -> str:
    """Return the text with everything that Discord does not show replaced by what it shows."""
    if not _NEEDS_CHANGE.search(markdown):
        return markdown
    lines = markdown.split("\n")
    tokens = _get_block_parser().parse(markdown)
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.type == "table_open" and token.level == 0 and token.map:
            end = next(n for n in range(position, len(tokens)) if tokens[n].type == "table_close")
            _replace(lines, token.map, _format_table(tokens[position:end]))
            position = end
        elif token.type == "heading_open" and token.map:
            _replace_heading(lines, token, tokens[position + 1])
        elif token.type == "fence" and token.map and token.markup != _FENCE:
            _replace_fence(lines, token)
        elif token.type == "hr" and token.level == 0 and token.map:
            _replace(lines, token.map, "─" * 12)
        elif token.type == "inline" and token.map:
            for number in range(*token.map):
                line = _TASK.sub(lambda match: match[1] + ("☐" if match[2] == " " else "☑"), lines[number])
                lines[number] = _CODE_OR_IMAGE.sub(lambda match: "" if match[0] == "!" else match[0], line)
        position += 1
    return "\n".join(line for line in lines if line != _REMOVED)


@cache
def _get_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


@cache
def _get_block_parser() -> MarkdownIt:
    """Return a parser that finds paragraphs, headings and tables, but not what is in them."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.disable("inline")
    return parser


def _replace(lines: list[str], place: Sequence[int], text: str) -> None:
    first, end = place
    while end > first + 1 and not lines[end - 1].strip():
        end -= 1  # an empty line after it stays
    lines[first] = text
    lines[first + 1 : end] = [_REMOVED] * (end - first - 1)


def _replace_heading(lines: list[str], token: Token, inline: Token) -> None:
    assert token.map is not None  # noqa: S101  (checked by the caller)
    text = " ".join(inline.content.split("\n"))
    if not token.markup.startswith("#") and token.level == 0:  # underlined
        _replace(lines, token.map, f"{'#' if token.markup == '=' else '##'} {text}")
    elif token.tag in {"h4", "h5", "h6"} and token.level == 0:
        _replace(lines, token.map, f"**{text.replace('**', '')}**" if text else "")


def _replace_fence(lines: list[str], token: Token) -> None:
    """Give code the only fence that Discord knows, and let what looks like one inside not end it."""
    assert token.map is not None  # noqa: S101  (checked by the caller)
    first, end = token.map
    last = lines[end - 1].strip("> \t")
    is_closed = end - 1 > first and len(last) >= len(token.markup) and not last.strip(token.markup[0])
    code_end = end - 1 if is_closed else end
    for number in range(first + 1, code_end):
        lines[number] = lines[number].replace(_FENCE, _BROKEN_FENCE)
    for number in {first, code_end} if is_closed else {first}:
        lines[number] = _FENCE_MARK.sub(_FENCE, lines[number], count=1)


def _format_table(tokens: Sequence[Token]) -> str:
    """Return a table as aligned text in a block of code; as a list if it is too wide or has links."""
    parse = _get_parser().parseInline
    # A short row has many empty cells, which need no parser.
    rows = list(read_rows(tokens, lambda cell: parse(cell.content)[0] if cell.content else cell))
    texts = [[_get_plain_text(cell) for cell in row] for row in rows]
    has_links = any(child.type == "link_open" for row in rows for cell in row for child in cell.children or ())
    has_fences = any("```" in text for row in texts for text in row)
    drawn = None if has_links or has_fences else draw_table(texts, MAX_TABLE_COLUMNS, TABLE_LINES)
    if drawn is None:
        return _format_as_list([[cell.content for cell in row] for row in rows])
    return f"```\n{drawn}\n```"


def _format_as_list(rows: Sequence[Sequence[str]]) -> str:
    header, *body = rows
    lines = []
    for first, *rest in body:
        lines.append(f"- **{first.replace('**', '')}**" if first else "-")
        lines += [f"  - {cell}" for cell in name_cells(header[1:], rest)]
    return "\n".join(lines or [" · ".join(header)])


def _get_plain_text(cell: Token) -> str:
    return "".join(child.content or (" " if child.type == "softbreak" else "") for child in cell.children or ())


def render_markdown(markdown: str) -> list[str]:
    bodies = split_markdown(format_for_discord(markdown), CAPABILITIES)
    is_quoted = False  # up to the end
    for number, body in enumerate(bodies):
        if is_quoted and not body.startswith(_QUOTE_TO_END):
            bodies[number] = _QUOTE_TO_END + body  # there is room: splitting leaves a tenth of it free
        is_quoted = is_quoted or _opens_quote_to_end(body)
    return bodies


def _opens_quote_to_end(markdown: str) -> bool:
    if _QUOTE_TO_END not in markdown:
        return False
    lines = markdown.split("\n")
    tokens = _get_block_parser().parse(markdown)
    quotes = (token.map for token in tokens if token.type == "blockquote_open" and token.level == 0 and token.map)
    return any(line.startswith(_QUOTE_TO_END) for first, end in quotes for line in lines[first:end])


def build_channel_path(address: Address) -> str:
    """Return the path of the channel to send to: to Discord, a thread is a channel of its own. Raises SendRejected."""
    channel_id = address.thread_id or address.chat_id
    if not _is_id(channel_id):
        raise SendRejected.say(
            "discord.bad_channel",
            "{id} is not the id of a channel on Discord: such an id is a number.",
            id=repr(channel_id),
        )
    return f"/channels/{channel_id}"


def build_message_path(address: Address, message_id: str) -> str:
    """Return the path of a message. Raises SendRejected for what is none."""
    path = build_channel_path(address)
    if not _is_id(message_id):
        raise SendRejected.say("discord.no_message", "There is no such message on Discord: a slash command is none.")
    return f"{path}/messages/{message_id}"


def build_reaction_path(address: Address, message_id: str, emoji: str) -> str:
    """Return the path of our own reaction to a message. Raises SendRejected."""
    return f"{build_message_path(address, message_id)}/reactions/{quote(emoji, safe='')}/@me"


async def build_upload(fields: JSON, file: OutgoingFile) -> list[JSON]:
    content = b"".join([chunk async for chunk in file.read()])
    return [
        {"name": "payload_json", "value": json.dumps(fields), "content_type": "application/json"},
        {"name": "files[0]", "value": content, "filename": file.name, "content_type": file.media_type},
    ]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit()


def build_message(message: OutgoingMessage) -> JSON:
    """Return the fields of a new message. Discord recognizes its key for some minutes."""
    fields: JSON = {
        "nonce": message.key,
        "enforce_nonce": True,
        "allowed_mentions": ALLOWED_MENTIONS,
        "flags": SUPPRESS_EMBEDS,
    }
    if message.body:
        fields["content"] = message.body
    if message.reply_to and _is_id(message.reply_to):
        # The answer also arrives if the question was deleted meanwhile.
        fields["message_reference"] = {"message_id": message.reply_to, "fail_if_not_exists": False}
    if message.buttons:
        fields["components"] = _build_buttons(message.buttons)
    if message.file is not None:
        fields["attachments"] = [{"id": "0", "filename": message.file.name}]
    return fields


def build_edit(message: OutgoingMessage) -> JSON:
    buttons = _build_buttons(message.buttons)
    return {"content": message.body, "allowed_mentions": ALLOWED_MENTIONS, "components": buttons}


def build_press_answer(text: str) -> JSON:
    return {
        "content": shorten(text, MAX_MESSAGE_CHARS),
        "flags": EPHEMERAL | SUPPRESS_EMBEDS,
        "allowed_mentions": {"parse": []},
    }


def _build_buttons(buttons: Sequence[Button]) -> list[JSON]:
    keys = [
        {"type": 2, "style": 2, "label": button.label[:MAX_LABEL_CHARS], "custom_id": button.data}
        for button in buttons[:MAX_BUTTONS]
    ]
    rows = [keys[start : start + BUTTONS_PER_ROW] for start in range(0, len(keys), BUTTONS_PER_ROW)]
    return [{"type": 1, "components": row} for row in rows]


def build_commands(commands: Sequence[Command]) -> list[JSON]:
    """Return the slash commands of the bot. What follows the name is one argument, as it is typed elsewhere."""
    return [_build_command(command) for command in commands[:MAX_COMMANDS]]


def _build_command(command: Command) -> JSON:
    summary, usage = (
        translate(text, chat_language.name)[:MAX_DESCRIPTION_CHARS] for text in (command.summary, command.usage)
    )
    is_required = not command.usage.startswith("[")
    argument = {"type": 3, "name": ARGUMENT, "description": usage, "required": is_required}
    return {
        "type": 1,
        "name": command.name,
        "description": summary,
        "contexts": [0, 1],  # in servers and in direct messages with the bot
        "integration_types": [0],
        **({"options": [argument]} if command.usage else {}),
    }

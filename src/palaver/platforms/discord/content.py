"""Shows as text what people see besides the text of a message: embeds, stickers, polls, forwarded messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

JSON = Mapping[str, Any]
FindName = Callable[[str, str], str | None]  # `@`, `@&` or `#`, and an id → the name of the person, role or channel

_MARKUP: Final = re.compile(
    r"<(?:(?P<kind>@[!&]?|#)(?P<id>\d{1,20})|a?:(?P<emoji>\w{1,32}):\d{1,20}|/(?P<command>[^<>:]{1,100}):\d{1,20})>"
)


def read_content(message: JSON, find_name: FindName) -> str:
    """Return all that people see of a message, as text, without its files."""
    text = replace_markup(message.get("content") or "", find_name)
    parts = [text, *_describe_extras(message, text)]
    for snapshot in message.get("message_snapshots", ()):
        forwarded = snapshot["message"]
        inner = replace_markup(forwarded.get("content") or "", find_name)
        parts.append("\n".join(["[Forwarded message]", *filter(None, [inner, *_describe_extras(forwarded, inner)])]))
    return "\n".join(part for part in parts if part).strip()


def replace_markup(text: str, find_name: FindName) -> str:
    """Write names instead of ids: `<@42>` becomes `@Ada`."""

    def replace(match: re.Match[str]) -> str:
        if emoji := match["emoji"]:
            return f":{emoji}:"
        if command := match["command"]:
            return f"/{command}"
        kind = "@" if match["kind"] == "@!" else match["kind"]
        name = find_name(kind, match["id"])
        return f"{kind[0]}{name}" if name else match[0]

    return _MARKUP.sub(replace, text)


def _describe_extras(message: JSON, text: str) -> Iterator[str]:
    for embed in message.get("embeds", ()):
        if not (embed.get("url") and embed["url"] in text):  # else it is the preview of a link that is in the text
            yield _describe_embed(embed)
    for sticker in message.get("sticker_items", ()):
        yield f"[Sticker: {sticker['name']}]"
    if poll := message.get("poll"):
        answers = "; ".join(answer["poll_media"].get("text") or "?" for answer in poll.get("answers", ()))
        yield f"[Poll: {poll['question'].get('text', '')} ({answers})]"


def _describe_embed(embed: JSON) -> str:
    lines = [
        embed.get("author", {}).get("name"),
        embed.get("title"),
        embed.get("url"),
        embed.get("description"),
        *(f"{field['name']}: {field['value']}" for field in embed.get("fields", ())),
        embed.get("image", {}).get("url"),
        embed.get("footer", {}).get("text"),
    ]
    shown = "\n".join(line for line in lines if line)
    return f"[Embed]\n{shown}" if shown else ""

"""Reads Slack's own markup of messages, mrkdwn: references to people, channels and links become words. Pure.

Slack writes `<@U123>` for a person, `<#C123|general>` for a channel, `<!here>` for everybody who is there and
`<https://example.org|label>` for a link; everywhere else `&`, `<` and `>` are escaped. So a reference is never mistaken
for what a person has typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE: Final = re.compile(r"<([^<>]+)>")
_ESCAPES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


@dataclass(frozen=True, slots=True)
class Names:
    """The names of people and channels, by their ids."""

    users: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)


def list_references(text: str) -> tuple[set[str], set[str]]:
    """Return the ids of the people and of the channels that a text names without saying what they are called."""
    users, channels = set(), set()
    for reference in _REFERENCE.findall(text):
        target, _, label = reference.partition("|")
        if target.startswith("@"):
            users.add(target[1:])
        elif target.startswith("#") and not label:
            channels.add(target[1:])
    return users, channels


def mentions_user(text: str, user_id: str) -> bool:
    """Whether a text refers to a person or an app."""
    return any(each.partition("|")[0] == f"@{user_id}" for each in _REFERENCE.findall(text))


def remove_leading_mention(text: str, user_id: str) -> str:
    """Return a text without the mentions of a user at its beginning."""
    mention = re.compile(rf"\s*<@{re.escape(user_id)}(?:\|[^<>]*)?>[ \t:,]*")
    position = 0
    while match := mention.match(text, position):
        position = match.end()
    return text[position:].lstrip()


def decode_text(text: str, names: Names) -> str:
    """Return a text as people read it."""
    pieces = _REFERENCE.split(text)  # every second one is a reference
    return "".join(
        _decode_reference(piece, names) if number % 2 else _unescape(piece) for number, piece in enumerate(pieces)
    )


def escape_text(text: str) -> str:
    """Return a text in which Slack finds no references."""
    for escape, character in reversed(_ESCAPES):
        text = text.replace(character, escape)
    return text


def _decode_reference(reference: str, names: Names) -> str:
    target, _, label = (_unescape(part) for part in reference.partition("|"))
    if target.startswith("@"):
        return f"@{names.users.get(target[1:]) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or names.channels.get(target[1:]) or target[1:]}"
    if target.startswith("!"):
        special = target[1:].partition("^")[0]
        return label or f"@{special}"
    plain = target.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in {target, plain} or target.partition("://")[2] == label:
        return plain
    return f"{label} ({plain})"


def _unescape(text: str) -> str:
    for escape, character in _ESCAPES:
        text = text.replace(escape, character)
    return text

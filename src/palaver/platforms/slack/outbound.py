"""Turns an answer into what Slack's methods take: a Markdown block, buttons, a plain text for notifications. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final

from palaver.core.text import strip_markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.sessions.delivery import Button

Names = Mapping[str, str]  # of people and channels, by their ids

_REFERENCE: Final = re.compile(r"<([^<>]+)>")
_PEOPLE: Final = ("!channel", "!here", "!everyone", "!subteam^")

MAX_FALLBACK_CHARS: Final = 3000
MAX_BUTTON_CHARS: Final = 75
METADATA_TYPE: Final = "palaver_message"

# An answer must not notify a whole channel, whatever the model writes.
_BROADCAST: Final = re.compile(r"<(!(?:channel|here|everyone|subteam\^))", re.IGNORECASE)
_ZERO_WIDTH_SPACE: Final = "\u200b"


def list_references(text: str) -> set[str]:
    """Return the ids of the people and channels that a text names without saying what they are called."""
    found = (reference.partition("|") for reference in _REFERENCE.findall(text))
    return {target[1:] for target, _, label in found if target[:1] == "@" or (target[:1] == "#" and not label)}


def mentions_user(text: str, user_id: str) -> bool:
    return any(each.partition("|")[0] == f"@{user_id}" for each in _REFERENCE.findall(text))


def mentions_others(text: str, user_id: str) -> bool:
    """Return whether a text mentions another person than this one, a group of people, or everybody."""
    targets = (each.partition("|")[0] for each in _REFERENCE.findall(text))
    return any((each[:1] == "@" and each[1:] != user_id) or each.startswith(_PEOPLE) for each in targets)


def remove_leading_mention(text: str, user_id: str) -> str:
    return re.sub(rf"^(?:\s*<@{re.escape(user_id)}(?:\|[^<>]*)?>[ \t:,]*)+", "", text).lstrip()


def decode_text(text: str, names: Names) -> str:
    """Return a text as people read it."""
    pieces = _REFERENCE.split(text)  # every second one is a reference
    return "".join(
        _decode_reference(piece, names) if number % 2 else _unescape(piece) for number, piece in enumerate(pieces)
    )


def _decode_reference(reference: str, names: Names) -> str:
    target, _, label = (_unescape(part) for part in reference.partition("|"))
    if target.startswith("@"):
        return f"@{names.get(target[1:]) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or names.get(target[1:]) or target[1:]}"
    if target.startswith("!"):
        special = target[1:].partition("^")[0]
        return label or f"@{special}"
    plain = target.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in {target, plain} or target.partition("://")[2] == label:
        return plain
    return f"{label} ({plain})"


def _unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def build_blocks(markdown: str, buttons: Sequence[Button] = ()) -> list[dict[str, Any]]:
    """Return the blocks of a message: its text, and its buttons below."""
    blocks: list[dict[str, Any]] = [{"type": "markdown", "text": disarm_broadcasts(markdown)}]
    if buttons:
        elements = [
            {
                "type": "button",
                "action_id": f"palaver_{number}",
                "text": {"type": "plain_text", "text": button.label[:MAX_BUTTON_CHARS]},
                "value": button.data,
            }
            for number, button in enumerate(buttons, 1)
        ]
        blocks.append({"type": "actions", "elements": elements})
    return blocks


def build_fallback_text(markdown: str) -> str:
    """Return what notifications and screen readers show of a message: a plain text, which Slack does not interpret."""
    plain = strip_markdown(markdown[: 2 * MAX_FALLBACK_CHARS]).strip() or markdown.strip()
    return escape(plain[:MAX_FALLBACK_CHARS], quote=False)


def disarm_broadcasts(markdown: str) -> str:
    """Return a text in which `<!channel>` and the like are only words."""
    return _BROADCAST.sub(rf"<{_ZERO_WIDTH_SPACE}\1", markdown)


def build_metadata(key: str) -> dict[str, Any]:
    """Return what is stored with a message on Slack, to recognize it when it is unknown whether it has arrived."""
    return {"event_type": METADATA_TYPE, "event_payload": {"key": key}}


def read_key(message: Mapping[str, Any]) -> str | None:
    """Return the key of a message of ours, as it was read back from Slack; None if it has none."""
    metadata = message.get("metadata") or {}
    if metadata.get("event_type") != METADATA_TYPE:
        return None
    key = (metadata.get("event_payload") or {}).get("key")
    return key if isinstance(key, str) else None


# Slack's names of the emoji that people react with. Others keep their name, such as `:party_parrot:`.
_EMOJI_TABLE: Final = """
+1 👍  -1 👎  100 💯  alarm_clock ⏰  astonished 😲  beers 🍻  blush 😊  boom 💥  bug 🐛  bulb 💡  cake 🍰
calendar 📆  checkered_flag 🏁  clap 👏  coffee ☕  confused 😕  cry 😢  dart 🎯  disappointed 😞
exclamation ❗  eyes 👀  face_palm 🤦  fire 🔥  fireworks 🎆  first_place_medal 🥇  flushed 😳  gift 🎁
green_heart 💚  grin 😁  grinning 😀  handshake 🤝  heart ❤️  heart_eyes 😍  heavy_check_mark ✔️
heavy_plus_sign ➕  hourglass_flowing_sand ⏳  hugging_face 🤗  innocent 😇  joy 😂  kissing_heart 😘
laughing 😆  memo 📝  mega 📣  muscle 💪  neutral_face 😐  no_entry_sign 🚫  ok 🆗  ok_hand 👌  one 1️⃣
open_mouth 😮  partying_face 🥳  pencil2 ✏️  point_up ☝️  pray 🙏  purple_heart 💜  pushpin 📌  question ❓
rage 😡  raised_hands 🙌  raising_hand 🙋  recycle ♻️  relieved 😌  rocket 🚀
rolling_on_the_floor_laughing 🤣  rotating_light 🚨  salt 🧂  saluting_face 🫡  scream 😱  see_no_evil 🙈
seedling 🌱  ship 🚢  shrug 🤷  slightly_smiling_face 🙂  smile 😄  smiley 😃  smirk 😏  sob 😭  sparkles ✨
speech_balloon 💬  star ⭐  star-struck 🤩  stopwatch ⏱️  sunglasses 😎  sweat_smile 😅  tada 🎉  the_horns 🤘
thinking_face 🤔  three 3️⃣  trophy 🏆  two 2️⃣  unamused 😒  upside_down_face 🙃  v ✌️  warning ⚠️  wave 👋
white_check_mark ✅  wink 😉  wrench 🔧  x ❌  yellow_heart 💛  yum 😋  zap ⚡  zzz 💤
"""
_EMOJI: Final = dict(re.findall(r"(\S+) (\S+)", _EMOJI_TABLE))
_ALIASES: Final = {"thumbsup": "👍", "thumbsdown": "👎", "simple_smile": "🙂", "satisfied": "😆", "collision": "💥"}
_VARIATION: Final = "\ufe0f"  # keyboards add it to some emoji, or not
_NAMES: Final = {emoji.replace(_VARIATION, ""): name for name, emoji in _EMOJI.items()}


def read_emoji(name: str) -> str:
    """Return the emoji with a name, without its skin tone; one that is not known is written as `:name:`."""
    plain = name.partition("::")[0]
    return _EMOJI.get(plain) or _ALIASES.get(plain) or f":{plain}:"


def find_emoji_name(emoji: str) -> str | None:
    """Return Slack's name of an emoji, also of one that is written as `:name:`; None if it is not known."""
    if emoji.startswith(":") and emoji.endswith(":") and len(emoji) > 2:
        return emoji[1:-1]
    return _NAMES.get(emoji.replace(_VARIATION, ""))

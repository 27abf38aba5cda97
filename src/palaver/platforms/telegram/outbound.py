"""Turns an answer into messages of Telegram. Pure.

A message is stored as JSON: `{"text": …, "entities": […]}`, and `"rich"` with its Markdown if it is tried as a rich
message first. The text is cut after it was formatted, so its length is what Telegram counts.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from palaver.delivery.capabilities import LengthUnit, measure_length
from palaver.platforms.telegram.formatting import FormattedText, format_markdown, needs_rich_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_PIECE_UNITS: Final = 3686  # 90 %: Telegram's own count can differ a little
MAX_ENTITIES: Final = 100  # of one message; Telegram ignores the rest, so links and code come first
MAX_RICH_UNITS: Final = 4096  # apps show only the beginning of longer rich messages
MAX_PHOTO_BYTES: Final = 10 * 1024 * 1024
MAX_PRESS_ANSWER_CHARS: Final = 200
MIN_PIECE_SHARE: Final = 4  # a piece ends at a paragraph only if it then has at least a quarter of the limit


@dataclass(frozen=True, slots=True)
class MessageBody:
    """One message as it was stored."""

    text: str
    entities: Sequence[dict[str, Any]] = ()
    rich: str | None = None  # Markdown

    def to_json(self) -> str:
        fields: dict[str, Any] = {"text": self.text}
        if self.entities:
            fields["entities"] = list(self.entities)
        if self.rich is not None:
            fields["rich"] = self.rich
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, body: str) -> MessageBody:
        fields = json.loads(body)
        return cls(fields["text"], fields.get("entities", ()), fields.get("rich"))


def render_markdown(markdown: str, *, uses_rich_messages: bool = False) -> list[str]:
    """Return the messages that a text becomes, as JSON."""
    formatted = format_markdown(markdown)
    if not formatted.text.strip():
        formatted = FormattedText(markdown)  # only markup: shown as it was written
    pieces = list(split_formatted_text(formatted))
    if (
        uses_rich_messages
        and len(pieces) == 1
        and measure_length(markdown, LengthUnit.UTF16) <= MAX_RICH_UNITS
        and needs_rich_message(markdown)
    ):
        return [MessageBody(pieces[0].text, pieces[0].entities, rich=markdown).to_json()]
    return [MessageBody(piece.text, piece.entities).to_json() for piece in pieces]


# ---- splitting -----------------------------------------------------------------------------------------------


def split_formatted_text(formatted: FormattedText, max_units: int = MAX_PIECE_UNITS) -> Iterator[FormattedText]:
    """Split a text at its paragraphs and blocks of code; a format that is cut goes on in the next piece.

    Takes time in proportion to the text.
    """
    text = formatted.text
    waiting = sorted(formatted.entities, key=lambda entity: (entity["offset"], -entity["length"]), reverse=True)
    open_entities: list[dict[str, Any]] = []  # that began before, and go on
    position = unit_position = 0
    while position < len(text):
        window = _take_units(text, position, max_units)
        limit = unit_position + _count_units(window)
        while waiting and waiting[-1]["offset"] < limit:
            open_entities.append(waiting.pop())
        if position + len(window) < len(text):
            window = _choose_piece(window, unit_position, open_entities, text[position + len(window)])
        end = unit_position + _count_units(window)
        piece = _trim_lines(window, unit_position, open_entities)
        if piece.text.strip():
            yield piece
        open_entities = [entity for entity in open_entities if entity["offset"] + entity["length"] > end]
        position += len(window)
        unit_position = end


def _take_units(text: str, position: int, max_units: int) -> str:
    """Return as much of a text from a position on as fits, in whole characters."""
    window = text[position : position + max_units]
    if window.isascii():
        return window
    units = window.encode("utf-16-le", "surrogatepass")[: max_units * 2]
    return units.decode("utf-16-le", "ignore")


def _count_units(text: str) -> int:
    return measure_length(text, LengthUnit.UTF16)


def _choose_piece(window: str, unit_position: int, entities: Sequence[dict[str, Any]], following: str) -> str:
    """Return the beginning of the window that becomes a message."""
    minimum = len(window) // MIN_PIECE_SHARE
    end = unit_position + _count_units(window)
    for entity in entities:
        # A block of code that fits into the next message is not cut.
        entity_end = entity["offset"] + entity["length"]
        if entity["type"] == "pre" and entity_end > end and entity["length"] <= MAX_PIECE_UNITS:
            before = _take_units(window, 0, max(entity["offset"] - unit_position, 0))
            if len(before) > minimum:
                return before
    for separator in ("\n\n", "\n", ". ", " "):
        found = window.rfind(separator, minimum)
        if found >= 0:
            return window[: found + len(separator)]
    return _keep_characters_whole(window, following)


def _keep_characters_whole(window: str, following: str) -> str:
    """Do not cut between a letter and its accents, or inside an emoji of several parts."""
    end = len(window)
    for _ in range(16):
        next_character = window[end] if end < len(window) else following
        if end > 1 and (_joins_previous(next_character) or window[end - 1] == "\u200d"):
            end -= 1
        else:
            return window[:end]
    return window


def _joins_previous(character: str) -> bool:
    is_skin_tone = 0x1F3FB <= ord(character) <= 0x1F3FF
    return character in "\u200d\ufe0f" or is_skin_tone or unicodedata.combining(character) != 0


def _trim_lines(window: str, unit_position: int, entities: Sequence[dict[str, Any]]) -> FormattedText:
    """Return a piece without empty lines at its ends, and the parts of the entities that lie in it."""
    trimmed = window.lstrip("\n")
    start = unit_position + len(window) - len(trimmed)
    trimmed = trimmed.rstrip()
    end = start + _count_units(trimmed)
    parts = []
    for entity in entities:
        first, last = max(entity["offset"], start), min(entity["offset"] + entity["length"], end)
        if first < last:
            parts.append({**entity, "offset": first - start, "length": last - first})
    if len(parts) > MAX_ENTITIES:
        parts.sort(key=lambda part: part["type"] not in {"text_link", "pre"})
        parts = sorted(parts[:MAX_ENTITIES], key=lambda part: part["offset"])
    return FormattedText(trimmed, tuple(parts))


# ---- other parameters ----------------------------------------------------------------------------------------


def compute_draft_id(key: str) -> int:
    """Return the id of the draft with a key: the same one grows, another one replaces it; it is never 0."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest()) % (2**31 - 1) + 1


def choose_file_method(media_type: str, size: int) -> str:
    """Return how a file is sent, so that people see a picture, hear a voice note, or get a file."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind in {"image/jpeg", "image/png", "image/webp"} and size <= MAX_PHOTO_BYTES:
        return "photo"
    return {
        "audio/ogg": "voice",
        "audio/mpeg": "audio",
        "audio/mp4": "audio",
        "audio/x-m4a": "audio",
        "video/mp4": "video",
    }.get(kind, "document")


def choose_menu_commands(commands: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the commands that Telegram's menu can hold: at most 100, with names of small letters, digits and '_'."""
    return [
        (name, summary[:256])
        for name, summary in commands
        if name.isascii() and name.replace("_", "a").isalnum() and name.islower() and len(name) <= 32 and summary
    ][:100]

"""Turns an answer into messages of Telegram. Pure.

A message is stored as JSON: `{"text": …, "entities": […]}`, and `"rich"` with its Markdown if it is tried as a rich
message first. The text is cut after it was formatted, so its length is what Telegram counts.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyromark
from telegramify_markdown.config import RenderConfig
from telegramify_markdown.converter import STANDARD_OPTIONS, EventWalker

from palaver.delivery.model import LengthUnit, measure_length
from palaver.platforms.common.markdown import draw_table, name_cells

MAX_TABLE_COLUMNS: Final = 60  # in characters; what is wider breaks into pieces on a phone
MAX_MATH_CHARS: Final = 300
MAX_MATH_DEPTH: Final = 20
# How deep something may be in itself: what is deeper is shown like what is around it. Without a limit a short text can
# become a very long one, by the indents of lists in lists. Telegram knows no quotes in quotes.
MAX_DEPTHS: Final = {"List": 8, "BlockQuote": 1, "Strong": 2, "Emphasis": 2, "Strikethrough": 2, "Link": 1, "Image": 1}
_MATH_SIGNS: Final = frozenset("\\^_{}=+<>")
_INLINE_TAGS: Final = {
    **dict.fromkeys(("b", "strong"), "Strong"),
    **dict.fromkeys(("i", "em"), "Emphasis"),
    **dict.fromkeys(("s", "del", "strike"), "Strikethrough"),
}

Payload = Any  # `{"Start": "Paragraph"}`, `{"Text": "…"}`, "SoftBreak", as the parser returns it
Range = Mapping[str, int]  # in the UTF-8 of the source
Event = tuple[Payload, Range | None]

MAX_PIECE_UNITS: Final = 3686  # 90 %: Telegram's own count can differ a little
MAX_ENTITIES: Final = 100  # of one message; Telegram ignores the rest, so links and code come first
MAX_RICH_UNITS: Final = 4096  # apps show only the beginning of longer rich messages
MAX_PHOTO_BYTES: Final = 10 * 1024 * 1024
MAX_PRESS_ANSWER_CHARS: Final = 200
MIN_PIECE_SHARE: Final = 4  # a piece ends at a paragraph only if it then has at least a quarter of the limit


@dataclass(frozen=True, slots=True)
class MessageBody:
    """A text, and where it is bold, a link, code: `{"type": "bold", "offset": 0, "length": 4}` in UTF-16 units."""

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


def _make_config() -> RenderConfig:
    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    for level in range(1, 7):
        setattr(symbols, f"heading_level_{level}", "")
    symbols.unordered_list_item = "•"
    symbols.task_uncompleted = "⬜"
    symbols.image = "🖼 "
    config.cite_expandable = False
    return config


_CONFIG: Final = _make_config()


def format_markdown(markdown: str) -> MessageBody:
    source = markdown.encode("utf-8", "replace")
    markdown = source.decode("utf-8")
    events = pyromark.events_with_range(markdown, options=STANDARD_OPTIONS)
    prepared = tuple(event if event[1] is not None else event[0] for event in _EventFilter(source).prepare(events))
    try:
        text, entities, _ = EventWalker(_CONFIG, markdown).walk(prepared)
    except RecursionError:  # a formula that is nested too deeply for the library
        return MessageBody(markdown)
    return MessageBody(text, [entity.to_dict() for entity in entities])


def needs_rich_message(markdown: str) -> bool:
    """Return whether a text has a table, a heading or a displayed formula, which only a rich message shows as such."""
    for payload, _ in pyromark.events_with_range(markdown, options=STANDARD_OPTIONS):
        if isinstance(payload, dict):
            start = payload.get("Start")
            if "DisplayMath" in payload or (isinstance(start, dict) and ("Table" in start or "Heading" in start)):
                return True
    return False


@dataclass(frozen=True, slots=True)
class _OpenTag:
    """A list, a quote, a format or a link that has begun."""

    name: str
    is_kept: bool = True  # False: the library never learns of it
    end_text: str = ""  # what is written at its end then


class _EventFilter:
    def __init__(self, source: bytes) -> None:
        self._source = source
        self._open_tags: list[_OpenTag] = []
        self._depths: Counter[str] = Counter()  # of tags that are open, by name
        self._html_depths: Counter[str] = Counter()

    def prepare(self, events: Any) -> Iterator[Event]:
        stream = iter(events)
        for event in stream:
            payload, place = event
            start = payload.get("Start") if isinstance(payload, dict) else None
            if isinstance(start, dict) and "Table" in start:
                yield from _write_table(_read_table(stream), place)
            elif start == "HtmlBlock":
                yield from self._write_html_block(stream, place)
            elif start is not None:
                yield from self._open_tag(payload, place)
            elif isinstance(payload, dict):
                yield from self._prepare_content(payload, place)
            else:
                yield event

    def _prepare_content(self, payload: dict[str, Any], place: Range) -> Iterator[Event]:
        if "End" in payload:
            yield from self._close_tag(payload, place)
        elif "InlineHtml" in payload:
            yield from self._write_inline_html(payload["InlineHtml"], place)
        elif "InlineMath" in payload or "DisplayMath" in payload:
            yield self._prepare_math(payload, place), place
        else:
            yield payload, place

    def _open_tag(self, payload: dict[str, Any], place: Range) -> Iterator[Event]:
        start = payload["Start"]
        name = start if isinstance(start, str) else next(iter(start))
        if name not in MAX_DEPTHS:
            yield payload, place
            return
        tag = _OpenTag(name)
        if self._depths[name] >= MAX_DEPTHS[name]:
            tag = _OpenTag(name, is_kept=False)
        elif name == "Strikethrough" and self._source[place["start"] + 1 : place["start"] + 2] != b"~":
            tag = _OpenTag(name, is_kept=False, end_text="~")  # between lone tildes, which mean "about"
            yield {"Text": "~"}, place
        elif name in {"Link", "Image"}:
            tag = self._read_link(name, str(start[name].get("dest_url", "")), place)
        self._open_tags.append(tag)
        self._depths[name] += 1
        if tag.is_kept:
            yield payload, place

    def _close_tag(self, payload: dict[str, Any], place: Range) -> Iterator[Event]:
        end = payload["End"]
        name = end if isinstance(end, str) else next(iter(end))
        if name not in MAX_DEPTHS:
            yield payload, place
            return
        tag = self._open_tags.pop()
        self._depths[name] -= 1
        if tag.is_kept:
            yield payload, place
        elif tag.end_text:
            yield {"Text": tag.end_text}, place

    def _read_link(self, name: str, url: str, place: Range) -> _OpenTag:
        label_start = place["start"] + (2 if name == "Image" else 1)
        has_label = self._source[label_start : label_start + 1] != b"]"
        if has_label and url.lower().startswith(("http://", "https://")):
            return _OpenTag(name)
        # Telegram refuses the address, or there is no text that could be a link: the address is written out.
        is_autolink = self._source[place["start"] : place["start"] + 1] == b"<"
        text = "" if is_autolink or not url else f" ({url})" if has_label else url
        return _OpenTag(name, is_kept=False, end_text=text)

    def _prepare_math(self, payload: dict[str, Any], place: Range) -> Payload:
        kind, math = next(iter(payload.items()))
        # `$10 and $20` are prices, as `$HOME/$USER` are variables.
        is_followed_by_digit = self._source[place["end"] : place["end"] + 1].isdigit()
        is_formula = kind == "DisplayMath" or (not is_followed_by_digit and not _MATH_SIGNS.isdisjoint(math))
        if is_formula and len(math) <= MAX_MATH_CHARS and _get_depth(math) <= MAX_MATH_DEPTH:
            return payload
        return {"Text": self._source[place["start"] : place["end"]].decode("utf-8", "replace")}

    def _write_inline_html(self, html: str, place: Range) -> Iterator[Event]:
        name = html.strip("</> ").lower()
        if name == "br":
            yield "HardBreak", place
        elif name in _INLINE_TAGS:
            kind, is_end = _INLINE_TAGS[name], html.startswith("</")
            if is_end and self._html_depths[kind] > 0:
                self._html_depths[kind] -= 1
                yield {"End": kind}, place
            elif not is_end and self._html_depths[kind] < MAX_DEPTHS[kind]:
                self._html_depths[kind] += 1
                yield {"Start": kind}, place
        elif not html.startswith("<!--"):
            yield {"Text": html}, place

    def _write_html_block(self, stream: Iterator[Any], place: Range) -> Iterator[Event]:
        lines: list[str] = []
        for payload, _ in stream:
            if payload == {"End": "HtmlBlock"}:
                break
            if isinstance(payload, dict):
                lines.append(str(payload.get("Html") or payload.get("Text") or ""))
        text = "".join(lines).strip("\n")
        if text and not (text.startswith("<!--") and text.endswith("-->")):
            yield {"Start": "Paragraph"}, place
            yield {"Text": text}, place
            yield {"End": "Paragraph"}, place


def _get_depth(math: str) -> int:
    depth = deepest = 0
    for character in math:
        depth += (character in "{[(") - (character in "}])")
        deepest = max(deepest, depth)
    return deepest


# ---- tables --------------------------------------------------------------------------------------------------


def _read_table(stream: Iterator[Any]) -> list[list[str]]:
    """Return the texts of the cells; the first row is the head."""
    rows: list[list[str]] = []
    cell: list[str] = []
    for payload, _ in stream:
        if payload == {"End": "Table"}:
            break
        if not isinstance(payload, dict):
            cell.append(" ")
        elif payload.get("Start") in ("TableHead", "TableRow"):
            rows.append([])
        elif payload.get("Start") == "TableCell":
            cell = []
        elif payload.get("End") == "TableCell":
            rows[-1].append(" ".join("".join(cell).split()))
        elif "InlineHtml" in payload:
            is_break = payload["InlineHtml"].strip("</> ").lower() == "br"
            cell.append(" " if is_break else str(payload["InlineHtml"]))
        else:
            cell += [str(payload[kind]) for kind in ("Text", "Code", "InlineMath", "DisplayMath") if kind in payload]
    return rows


def _write_table(rows: list[list[str]], place: Range) -> Iterator[Event]:
    drawn = draw_table(rows, MAX_TABLE_COLUMNS)
    if drawn is not None:
        yield {"Start": {"CodeBlock": {"Fenced": ""}}}, place
        yield {"Text": drawn}, place
        yield {"End": "CodeBlock"}, place
        return
    head = rows[0] if rows else []
    for number, row in enumerate(rows[1:] or rows[:1]):
        # Without a place in the source, a paragraph is set apart by an empty line.
        yield {"Start": "Paragraph"}, place if number == 0 else None
        yield {"Start": "Strong"}, place
        yield {"Text": row[0] if row else ""}, place
        yield {"End": "Strong"}, place
        for cell in name_cells(head[1:], row[1:]):
            yield "HardBreak", place
            yield {"Text": cell}, place
        yield {"End": "Paragraph"}, place


def render_markdown(markdown: str, *, uses_rich_messages: bool = False) -> list[str]:
    """Return the messages that a text becomes, as JSON."""
    formatted = format_markdown(markdown)
    if not formatted.text.strip():
        formatted = MessageBody(markdown)  # only markup: shown as it was written
    pieces = list(split_formatted_text(formatted))
    if (
        uses_rich_messages
        and len(pieces) == 1
        and measure_length(markdown, LengthUnit.UTF16) <= MAX_RICH_UNITS
        and needs_rich_message(markdown)
    ):
        pieces = [replace(pieces[0], rich=markdown)]
    return [piece.to_json() for piece in pieces]


# ---- splitting -----------------------------------------------------------------------------------------------


def split_formatted_text(formatted: MessageBody) -> Iterator[MessageBody]:
    """Split a text at its paragraphs and blocks of code; a format that is cut goes on in the next piece.

    Takes time in proportion to the text.
    """
    text = formatted.text
    waiting = sorted(formatted.entities, key=lambda entity: (entity["offset"], -entity["length"]), reverse=True)
    open_entities: list[dict[str, Any]] = []  # that began before, and go on
    position = unit_position = 0
    while position < len(text):
        window = _take_units(text, position, MAX_PIECE_UNITS)
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


def _trim_lines(window: str, unit_position: int, entities: Sequence[dict[str, Any]]) -> MessageBody:
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
    return MessageBody(trimmed, parts)


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

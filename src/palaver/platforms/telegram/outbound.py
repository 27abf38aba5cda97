"""Turns an answer into messages of Telegram. Pure.

A message is stored as JSON: `{"text": …, "entities": […]}`, and `"rich"` with its Markdown if it is tried as a rich
message first. Its length is that of the formatted text, which is what Telegram counts.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, takewhile
from typing import Any, Final

import pyromark
from telegramify_markdown.config import RenderConfig
from telegramify_markdown.converter import STANDARD_OPTIONS, EventWalker

from palaver.core.dataclass import dataclass
from palaver.delivery.model import LengthUnit, measure_length
from palaver.delivery.splitting import split_markdown
from palaver.platforms.common.markdown import draw_table, name_cells
from palaver.platforms.telegram.manifest import CAPABILITIES

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

MAX_ENTITIES: Final = 100  # of one message; Telegram ignores the rest, so links and code come first
MAX_RICH_UNITS: Final = 4096  # apps show only the beginning of longer rich messages
MAX_PHOTO_BYTES: Final = 10 * 1024 * 1024
MAX_PRESS_ANSWER_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class MessageBody:
    """A text, and where it is bold, a link, code: `{"type": "bold", "offset": 0, "length": 4}` in UTF-16 units."""

    text: str
    entities: Sequence[dict[str, Any]] = ()
    rich: str | None = None  # Markdown

    def to_json(self) -> str:
        optional = {"entities": list(self.entities), "rich": self.rich}
        fields = {"text": self.text} | {name: value for name, value in optional.items() if value}
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
    start = len(text) - len(text.lstrip("\n"))
    text = text.lstrip("\n").rstrip()
    end = _measure(text)
    found = []
    for entity in sorted((each.to_dict() for each in reversed(entities)), key=lambda each: each["offset"]):
        first, last = max(entity["offset"] - start, 0), min(entity["offset"] + entity["length"] - start, end)
        if first < last:
            found.append({**entity, "offset": first, "length": last - first})
    if len(found) > MAX_ENTITIES:
        found.sort(key=lambda entity: entity["type"] not in {"text_link", "pre"})
        found = sorted(found[:MAX_ENTITIES], key=lambda entity: entity["offset"])
    return MessageBody(text, found)


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
        depths = accumulate((character in "{[(") - (character in "}])") for character in math)
        if is_formula and len(math) <= MAX_MATH_CHARS and max(depths, default=0) <= MAX_MATH_DEPTH:
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
        inside = takewhile(lambda payload: payload != {"End": "HtmlBlock"}, (payload for payload, _ in stream))
        lines = [payload.get("Html") or payload.get("Text") or "" for payload in inside if isinstance(payload, dict)]
        text = "".join(lines).strip("\n")
        if text and not (text.startswith("<!--") and text.endswith("-->")):
            yield {"Start": "Paragraph"}, place
            yield {"Text": text}, place
            yield {"End": "Paragraph"}, place


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


# ---- messages ------------------------------------------------------------------------------------------------


def render_markdown(markdown: str, *, uses_rich_messages: bool = False) -> list[str]:
    """Return the messages that a text becomes, as JSON."""
    format_part = cache(_format_part)  # it is measured before it is sent
    parts = split_markdown(markdown, CAPABILITIES, lambda part: _measure(format_part(part).text))
    bodies = [format_part(part) for part in parts]
    is_short = len(bodies) == 1 and _measure(markdown) <= MAX_RICH_UNITS
    if uses_rich_messages and is_short and needs_rich_message(markdown):
        bodies = [replace(bodies[0], rich=markdown)]
    return [body.to_json() for body in bodies]


def _format_part(markdown: str) -> MessageBody:
    formatted = format_markdown(markdown)
    return formatted if formatted.text.strip() else MessageBody(markdown)  # only markup: shown as it was written


def _measure(text: str) -> int:
    return measure_length(text, LengthUnit.UTF16)


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

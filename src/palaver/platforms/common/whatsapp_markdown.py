"""Markdown → the text formats of WhatsApp: `*bold*`, `_italic_`, `~struck~`, code, lists and quotes. Pure.

WhatsApp has no headings, links with a label, or tables: a heading becomes bold, a link is followed by its address, and
a table becomes aligned lines of code or, where it is too wide for a phone, a list of its rows.

Always true: a mark is written only where WhatsApp reads it as one, so that people see no stray asterisks: not inside of
a word, and never around nothing.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.delivery.model import Capabilities, measure_length
from palaver.delivery.splitting import split_markdown
from palaver.platforms.common.markdown import TableLines, draw_table, name_cells, read_rows, replace_invalid_characters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token


TABLE_LINES: Final = TableLines(column=" | ", rule="-", cross="-|-")
MAX_TABLE_COLUMNS: Final = 46  # characters side by side: a phone held upright shows fewer, one held sideways these
_FENCE: Final = "```"
_SPLIT_FENCE: Final = "`\N{ZERO WIDTH SPACE}`\N{ZERO WIDTH SPACE}`"  # inside of code: it must not end the block
_MARKS: Final = {"strong": "*", "em": "_", "s": "~"}


def render_whatsapp_messages(markdown: str, capabilities: Capabilities) -> list[str]:
    """Return the messages that a text becomes, each short enough for WhatsApp."""
    valid = replace_invalid_characters(markdown)
    unit = capabilities.length_unit
    parts = split_markdown(valid, capabilities, lambda part: measure_length(format_whatsapp_text(part), unit))
    return [text for part in parts if (text := format_whatsapp_text(part))]


def format_whatsapp_text(markdown: str) -> str:
    """Return Markdown as a text that WhatsApp shows formatted."""
    return "\n\n".join(_BlockWriter(_get_parser().parse(markdown)).write_blocks()).strip("\n")


@cache
def _get_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


# ---- blocks --------------------------------------------------------------------------------------------------


class _BlockWriter:
    """Writes the blocks of a document in one pass over its tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def write_blocks(self, end: str | None = None) -> Iterator[str]:
        return filter(None, map(self._write_block, self._take_until(end)))

    def _take_until(self, end: str | None) -> Iterator[Token]:
        """Yield the tokens of a container until the one that closes it; the caller takes what is inside of each."""
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            self._next += 1
            if token.type == end:
                return
            yield token

    def _write_block(self, token: Token) -> str:
        match token.type:
            case "bullet_list_open":
                return self._write_list("bullet_list_close", None)
            case "ordered_list_open":
                return self._write_list("ordered_list_close", int(token.attrs.get("start", 1)))
            case "blockquote_open":
                return _indent("\n\n".join(self.write_blocks("blockquote_close")), "> ", "> ")
            case "table_open":
                rows = read_rows(self._take_until("table_close"), _write_cell)
                return _write_table(list(rows))
            case _:
                return self._write_leaf_block(token)

    def _write_leaf_block(self, token: Token) -> str:
        match token.type:
            case "paragraph_open":
                return _write_inline(self._take_inline())
            case "heading_open":
                return _wrap_lines(_write_inline(self._take_inline(), outer="*"), "*")
            case "fence" | "code_block":
                return _write_code(token.content)
            case "hr":
                return "———"
            case _:
                return ""

    def _take_inline(self) -> Sequence[Token]:
        """Return the content of the block that has just been opened, and pass over its end."""
        token = self._tokens[self._next]
        self._next += 2
        return token.children or []

    def _write_list(self, end: str, number: int | None) -> str:
        items: list[str] = []
        is_loose = False
        for _ in self._take_until(end):
            first = self._tokens[self._next]
            is_loose = is_loose or (first.type == "paragraph_open" and not first.hidden)
            label = "- " if number is None else f"{number}. "
            number = None if number is None else number + 1
            blocks = list(self.write_blocks("list_item_close"))
            items.append(_indent("\n".join(blocks), label, " " * len(label)) if blocks else label.rstrip())
        return ("\n\n" if is_loose and any("\n" in item for item in items) else "\n").join(items)


def _write_cell(token: Token) -> str:
    return " ".join(_write_plain(token.children or []).split())


def _write_code(content: str) -> str:
    return f"{_FENCE}\n{content.rstrip().replace(_FENCE, _SPLIT_FENCE)}\n{_FENCE}" if content.strip() else ""


def _write_table(rows: Sequence[Sequence[str]]) -> str:
    drawn = draw_table(rows, MAX_TABLE_COLUMNS, TABLE_LINES)
    if drawn is not None:
        return _write_code(drawn)
    header, *records = rows
    names = [f"*{name}:*" if name else "" for name in header]
    written = ("\n".join(name_cells(names, record, separator=" ")) for record in records)
    return "\n\n".join(written) or _wrap_lines(" | ".join(header), "*")


def _indent(text: str, first: str, others: str) -> str:
    return "\n".join(
        f"{first if number == 0 else others}{line}".rstrip() for number, line in enumerate(text.split("\n"))
    )


def _wrap_lines(text: str, mark: str) -> str:
    """Put marks around each line: WhatsApp ends a format at the end of a line."""
    return "\n".join(f"{mark}{line.strip()}{mark}" if line.strip() else line for line in text.split("\n"))


# ---- inline --------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Format:
    """A format. Among the pieces of a text, it stands where it begins and again where it ends."""

    sign: str
    is_written: bool


def _write_inline(tokens: Sequence[Token], outer: str = "") -> str:
    """Return the text of a paragraph. `outer` is a mark that is around all of it, and is not repeated inside."""
    pieces = _list_pieces(tokens, outer)
    texts = [piece for piece in pieces if isinstance(piece, _Format) or piece]
    _drop_unread_marks(texts)
    return "".join(piece.sign * piece.is_written if isinstance(piece, _Format) else piece for piece in texts)


def _list_pieces(tokens: Sequence[Token], outer: str) -> list[str | _Format]:
    pieces: list[str | _Format] = []
    open_formats: list[_Format] = []
    links: list[tuple[str, int]] = []  # the address, and where the label begins
    for token in tokens:
        name, _, action = token.type.rpartition("_")
        if name in _MARKS and action == "open":
            pieces.append(_open_format(_MARKS[name], open_formats, outer))
        elif name in _MARKS:
            pieces.append(open_formats.pop())
        elif token.type == "link_open":
            links.append((str(token.attrs.get("href", "")), len(pieces)))
        elif token.type == "link_close":
            pieces.append(_write_address(*links.pop(), pieces))
        elif token.type in {"softbreak", "hardbreak"}:  # formats end with a line, and begin again in the next
            signs = [each.sign for each in open_formats]
            pieces += [open_formats.pop() for _ in signs]
            pieces.append("\n")
            pieces += [_open_format(sign, open_formats, outer) for sign in signs]
        else:
            pieces.append(_write_leaf(token))
    return pieces


def _open_format(sign: str, open_formats: list[_Format], outer: str) -> _Format:
    is_repeated = sign == outer or any(each.sign == sign for each in open_formats)
    open_formats.append(_Format(sign, is_written=not is_repeated))
    return open_formats[-1]


def _write_address(address: str, start: int, pieces: Sequence[str | _Format]) -> str:
    label = "".join(piece for piece in pieces[start:] if isinstance(piece, str)).strip()
    target = address.removeprefix("mailto:").removeprefix("tel:")
    if not label or not target:
        return target
    is_shown = label in {address, target} or address in {f"http://{label}", f"https://{label}"}
    return "" if is_shown else f" ({target})"


def _write_leaf(token: Token) -> str:
    match token.type:
        case "code_inline":
            code = token.content
            return f"{_FENCE}{code.replace(_FENCE, _SPLIT_FENCE)}{_FENCE}" if "`" in code else f"`{code}`"
        case "image":
            label, address = _write_plain(token.children or []), str(token.attrs.get("src", ""))
            return f"{label} ({address})" if label and address else label or address
        case _:
            return token.content


def _drop_unread_marks(pieces: Sequence[str | _Format]) -> None:
    """Leave out the pairs of marks that WhatsApp would show as characters."""
    begun: set[_Format] = set()
    before = ""  # the last character of the text so far
    for piece, following in pairwise([*pieces, ""]):
        if isinstance(piece, str):
            before = piece[-1]
            continue
        after = following if isinstance(following, str) else "*"
        inside, outside = (before, after[:1]) if piece in begun else (after[:1], before)
        begun.add(piece)
        if not inside or inside.isspace() or outside.isalnum():
            piece.is_written = False


def _write_plain(tokens: Sequence[Token]) -> str:
    """Return the text without formats, for places that have none: cells of a table."""
    plain = [each.copy(type="text") if each.type == "code_inline" else each for each in tokens]
    return "".join(piece for piece in _list_pieces(plain, "") if isinstance(piece, str))

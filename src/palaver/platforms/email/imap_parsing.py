"""Reads responses of an IMAP server: tokens, the data of a FETCH, and the structure of a mail. Pure.

Takes time in proportion to the response, and memory in proportion to its size; depth and number of parts are bounded,
because a sender decides how many a mail has.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from palaver.core.dataclass import dataclass

MAX_DEPTH = 60  # of lists within lists
MAX_TOKENS = 50_000  # of a response
MAX_PARTS = 200  # of a mail that are looked at

Token: TypeAlias = "bytes | list[Token] | None"  # noqa: S105

_TOKEN = re.compile(rb'[ \t]++|([()])|"((?:[^"\\]|\\.)*+)"|((?:[^\s()"\[]|\[[^\]]*+\]?)++)', re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)

_CHARSET = re.compile(
    r"iso[-_]?8859[-_]?\d{1,2}(?:[-_][ie])?|(?:windows|cp|ibm)[-_]?\d{3,5}|utf[-_]?(?:16|32)(?:[-_]?[bl]e)?|latin[-_]?\d{1,2}"
    r"|koi8[-_][rtu]|gb2312|gbk|gb18030|hz-gb-2312|big5(?:[-_]?hkscs)?|euc[-_]?(?:jp|kr)|shift[-_]?jis|iso-2022-(?:jp|kr)"
    r"|mac[-_]?(?:roman|cyrillic|greek|latin2)|macintosh|tis-620"
)


class ResponseUnreadable(Exception):
    """The server has sent what is no valid response, or one that is too deep."""


def tokenize(fragments: list[bytes]) -> list[Token]:
    """Return the tokens of a response: `fragments` are its lines and, at odd positions, its literals.

    A list in parentheses is a list; NIL is None. The marker `{12}` before a literal is left out.
    """
    root: list[Token] = []
    stack = [root]
    for number, fragment in enumerate(fragments):
        if number % 2:
            stack[-1].append(fragment)
        else:
            is_last = number == len(fragments) - 1
            _tokenize_line(fragment if is_last else fragment[: fragment.rindex(b"{")], stack)
    if len(stack) != 1:
        raise ResponseUnreadable("A list is not closed.")
    return root


def _tokenize_line(line: bytes, stack: list[list[Token]]) -> None:
    position = 0
    count = 0
    while position < len(line):
        count += 1
        if count > 2 * MAX_TOKENS:  # spaces are counted, too
            raise ResponseUnreadable("The response has too many parts.")
        match = _TOKEN.match(line, position)
        if match is None:
            raise ResponseUnreadable("A text is not closed.")
        position = match.end()
        sign, quoted, atom = match.groups()
        if sign == b"(":
            if len(stack) > MAX_DEPTH:
                raise ResponseUnreadable("Lists are nested too deeply.")
            inner: list[Token] = []
            stack[-1].append(inner)
            stack.append(inner)
        elif sign == b")":
            if len(stack) == 1:
                raise ResponseUnreadable("A list is closed that was not opened.")
            stack.pop()
        elif quoted is not None:
            stack[-1].append(_ESCAPED.sub(rb"\1", quoted) if b"\\" in quoted else quoted)
        elif atom is not None:
            stack[-1].append(None if atom.upper() == b"NIL" else atom)


def read_fetch_data(tokens: list[Token]) -> dict[str, Token]:
    """Return the data of `* 12 FETCH (UID 5 …)` by their names; nothing if this is another response.

    The place in `BODY[1]<0>` is left out of its name.
    """
    match tokens:
        case [_, bytes(kind), list(items)] if kind.upper() == b"FETCH":
            pairs = zip(items[::2], items[1::2], strict=False)
            return {
                name.decode("ascii", "replace").upper().partition("<")[0]: value
                for name, value in pairs
                if isinstance(name, bytes)
            }
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MimePart:
    """One part of a mail that has content, as the server describes it."""

    section: str  # its number for FETCH: 1, 2.1 …
    media_type: str  # in lower case
    charset: str = ""
    encoding: str = ""  # in lower case
    size: int = 0  # in bytes, encoded
    file_name: str = ""  # not decoded
    is_attachment: bool = False  # the sender says so
    method: str = ""  # of a calendar entry, in lower case: request, reply, cancel …

    @property
    def is_text(self) -> bool:
        """Whether it is the text of the mail, or one of its texts."""
        return self.media_type in {"text/plain", "text/html"} and not self.is_attachment and not self.file_name


@dataclass(frozen=True, slots=True)
class MimeGroup:
    """A multipart: parts that belong together."""

    subtype: str  # in lower case: mixed, alternative, related …
    parts: tuple[MimePart | MimeGroup, ...]


def read_structure(token: Token) -> MimePart | MimeGroup:
    """Return the parts of a mail from its BODYSTRUCTURE. Raises ResponseUnreadable."""
    if not isinstance(token, list):
        raise ResponseUnreadable("The structure of the mail is missing.")
    budget = [MAX_PARTS]
    return _read_node(token, "", budget)


def _read_node(node: list[Token], section: str, budget: list[int]) -> MimePart | MimeGroup:
    if not node or not isinstance(node[0], list):
        return _read_part(node, section or "1")
    parts: list[MimePart | MimeGroup] = []
    for count, child in enumerate(node, start=1):
        if not isinstance(child, list):
            break
        budget[0] -= 1
        if budget[0] >= 0:
            parts.append(_read_node(child, f"{section}.{count}" if section else str(count), budget))
    subtype = next((each for each in node if isinstance(each, bytes)), b"mixed")
    return MimeGroup(subtype.decode("ascii", "replace").lower(), tuple(parts))


def _read_part(node: list[Token], section: str) -> MimePart:
    fields = [*node[:7], *([None] * (7 - len(node)))]
    main, sub, parameters, _, _, encoding, size = fields
    disposition, disposition_parameters = _find_disposition(node[7:])
    names = _read_parameters(parameters)
    media_type = f"{_to_text(main) or 'application'}/{_to_text(sub) or 'octet-stream'}".lower()
    size_text = _to_text(size)
    return MimePart(
        section=section,
        media_type=media_type,
        charset=names.get("charset", ""),
        encoding=_to_text(encoding).lower(),
        size=int(size_text) if size_text.isascii() and size_text.isdigit() and len(size_text) < 16 else 0,
        file_name=_find_name(disposition_parameters, "filename") or _find_name(names, "name"),
        is_attachment=disposition == "attachment",
        method=names.get("method", "").lower(),
    )


def _find_disposition(rest: list[Token]) -> tuple[str, dict[str, str]]:
    """Find `("attachment" ("filename" "a.txt"))` behind the fields that differ between types."""
    for each in rest:
        match each:
            case [bytes(kind), (list() | None) as parameters] if kind.lower() in {b"attachment", b"inline"}:
                return kind.decode().lower(), _read_parameters(parameters)
    return "", {}


def _read_parameters(token: Token) -> dict[str, str]:
    if not isinstance(token, list):
        return {}
    pairs = zip(token[::2], token[1::2], strict=False)
    return {_to_text(name).lower(): _to_text(value) for name, value in pairs if isinstance(name, bytes)}


def _find_name(parameters: dict[str, str], name: str) -> str:
    """Return the name of a file, also one in the form of RFC 2231, whole or in pieces."""
    if name in parameters:
        return parameters[name]
    pieces = [parameters[f"{name}*"]] if f"{name}*" in parameters else []
    for number in range(20):
        piece = parameters.get(f"{name}*{number}*", parameters.get(f"{name}*{number}"))
        if piece is None:
            break
        pieces.append(piece)
    return "".join(pieces)


def _to_text(token: Token) -> str:
    return token.decode("utf-8", "replace") if isinstance(token, bytes) else ""


def decode_charset(data: bytes, charset: str) -> str:
    """Return a text, as far as it can be read; an unknown charset counts as UTF-8, as old mails lie about it.

    Only charsets: Python knows codecs such as punycode, too, whose time grows with the square of the text.
    """
    name = charset.strip().lower()[:40]
    if _CHARSET.fullmatch(name):
        try:
            return data.decode(name, "replace")
        except LookupError:
            pass
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # cut in the middle of a character
            return data.decode("utf-8-sig", "ignore")
        return data.decode("cp1252", "replace")

"""E-mail addresses: one form for each, and a strict reader of From, To and Cc. Pure.

An address is an identity, so whatever is not plainly one address is none: quoted local parts, control characters, two
senders. Takes time in proportion to the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_ADDRESS_CHARS = 254
MAX_LIST_CHARS = 20_000  # of a header that is read

# A dot-atom of RFC 5322, also with characters beyond ASCII; without quotes, spaces, commas and angle brackets.
_LOCAL_PART = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*")
_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62})(?:\.[a-z0-9][a-z0-9-]{0,62})*")
_WORD = re.compile(r'[^\s"(),:;<>\\]+')
_ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class Mailbox:
    """An address with the name that stands beside it; the name proves nothing."""

    address: str
    name: str = ""


def normalize_address(text: str) -> str | None:
    """Return the one form of an address: in lower case, the domain as in DNS; None if it is not an address.

    Letters beyond ASCII in the local part stay as they are, so that two that look alike never become one.
    """
    local, at, domain = text.rpartition("@")
    if not at or len(text) > MAX_ADDRESS_CHARS or not _LOCAL_PART.fullmatch(local):
        return None
    try:
        ascii_domain = domain.encode("idna").decode().lower() if not domain.isascii() else domain.lower()
    except UnicodeError:
        return None
    if not _DOMAIN.fullmatch(ascii_domain):
        return None
    return f"{local.translate(_ASCII_LOWER)}@{ascii_domain}"


def get_domain(address: str) -> str:
    return address.rpartition("@")[2]


def remove_tag(address: str) -> str:
    """Return an address without its +tag."""
    local, _, domain = address.rpartition("@")
    return f"{local.partition('+')[0]}@{domain}"


def parse_mailboxes(text: str, *, allows_groups: bool = True) -> list[Mailbox] | None:
    """Read the addresses of a header; None if something in it is not an address, or it is too long.

    Groups (`friends: a@b.org, c@d.org;`) count as the addresses in them.
    """
    if len(text) > MAX_LIST_CHARS:
        return None
    found: list[Mailbox] = []
    words: list[str] = []  # of the current mailbox, outside of angle brackets
    angle: str | None = None
    is_valid = True
    for piece in [*_tokenize(text), ","]:
        if piece in {",", ";"}:
            if words or angle is not None:
                mailbox = _make_mailbox(words, angle)
                is_valid = is_valid and mailbox is not None
                found.extend([mailbox] if mailbox else [])
            words, angle = [], None
        elif piece == ":":
            is_valid = is_valid and allows_groups
            words = []  # that was the name of a group
        elif piece.startswith("<"):
            is_valid = is_valid and angle is None
            angle = piece[1:-1] if piece.endswith(">") else ""
        else:
            words.append(piece)
    return found if is_valid else None


def _make_mailbox(words: list[str], angle: str | None) -> Mailbox | None:
    if angle is None:
        address = normalize_address(words[0]) if len(words) == 1 else None
        return Mailbox(address) if address else None
    address = normalize_address(angle.strip())
    name = " ".join(word[1:-1] if word.startswith('"') else word for word in words)
    return Mailbox(address, name) if address else None


def _tokenize(text: str) -> list[str]:
    """Split a header into words, quoted strings, addresses in angle brackets and the signs , ; : without comments."""
    tokens: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "(":
            position = _skip_comment(text, position)
        elif char == '"':
            quoted, position = _read_quoted(text, position)
            tokens.append(f'"{quoted}"')
        elif char == "<":
            end = text.find(">", position)
            end = len(text) if end < 0 else end + 1
            tokens.append(text[position:end])
            position = end
        elif match := _WORD.match(text, position):
            tokens.append(match[0])
            position = match.end()
        else:
            if char in ",;:":
                tokens.append(char)
            elif not char.isspace():
                tokens.append("\\")  # a sign that has no place here: the mailbox is not valid
            position += 1
    return tokens


def _skip_comment(text: str, position: int) -> int:
    depth = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\":
            position += 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                break
    return position


def _read_quoted(text: str, position: int) -> tuple[str, int]:
    chars: list[str] = []
    position += 1
    while position < len(text) and text[position] != '"':
        if text[position] == "\\":
            position += 1
        chars.append(text[position : position + 1])
        position += 1
    return "".join(chars), position + 1

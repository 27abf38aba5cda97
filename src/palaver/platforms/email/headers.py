"""Reads the header of a mail: fields, encoded words, addresses, why a mail counts as automatic, its conversation. Pure.

Senders write what they like: every size is bounded, and control characters become spaces. An address is an identity, so
whatever is not plainly one address is none: quoted local parts, control characters, two senders. Takes time in
proportion to the text.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from palaver.core.dataclass import dataclass
from palaver.core.recent_entries import RecentEntries
from palaver.platforms.email.imap_parsing import decode_charset
from palaver.sessions.delivery import Address, parse_part_key

MAX_HEADER_BYTES = 64 * 1024
MAX_FIELDS = 500
MAX_WORDS_CHARS = 2000  # of a field with encoded words that is decoded
MAX_SUBJECT_CHARS = 200
MAX_NAME_CHARS = 100
MAX_FILE_NAME_CHARS = 200
MAX_ID_CHARS = 250
MAX_REFERENCES = 50  # of a header that are read: the first ones and the last ones
MAX_ADDRESS_CHARS = 254
MAX_LIST_CHARS = 20_000  # of a header that is read
MAX_CHAT_PEOPLE = 20  # that a mail of ours is sent to
MAX_ENTRIES = 2000  # of the cache of threads
ADDRESS_SEPARATOR = ","

_FIELD = re.compile(r"([!-9;-~]{1,100})[ \t]*:(.*)", re.DOTALL)
_FOLD = re.compile(r"\n(?=[ \t])")  # a field goes on in the next line
_MESSAGE_ID = re.compile(rf"<([^<>\s\x00-\x1f\x7f-\x9f]{{1,{MAX_ID_CHARS}}})>")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_EXTENDED_VALUE = re.compile(r"([\w.:-]{0,40})'[\w-]{0,20}'(.*)", re.DOTALL)
_BULK = {"bulk", "list", "junk"}
_AUTOMATIC_NAMES = re.compile(
    r"(?:mailer-daemon|postmaster|bounces?|no[-_.]?reply|do[-_.]?not[-_.]?reply|notifications?|auto[-_.]?reply)\b",
    re.IGNORECASE,
)

# A dot-atom of RFC 5322, also with characters beyond ASCII; without quotes, spaces, commas and angle brackets.
_LOCAL_PART = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*")
_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62})(?:\.[a-z0-9][a-z0-9-]{0,62})*")
_TOKEN = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.?)*+)"?|<[^>]*+>?|[^\s"(),:;<>\\]++|(?P<sign>\S)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_COMMENT_SIGN = re.compile(r"\\.|[()]", re.DOTALL)
_OWN_ID = re.compile(r"palaver\.([A-Za-z0-9_.-]{1,60})\.([0-9a-f]{16})@(.{1,200})")
_SAFE_KEY = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class MailHeader:
    """The fields of a mail in their order, with names in lower case and values on one line."""

    fields: tuple[tuple[str, str], ...]
    is_whole: bool = True  # False: there may be more fields, or other programs may read other ones

    def get_all(self, name: str) -> list[str]:
        return [value for field, value in self.fields if field == name]

    def get(self, name: str) -> str:
        """Return the first field of this name; empty if there is none."""
        return next((value for field, value in self.fields if field == name), "")

    def has(self, name: str) -> bool:
        return any(field == name for field, _ in self.fields)


def parse_header(data: bytes) -> MailHeader:
    """Read the header of a mail, also a malformed one."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    text = text.replace("\r\n", "\n")
    is_whole = len(data) < MAX_HEADER_BYTES and "\r" not in text
    text, _, rest = text.replace("\r", "\n").partition("\n\n")
    lines = _FOLD.sub("", text).split("\n")
    is_whole = is_whole and len(lines) <= MAX_FIELDS
    matches = [match for line in lines[:MAX_FIELDS] if (match := _FIELD.fullmatch(line))]
    fields = tuple((match[1].lower(), match[2].strip()) for match in matches)
    return MailHeader(fields, is_whole and not rest.strip("\n"))


def decode_words(text: str, limit: int) -> str:
    """Return a text with its encoded words (RFC 2047) decoded: on one line, without control characters."""
    text = text[:MAX_WORDS_CHARS]
    if "=?" in text:
        with suppress(ValueError, LookupError, binascii.Error, HeaderParseError):  # then it is shown as it came
            text = "".join(_decode_piece(piece, charset) for piece, charset in decode_header(text))
    return clean_line(text)[:limit]


def _decode_piece(piece: str | bytes, charset: str | None) -> str:
    return piece if isinstance(piece, str) else decode_charset(piece, charset or "")


def clean_line(text: str) -> str:
    """Return a text on one line, without control characters and signs that turn the direction of writing."""
    text = text.encode("utf-8", "replace").decode()
    return " ".join(_CONTROL.sub(" ", text).split())


def decode_file_name(text: str) -> str:
    """Return the name of a file, which is encoded as RFC 2231 or RFC 2047 say, or not at all."""
    text = text[:MAX_WORDS_CHARS]
    if (match := _EXTENDED_VALUE.fullmatch(text)) is not None:
        text = _decode_piece(unquote_to_bytes(match[2]), match[1])
    return decode_words(text, MAX_FILE_NAME_CHARS)


def find_ids(text: str) -> list[str]:
    """Return the message ids in a field: the first ones and the last ones, if there are too many."""
    ids = _MESSAGE_ID.findall(text)
    if len(ids) <= MAX_REFERENCES:
        return ids
    return [*ids[: MAX_REFERENCES // 2], *ids[-MAX_REFERENCES // 2 :]]


def find_message_id(header: MailHeader) -> str | None:
    """Return the id of a mail, without its angle brackets; None if it has none that is valid."""
    ids = _MESSAGE_ID.findall(header.get("message-id")[: MAX_ID_CHARS + 10])
    return ids[0] if ids else None


def is_automatic_reply(header: MailHeader) -> bool:
    """Whether a program has replied by itself, or reports that a mail was not delivered: nothing answers these."""
    return (
        _read_auto_submitted(header).startswith(("auto-replied", "auto-notified"))
        or any(header.has(name) for name in ("x-autoreply", "x-autorespond", "x-failed-recipients"))
        or header.get("return-path").strip() == "<>"
        or header.get("content-type").lower().startswith("multipart/report")
    )


def is_automatic(header: MailHeader, address: str) -> bool:
    """Whether a program has written a mail: a list, a newsletter, a notification, an address that takes no answers."""
    return (
        _read_auto_submitted(header) not in {"", "no"}
        or header.get("precedence").strip().lower() in _BULK
        or any(header.has(name) for name in ("list-id", "list-unsubscribe", "list-post", "x-auto-response-suppress"))
        or _AUTOMATIC_NAMES.match(address) is not None
    )


def _read_auto_submitted(header: MailHeader) -> str:
    return header.get("auto-submitted").partition(";")[0].strip().lower()


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
    while (match := _TOKEN.search(text, position)) is not None:
        position = match.end()
        token, quoted, sign = match[0], match["quoted"], match["sign"]
        if sign == "(":
            position = find_comment_end(text, position) or len(text)
        elif quoted is not None:
            tokens.append('"' + _ESCAPED.sub(r"\1", quoted) + '"')
        elif sign is not None and sign not in ",;:":
            tokens.append("\\")  # a sign that has no place here: the mailbox is not valid
        else:
            tokens.append(token)
    return tokens


def find_comment_end(text: str, position: int) -> int | None:
    """Return where the comment ends that has begun before a position; None if it is not closed."""
    depth = 1
    for sign in _COMMENT_SIGN.finditer(text, position):
        depth += {"(": 1, ")": -1}.get(sign[0], 0)
        if depth == 0:
            return sign.end()
    return None


# A conversation is a thread among the same people. The chat is their addresses, and the thread is a short name for
# its first mail. Each of our mails carries that name in its Message-ID, so a reply to it finds its thread, even if
# the mail program of a person keeps nothing but the id of the mail that it replies to.
#
#     Message-ID of ours:  <palaver.{key of the message}.{thread}@{our domain}>
#
# Always true: the same message has the same Message-ID in every attempt, and nothing but its address and key decides
# it.


class OwnId(NamedTuple):
    """The parts of the Message-ID of a mail of ours."""

    key: str
    thread_id: str


def shorten_id(message_id: str) -> str:
    """Return the short name of the thread that begins with a mail."""
    return hashlib.sha256(message_id.encode("utf-8", "replace")).hexdigest()[:16]


def make_own_id(key: str, address: Address, own_address: str) -> str:
    """Return the Message-ID of a message of ours, without angle brackets."""
    safe_key = key if _SAFE_KEY.fullmatch(key) else shorten_id(key)
    return f"palaver.{safe_key}.{find_thread_of(key, address)}@{get_domain(own_address)}"


def find_thread_of(key: str, address: Address) -> str:
    """Return the thread that a message of ours belongs to; it begins one if its address names none.

    All parts of one delivery belong to the same thread.
    """
    if address.thread_id is not None:
        return address.thread_id if re.fullmatch(r"[0-9a-f]{16}", address.thread_id) else shorten_id(address.thread_id)
    part = parse_part_key(key)
    return shorten_id(part[0] if part else key)


def make_first_part_id(key: str, address: Address, own_address: str) -> str | None:
    """Return the Message-ID of the first part of the same delivery; None if this is the first."""
    part = parse_part_key(key)
    if part is None or part[1] <= 1:
        return None
    return make_own_id(f"{part[0]}.1", address, own_address)


def parse_own_id(message_id: str, own_address: str) -> OwnId | None:
    """Return what a Message-ID of ours says; None if it is not one of ours."""
    match = _OWN_ID.fullmatch(message_id)
    return OwnId(match[1], match[2]) if match and match[3] == get_domain(own_address) else None


def list_references(header: MailHeader) -> list[str]:
    """Return the ids of the mails before this one in its thread, oldest first, without doubles."""
    return list(dict.fromkeys([*find_ids(header.get("references")), *find_ids(header.get("in-reply-to"))]))


def find_thread(header: MailHeader, message_id: str, own_address: str) -> str:
    references = list_references(header)
    for reference in reversed(references):
        if (own := parse_own_id(reference, own_address)) is not None:
            return own.thread_id
    return shorten_id(references[0] if references else message_id)


def get_mail_id(header: MailHeader, raw_header: bytes) -> str:
    """Return the id of a mail; one without a valid Message-ID gets one from its header, the same each time."""
    return find_message_id(header) or f"{hashlib.sha256(raw_header).hexdigest()[:32]}@no-message-id.invalid"


def split_addresses(chat_id: str) -> list[str] | None:
    """Return the addresses of the people in a chat; None if they are not addresses, or too many."""
    addresses = [normalize_address(each.strip()) for each in chat_id.split(ADDRESS_SEPARATOR)]
    if not 1 <= len(addresses) <= MAX_CHAT_PEOPLE or None in addresses:
        return None
    return [address for address in dict.fromkeys(addresses) if address]


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A mail, as far as an answer in its thread needs it."""

    message_id: str  # ids are without angle brackets
    subject: str
    references: tuple[str, ...] = ()  # the mails before it in its thread; it replies to the last of them


class ThreadCache:
    """The last mail of each thread, and mails by their ids."""

    def __init__(self) -> None:
        self._states: RecentEntries[tuple[str, ...], ThreadState] = RecentEntries(MAX_ENTRIES)

    def remember(self, chat_id: str, thread_id: str, state: ThreadState) -> None:
        for key in ((chat_id, thread_id), (chat_id, "", state.message_id)):
            self._states.remember(key, state)

    def find(self, chat_id: str, thread_id: str, message_id: str | None = None) -> ThreadState | None:
        """Return a mail of a chat or, without an id, the last one of its thread."""
        return self._states.get((chat_id, "", message_id) if message_id else (chat_id, thread_id))

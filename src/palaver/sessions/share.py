"""A shared copy of a conversation, for people without an account: what it contains and what it leaves out.

It contains the messages of people and the agent, in order, and nothing else: no tool calls, reasoning, files, undone
messages or ids. The person who shares it is named, because they chose to; the others did not, so they are numbered and
their names are removed. In the text, everything that looks like a key, an email address, a phone number or one of our
ids is replaced.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, NotFound, NothingToDo
from palaver.core.text import make_storable
from palaver.core.texts import say

if TYPE_CHECKING:
    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event

MAX_SHARES_PER_PERSON: Final = 500
MAX_EXPIRED_AGE: Final = timedelta(days=7)  # after that, an expired copy is deleted
_MAX_LIFETIME: Final = timedelta(days=36_500)
MAX_NAME_CHARS: Final = 128  # of a longer name, only the beginning is looked for
_SHARE_ID = re.compile(r"sh_[0-9a-f]{16}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE_PLACEHOLDER = "(file)"
_WORD_CHAR = re.compile(r"\w")

# Each replacement, and the pattern of what it replaces. A conversation may contain any text, so every pattern takes
# time in proportion to it: a run of characters is tried once, from its beginning, and never given back (`++`, `*+`).
_REPLACEMENTS: Final = (
    (
        "(key removed)",
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
        ),
    ),
    (
        "(key removed)",
        re.compile(r"\b(?:sk|pk|rk|pal|ghp|gho|ghs|glpat|xox[abprs]|hf|npm|pypi)[-_][A-Za-z0-9_-]{12,}+"),
    ),
    (
        "(key removed)",
        re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}+|\bgithub_pat_[A-Za-z0-9_]{20,}+"),
    ),
    (
        r"\1(key removed)",
        re.compile(
            r"(?<![A-Za-z0-9_-])(?>([A-Za-z0-9_-]*?)\beyJ)[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+"
        ),
    ),
    ("(key removed)", re.compile(r"\b\d{6,12}:[A-Za-z0-9_-]{30,}+")),
    (
        r"\1(removed)",
        re.compile(r"((?:password|passwd|secret|token|api[_-]?key)\s*+[:=]\s*+)(?!\(key removed)\S++", re.IGNORECASE),
    ),
    ("://(removed)@", re.compile(r"://[^\s/@:]++:[^\s/@]++@")),
    ("(email removed)", re.compile(r"(?<![\w.+-])(?:[\w.+-]++@[\w-]++(?:\.[\w-]++)++)++")),
    ("(id removed)", re.compile(r"\b\d{8}_\d{6}_[0-9a-f]{8}\b|\b(?:p|t|d|a|m|sh|proj|dev|tok)_[0-9a-f]{8,}+\b")),
    ("(phone number removed)", re.compile(r"(?<![\w.])(?:\+|00)[1-9](?:[ ()/.-]{0,2}\d){7,14}(?!\w)")),
    ("(phone number removed)", re.compile(r"(?<![\w.])\(?0[1-9]\d?(?:[ ()/-]{0,2}\d){7,10}(?!\w)")),
)


class ShareNotFound(NotFound):
    """Shared conversation not found. The owner may have stopped sharing it."""


class ConversationTooLong(InvalidInput):
    """This conversation is too long for a shared page. Export it as a file instead."""


class ShareExpired(NotFound):
    """This link has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A shared copy, as its creator and the owners see it in their lists."""

    id: str
    session_id: str
    person_id: PersonId  # who made it
    person_name: str
    title: str | None
    message_count: int
    created_at: datetime
    expires_at: datetime | None  # from then on it can't be opened; None: never
    secret: str = field(repr=False)  # opens the copy

    @property
    def path(self) -> str:
        """The page that shows the copy. Browsers do not send what is after `#` to any server."""
        return f"/shared#{self.secret}"


def check_expiry(expires_at: datetime | None, now: datetime) -> int | None:
    """Return when a link expires, as it is stored; raises `InvalidInput` if that is in the past or too far ahead."""
    if expires_at is None:
        return None
    if expires_at.utcoffset() is None:
        raise InvalidInput(f"expires_at: {expires_at.isoformat()} has no time zone, so it is ambiguous.")
    if expires_at <= now:
        raise InvalidInput(
            say(
                "share.expires_in_past",
                "expires_at: this time has passed. Choose a later one, or stop sharing the conversation.",
            ),
            key="expires_at",
        )
    if expires_at > now + _MAX_LIFETIME:
        raise InvalidInput(
            say("share.expires_too_late", "expires_at: this is more than 100 years from now. Choose never."),
            key="expires_at",
        )
    return to_micros(expires_at)


@dataclass(frozen=True, slots=True)
class Sharer:
    person_id: PersonId
    name: str


def new_share_id() -> str:
    """Return an id with which the creator manages the share; it does not give access to the copy."""
    return f"sh_{secrets.token_hex(8)}"


def parse_share_id(text: str) -> str:
    """Return the id if it looks like one; raise ShareNotFound otherwise, because no share can have it."""
    if _SHARE_ID.fullmatch(text) is None:
        raise ShareNotFound
    return text


def parse_share_secret(text: str) -> str:
    """Return the secret if it looks like one; raise ShareNotFound otherwise, because it can open nothing."""
    if _SECRET.fullmatch(text) is None:
        raise ShareNotFound
    return text


def build_shared_copy(
    title: str | None, log: Iterable[Event], names: Iterable[str] = (), sharer: Sharer | None = None
) -> dict[str, Any]:
    """Return the copy as JSON-ready data; `names` of people are removed from the text, except the sharer's."""
    shared = [
        (_get_author(event), event.message)
        for event in log
        if event.message is not None and event.message.role in {"user", "assistant"} and not event.hidden
    ]
    redact = _build_redactor(name for name in names if sharer is None or name.strip() != sharer.name.strip())
    author_labels = _label_authors((author for author, _ in shared), sharer)
    messages = [
        {"role": message.role, "name": author_labels.get(author), "text": text}
        for author, message in shared
        if (text := redact(_get_text(message.content)).strip())
    ]
    if not messages:
        raise NothingToDo.say("share.nothing_to_share", "There is nothing to share in this conversation yet.")
    return {"title": None if title is None else redact(title), "messages": messages}


def _get_text(content: str | Sequence[Any] | None) -> str:
    if content is None or isinstance(content, str):
        return make_storable(content or "")
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            text = part.get("text")
            texts.append(text if isinstance(text, str) else _FILE_PLACEHOLDER)
    return make_storable("\n\n".join(texts))


def _get_author(event: Event) -> str | None:
    """Return something that tells the author from other people; None for the agent."""
    message = event.message
    if message is None or message.role != "user":
        return None
    author = message.author
    return event.person_id or (author and (author.id or author.name)) or ""


def _label_authors(authors: Iterable[str | None], sharer: Sharer | None) -> dict[str | None, str]:
    """Return how each author is called: the sharer by name, the others by number if there are several."""
    people = dict.fromkeys(author for author in authors if author is not None)
    labels: dict[str | None, str] = {}
    if sharer is not None and sharer.name.strip() and sharer.person_id in people:
        labels[sharer.person_id] = sharer.name.strip()
    others = [author for author in people if author not in labels]
    if len(others) < 2:
        return labels | dict.fromkeys(others, "Person")
    return labels | {author: f"Person {number}" for number, author in enumerate(others, 1)}


def _build_redactor(names: Iterable[str]) -> Callable[[str], str]:
    remove_names = _build_name_remover({name.strip()[:MAX_NAME_CHARS] for name in names if len(name.strip()) > 2})

    def redact(text: str) -> str:
        for replacement, pattern in _REPLACEMENTS:
            text = pattern.sub(replacement, text)
        return remove_names(text)

    return redact


def _build_name_remover(names: set[str]) -> Callable[[str], str]:
    """Return a function that replaces these names, in any letter case, where they are whole words.

    A thousand people cost no more than a few: a place in the text is looked up once for each length of a name.
    """
    lower_names = {name.lower() for name in names}
    lengths = sorted({len(name) for name in names}, reverse=True)
    first_chars = {char for name in names for char in name[0] + name[0].lower() + name[0].upper()}
    start_pattern = re.compile(rf"(?<!\w)[{''.join(map(re.escape, first_chars))}]") if names else None

    def find_end(text: str, start: int) -> int | None:
        for length in lengths:
            end = start + length
            is_complete = length == MAX_NAME_CHARS or end >= len(text) or not _WORD_CHAR.match(text, end)
            if is_complete and text[start:end].lower() in lower_names:
                return end
        return None

    def remove_names(text: str) -> str:
        parts, kept_from = [], 0
        for match in start_pattern.finditer(text) if start_pattern else ():
            if match.start() >= kept_from and (end := find_end(text, match.start())) is not None:
                parts += [text[kept_from : match.start()], "(name removed)"]
                kept_from = end
        return "".join([*parts, text[kept_from:]])

    return remove_names

"""A copy of a conversation for people without an account: what is in it, and what is left out.

What was said aloud, in order, and nothing else: no tools, no reasoning, no files, nothing that was taken back, no ids
and no names. People are numbered where there are several. In the text, what looks like a key, an address of a person
or one of our ids is replaced; who they are is not for strangers.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from palaver.domain.errors import NotFound, NothingToDo
from palaver.domain.events import EventKind
from palaver.domain.text import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from palaver.domain.events import Event

MOST_SHARES: Final = 500  # of one person
_ID = re.compile(r"sh_[0-9a-f]{16}")
_FILE = "(a file)"

_HIDDEN: Final = (
    ("(a key)", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)),
    ("(a key)", re.compile(r"\b(?:sk|pk|rk|pal|ghp|gho|ghs|glpat|xox[abprs]|hf|npm|pypi)[-_][A-Za-z0-9_-]{12,}")),
    ("(a key)", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\bgithub_pat_[A-Za-z0-9_]{20,}")),
    ("(a key)", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")),
    ("(a key)", re.compile(r"\b\d{6,12}:[A-Za-z0-9_-]{30,}")),
    (r"\1(hidden)", re.compile(r"((?:password|passwd|secret|token|api[_-]?key)\s*[:=]\s*)\S+", re.IGNORECASE)),
    (r"\1(hidden)@", re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@:]+:[^\s/@]+@", re.IGNORECASE)),
    ("(an address)", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    ("(an id)", re.compile(r"\b\d{8}_\d{6}_[0-9a-f]{8}\b|\b(?:p|t|d|a|m|sh|proj|dev|tok)_[0-9a-f]{8,}\b")),
    ("(a number)", re.compile(r"(?<![\w.])(?:\+|00)[1-9](?:[ ()/.-]{0,2}\d){7,14}(?!\w)")),
    ("(a number)", re.compile(r"(?<![\w.])\(?0[1-9]\d?(?:[ ()/-]{0,2}\d){7,10}(?!\w)")),
)


class NoSuchShare(NotFound):
    """There is no such shared conversation; perhaps it has been taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A copy that somebody has made, as they see it in their list."""

    id: str
    session_id: str
    title: str | None
    message_count: int
    created_at: datetime


def new_share_id() -> str:
    """A fresh id, for whoever made it; it opens nothing."""
    return f"sh_{secrets.token_hex(8)}"


def known_share_id(text: str) -> str:
    """An id from outside. What does not even look like one names no share."""
    if _ID.fullmatch(text) is None:
        raise NoSuchShare
    return text


def copied(title: str | None, log: Iterable[Event], names: Iterable[str] = ()) -> dict[str, Any]:
    """The copy as JSON-ready data; `names` are those of the people in it, which the text must not tell."""
    said = [event for event in log if _is_shown(event)]
    hide = _hiding(names)
    people = _numbered(said)
    messages = [
        {"role": event.message.role, "name": people.get(_author(event)), "text": text}
        for event in said
        if event.message is not None and (text := hide(_text(event.message.content)).strip())
    ]
    if not messages:
        raise NothingToDo("there is nothing in this conversation to share yet")
    return {"title": None if title is None else hide(title), "messages": messages}


def _is_shown(event: Event) -> bool:
    message = event.message
    return (
        event.kind is EventKind.MESSAGE
        and not event.hidden
        and message is not None
        and message.role in {"user", "assistant"}
    )


def _text(content: str | Sequence[Any] | None) -> str:
    if content is None or isinstance(content, str):
        return storable(content or "")
    found = []
    for part in content:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, Mapping):
            text = part.get("text")
            found.append(text if isinstance(text, str) else _FILE)
    return storable("\n\n".join(found))


def _author(event: Event) -> str | None:
    """Who said it, as far as people can be told apart; None for the agent."""
    message = event.message
    if message is None or message.role != "user":
        return None
    author = message.author
    return event.person_id or (author and (author.id or author.name)) or ""


def _numbered(said: Iterable[Event]) -> dict[str | None, str]:
    authors = [author for author in dict.fromkeys(_author(event) for event in said) if author is not None]
    if len(authors) < 2:
        return dict.fromkeys(authors, "Person")
    return {author: f"Person {number}" for number, author in enumerate(authors, 1)}


def _hiding(names: Iterable[str]) -> Any:
    known = sorted({name.strip() for name in names if len(name.strip()) > 2}, key=len, reverse=True)
    patterns = list(_HIDDEN)
    if known:
        either = "|".join(re.escape(name) for name in known)
        patterns.append(("(somebody)", re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)))

    def hide(text: str) -> str:
        for instead, pattern in patterns:
            text = pattern.sub(instead, text)
        return text

    return hide

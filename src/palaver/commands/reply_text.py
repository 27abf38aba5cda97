"""Formatting for replies: names of conversations, quotes, ages, amounts.

Always true: text that people wrote is put on one line, shortened, and its own Markdown is escaped.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.sessions.policy import ResetMode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from decimal import Decimal

    from palaver.sessions.events import Event
    from palaver.sessions.model import Session
    from palaver.sessions.policy import ResetPolicy

MAX_EXCERPT_CHARS = 80
MAX_TITLE_CHARS = 100
MAX_LAST_EXCHANGE_CHARS = 160  # of each message
_MARKDOWN_CHARS = re.compile(r"[\\`*\[\]<>~|]|(?<!\w)_|_(?!\w)")
_COST_DECIMALS = 4


def shorten_text(text: str, max_chars: int = MAX_EXCERPT_CHARS) -> str:
    """Put a text on one line of at most so many characters."""
    line = " ".join(text[: 4 * max_chars].split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def escape_markdown(text: str, max_chars: int = MAX_EXCERPT_CHARS) -> str:
    """Shorten a text and escape its Markdown."""
    return _MARKDOWN_CHARS.sub(lambda match: "\\" + match[0], shorten_text(text, max_chars))


def quote_text(text: str, max_chars: int = MAX_EXCERPT_CHARS) -> str:
    """Shorten, escape and quote a text."""
    return f"“{escape_markdown(text, max_chars)}”"


def format_code(text: str) -> str:
    """Format a text that is to be typed exactly as it is."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def format_title(title: str) -> str:
    return f"**{escape_markdown(title, MAX_TITLE_CHARS)}**"


def format_session_name(session: Session) -> str:
    """Return the title of a conversation, or its last message as a quote."""
    if session.shown_title:
        return format_title(session.shown_title)
    return quote_text(session.preview) if session.preview else "an empty conversation"


def format_last_exchange(log: Iterable[Event]) -> str:
    """Return the last message of a person and of the agent as a quote to end a text with; empty if there are none."""
    lines: dict[str, str] = {}
    for event in log:
        message = event.message
        if message is not None and message.role in {"user", "assistant"} and message.text.strip():
            author = message.author.name if message.author else ""
            speaker = (quote_text(author, 40) if author else "you") if message.role == "user" else "agent"
            lines.pop(message.role, None)  # so that the later of the two is last
            lines[message.role] = f"> {speaker}: {quote_text(message.text, MAX_LAST_EXCHANGE_CHARS)}"
    return "".join(f"{separator}{line}" for separator, line in zip(("\n\n", "\n>\n"), lines.values(), strict=False))


def format_count(number: int, noun: str) -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def format_age(moment: datetime | None, now: datetime) -> str:
    """`just now`, `3 h ago`; the date if it is more than a week."""
    if moment is None:
        return "never"
    age = now - moment
    if age < timedelta(minutes=1):
        return "just now"
    if age < timedelta(hours=1):
        return f"{age // timedelta(minutes=1)} min ago"
    if age < timedelta(days=1):
        return f"{age // timedelta(hours=1)} h ago"
    if age < timedelta(days=8):
        return f"{age // timedelta(days=1)} d ago"
    return f"on {moment:%Y-%m-%d}"


def format_cost(dollars: Decimal) -> str:
    if 0 < dollars < 10**-_COST_DECIMALS:
        return "less than $0.0001"
    return f"${dollars:.{_COST_DECIMALS}f}"


def format_reset_policy(policy: ResetPolicy) -> str:
    """`never`, `after 2 hours without messages`, `every day at 04:00 (UTC)`."""
    idle = f"after {_format_minutes(policy.idle_minutes)} without messages"
    daily = f"every day at {policy.at_hour:02}:00 ({policy.timezone})"
    return {
        ResetMode.NONE: "never",
        ResetMode.IDLE: idle,
        ResetMode.DAILY: daily,
        ResetMode.BOTH: f"{idle}, and {daily}",
    }[policy.mode]


def _format_minutes(minutes: int) -> str:
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes % size == 0:
            return format_count(minutes // size, unit)
    return format_count(minutes, "minute")

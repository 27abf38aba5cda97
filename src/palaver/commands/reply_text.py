"""Formatting for replies: names of conversations, quotes, ages, amounts.

Always true: text that people wrote is put on one line, shortened, and its own Markdown is escaped.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from palaver.core.texts import Text, change_text, join_texts, say, say_count
from palaver.sessions.policy import ResetMode, ResetPolicy, count_days, format_minutes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from palaver.sessions.events import Event
    from palaver.sessions.model import Session

YOU = say("text.you", "you")
AGENT = say("text.agent", "agent")
UNTITLED = say("text.untitled", "untitled")
MAX_EXCERPT_CHARS = 80
MAX_TITLE_CHARS = 100
MAX_LAST_EXCHANGE_CHARS = 160  # of each message
_MARKDOWN_CHARS = re.compile(r"[\\`*\[\]<>~|]|(?<!\w)_|_(?!\w)")
_COST_DECIMALS = 4


def shorten_text(text: str, max_chars: int = MAX_EXCERPT_CHARS) -> str:
    """Put a text on one line of at most so many characters."""
    if isinstance(text, Text):
        return change_text(text, partial(shorten_text, max_chars=max_chars))
    line = " ".join(text[: 4 * max_chars].split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def escape_markdown(text: str, max_chars: int = MAX_EXCERPT_CHARS) -> str:
    """Shorten a text and escape its Markdown."""
    if isinstance(text, Text):
        return change_text(text, partial(escape_markdown, max_chars=max_chars))
    return _MARKDOWN_CHARS.sub(lambda match: "\\" + match[0], shorten_text(text, max_chars))


def quote_text(text: str, max_chars: int = MAX_EXCERPT_CHARS) -> Text:
    """Shorten, escape and quote a text."""
    return say("text.quoted", "“{text}”", text=escape_markdown(text, max_chars))


def format_code(text: str) -> str:
    """Format a text that is to be typed exactly as it is."""
    fence = "``" if "`" in text else "`"
    return fence + text + fence


def write_command(line: str) -> Text:
    """Return a command as people type it where they read this; `line` is without the slash."""
    return say("command.line", "/{line}", line=line)


def quote_command(line: str) -> str:
    """Format a command that is to be typed exactly as it is; `line` is without the slash."""
    return format_code(write_command(line))


def format_title(title: str) -> str:
    return f"**{escape_markdown(title, MAX_TITLE_CHARS)}**"


def format_session_name(session: Session) -> str:
    """Return the title of a conversation, or its last message as a quote."""
    if session.shown_title:
        return format_title(session.shown_title)
    return quote_text(session.preview) if session.preview else say("text.empty_session", "an empty conversation")


def format_last_exchange(log: Iterable[Event]) -> Text:
    """Return the last message of a person and of the agent as a quote to end a text with; empty if there are none."""
    lines: dict[str, str] = {}
    for event in log:
        message = event.message
        if message is not None and message.role in {"user", "assistant"} and message.text.strip():
            author = message.author.name if message.author else ""
            speaker = (quote_text(author, 40) if author else YOU) if message.role == "user" else AGENT
            lines.pop(message.role, None)  # so that the later of the two is last
            lines[message.role] = format_message(speaker, message.text, MAX_LAST_EXCHANGE_CHARS)
    return join_texts("", (part for pair in zip(("\n\n", "\n>\n"), lines.values(), strict=False) for part in pair))


def format_message(speaker: str, text: str, max_chars: int) -> Text:
    """Quote a message on a line of its own, with its author."""
    return "> " + speaker + ": " + quote_text(text, max_chars)


def count_messages(number: int) -> Text:
    """`1 message`, `1,204 messages`."""
    return say_count("text.messages", number, "{count} message", "{count} messages")


def describe_undo(line: str) -> Text:
    """Name the command that undoes something; `line` is without the slash."""
    return say("undo.with", " To undo, use {command}.", command=quote_command(line))


def format_age(moment: datetime | None, now: datetime) -> str:
    """`just now`, `3 h ago`; the date if it is more than a week."""
    if moment is None:
        return say("age.never", "never")
    age = now - moment
    if age < timedelta(minutes=1):
        return say("age.now", "just now")
    if age < timedelta(hours=1):
        return say("age.minutes", "{count} min ago", count=age // timedelta(minutes=1))
    if age < timedelta(days=1):
        return say("age.hours", "{count} h ago", count=age // timedelta(hours=1))
    if age < timedelta(days=8):
        return say("age.days", "{count} d ago", count=age // timedelta(days=1))
    return say("age.date", "on {date}", date=f"{moment:%Y-%m-%d}")


def format_cost(dollars: Decimal) -> str:
    if 0 < dollars < 10**-_COST_DECIMALS:
        return say("cost.tiny", "less than $0.0001")
    return f"${dollars:.{_COST_DECIMALS}f}"


def format_reset_policy(policy: ResetPolicy) -> str:
    """`never`, `after 2 hours without messages`, `every day at 04:00 (UTC)`."""
    minutes = policy.idle_minutes
    time = count_days(1) if minutes == 1440 else format_minutes(minutes)
    idle = say("reset.idle", "after {time} without messages", time=time)
    daily = say("reset.daily", "every day at {time} ({timezone})", time=policy.clock, timezone=policy.timezone)
    return {
        ResetMode.NONE: say("reset.never", "never"),
        ResetMode.IDLE: idle,
        ResetMode.DAILY: daily,
        ResetMode.BOTH: say("reset.both", "{idle}, and {daily}", idle=idle, daily=daily),
    }[policy.mode]

"""How commands put things into words: names, quotations, ages, amounts.

Always true: what people wrote stands on one line, shortened, and with its own Markdown made harmless.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.domain.policy import ResetMode

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from palaver.domain.policy import ResetPolicy
    from palaver.domain.session import Session

SHORT = 80
_MARKS = re.compile(r"[\\`*\[\]<>~|]|(?<!\w)_|_(?!\w)")
_LEAST_SHOWN = 4  # places after the point, of a dollar


def plain(text: str, most: int = SHORT) -> str:
    """What somebody wrote, on one line of at most so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def words(text: str, most: int = SHORT) -> str:
    """The same as part of a Markdown text."""
    return _MARKS.sub(lambda found: "\\" + found[0], plain(text, most))


def quoted(text: str, most: int = SHORT) -> str:
    """The same in quotation marks."""
    return f"“{words(text, most)}”"


def code(text: str) -> str:
    """Something to be typed exactly so."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def titled(title: str) -> str:
    """A title, as it stands out in a text."""
    return f"**{words(title, 100)}**"


def named(session: Session) -> str:
    """What to call a conversation: its title, or what was last said in it."""
    if session.title:
        return titled(session.title)
    return quoted(session.preview) if session.preview else "an empty conversation"


def count(number: int, noun: str) -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def ago(moment: datetime | None, now: datetime) -> str:
    """How long ago; the date when it is more than a week."""
    if moment is None:
        return "never"
    passed = now - moment
    if passed < timedelta(minutes=1):
        return "just now"
    if passed < timedelta(hours=1):
        return f"{passed // timedelta(minutes=1)} min ago"
    if passed < timedelta(days=1):
        return f"{passed // timedelta(hours=1)} h ago"
    if passed < timedelta(days=8):
        return f"{passed // timedelta(days=1)} d ago"
    return f"on {moment:%Y-%m-%d}"


def dollars(amount: Decimal) -> str:
    """An amount of money; what is too little to show is said to be so."""
    if 0 < amount < 10**-_LEAST_SHOWN:
        return "less than $0.0001"
    return f"${amount:.{_LEAST_SHOWN}f}"


def reset_rule(policy: ResetPolicy) -> str:
    """When conversations start afresh by themselves."""
    idle = f"after {_span(policy.idle_minutes)} without a message"
    daily = f"every day at {policy.at_hour:02}:00 ({policy.timezone})"
    return {
        ResetMode.NONE: "never by itself",
        ResetMode.IDLE: idle,
        ResetMode.DAILY: daily,
        ResetMode.BOTH: f"{idle}, and {daily}",
    }[policy.mode]


def _span(minutes: int) -> str:
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes % size == 0:
            return count(minutes // size, unit)
    return count(minutes, "minute")

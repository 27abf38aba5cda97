"""The conversation that a command is about, and the lane it was said in.

Always true: a command reads and changes a conversation only after it has been found through the asker's own view. In a
lane somebody may be speaking in a conversation that is not theirs to look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.domain.errors import NoSuchSession, StillAnswering
from palaver.services.commands.base import BadArguments
from palaver.services.commands.reply_text import count, quoted
from palaver.storage import events, lanes, sessions, turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.domain.events import Event
    from palaver.domain.session import Session
    from palaver.services.commands.base import CommandContext
    from palaver.storage.session_rows import SessionRow

REMINDED = 160  # characters of each message of a reminder
_LOOKED_AT = 50  # messages at once


def check_bare(asked: CommandContext, name: str) -> None:
    """Refuse arguments to a command that takes none."""
    if asked.arguments:
        raise BadArguments(f"`/{name}` stands alone: nothing may follow it.")


def visible(asked: CommandContext) -> SessionRow:
    """The conversation it is about, which the asker may see."""
    found = asked.here
    try:
        asked.view.get(found.session.id)
    except NoSuchSession:
        raise NoSuchSession("You may not look into the conversation that goes on here. /new begins another.") from None
    return found


def begun(asked: CommandContext) -> SessionRow:
    """The same; where nothing has been said yet, a conversation begins."""
    if asked.found is not None:
        return visible(asked)
    return sessions.get(asked.tx, lanes.enter(asked.tx, _arrival(asked)).session_id)


def check_free(asked: CommandContext, found: SessionRow) -> None:
    """Refuse what must not happen under a running agent's feet."""
    busy = turns.held_open_in(asked.tx, found.no)
    if busy.any:
        waiting = f" and {count(busy.queued, 'message')} waiting" if busy.queued else ""
        doing = f"The agent is still answering here{waiting}" if busy.running is not None else "An answer is due here"
        raise StillAnswering(f"{doing}. Wait for it, or end it with `/stop all`, and then try again.")


def go_to(asked: CommandContext, target: SessionRow) -> None:
    """Put the lane on a conversation, which goes on from now."""
    if lanes.current(asked.tx, asked.key) is None:
        lanes.enter(asked.tx, _arrival(asked))
    lanes.switch(asked.tx, asked.key, target, asked.at, asked.person_id)


def left_behind(asked: CommandContext, found: SessionRow | None) -> str:
    """A sentence about what still runs in a conversation that the lane has left; empty when nothing does."""
    if found is None or not turns.open_in(asked.tx, found.no).any:
        return ""
    return " What was asked there is still being answered there; nothing of it is lost."


def newest_first(asked: CommandContext, session: Session) -> Iterator[Event]:
    """The visible messages of a conversation, the last one first."""
    before: int | None = None
    while page := asked.view.load(session.id, before=before, limit=_LOOKED_AT):
        yield from reversed(page)
        before = page[0].seq


def reminder(asked: CommandContext, session: Session) -> str:
    """The last exchange of a conversation, as a paragraph that ends a text; empty when nothing was said in it."""
    lines: dict[str, str] = {}
    for event in asked.view.load(session.id, limit=_LOOKED_AT):
        message = event.message
        if message is not None and message.role in {"user", "assistant"} and message.text.strip():
            author = message.author.name if message.author else ""
            speaker = (quoted(author, 40) if author else "you") if message.role == "user" else "agent"
            lines.pop(message.role, None)  # so that the later of the two stands last
            lines[message.role] = f"> {speaker}: {quoted(message.text, REMINDED)}"
    return "".join(f"{break_}{line}" for break_, line in zip(("\n\n", "\n>\n"), lines.values(), strict=False))


def event_at(asked: CommandContext, found: SessionRow, seq: int) -> Event | None:
    """One line of the log by its number."""
    return next(iter(events.log(asked.tx, found.no, after=seq - 1, limit=1)), None)


def _arrival(asked: CommandContext) -> lanes.Arrival:
    return lanes.Arrival(source=asked.source, config=asked.config, now=asked.now, busy_since=lambda _session_id: None)

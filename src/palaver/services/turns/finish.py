"""The end of a turn, in one transaction: what was said, what was used, how it ended, and its delivery."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.domain.context import cleaned
from palaver.domain.events import EventKind
from palaver.domain.ids import PersonId
from palaver.domain.message import Message
from palaver.domain.turn import TurnState
from palaver.services.commands.reply_text import words
from palaver.storage import append, deliveries, drafts, events, leases, transcript_queries, turns, usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.draft import Draft
    from palaver.domain.usage import TurnUsage
    from palaver.storage.engines.base import Transaction
    from palaver.storage.leases import Lease

BY_PERSON = "stopped"
LONGEST_QUOTE = 300  # characters of a question
LONGEST_NAME = 60


def marked(found: list[dict[str, Any]], state: TurnState) -> list[Message]:
    """The messages of a turn, the last of them marked when the turn did not come to its end."""
    if state is not TurnState.DONE and found and found[-1]["role"] == "assistant":
        found[-1]["interrupted"] = True
    return [Message.from_dict(message) for message in found]


def words_of(draft: Draft, answers: int) -> list[Message]:
    """What was said aloud in a draft, as one message that did not come to its end."""
    said = {"role": "assistant", "content": draft.text, "answers": answers}
    return marked([said], TurnState.FAILED) if draft.text.strip() else []


def settle(
    tx: Transaction,
    lease: Lease,
    messages: Sequence[Message],
    used: Sequence[TurnUsage],
    state: TurnState,
    error: str | None,
    now: int,
) -> None:
    """End a turn: what was said, what was used, how it ended, and its delivery. All of it or nothing."""
    leases.end(tx, lease, state, now, error)
    drafts.drop(tx, lease.turn_no)
    counted = [replace(each, turn_id=lease.turn_id) for each in used]
    if messages:
        append.append(tx, lease.session_id, messages, now, usage=counted[0] if counted else None)
        counted = counted[1:]
    for each in counted:
        usage.add(tx, lease.session_id, each, now)
    if state is not TurnState.DONE:
        kind = EventKind.FAILED if state is TurnState.FAILED else EventKind.INTERRUPTED
        events.note(tx, lease.session_no, kind, now, lease.person_id, turn=lease.turn_id, reason=error)
    said = answer_text(messages, state, error)
    if lease.address is not None and said:
        outgoing = deliveries.Outgoing(
            address=lease.address,
            content="\n\n".join([*_quotes(tx, lease), said]),
            session_no=lease.session_no,
            turn_no=lease.turn_no,
            reply_to=lease.reply_to,
        )
        deliveries.enqueue(tx, outgoing, now)


def count_apart(tx: Transaction, lease: Lease, used: Sequence[TurnUsage], now: int) -> None:
    """Count what a run used whose turn has gone to somebody else, or with its conversation."""
    for each in used:
        usage.add_apart(tx, lease, each, now)


def _quotes(tx: Transaction, lease: Lease) -> list[str]:
    """The questions before an answer that is sent to people who have not seen them."""
    asked = events.at(tx, lease.session_no, turns.quotes_of(tx, lease.turn_no))
    names = transcript_queries.names(tx, (event.person_id for event in asked if event.person_id is not None))
    return [
        quote(names.get(event.person_id or PersonId(""), ""), event.message.text) for event in asked if event.message
    ]


def quote(name: str, text: str) -> str:
    """What somebody asked on the web, as people elsewhere read it: one line, whatever it is made of."""
    who = words(cleaned(name, LONGEST_NAME), LONGEST_NAME) or "Somebody"
    return f"> {who}, from the web: {words(text, LONGEST_QUOTE) or '(a file)'}"


def answer_text(messages: Sequence[Message], state: TurnState, error: str | None) -> str:
    """What is sent to the person: everything that was said aloud, and how it ended if not well."""
    parts = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    if state is TurnState.FAILED:
        parts.append(f"I could not answer: {error}")
    elif state is TurnState.INTERRUPTED and error != BY_PERSON:
        parts.append(f"(I was interrupted: {error})")
    elif state is TurnState.INTERRUPTED:
        parts.append("(stopped)")
    return "\n\n".join(parts)

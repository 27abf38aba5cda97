"""Finishes a turn in one transaction: its messages, its usage, its final state and its delivery."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.domain.context import clean_chat_text
from palaver.domain.events import EventKind
from palaver.domain.ids import PersonId
from palaver.domain.message import Message
from palaver.domain.turn import TurnState
from palaver.services.commands.reply_text import escape_markdown
from palaver.storage import deliveries, drafts, events, message_log, people, turn_leases, turns, usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.domain.draft import Draft
    from palaver.domain.usage import TurnUsage
    from palaver.storage.engines.base import Transaction
    from palaver.storage.turn_leases import TurnLease

STOPPED_REASON = "stopped"  # why a turn was interrupted
MAX_QUOTE_CHARS = 300
MAX_NAME_CHARS = 60


def build_messages(fields: list[dict[str, Any]], state: TurnState) -> list[Message]:
    """Build the messages of a turn; if the turn did not complete, mark the last answer as interrupted."""
    if state is not TurnState.DONE and fields and fields[-1]["role"] == "assistant":
        fields[-1]["interrupted"] = True
    return [Message.from_dict(message) for message in fields]


def build_text_only_messages(draft: Draft, input_seq: int) -> list[Message]:
    """Build one interrupted message from the text of a draft, without tools and reasoning; none if it has no text."""
    fields = {"role": "assistant", "content": draft.text, "answers": input_seq}
    return build_messages([fields], TurnState.FAILED) if draft.text.strip() else []


def finish_turn(
    tx: Transaction,
    lease: TurnLease,
    messages: Sequence[Message],
    usages: Sequence[TurnUsage],
    state: TurnState,
    error: str | None,
    now: int,
) -> None:
    """Store the messages, the usage, the final state and the delivery of a turn. All of it or nothing."""
    turn_leases.end_turn(tx, lease, state, now, error)
    drafts.delete(tx, lease.turn_no)
    unrecorded = [replace(each, turn_id=lease.turn_id) for each in usages]
    if messages:
        first = unrecorded.pop(0) if unrecorded else None  # recorded by the same statement as the messages
        message_log.append_messages(tx, lease.session_id, messages, now, usage=first)
    for each in unrecorded:
        usage.record_usage(tx, lease.session_id, each, now)
    if state is not TurnState.DONE:
        kind = EventKind.TURN_FAILED if state is TurnState.FAILED else EventKind.TURN_INTERRUPTED
        events.append_event(tx, lease.session_no, kind, now, lease.person_id, turn=lease.turn_id, reason=error)
    answer = format_answer(messages, state, error)
    if lease.address is not None and answer:
        delivery = deliveries.NewDelivery(
            address=lease.address,
            content="\n\n".join([*_format_quotes(tx, lease), answer]),
            session_no=lease.session_no,
            turn_no=lease.turn_no,
            reply_to=lease.reply_to,
        )
        deliveries.enqueue(tx, delivery, now)


def record_orphan_usage(tx: Transaction, lease: TurnLease, usages: Sequence[TurnUsage], now: int) -> None:
    """Record the usage of a run that lost its turn to another run, or whose conversation was deleted."""
    for each in usages:
        usage.record_orphan_usage(tx, lease, each, now)


def _format_quotes(tx: Transaction, lease: TurnLease) -> list[str]:
    """Format the questions that an answer has to quote, because the people at its address have not seen them."""
    questions = events.list_events_at(tx, lease.session_no, turns.load_quoted_seqs(tx, lease.turn_no))
    names = people.load_names(tx, (event.person_id for event in questions if event.person_id is not None))
    return [
        format_quote(names.get(event.person_id or PersonId(""), ""), event.message.text)
        for event in questions
        if event.message
    ]


def format_quote(name: str, text: str) -> str:
    """Quote a question from the web for people elsewhere: always on one line, with Markdown escaped."""
    author = escape_markdown(clean_chat_text(name, MAX_NAME_CHARS), MAX_NAME_CHARS) or "Someone"
    return f"> {author}, from the web: {escape_markdown(text, MAX_QUOTE_CHARS) or '(attachment)'}"


def format_answer(messages: Sequence[Message], state: TurnState, error: str | None) -> str:
    """Format what is sent to people: the text of the answer, and why it is incomplete if it is."""
    parts = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    if state is TurnState.FAILED:
        parts.append(f"I couldn't answer. {error}")
    elif state is TurnState.INTERRUPTED and error != STOPPED_REASON:
        parts.append(f"(Interrupted. {error})")
    elif state is TurnState.INTERRUPTED:
        parts.append("(Stopped)")
    return "\n\n".join(parts)

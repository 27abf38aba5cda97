"""Groups: which messages are answered, and what the agent is told about the others.

A message that is not addressed to the agent is not answered. It is kept for a while, and the next message that is
addressed carries what was said since into its session, as quoted data. Groups of strangers are not recorded: a chat is
known once a person with access has written there, or an owner has allowed it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from palaver.accounts import access
from palaver.core.source import ChatType
from palaver.delivery import chat_moves
from palaver.inbox.content import add_lines, get_text
from palaver.inbox.receipts import find_sender
from palaver.people import chat_access_table as chat_access
from palaver.sessions import group_messages
from palaver.sessions.attachment import format_bracketed_name
from palaver.sessions.inbound import Outcome, Receipt
from palaver.sessions.quoted_messages import MAX_CONTEXT_MESSAGES, choose_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.config.agent_rules import TurnRules
    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.sessions.inbound import Inbound


@dataclass(frozen=True, slots=True)
class GroupContext:
    """What was said in a group since a lane last saw it, and the number of the last of these messages."""

    messages: Sequence[dict[str, str]] = ()
    last_no: int = 0


NO_CONTEXT: Final = GroupContext()


def is_addressed(inbound: Inbound, rules: TurnRules) -> bool:
    """Whether a message is for the agent; a direct message always is."""
    if inbound.source.chat_type is ChatType.DM or inbound.is_addressed:
        return True
    return inbound.source.platform in rules.always_active_platforms


def record_message(tx: Transaction, inbound: Inbound, rules: TurnRules, now: int) -> Receipt:
    """Keep a message that is not for the agent, in a chat that is known."""
    if not _is_known_chat(tx, inbound.source, rules):
        return Receipt(outcome=Outcome.IGNORED)
    files = [f"[file {format_bracketed_name(file.name)}]" for file in inbound.files]
    text = add_lines(get_text(inbound), files)
    if not isinstance(text, str) or not text.strip():
        return Receipt(outcome=Outcome.IGNORED)
    new = group_messages.NewGroupMessage(
        message_id=inbound.message_id,
        sender=find_sender(inbound.source),
        author=inbound.source.user_name or inbound.source.user_id or "",
        text=text,
    )
    is_new = group_messages.add(tx, inbound.source, new, now)
    return Receipt(outcome=Outcome.RECORDED if is_new else Outcome.DUPLICATE)


def _is_known_chat(tx: Transaction, source: SessionSource, rules: TurnRules) -> bool:
    if source.platform in rules.open_platforms or group_messages.has_any(tx, source):
        return True
    speaker = access.find_speaker(tx, source, rules)
    if speaker is not None and speaker.can_speak:
        return True
    return chat_access.is_granted(tx, source, None) or chat_moves.has_lane_in_chat(
        tx, str(source.platform), source.account, source.chat_id
    )


def list_context(tx: Transaction, inbound: Inbound, lane_key: str) -> GroupContext:
    """Return what was said in a group since its lane last saw it.

    A message that starts a thread was written in the chat itself, and so was what came before it.
    """
    source = inbound.source
    if source.chat_type is ChatType.DM:
        return NO_CONTEXT
    if source.thread_id is not None and source.thread_id == inbound.message_id:
        source = replace(source, thread_id=None)
    messages = group_messages.list_after(tx, source, group_messages.get_last_seen(tx, lane_key), MAX_CONTEXT_MESSAGES)
    if not messages:
        return NO_CONTEXT
    return GroupContext(choose_context([(each.author, each.text) for each in messages]), messages[-1].no)


def mark_seen(tx: Transaction, lane_key: str, context: GroupContext) -> None:
    """Remember that a lane has seen what was said."""
    if context.last_no:
        group_messages.mark_seen(tx, lane_key, context.last_no)

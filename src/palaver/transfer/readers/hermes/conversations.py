"""One conversation of Hermes, from all places where it is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidInput
from palaver.sessions.model import EndReason
from palaver.transfer.imported import ImportedCompaction, ImportedConversation, ImportProblem
from palaver.transfer.readers.hermes.compactions import DROP, SUMMARIZE
from palaver.transfer.readers.hermes.folding import PlannedRecord, plan_conversation, read_planned
from palaver.transfer.readers.hermes.messages import build_imported_message
from palaver.transfer.readers.hermes.records import to_datetime
from palaver.transfer.readers.values import UNKNOWN_TIME, read_time, read_title

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.core.source import SessionSource
    from palaver.sessions.usage import TurnUsage
    from palaver.transfer.imported import ImportedEntry, ImportedProject
    from palaver.transfer.readers.hermes.folding import ConversationPlan, Copy
    from palaver.transfer.readers.hermes.messages import MessageRules

_END_REASONS: Final = {
    "idle": EndReason.IDLE,
    "daily": EndReason.DAILY,
    "session_reset": EndReason.MANUAL,
    "new_command": EndReason.MANUAL,
    "suspended": EndReason.MANUAL,
    "session_switch": EndReason.SWITCHED,
}


@dataclass(slots=True, kw_only=True)
class ConversationParts:
    """Everything that is known about a conversation, before its messages are read."""

    origin_id: str
    sessions: list[list[Copy]]  # the copies of each session
    rules: MessageRules
    source: SessionSource | None = None
    is_current: bool = False
    title: str = ""
    parent_id: str = ""
    first: dict[str, Any] = field(default_factory=dict)  # rows of the first and the last session
    last: dict[str, Any] = field(default_factory=dict)
    page: dict[str, Any] = field(default_factory=dict)  # fields of the file of the page
    project: ImportedProject | None = None
    profile: str = ""
    model: str = ""
    provider: str = ""
    usage: tuple[TurnUsage, ...] = ()
    created_at: datetime | None = None


def build_conversation(parts: ConversationParts) -> ImportedConversation | None:
    """Plan how the copies are folded; None if there are no messages, as Hermes lists no empty sessions."""
    plan = plan_conversation(parts.sessions)
    if not plan.message_count:
        return None
    starts = (parts.created_at, read_time(parts.page.get("created_at")), _find_first_time(plan))
    created_at = min((start for start in starts if start is not None), default=UNKNOWN_TIME)
    ended_at, end_reason = (None, None) if parts.is_current else _read_end(parts.last)
    return ImportedConversation(
        origin_id=parts.origin_id,
        open_entries=lambda: read_entries(plan, parts.rules, created_at),
        created_at=created_at,
        source=parts.source,
        title=read_title(parts.title) or None,
        ended_at=ended_at,
        end_reason=end_reason,
        is_current=parts.is_current,
        pinned=bool(parts.page.get("pinned")),
        archived=bool(parts.page.get("archived") or parts.last.get("archived")),
        project=parts.project,
        parent_origin_id=parts.parent_id or None,
        model=parts.model or None,
        provider=parts.provider or None,
        profile=parts.profile or None,
        personality=_read_text(parts.page.get("personality")),
        workspace=_read_text(parts.page.get("workspace")) or _read_text(parts.last.get("cwd")),
        usage=parts.usage,
        folded=plan.folded,
    )


def read_entries(
    plan: ConversationPlan, rules: MessageRules, created_at: datetime
) -> Iterator[ImportedEntry | ImportProblem]:
    """Read the conversation as people saw it, with the summaries that the agent saw."""
    at = created_at
    for planned in read_planned(plan):
        if isinstance(planned, ImportProblem):
            yield planned
            continue
        record = planned.record
        if record.at is not None:
            at = to_datetime(record.at)
        if planned.action == DROP:
            continue
        try:
            yield _build_entry(planned, at, rules)
        except InvalidInput as error:
            yield ImportProblem(where=record.where, what=str(error))


def _build_entry(planned: PlannedRecord, at: datetime, rules: MessageRules) -> ImportedEntry:
    record = planned.record
    if planned.action == SUMMARIZE:
        kept_count = max(planned.kept_count, record.kept_count)
        return ImportedCompaction(summary=record.summary or "", at=at, kept_count=kept_count)
    return build_imported_message(record, at, rules)


def _find_first_time(plan: ConversationPlan) -> datetime | None:
    for session in plan.sessions:
        for time in session.marks.times:
            if not math.isnan(time):
                return to_datetime(time)
    return None


def _read_end(row: dict[str, Any]) -> tuple[datetime | None, EndReason | None]:
    reason = _END_REASONS.get(str(row.get("end_reason")))
    ended_at = read_time(row.get("ended_at"))
    return (ended_at, reason) if reason and ended_at else (None, None)


def _read_text(value: object) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None

"""Compacts a conversation: the agent sees a summary instead of older messages. The messages themselves stay."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.agent import compaction as summaries
from palaver.agent.base import TextDelta, UsageReport
from palaver.agent.history import build_messages
from palaver.agent.tokens import estimate_message_tokens
from palaver.domain.crash_points import crash_point
from palaver.domain.errors import ContextOverflow, NothingToCompact
from palaver.domain.turn import TurnKind
from palaver.storage import compactions, events, session_settings, sessions, turn_leases
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from palaver.agent.base import Agent, AgentRequest
    from palaver.domain.compaction import Compaction
    from palaver.domain.events import Event
    from palaver.domain.usage import TurnUsage
    from palaver.services.attachments import Attachments
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction
    from palaver.storage.turn_leases import TurnLease

_MAX_SPLIT_DEPTH = 4  # messages that are too long for one request are split in half at most this often


class Compactor:
    """Compacts the conversation of one turn."""

    def __init__(
        self,
        store: SessionStore,
        agent: Agent,
        lease: TurnLease,
        *,
        files: Attachments | None,
        add_usage: Callable[[TurnUsage], None],
        send_notice: Callable[[str], None],
    ) -> None:
        self._store = store
        self._agent = agent
        self._lease = lease
        self._files = files
        self._add_usage = add_usage  # the usage of a summary belongs to the turn
        self._send_notice = send_notice

    async def compact(self, focus: str | None, up_to_seq: int, *, min_tokens: float = 0) -> Compaction:
        """Let the model of the conversation summarize everything before the last exchanges.

        When that fails, the conversation is unchanged. Raises NothingToCompact when there is nothing to summarize, or
        fewer than `min_tokens`: the summary would cost more than it frees.
        """
        lease = self._lease

        def read(tx: Transaction) -> tuple[list[Event], Compaction | None, bool, str | None]:
            compaction = compactions.find_current(tx, lease.session_no)
            first_seq = compaction.first_kept_seq if compaction else 0
            log, _ = events.load_context(tx, lease.session_no, first_seq=first_seq, up_to=up_to_seq)
            shared = sessions.get_by_no(tx, lease.session_no).session.shared
            return log, compaction, shared, session_settings.load(tx, lease.session_no).model

        log, previous, shared, model = await self._store.engine.arun(Read(read))
        if lease.kind is TurnKind.COMPACT and previous is not None and previous.seq > lease.input_seq:
            return previous  # a worker that died had already stored it
        first_kept_seq = summaries.find_cut(log)
        if first_kept_seq is None:
            raise NothingToCompact
        old = [event for event in log if event.seq < first_kept_seq]
        last_seq = max((event.seq for event in old), default=0)
        messages: Sequence[Mapping[str, Any]] = build_messages(old, input_seq=last_seq, compaction=None, shared=shared)
        if self._files is not None:  # later turns see only the summary, so it must include what was in the files
            messages = await self._files.prepare_for_model(lease.session_id, messages, images=False)
        if estimate_message_tokens(messages) < min_tokens:
            raise NothingToCompact
        self._send_notice("Summarizing older messages…")

        def build_request(part: Sequence[Mapping[str, Any]], previous_summary: str | None) -> AgentRequest:
            return replace(summaries.build_summary_request(part, focus, previous_summary), model=model)

        summary = await self._summarize(messages, build_request, previous.summary if previous else None)
        now = to_micros(self._store.clock.now())

        def write(tx: Transaction) -> Compaction:
            turn_leases.check_lease(tx, lease)
            return compactions.create(
                tx,
                lease.session_no,
                summary,
                first_kept_seq=first_kept_seq,
                message_count=len(old) + (previous.message_count if previous else 0),
                now=now,
                person_id=lease.person_id,
                focus=focus,
            )

        crash_point("turn.before_compaction")
        compaction = await self._store.engine.arun(Write(write))
        crash_point("turn.compacted")
        return compaction

    async def _summarize(
        self,
        messages: Sequence[Mapping[str, Any]],
        build_request: Callable[[Sequence[Mapping[str, Any]], str | None], AgentRequest],
        previous_summary: str | None,
        depth: int = 0,
    ) -> str:
        """Ask the model for a summary; if the messages are too long for it, of one half after the other."""
        text = []
        try:
            run = self._agent.run(build_request(messages, previous_summary))
            async with contextlib.aclosing(run) as agent_events:  # type: ignore[type-var]
                async for event in agent_events:
                    if isinstance(event, TextDelta):
                        text.append(event.text)
                    elif isinstance(event, UsageReport):  # its prompt says nothing about the length of the conversation
                        self._add_usage(replace(event.usage, last_prompt_tokens=None))
        except ContextOverflow:
            if depth == _MAX_SPLIT_DEPTH or len(messages) < 2:
                raise
            half = len(messages) // 2
            first_summary = await self._summarize(messages[:half], build_request, previous_summary, depth + 1)
            return await self._summarize(messages[half:], build_request, first_summary, depth + 1)
        return summaries.check_summary("".join(text), messages)


def format_compaction_reply(compaction: Compaction) -> str:
    """Format the reply to the person who asked for the compaction."""
    return (
        f"The agent now sees a summary of {compaction.message_count} older messages. You still see all of them."
        f" Use /restore to undo this.\n\n{compaction.summary}"
    )

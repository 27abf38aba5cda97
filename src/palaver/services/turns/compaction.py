"""Letting a summary stand for the beginning of a conversation, before the agent alone; the old messages stay."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.agent import compaction as compacting
from palaver.agent.base import TextDelta, Used
from palaver.agent.history import project
from palaver.agent.tokens import estimate_messages
from palaver.domain import crash_points
from palaver.domain.errors import ContextOverflow, NothingToDo
from palaver.domain.turn import TurnKind
from palaver.storage import compactions, events, leases, session_settings, sessions
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
    from palaver.storage.leases import Lease

_MOST_HALVINGS = 4  # of what is too long to be summarised at once


class Compacting:
    """Summarises a conversation within one turn."""

    def __init__(
        self,
        store: SessionStore,
        agent: Agent,
        lease: Lease,
        *,
        files: Attachments | None,
        count: Callable[[TurnUsage], None],
        tell: Callable[[str], None],
    ) -> None:
        self._store = store
        self._agent = agent
        self._lease = lease
        self._files = files
        self._count = count  # what it uses belongs to the turn
        self._tell = tell

    async def compact(self, focus: str | None, upto: int, *, worth: float = 0) -> Compaction:
        """Let the conversation's own model summarise what came before the last exchanges.

        When that fails, everything stays as it was. What has fewer than `worth` tokens is not summarised: it would cost
        more than it frees.
        """
        lease = self._lease

        def read(tx: Transaction) -> tuple[list[Event], Compaction | None, bool, str | None]:
            compaction = compactions.current(tx, lease.session_no)
            kept_from = compaction.kept_from if compaction else 0
            log, _ = events.context(tx, lease.session_no, kept_from=kept_from, upto=upto)
            shared = sessions.by_number(tx, lease.session_no).session.shared
            return log, compaction, shared, session_settings.read(tx, lease.session_no).model

        log, before, shared, model = await self._store.engine.arun(Read(read))
        if lease.kind is TurnKind.COMPACT and before is not None and before.seq > lease.input_seq:
            return before  # a worker that died had come so far
        kept_from = compacting.kept_from(log)
        if kept_from is None:
            raise NothingToDo("there is too little in this conversation to compress")
        old = [event for event in log if event.seq < kept_from]
        last = max((event.seq for event in old), default=0)
        messages: Sequence[Mapping[str, Any]] = project(old, input_seq=last, compaction=None, shared=shared)
        if self._files is not None:  # whoever goes on sees the summary alone: it must know what was in the files
            messages = await self._files.for_model(lease.session_id, messages, images=False)
        if estimate_messages(messages) < worth:
            raise NothingToDo("there is too little in this conversation to compress")
        self._tell("Older messages are being summarised.")

        def asked(part: Sequence[Mapping[str, Any]], previous: str | None) -> AgentRequest:
            return replace(compacting.summary_request(part, focus, previous), model=model)

        summary = await self._summary(messages, asked, before.summary if before else None)
        now = to_micros(self._store.clock.now())

        def write(tx: Transaction) -> Compaction:
            leases.check(tx, lease)
            return compactions.compact(
                tx,
                lease.session_no,
                summary,
                kept_from=kept_from,
                messages=len(old) + (before.messages if before else 0),
                now=now,
                person_id=lease.person_id,
                focus=focus,
            )

        crash_points.crash_point("turn.before_compacting")
        done = await self._store.engine.arun(Write(write))
        crash_points.crash_point("turn.compacted")
        return done

    async def _summary(
        self,
        messages: Sequence[Mapping[str, Any]],
        asked: Callable[[Sequence[Mapping[str, Any]], str | None], AgentRequest],
        previous: str | None,
        depth: int = 0,
    ) -> str:
        """Ask for a summary; of what is too long for the model, of one half after the other."""
        text = []
        try:
            async with contextlib.aclosing(self._agent.run(asked(messages, previous))) as said:  # type: ignore[type-var]
                async for event in said:
                    if isinstance(event, TextDelta):
                        text.append(event.text)
                    elif isinstance(event, Used):
                        self._count(replace(event.usage, last_prompt_tokens=None))  # not what an answer took
        except ContextOverflow:
            if depth == _MOST_HALVINGS or len(messages) < 2:
                raise
            half = len(messages) // 2
            first = await self._summary(messages[:half], asked, previous, depth + 1)
            return await self._summary(messages[half:], asked, first, depth + 1)
        return compacting.check_summary("".join(text), messages)


def told(done: Compaction) -> str:
    """What the person who asked for it is told."""
    text = f"I have summarised the first {done.messages} messages; the last exchanges are kept whole."
    return f"{text} Nothing is lost: /restore takes it back.\n\n{done.summary}"

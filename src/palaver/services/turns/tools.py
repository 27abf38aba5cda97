"""Which tools the agent has in a turn, Palaver's own and those of servers, and on whose behalf it uses them.

A tool sees what the asker may see; in a conversation that several people share, only what belongs to those people,
because anybody among them could have the agent ask. Nobody in particular, and no job, has any. What a conversation has
switched off is not there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.agent.base import ToolFailed
from palaver.agent.tools import history, memory
from palaver.agent.tools.limits import capped
from palaver.services import toolsets
from palaver.services.memories import Memories
from palaver.services.toolsets import Toolset
from palaver.services.view import AsyncSessionView
from palaver.storage import audience_check
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from palaver.agent.base import Tool
    from palaver.domain.clock import Clock
    from palaver.domain.person import Principal
    from palaver.domain.profile import TurnRules
    from palaver.storage.engines.base import Engine
    from palaver.storage.session_rows import SessionRow

_OVERHEARD = "this is not possible here, because others read along in this conversation"


class Toolbox:
    """The toolsets there are, given out by the operator's rules."""

    def __init__(self, engine: Engine, clock: Clock, rules: TurnRules) -> None:
        self._engine = engine
        self._clock = clock
        self._rules = rules
        self._toolsets: dict[str, Callable[[Principal, SessionRow, int | None], tuple[Tool, ...]]] = {
            history.TOOLSET: self._history,
            memory.TOOLSET: self._memory,
        }

    def tools_for(
        self,
        principal: Principal | None,
        found: SessionRow,
        input_seq: int | None = None,
        *,
        off: Collection[str] = (),
    ) -> tuple[Tool, ...]:
        """What the agent may use for this principal in this conversation, to answer message `input_seq`."""
        if principal is None or principal.job_id is not None:
            return ()
        return tuple(
            self._guarded(capped(tool), principal, found)
            for name in toolsets.names_in(found.session, self._rules, (), principal.role)
            if name not in off
            for tool in self._toolsets[name](principal, found, input_seq)
        )

    def servers_for(
        self, principal: Principal, found: SessionRow, tools: Sequence[Tool], *, off: Collection[str] = ()
    ) -> tuple[Tool, ...]:
        """Which of the agent's own tools it may use for this principal: what servers do is not for strangers."""
        allowed = toolsets.SERVERS.allows(found.session.platform, principal.role)
        return tuple(
            capped(tool)
            for tool in tools
            if tool.toolset not in off and (allowed or not tool.toolset.startswith(toolsets.SERVED))
        )

    def sets_for(
        self, principal: Principal, found: SessionRow, tools: Sequence[Tool], servers: Iterable[str]
    ) -> list[Toolset]:
        """The toolsets there are for this principal in this conversation, also those that are switched off here."""
        there = (*self.tools_for(principal, found), *self.servers_for(principal, found, tools))
        return [
            Toolset(
                name=name,
                description=toolsets.describe(name),
                tools=tuple(tool for tool in there if tool.toolset == name),
            )
            for name in toolsets.names_in(found.session, self._rules, servers, principal.role)
        ]

    def _history(self, principal: Principal, found: SessionRow, input_seq: int | None) -> tuple[Tool, ...]:
        among = found.audience_no if found.session.shared else None
        place = found.session.key if toolsets.is_read_along(found.session) else None
        view = AsyncSessionView(self._engine, self._clock, principal, among=among, place=place)
        return history.history_tools(view, here=found.session.id, input_seq=input_seq)

    def _memory(self, principal: Principal, found: SessionRow, _input_seq: int | None) -> tuple[Tool, ...]:
        return memory.memory_tools(Memories(self._engine, self._clock, principal, found))

    def _guarded(self, tool: Tool, principal: Principal, found: SessionRow) -> Tool:
        """The tool, refused at the moment of use where somebody would read what is not theirs."""
        person_id = principal.person_id

        async def run(arguments: Mapping[str, Any]) -> str:
            if not await self._engine.arun(Read(lambda tx: audience_check.among_themselves(tx, found, person_id))):
                raise ToolFailed(_OVERHEARD)
            return await tool.run(arguments)

        return replace(tool, run=run)

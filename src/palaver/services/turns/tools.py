"""The tools that the agent may use in a turn: Palaver's own, and those of the agent and its tool servers.

A tool acts for the person who asked, and sees what that person may see. In a conversation that several people share it
sees only what belongs to all of them, because any of them could make the agent use it. A turn without a person, and a
job, have no tools. Toolsets that are switched off in a conversation are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.agent.base import ToolFailed
from palaver.agent.tools import history, memory
from palaver.agent.tools.limits import limit_results
from palaver.services import toolsets
from palaver.services.memories import ConversationMemory
from palaver.services.toolsets import Toolset
from palaver.services.view import AsyncSessionView, ViewScope
from palaver.storage import session_privacy
from palaver.storage.engines.base import Read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from palaver.agent.base import Tool
    from palaver.domain.clock import Clock
    from palaver.domain.person import Principal
    from palaver.domain.profile import TurnRules
    from palaver.storage.engines.base import Engine
    from palaver.storage.session_rows import SessionRow

_NOT_PRIVATE = "This tool is not available here, because other people can read this conversation."


class Toolbox:
    """Hands out tools according to the operator's rules."""

    def __init__(self, engine: Engine, clock: Clock, rules: TurnRules) -> None:
        self._engine = engine
        self._clock = clock
        self._rules = rules
        self._toolset_builders: dict[str, Callable[[Principal, SessionRow, int | None], tuple[Tool, ...]]] = {
            history.TOOLSET: self._build_history_tools,
            memory.TOOLSET: self._build_memory_tools,
        }

    def list_palaver_tools(
        self,
        principal: Principal | None,
        session_row: SessionRow,
        input_seq: int | None = None,
        *,
        disabled: Collection[str] = (),
    ) -> tuple[Tool, ...]:
        """List Palaver's own tools for a principal in a conversation, to answer message `input_seq`."""
        if principal is None or principal.job_id is not None:
            return ()
        return tuple(
            self._guard_tool(limit_results(tool), principal, session_row)
            for name in toolsets.list_session_toolsets(session_row.session, self._rules, (), principal.role)
            if name not in disabled
            for tool in self._toolset_builders[name](principal, session_row, input_seq)
        )

    def list_agent_tools(
        self, principal: Principal, session_row: SessionRow, tools: Sequence[Tool], *, disabled: Collection[str] = ()
    ) -> tuple[Tool, ...]:
        """List those of the agent's tools that a principal may use; tools of servers are not for strangers."""
        permitted = self._list_permitted_agent_tools(principal, session_row, tools)
        return tuple(limit_results(tool) for tool in permitted if tool.problem is None and tool.toolset not in disabled)

    def _list_permitted_agent_tools(
        self, principal: Principal, session_row: SessionRow, tools: Sequence[Tool]
    ) -> tuple[Tool, ...]:
        may_use_servers = toolsets.SERVER_RULE.allows(session_row.session.platform, principal.role)
        return tuple(tool for tool in tools if may_use_servers or not tool.toolset.startswith(toolsets.SERVER_PREFIX))

    def list_toolsets(
        self, principal: Principal, session_row: SessionRow, tools: Sequence[Tool], servers: Iterable[str]
    ) -> list[Toolset]:
        """List all toolsets for a principal in a conversation, with those that are off and tools that can't be used."""
        all_tools = (
            *self.list_palaver_tools(principal, session_row),
            *self._list_permitted_agent_tools(principal, session_row, tools),
        )
        return [
            Toolset(
                name=name,
                description=toolsets.describe_toolset(name),
                tools=tuple(tool for tool in all_tools if tool.toolset == name),
            )
            for name in toolsets.list_session_toolsets(session_row.session, self._rules, servers, principal.role)
        ]

    def _build_history_tools(
        self, principal: Principal, session_row: SessionRow, input_seq: int | None
    ) -> tuple[Tool, ...]:
        scope = ViewScope(
            principal=principal,
            clock=self._clock,
            audience_no=session_row.audience_no if session_row.session.shared else None,
            lane_key=session_row.session.key if toolsets.is_personal_lane_in_group(session_row.session) else None,
        )
        return history.make_history_tools(
            AsyncSessionView(self._engine, scope), session_id=session_row.session.id, input_seq=input_seq
        )

    def _build_memory_tools(
        self, principal: Principal, session_row: SessionRow, _input_seq: int | None
    ) -> tuple[Tool, ...]:
        return memory.make_memory_tools(ConversationMemory(self._engine, self._clock, principal, session_row))

    def _guard_tool(self, tool: Tool, principal: Principal, session_row: SessionRow) -> Tool:
        """Let the tool fail, when it is used, if its result could be read by people who may not see it."""
        person_id = principal.person_id

        async def run(arguments: Mapping[str, Any]) -> str:
            if not await self._engine.arun(Read(lambda tx: session_privacy.is_private_to(tx, session_row, person_id))):
                raise ToolFailed(_NOT_PRIVATE)
            return await tool.run(arguments)

        return replace(tool, run=run)

"""The tools that the agent may use in a turn: Palaver's own, and those of the agent and its tool servers.

A tool acts for the person who asked, and sees what that person may see. In a conversation that several people share it
sees only what belongs to all of them, because any of them could make the agent use it. A turn without a person has no
tools. Toolsets that are switched off in a conversation are left out.

A run of a job has the toolsets that were granted when the job was made, as far as its person may still use them, and a
tool to report that it has failed. It never has the toolset that makes jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from palaver.agent import toolsets
from palaver.agent.base import ToolFailed
from palaver.agent.tools import history
from palaver.agent.tools.limits import limit_results
from palaver.agent.toolset_names import (
    HISTORY_TOOLSET,
    MEMORY_TOOLSET,
    MESSAGING_TOOLSET,
    SCHEDULE_TOOLSET,
    WEB_TOOLSET,
)
from palaver.agent.toolsets import Toolset
from palaver.core.engines.base import Read
from palaver.delivery import tools as messaging
from palaver.jobs import job_run, tools as schedule
from palaver.jobs.run_reports import RunReports
from palaver.media.web import tools as web
from palaver.memory import tools as memory
from palaver.memory.service import ConversationMemory
from palaver.sessions import session_privacy
from palaver.sessions.view import AsyncSessionView, ViewScope

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from palaver.agent.base import Tool
    from palaver.config.agent_rules import TurnRules
    from palaver.core.clock import Clock
    from palaver.core.engines.base import Engine
    from palaver.jobs.conversation_jobs import MakeConversationJobs
    from palaver.people.model import Principal
    from palaver.sessions.session_rows import SessionRow
    from palaver.sessions.turn_leases import TurnLease

    MakeMessages = Callable[[Principal, SessionRow, TurnLease | None], messaging.Messages]

_NOT_PRIVATE = "This tool is not available here, because other people can read this conversation."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Who uses tools in which conversation."""

    principal: Principal
    session_row: SessionRow
    input_seq: int | None = None  # the message to answer
    lease: TurnLease | None = None  # the turn that uses them; None: they are only listed


class Toolbox:
    """Hands out tools according to the operator's rules."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        rules: TurnRules,
        *,
        make_jobs: MakeConversationJobs | None = None,
        make_messages: MakeMessages | None = None,
        web_access: web.WebAccess | None = None,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._rules = rules
        self._make_jobs = make_jobs  # None: there is no schedule toolset
        self._make_messages = make_messages  # None: there is no messaging toolset
        self._web_access = web_access  # None: there is no web toolset
        self._toolset_builders: dict[str, Callable[[ToolContext], tuple[Tool, ...]]] = {
            HISTORY_TOOLSET: self._build_history_tools,
            MEMORY_TOOLSET: self._build_memory_tools,
            SCHEDULE_TOOLSET: self._build_schedule_tools,
            MESSAGING_TOOLSET: self._build_messaging_tools,
            WEB_TOOLSET: self._build_web_tools,
        }

    def list_palaver_tools(
        self,
        principal: Principal | None,
        session_row: SessionRow,
        input_seq: int | None = None,
        *,
        disabled: Collection[str] = (),
        lease: TurnLease | None = None,
        granted: Collection[str] | None = None,
    ) -> tuple[Tool, ...]:
        """List Palaver's own tools for a principal in a conversation, to answer message `input_seq`.

        `granted` are the toolsets that a job may use; without them it has no tools.
        """
        if principal is None or (principal.job_id is not None and granted is None):
            return ()
        context = ToolContext(principal=principal, session_row=session_row, input_seq=input_seq, lease=lease)
        tools = tuple(
            limit_results(tool)
            if name in toolsets.PUBLIC_TOOLSETS
            else self._guard_tool(limit_results(tool), principal, session_row)
            for name in self._list_toolset_names(principal, session_row, (), granted)
            if name not in disabled
            for tool in self._toolset_builders[name](context)
        )
        return (*tools, *self._build_run_tools(context))

    def _list_toolset_names(
        self, principal: Principal, session_row: SessionRow, servers: Iterable[str], granted: Collection[str] | None
    ) -> tuple[str, ...]:
        allowed = toolsets.list_session_toolsets(session_row.session, self._rules, servers, principal.role)
        if principal.job_id is None:
            return allowed
        return tuple(name for name in allowed if name in (granted or ()) and name not in toolsets.NEVER_FOR_JOBS)

    def list_agent_tools(
        self,
        principal: Principal,
        session_row: SessionRow,
        tools: Sequence[Tool],
        *,
        disabled: Collection[str] = (),
        granted: Collection[str] | None = None,
    ) -> tuple[Tool, ...]:
        """List those of the agent's tools that a principal may use; tools of servers are not for strangers."""
        if principal.job_id is None:
            permitted = self._list_permitted_agent_tools(principal, session_row, tools)
        else:
            servers = {tool.toolset.removeprefix(toolsets.SERVER_PREFIX) for tool in tools}
            names = self._list_toolset_names(principal, session_row, sorted(servers), granted)
            permitted = tuple(tool for tool in tools if tool.toolset in names)
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

    def _build_history_tools(self, context: ToolContext) -> tuple[Tool, ...]:
        session_row = context.session_row
        scope = ViewScope(
            principal=context.principal,
            clock=self._clock,
            audience_no=session_row.audience_no if session_row.session.shared else None,
            lane_key=session_row.session.key if toolsets.is_personal_lane_in_group(session_row.session) else None,
        )
        return history.make_history_tools(
            AsyncSessionView(self._engine, scope), session_id=session_row.session.id, input_seq=context.input_seq
        )

    def _build_memory_tools(self, context: ToolContext) -> tuple[Tool, ...]:
        return memory.make_memory_tools(
            ConversationMemory(
                self._engine,
                self._clock,
                context.principal,
                context.session_row,
                max_memories=self._rules.memory.max_memories,
            )
        )

    def _build_schedule_tools(self, context: ToolContext) -> tuple[Tool, ...]:
        if self._make_jobs is None:
            return ()
        return schedule.make_schedule_tools(self._make_jobs(context.principal, context.session_row, context.lease))

    def _build_messaging_tools(self, context: ToolContext) -> tuple[Tool, ...]:
        if self._make_messages is None:
            return ()
        return messaging.make_messaging_tools(
            self._make_messages(context.principal, context.session_row, context.lease)
        )

    def _build_web_tools(self, context: ToolContext) -> tuple[Tool, ...]:
        if self._web_access is None:
            return ()
        return web.make_web_tools(self._web_access, context.principal.person_id)

    def _build_run_tools(self, context: ToolContext) -> tuple[Tool, ...]:
        """Build the tools that only a run of a job has."""
        if context.principal.job_id is None or context.lease is None:
            return ()
        return job_run.make_run_tools(RunReports(self._engine, context.lease))

    def _guard_tool(self, tool: Tool, principal: Principal, session_row: SessionRow) -> Tool:
        """Let the tool fail, when it is used, if its result could be read by people who may not see it."""
        person_id = principal.person_id

        async def run(arguments: Mapping[str, Any]) -> str:
            if not await self._engine.arun(Read(lambda tx: session_privacy.is_private_to(tx, session_row, person_id))):
                raise ToolFailed(_NOT_PRIVATE)
            return await tool.run(arguments)

        return replace(tool, run=run)

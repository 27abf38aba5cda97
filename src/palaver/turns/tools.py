"""The tools that the agent may use in a turn: Palaver's own, and those of the agent and its tool servers.

A tool acts for the person who asked, and sees what that person may see. In a conversation that several people share it
sees only what belongs to all of them, because any of them could make the agent use it. A turn without a person has no
tools. Toolsets that are switched off in a conversation are left out.

A run of a job has the toolsets that were granted when the job was made, as far as its person may still use them, and a
tool to report that it has failed. It never has the toolset that makes jobs.

Always true: a turn sends at most `MAX_SENDS_PER_TURN` messages. In a conversation that several people read, the
agent can send only to that conversation's own chat and to home channels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from palaver.agent import history_tools as history, toolsets
from palaver.agent.base import Tool, ToolFailed
from palaver.agent.tool_arguments import limit_results
from palaver.agent.toolsets import (
    HISTORY_TOOLSET,
    MEMORY_TOOLSET,
    MESSAGING_TOOLSET,
    SCHEDULE_TOOLSET,
    WEB_TOOLSET,
    Toolset,
    is_personal_lane_in_group,
)
from palaver.core.clock import Clock, from_micros, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Engine, Read, Transaction, Write
from palaver.core.errors import InvalidInput, LimitReached, NothingToDo
from palaver.core.recent_entries import RecentEntries
from palaver.core.source import ChatType, SessionSource
from palaver.delivery import tools as messaging
from palaver.delivery.chat_posts import ChatPost, make_file_address, post_to_chat
from palaver.delivery.reachable_chats import MAX_REACHABLE_CHATS, ChatKind, Origin, ReachableChat, ReachableChats
from palaver.delivery.tools import MAX_SENT_CHARS, ListedChat
from palaver.jobs import runs_table as job_runs, table as jobs, tools as schedule
from palaver.jobs.fields import get_origin
from palaver.media.web import tools as web
from palaver.memory import tools as memory
from palaver.memory.service import ConversationMemory
from palaver.people import table as people
from palaver.sessions import list_table as session_privacy, turn_leases
from palaver.sessions.context import Redactor, format_place_name, format_prompt_target, needs_raw_ids
from palaver.sessions.sent_message import SenderKind, SentBy
from palaver.sessions.turn import JOB_RUN_KEY
from palaver.sessions.view import AsyncSessionView, ViewScope

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from palaver.config.agent_rules import TurnRules
    from palaver.jobs.conversation_jobs import ConversationJobs
    from palaver.jobs.table import JobRow
    from palaver.people.model import Principal
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow
    from palaver.sessions.turn_leases import TurnLease

_NOT_PRIVATE: Final = "This tool is not available here, because other people can read this conversation."
MAX_SENDS_PER_TURN: Final = 10
FILE_FOLDER: Final = "messages"  # of what is sent to `local`
_MAX_COUNTED_TURNS: Final = 1000
_OWN_CHAT: Final = "You are answering in this chat: your answer appears there by itself. Nothing was sent."


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Hands out tools according to the operator's rules."""

    engine: Engine
    clock: Clock
    rules: TurnRules
    make_jobs: Callable[[Principal, SessionRow, TurnLease | None], ConversationJobs] | None = None
    make_messages: Callable[..., messaging.Messages] | None = None
    web_access: web.WebAccess | None = None

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

        Without a lease of the turn that uses them, they are only listed. `granted` are the toolsets that a job may use;
        without them it has no tools.
        """
        if principal is None or (principal.job_id is not None and granted is None):
            return ()
        tools = tuple(
            limit_results(tool)
            if name in toolsets.PUBLIC_TOOLSETS
            else self._guard_tool(limit_results(tool), principal, session_row)
            for name in self._list_toolset_names(principal, session_row, (), granted)
            if name not in disabled
            for tool in self._build_tools(name, principal, session_row, input_seq, lease)
        )
        if principal.job_id is None or lease is None:
            return tools

        async def report_failure(reason: str) -> None:
            await self.engine.arun(Write(lambda tx: job_runs.set_reported_failure(tx, lease, reason)))

        return (*tools, *schedule.make_run_tools(report_failure))

    def _list_toolset_names(
        self, principal: Principal, session_row: SessionRow, servers: Iterable[str], granted: Collection[str] | None
    ) -> tuple[str, ...]:
        allowed = toolsets.list_session_toolsets(session_row.session, self.rules, servers, principal.role)
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
            for name in toolsets.list_session_toolsets(session_row.session, self.rules, servers, principal.role)
        ]

    def _build_tools(
        self,
        toolset: str,
        principal: Principal,
        session_row: SessionRow,
        input_seq: int | None,
        lease: TurnLease | None,
    ) -> tuple[Tool, ...]:
        if toolset == HISTORY_TOOLSET:
            session = session_row.session
            scope = ViewScope(
                principal=principal,
                clock=self.clock,
                audience_no=session_row.audience_no if session.shared else None,
                lane_key=session.key if is_personal_lane_in_group(session) else None,
            )
            view = AsyncSessionView(self.engine, scope)
            return history.make_history_tools(view, session_id=session.id, input_seq=input_seq)
        if toolset == MEMORY_TOOLSET:
            limit = self.rules.memory.max_memories
            return memory.make_memory_tools(
                ConversationMemory(self.engine, self.clock, principal, session_row, max_memories=limit)
            )
        if toolset == SCHEDULE_TOOLSET and self.make_jobs is not None:
            return schedule.make_schedule_tools(self.make_jobs(principal, session_row, lease))
        if toolset == MESSAGING_TOOLSET and self.make_messages is not None:
            messages = self.make_messages(principal=principal, session_row=session_row, lease=lease)
            return messaging.make_messaging_tools(messages)
        if toolset == WEB_TOOLSET and self.web_access is not None:
            return web.make_web_tools(self.web_access, principal.person_id)
        return ()

    def _guard_tool(self, tool: Tool, principal: Principal, session_row: SessionRow) -> Tool:
        """Let the tool fail, when it is used, if its result could be read by people who may not see it."""
        person_id = principal.person_id

        async def run(arguments: Mapping[str, Any]) -> str:
            if not await self.engine.arun(Read(lambda tx: session_privacy.is_private_to(tx, session_row, person_id))):
                raise ToolFailed(_NOT_PRIVATE)
            return await tool.run(arguments)

        return replace(tool, run=run)


class SendCounter:
    """Counts how much each turn has sent, also when its request is built again."""

    def __init__(self) -> None:
        self._counts: RecentEntries[str, int] = RecentEntries(_MAX_COUNTED_TURNS)

    def take(self, turn_id: str) -> None:
        """Count one more message of a turn; raises LimitReached."""
        count = self._counts.get(turn_id, 0)
        self._counts.remember(turn_id, min(count + 1, MAX_SENDS_PER_TURN))
        if count >= MAX_SENDS_PER_TURN:
            raise LimitReached(f"You can send at most {MAX_SENDS_PER_TURN} messages in one turn. This one wasn't sent.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessages:
    store: SessionStore
    principal: Principal
    session_row: SessionRow
    counter: SendCounter
    lease: TurnLease | None = None  # None: the tools are only listed
    redactor: Redactor | None = None  # None: ids are not hidden from the agent

    async def list_chats(self, search: str) -> tuple[Sequence[ListedChat], bool]:
        """Return chats that may be sent to from here, and whether there are more."""
        config, only_chat = self.store.config, self._find_only_chat()
        read = Read(lambda tx: ReachableChats(tx, self.principal, config, only_chat=only_chat).list_chats(search))
        chats = await self.store.engine.arun(read)
        listed = [self._describe(chat.source, chat.name) for chat in chats if chat.source is not None]
        return listed, len(chats) == MAX_REACHABLE_CHATS

    async def send(self, target: str, text: str) -> str:
        """Send a message; return in words where it goes."""
        if len(text) > MAX_SENT_CHARS:
            raise InvalidInput(f"text: {len(text)} characters are too many. The limit is {MAX_SENT_CHARS}.")
        lease = self.lease
        if lease is None:
            raise NothingToDo("Messages are sent only while a turn runs.")
        self.counter.take(lease.turn_id)
        now = to_micros(self.store.clock.now())
        chat = await self.store.engine.arun(Write(lambda tx: self._send(tx, lease, target, text, now)))
        self.store.indexer.notify()
        return self._format_result(chat)

    # -- inside a transaction ------------------------------------------------------------------------------

    def _send(self, tx: Transaction, lease: TurnLease, target: str, text: str, now: int) -> ReachableChat:
        turn_leases.check_lease(tx, lease)
        session = self.session_row.session
        job_row = None if self.principal.job_id is None else jobs.find_by_id(tx, self.principal.job_id)
        chats = ReachableChats(
            tx,
            self.principal,
            self.store.config,
            now,
            origin=Origin(session.origin, self.session_row.no) if job_row is None else get_origin(job_row),
            only_chat=self._find_only_chat(),
            redactor=self.redactor,
        )
        chat = chats.resolve(target, is_from_agent=True)
        if chat.session_no == lease.session_no or (chat.address is not None and str(chat.address) == lease.address):
            raise NothingToDo(_OWN_CHAT)
        file_name = f"{from_micros(now):%Y-%m-%dT%H-%M-%S.%fZ}"
        post = ChatPost(
            text=text,
            sent_by=self._make_sender(tx, lease, job_row),
            session_no=lease.session_no,
            file_address=make_file_address(FILE_FOLDER, file_name) if chat.kind is ChatKind.LOCAL else None,
        )
        post_to_chat(tx, self.store.config, chat, post, now)
        return chat

    def _find_only_chat(self) -> SessionSource | None:
        session = self.session_row.session
        return session.origin if session.shared or is_personal_lane_in_group(session) else None

    def _make_sender(self, tx: Transaction, lease: TurnLease, job_row: JobRow | None) -> SentBy:
        session_id = self.session_row.session.id
        if job_row is None:
            person_id = self.principal.person_id
            name = people.load_names(tx, [person_id]).get(person_id, "")
            return SentBy(kind=SenderKind.AGENT, name=name, session_id=session_id)
        run_id = lease.facts.get(JOB_RUN_KEY)
        return SentBy(
            kind=SenderKind.JOB,
            name=job_row.job.name,
            job_id=job_row.job.id,
            run_id=run_id if isinstance(run_id, str) else None,
            session_id=session_id,
        )

    # -- words for the agent -------------------------------------------------------------------------------

    def _describe(self, source: SessionSource, name: str) -> ListedChat:
        redactor = None if needs_raw_ids(source.platform) else self.redactor
        kind = "direct messages" if source.chat_type is ChatType.DM else str(source.chat_type)
        return ListedChat(
            target=format_prompt_target(source, redactor),
            name=format_place_name(source, name, redactor),
            kind=f"{kind} on {source.platform.label}",
        )

    def _format_result(self, chat: ReachableChat) -> str:
        if chat.kind is ChatKind.LOCAL:
            return "Queued: it is saved as a file on this machine."
        if chat.source is None:
            return "Added to the conversation in which this was made."
        listed = self._describe(chat.source, chat.name)
        name = f" “{listed.name}”" if listed.name else ""
        return f"Queued for delivery to{name} ({listed.kind}). It is part of the conversation there."

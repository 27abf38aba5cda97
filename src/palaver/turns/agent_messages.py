"""What the agent sends with the tool `send_message`, on behalf of the person who asks.

Always true: a turn sends at most `MAX_SENDS_PER_TURN` messages. In a conversation that several people read, the agent
can send only to that conversation's own chat and to home channels.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.agent.toolsets import is_personal_lane_in_group
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput, LimitReached, NothingToDo
from palaver.core.source import ChatType
from palaver.core.timestamps import from_micros, to_micros
from palaver.delivery.chat_posts import ChatPost, make_file_address, post_to_chat
from palaver.delivery.reachable_chats import MAX_REACHABLE_CHATS, ChatKind, Origin, list_reachable_chats, resolve_chat
from palaver.delivery.tools import MAX_SENT_CHARS, ListedChat
from palaver.jobs import table as jobs
from palaver.people import table as people
from palaver.sessions import turn_leases
from palaver.sessions.context import format_place_name, format_prompt_target
from palaver.sessions.redact import needs_raw_ids
from palaver.sessions.sent_message import SenderKind, SentBy
from palaver.sessions.turn import JOB_RUN_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.source import SessionSource
    from palaver.delivery.reachable_chats import ReachableChat
    from palaver.people.model import Principal
    from palaver.sessions.redact import Redactor
    from palaver.sessions.session_rows import SessionRow
    from palaver.sessions.store import SessionStore
    from palaver.sessions.turn_leases import TurnLease

MAX_SENDS_PER_TURN: Final = 10
FILE_FOLDER: Final = "messages"  # of what is sent to `local`
_MAX_COUNTED_TURNS: Final = 1000
_OWN_CHAT = "You are answering in this chat: your answer appears there by itself. Nothing was sent."


class SendCounter:
    """Counts how much each turn has sent, also when its request is built again."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()

    def take(self, turn_id: str) -> None:
        """Count one more message of a turn; raises LimitReached."""
        count = self._counts.pop(turn_id, 0)
        self._counts[turn_id] = min(count + 1, MAX_SENDS_PER_TURN)
        while len(self._counts) > _MAX_COUNTED_TURNS:
            self._counts.popitem(last=False)
        if count >= MAX_SENDS_PER_TURN:
            raise LimitReached(f"You can send at most {MAX_SENDS_PER_TURN} messages in one turn. This one wasn't sent.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessages:
    """Sends messages for one person from one conversation."""

    store: SessionStore
    principal: Principal
    session_row: SessionRow
    counter: SendCounter
    lease: TurnLease | None = None  # None: the tools are only listed
    redactor: Redactor | None = None  # None: ids are not hidden from the agent

    async def list_chats(self, search: str) -> tuple[Sequence[ListedChat], bool]:
        """Return chats that may be sent to from here, and whether there are more."""
        chats = await self.store.engine.arun(Read(lambda tx: self._list_chats(tx, search)))
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

    def _list_chats(self, tx: Transaction, search: str) -> list[ReachableChat]:
        return list_reachable_chats(
            tx, self.principal, self.store.config, search=search, only_chat=self._find_only_chat()
        )

    def _send(self, tx: Transaction, lease: TurnLease, target: str, text: str, now: int) -> ReachableChat:
        turn_leases.check_lease(tx, lease)
        chat = resolve_chat(
            tx,
            self.principal,
            target,
            self.store.config,
            now,
            origin=self._find_origin(tx),
            only_chat=self._find_only_chat(),
            redactor=self.redactor,
            is_from_agent=True,
        )
        if chat.session_no == lease.session_no or (chat.address is not None and str(chat.address) == lease.address):
            raise NothingToDo(_OWN_CHAT)
        file_name = f"{from_micros(now):%Y-%m-%dT%H-%M-%S.%fZ}"
        post = ChatPost(
            text=text,
            sent_by=self._make_sender(tx, lease),
            session_no=lease.session_no,
            file_address=make_file_address(FILE_FOLDER, file_name) if chat.kind is ChatKind.LOCAL else None,
        )
        post_to_chat(tx, self.store.config, chat, post, now)
        return chat

    def _find_only_chat(self) -> SessionSource | None:
        session = self.session_row.session
        return session.origin if session.shared or is_personal_lane_in_group(session) else None

    def _find_origin(self, tx: Transaction) -> Origin:
        """Return where the request was made; in a run of a job, where the job was made."""
        job_row = None if self.principal.job_id is None else jobs.find_by_id(tx, self.principal.job_id)
        if job_row is not None:
            return Origin(job_row.job.origin, job_row.origin_session_no)
        return Origin(self.session_row.session.origin, self.session_row.no)

    def _make_sender(self, tx: Transaction, lease: TurnLease) -> SentBy:
        session_id = self.session_row.session.id
        job_row = None if self.principal.job_id is None else jobs.find_by_id(tx, self.principal.job_id)
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


class MessageSenders:
    """Makes what the tools of a turn send messages with."""

    def __init__(self, store: SessionStore, redactor: Redactor | None, counter: SendCounter | None = None) -> None:
        self._store = store
        self._redactor = redactor if store.config.redact_pii else None
        self.counter = counter or SendCounter()

    def make(self, principal: Principal, session_row: SessionRow, lease: TurnLease | None) -> AgentMessages:
        return AgentMessages(
            store=self._store,
            principal=principal,
            session_row=session_row,
            counter=self.counter,
            lease=lease,
            redactor=self._redactor,
        )

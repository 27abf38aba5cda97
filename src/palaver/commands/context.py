"""The context of a command: who asks, where, the session it is about, and the transaction.

Always true: a command reads and changes a session only after `require_session` has checked it for the person who asks.
The lane that a person writes in may be on a session that they have no access to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.commands.reply_text import count_messages, format_last_exchange
from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import NotAllowed, NothingToDo, SessionBusy, SessionNotFound
from palaver.core.source import ChatType
from palaver.core.texts import Text, say
from palaver.people.model import Action, Principal, Role, Scope, SignedInPerson, check_action_allowed
from palaver.sessions import (
    lanes_table as lanes,
    log_table as events,
    settings_table as session_settings,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.settings_table import SessionSettings

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.agent.base import AgentInfo, ModelPrices
    from palaver.config.agent_rules import AgentProfile, TurnRules
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId, SessionKey
    from palaver.core.source import Platform, SessionSource
    from palaver.sessions.events import Event
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.table import SessionRow
    from palaver.sessions.view import SessionViewInTransaction, ViewScope


_PAGE_MESSAGES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The person who runs a command, the place, and everything that the command may use."""

    tx: Transaction
    now: datetime
    source: SessionSource
    principal: Principal
    signed_in: SignedInPerson | None = None  # of a request to the API
    token_scopes: frozenset[str] | None = None  # None: no token asks, but the person
    scope: ViewScope  # what the person may see; in a shared chat, only what belongs to that chat
    view: SessionViewInTransaction  # the same scope, as operations
    lane_key: SessionKey  # the lane that the person writes in
    session_row: SessionRow | None  # what the surface shows, or what the lane is on; not checked unless `is_checked`
    is_checked: bool = False  # the person has access to `session_row`
    config: GatewayConfig
    rules: TurnRules
    agent: AgentInfo
    prices: ModelPrices  # of the agent's models, as far as they are loaded
    profile: AgentProfile  # the agent's configuration: the profiles and personalities to choose from
    connected_platforms: frozenset[Platform] = frozenset()
    address: str | None = None  # where answers are delivered; None where people read the session itself
    reply_to: str | None = None  # the platform's id of the message
    max_file_bytes: int = 0  # of a file that can be sent with the reply; 0: none can

    @property
    def now_micros(self) -> int:
        return to_micros(self.now)

    @property
    def person_id(self) -> PersonId:
        return self.principal.person_id

    @property
    def is_owner(self) -> bool:
        """True if an owner asks, or a token of theirs that may do what only owners may."""
        has_scope = self.token_scopes is None or Scope.ADMIN in self.token_scopes
        return self.principal.role is Role.OWNER and has_scope

    def require_session(self, action: Action = Action.READ) -> SessionRow:
        """Return the session that the command is about; raises unless the person may take this action on it."""
        row = self.session_row
        if row is None:
            raise NothingToDo.say("session.empty", "There are no messages here yet.")
        if self.is_checked:
            check_action_allowed(self.principal, action, shared=row.session.shared)
            return row
        try:
            return self.scope.get_session_row(self.tx, row.session.id, action)
        except SessionNotFound:
            raise SessionNotFound.say(
                "session.no_access", "You don't have access to the conversation here. Use /new to start your own."
            ) from None

    def require_idle_session(self, action: Action = Action.READ) -> SessionRow:
        """Like `require_session`; raises while turns are open, and lets none open until the transaction ends."""
        row = self.require_session(action)
        open_turns = turns.lock_and_load_open(self.tx, row.no)
        if open_turns.is_busy:
            queued: str = ""
            if open_turns.queued_count:
                queued = say("busy.queued", " ({messages} queued)", messages=count_messages(open_turns.queued_count))
            raise SessionBusy.say(
                "busy.responding",
                "The agent is still responding here{queued}. Wait for it, or use `/stop all`, then try again.",
                queued=queued,
            )
        return row

    def require_or_start_session(self, action: Action = Action.READ) -> SessionRow:
        """Like `require_session`; where there is no session yet, start one."""
        if self.session_row is not None:
            return self.require_session(action)
        return enter_lane(self)

    def require_next_session(self) -> SessionRow:
        """Return the session of the next message, for what holds from then on; start it if that message would."""
        row = self.require_or_start_session()
        if self.is_checked or turns.load_open(self.tx, row.no).is_busy:
            return row
        lane_row = lanes.find_current_session(self.tx, self.lane_key)
        return enter_lane(self) if lane_row is not None and lane_row.no == row.no else row


def build_arrival(context: CommandContext) -> lanes.Arrival:
    return lanes.Arrival(
        source=context.source, config=context.config, now=context.now, busy_since=lambda _session_id: None
    )


def enter_lane(context: CommandContext) -> SessionRow:
    """Return the session that the lane is on; starts one if there is none."""
    return sessions.get(context.tx, lanes.get_or_create_entry(context.tx, build_arrival(context)).session_id)


def switch_lane(context: CommandContext, target: SessionRow) -> None:
    """Put the lane on another session, which continues from now."""
    if lanes.find_current_session(context.tx, context.lane_key) is None:
        enter_lane(context)
    lanes.switch_session(context.tx, context.lane_key, target, context.now_micros, context.person_id)


def describe_open_turns(context: CommandContext, row: SessionRow) -> str:
    """Return a sentence about answers that are still to come in a session that the lane has left, or an empty text."""
    if not turns.load_open(context.tx, row.no).is_busy:
        return ""
    return say("session.still_responding", " The agent is still responding there; nothing is lost.")


def describe_last_exchange(context: CommandContext, row: SessionRow) -> Text:
    return format_last_exchange(events.list_messages(context.tx, row.no, limit=_PAGE_MESSAGES))


def find_event(context: CommandContext, row: SessionRow, seq: int) -> Event | None:
    return next(iter(events.list_events(context.tx, row.no, after=seq - 1, limit=1)), None)


def read_settings(context: CommandContext) -> SessionSettings:
    """Read the settings of the session that the command is about; the defaults if there is none yet."""
    if context.session_row is None:
        return SessionSettings()
    return session_settings.load(context.tx, context.require_session().no)


def check_private_chat(context: CommandContext, command: str) -> None:
    """Refuse a command whose reply only the person may read, where others read it."""
    if context.source.chat_type is not ChatType.DM:
        raise make_public_chat_error(command)


def make_public_chat_error(command: str) -> NotAllowed:
    return NotAllowed.say(
        "command.public", "Other people read this chat. Use /{command} in a direct message.", command=command
    )

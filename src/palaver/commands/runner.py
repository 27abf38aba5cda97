"""Runs a slash command inside a transaction: checks permission and access to its session, calls the action."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.commands.command import CommandCall, MessageCall, find_token_scopes
from palaver.commands.context import CommandContext
from palaver.core.dataclass import dataclass
from palaver.core.errors import NotAllowed, PalaverError, SessionNotFound, StoreError
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.people.model import Person, check_guest_commands, check_permission
from palaver.sessions import lanes_table as lanes, table as sessions
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS
from palaver.sessions.inbound import Inbound, Outcome, Receipt
from palaver.sessions.view import SessionViewInTransaction, ViewScope

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from palaver.agent.profiles import CurrentSettings
    from palaver.commands.registry import CommandRegistry
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import SessionKey
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.model import Session
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow


class CommandRejected(Exception):
    """A command could not be carried out. Its transaction must be rolled back; `error` has the text for the person."""

    def __init__(self, error: PalaverError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class CommandRunner:
    registry: CommandRegistry
    store: SessionStore
    settings: CurrentSettings
    list_connected_platforms: Callable[[], Collection[Platform]] = tuple
    get_max_file_bytes: Callable[[AccountKey], int] = lambda _account: 0

    def __post_init__(self) -> None:
        check_guest_commands(self.settings.rules.guest_commands, {command.name for command in self.registry.commands})

    async def load_prices(self) -> None:
        """Load the prices of the models that are used by default, or by a profile, or can be chosen."""
        agent, profiles = self.settings.agent, self.settings.profile.profiles.values()
        of_profiles = [each.model for each in profiles if each.model]
        await self.settings.prices.load([agent.model, *of_profiles, *agent.list_models()])

    def run(
        self,
        tx: Transaction,
        inbound: Inbound,
        call: CommandCall,
        person: Person,
        session_row: SessionRow | None,
        now: datetime,
    ) -> Receipt:
        """Run a call and return its receipt; raises `CommandRejected` if the command can't be carried out.

        `session_row` is the session that the message names, from `find_session`; without one, the command is about
        the session that the lane is on.
        """
        context = self._build_context(tx, inbound, person, session_row, now)
        try:
            self._check_allowed(call, person, context.token_scopes)
            reply = call.run(context)
        except StoreError:
            raise
        except PalaverError as error:
            raise CommandRejected(error) from error
        row = context.session_row
        return Receipt(
            outcome=Outcome.COMMAND,
            session_id=reply.session_id or (row.session.id if row else None),
            session_key=context.lane_key,
            turn_id=reply.turn_id,
            reply=reply.text,
            facts=reply.data,
            export=reply.export,
            settings=reply.settings,
        )

    def check_message_call(self, call: MessageCall, inbound: Inbound, person: Person) -> None:
        """Raise `CommandRejected` if the sender may not use the command that sends this message."""
        try:
            self._check_allowed(call, person, find_token_scopes(inbound))
        except NotAllowed as error:
            raise CommandRejected(error) from error

    def _check_allowed(
        self, call: CommandCall | MessageCall, person: Person, token_scopes: frozenset[str] | None
    ) -> None:
        check_permission(person.principal, call.command, self.settings.rules.guest_commands)
        self.registry.check_call_scopes(call, token_scopes)

    def _build_context(
        self, tx: Transaction, inbound: Inbound, person: Person, row: SessionRow | None, now: datetime
    ) -> CommandContext:
        source = inbound.source if row is None else find_source_in_session(inbound.source, row.session)
        lane_key = lanes.resolve_key(tx, self.store.build_arrival(source, now))
        address = inbound.answer_address
        scope = self._build_scope(tx, source, person, lane_key)
        is_checked = row is not None and scope.lane_key is None
        if row is None:
            row = lanes.find_current_session(tx, lane_key)
        return CommandContext(
            tx=tx,
            now=now,
            source=source,
            principal=person.principal,
            signed_in=inbound.signed_in,
            token_scopes=find_token_scopes(inbound),
            scope=scope,
            view=SessionViewInTransaction(tx, scope),
            lane_key=lane_key,
            session_row=row,
            is_checked=is_checked,
            config=self.store.config,
            rules=self.settings.rules,
            agent=self.settings.agent,
            prices=self.settings.prices,
            profile=self.settings.profile,
            connected_platforms=frozenset(self.list_connected_platforms()),
            address=None if address is None else str(address),
            reply_to=inbound.message_id,
            max_file_bytes=0 if address is None else self.get_max_file_bytes(address.account_key),
        )

    def _build_scope(self, tx: Transaction, source: SessionSource, person: Person, lane_key: SessionKey) -> ViewScope:
        scope = ViewScope(principal=person.principal, clock=self.store.clock)
        if self.store.config.is_shared(source):
            return replace(scope, lane_key=lane_key, audience_no=lanes.get_audience_no(tx, lane_key))
        if source.chat_type is not ChatType.DM:  # the person's own lane, but everyone in the chat reads the reply
            return replace(scope, lane_key=lane_key)
        return scope


def find_session(tx: Transaction, inbound: Inbound, person: Person | None) -> SessionRow | None:
    """Return the session that a message names; None if it names none.

    Raises `SessionNotFound` if the person has no access to it. This is the only check of a request.
    """
    if inbound.session_id is None:
        return None
    if person is None:
        raise SessionNotFound.for_id(inbound.session_id)
    return sessions.get_visible(tx, inbound.session_id, person.id)


def find_source_in_session(source: SessionSource, session: Session) -> SessionSource:
    """Return the source of a person who writes in a session that their page or program shows.

    There, each session has a lane of its own: the one it started in, or one named after its id.
    """
    if source.platform not in MULTI_SESSION_PLATFORMS:
        return source
    started_here = session.platform == source.platform and session.origin.user_id == source.user_id
    return replace(source, chat_id=session.origin.chat_id if started_here else session.id)

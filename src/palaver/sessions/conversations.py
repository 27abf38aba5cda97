"""Starting and forking conversations for a person on the web page and in the API.

On a chat platform the place a person writes from decides which conversation it is. Here each conversation has a lane of
its own, so a person has several side by side. Their messages go through the inbox, like all others.

Explains automatic restarts to people: why a conversation was started by a reset policy, and who set the policy.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from palaver.core.clock import MIN_COPY_PAUSE_SECONDS, to_micros
from palaver.core.engines.base import Transaction, Write
from palaver.core.errors import InvalidInput
from palaver.core.fair_slots import FairSlots
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import say
from palaver.people.model import Action, Person, Principal, check_permission
from palaver.sessions import (
    inbound_table as inbound_messages,
    lanes_table as lanes,
    list_table as session_summaries,
    log_table as events,
    table as sessions,
)
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS, GatewayConfig, format_profile_key
from palaver.sessions.inbound import Inbound
from palaver.sessions.policy import ResetPolicy, ResetReason, explain_reset
from palaver.sessions.view import ViewScope
from palaver.sessions.view.session_view import SessionChanges, apply_changes, fork_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.sessions.model import Session, SessionSummary
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow


MAX_CONCURRENT_COPIES = 64  # of different people; each may wait for a lock
# Idempotency keys are stored as inbound messages. These accounts keep them apart from the keys of messages.
EDIT_NAMESPACE = "edits"
START_NAMESPACE = "beginnings"
_CHAT_TYPES: Final = {
    ChatType.DM: say("chats.dm", "direct messages"),
    ChatType.GROUP: say("chats.group", "groups"),
    ChatType.CHANNEL: say("chats.channel", "channels"),
    ChatType.THREAD: say("chats.thread", "threads"),
}


def build_person_source(person: Person, platform: Platform = Platform.WEB, chat_id: str | None = None) -> SessionSource:
    """Build the source of what a person sends; the inbox finds the lane of the conversation that they send it in."""
    chat_id = person.id if chat_id is None else chat_id
    return SessionSource(platform, chat_id, chat_type=ChatType.DM, user_id=person.id, user_name=person.name)


class Conversations:
    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._copies = FairSlots(MAX_CONCURRENT_COPIES, per_key=1, min_pause=MIN_COPY_PAUSE_SECONDS)

    async def start(
        self, person: Person, changes: SessionChanges, platform: Platform = Platform.WEB, *, key: str | None = None
    ) -> SessionSummary:
        """Start a conversation with these changes in a lane of its own; lists show it once it has a message.

        A second call with the same key returns the same conversation, so a client that got no response can repeat it.
        """
        source = build_person_source(person, platform, secrets.token_urlsafe(9))
        arrival = self._store.build_arrival(source)
        now = arrival.now_micros
        request = Inbound(
            source=build_person_source(person, platform),
            content="",
            message_id=key,
            message_id_namespace=START_NAMESPACE,
        )

        def create(tx: Transaction) -> SessionRow:
            entry = lanes.get_or_create_entry(tx, arrival, force_new=True)
            return apply_changes(tx, self._build_scope(person.principal), entry.session_id, changes, now)

        return await self._store.engine.arun(Write(lambda tx: self._create_once(tx, request, person, create, now)))

    async def fork(self, principal: Principal, session_id: str, at: int | None, title: str | None) -> SessionSummary:
        """Fork a conversation for the principal alone, up to and including the turn of message `at`."""
        check_permission(principal, "branch")
        now = to_micros(self._store.clock.now())

        def run(tx: Transaction) -> SessionSummary:
            scope = self._build_scope(principal)
            row = fork_session(tx, scope, scope.get_session_row(tx, session_id, Action.FORK), at, now)
            if title is not None:
                sessions.rename(tx, row, title, now, principal.person_id)
            return _load_summary(tx, row, principal)

        return await self._store_copy(principal, run)

    async def fork_before(self, person: Person, session_id: str, at: int, key: str) -> SessionSummary:
        """Fork a conversation before message `at` of a person, so that they can send another message there.

        A second call with the same key returns the same fork, so a client that got no response can repeat it.
        """
        principal = person.principal
        check_permission(principal, "branch")
        now = to_micros(self._store.clock.now())

        def run(tx: Transaction) -> SessionSummary:
            scope = self._build_scope(principal)
            parent = scope.get_session_row(tx, session_id, Action.FORK)
            request = Inbound(
                source=build_person_source(person),
                content="",
                message_id=key,
                message_id_namespace=EDIT_NAMESPACE,
                session_id=parent.session.id,
            )
            return self._create_once(tx, request, person, lambda tx: _fork_before(tx, scope, parent, at, now), now)

        return await self._store_copy(principal, run)

    def _create_once(
        self, tx: Transaction, request: Inbound, person: Person, create: Callable[[Transaction], SessionRow], now: int
    ) -> SessionSummary:
        """Create a conversation, or return the one that the same request has created before."""
        receipt = inbound_messages.find_receipt(tx, request)
        if receipt is not None:
            scope = self._build_scope(person.principal)
            return _load_summary(tx, scope.get_session_row(tx, receipt["session_id"], Action.READ), person.principal)
        row = create(tx)
        inbound_messages.save_receipt(tx, request, {"outcome": "command", "session_id": row.session.id}, now)
        return _load_summary(tx, row, person.principal)

    async def _store_copy(self, principal: Principal, run: Callable[[Transaction], SessionSummary]) -> SessionSummary:
        async with self._copies.hold(principal.person_id):
            summary = await self._store.engine.arun(Write(run))
        self._store.indexer.notify()
        return summary

    def _build_scope(self, principal: Principal) -> ViewScope:
        return ViewScope(principal=principal, clock=self._store.clock)


def _fork_before(tx: Transaction, scope: ViewScope, parent: SessionRow, at: int, now: int) -> SessionRow:
    if not events.is_visible_question(tx, parent.no, at):
        raise InvalidInput(f"Message {at} is not a message of a person in this conversation.", at=at)
    earlier = events.list_messages(tx, parent.no, before=at, limit=1)
    if not earlier:
        return fork_session(tx, scope, parent, at, now, is_empty=True)
    return fork_session(tx, scope, parent, earlier[0].seq, now)


def _load_summary(tx: Transaction, row: SessionRow, principal: Principal) -> SessionSummary:
    return session_summaries.load_summaries(tx, [sessions.get_by_no(tx, row.no).session], principal.person_id)[0]


def explain_automatic_start(tx: Transaction, config: GatewayConfig, session_no: int, session: Session) -> str:
    """Return the sentence that tells a person why a reset policy has started this session.

    Its log has the setting that applied then; with the present value of the setting, the sentence is more precise.
    """
    first = events.list_events(tx, session_no, limit=1)
    facts = first[0].facts if first else {}
    profile = _find_profile(facts.get("reset_setting"))
    policy = config.get_reset_policy(session.origin)
    if profile is not None:
        policy = config.reset_by_profile.get(profile, ResetPolicy())  # it may have been removed since
    return explain_reset(ResetReason(session.start_reason.value), policy, profile, facts.get("profile"))


def describe_origin(setting_key: str) -> str:
    """Say for whom a reset policy is set: for a profile, a platform, a type of chats, or by default."""
    section, _, name = setting_key.partition(".")
    if (profile := _find_profile(setting_key)) is not None:
        return say("reset.set_for_profile", "set for the profile “{profile}”", profile=profile)
    if section == "reset_by_platform" and Platform(name) in MULTI_SESSION_PLATFORMS:
        return say("reset.not_here", "conversations on the page and in the API never restart automatically")
    if section == "reset_by_platform":
        return say("reset.set_for", "set for {where}", where=Platform(name).label)
    if section == "reset_by_type":
        return say("reset.set_for", "set for {where}", where=_CHAT_TYPES[ChatType(name)])
    return say("text.default", "default")


def _find_profile(setting_key: object) -> str | None:
    """Return the profile whose reset policy has this key; None if it is not that of a profile."""
    if not isinstance(setting_key, str) or not setting_key.startswith("profiles."):
        return None
    name = setting_key.split(".")[1]
    return name if setting_key == format_profile_key(name) else None

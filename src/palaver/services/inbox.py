"""The way in for every message and command: platforms, the terminal, the web page and the API all call `Inbox`.

`accept` takes a message. In one transaction it finds out who sends it, whether it came before and which session it
belongs to, applies the reset policy, stores the message and queues the turn that answers it. When it returns, all of
that is durable and the platform may be told. If the process dies earlier, nothing has happened, and the platform sends
the message again.

A slash command takes the same path, whether it comes as text or, through `run_command`, as a call with typed arguments:
its changes, its reply and the record of its message are one transaction. A command that only reads runs in a read
transaction, so that a long one delays nobody; a short write then stores the record and the reply (decision 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from palaver.domain.attachment import add_attachments
from palaver.domain.crash_points import crash_point
from palaver.domain.delivery import DeliveryKind
from palaver.domain.errors import ChatNotReachable, InvalidMessage, SessionNotFound
from palaver.domain.ids import SessionId, SessionKey, TurnId
from palaver.domain.inbound import Inbound, Outcome, Receipt, ReplyTo, find_delivery_address
from palaver.domain.message import Message, join_text_parts
from palaver.domain.message_parts import check_message_parts
from palaver.domain.policy import ResetReason, explain_reset
from palaver.domain.profile import AgentProfile
from palaver.domain.text import is_storable
from palaver.domain.turn import QUOTED_SEQS_KEY, BusyPolicy, StopRequest, TurnKind
from palaver.services import access
from palaver.services.attachments import find_attachments
from palaver.services.commands import parse_command
from palaver.services.commands.command import CommandCall, MessageCall
from palaver.services.commands.runner import CommandRejected, CommandRunner, check_message_call, find_session
from palaver.services.indexer import catch_up_index
from palaver.services.store import MACHINE_PLATFORMS
from palaver.storage import (
    attachments,
    deliveries,
    inbound_messages,
    lanes,
    session_settings,
    sessions,
    turns,
)
from palaver.storage.engines.base import Conflict, Read, Write
from palaver.storage.timestamps import from_micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from palaver.domain.errors import PalaverError
    from palaver.domain.ids import PersonId
    from palaver.domain.person import Person
    from palaver.domain.profile import TurnRules
    from palaver.domain.session import RecordedMessage
    from palaver.domain.source import Platform
    from palaver.services.commands.command_context import AgentInfo
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow

    Call = CommandCall | MessageCall | None

MAX_MESSAGE_CHARS = 200_000
MAX_MERGED_MESSAGES = 100  # that one turn answers; later ones get a turn of their own
MAX_MERGE_WINDOWS = 10  # after so many windows the turn starts, even if messages still come in

_QUEUE_FULL = (
    "The agent is busy and {count} messages are queued here already, so this one wasn't added."
    " Send it again later, or use /stop."
)
_BUSY = (
    "The agent is still responding, so your message wasn't accepted. Send it again when it's done, or use /stop first."
)
_NO_ORIGIN = "This conversation isn't from a chat, so its answer can't be sent to one. Choose to reply here."
_NOT_CONNECTED = (
    "{platform} isn't connected to this server, so the answer can't be sent there. Connect it, or choose to reply here."
)
_TOO_LONG = "This message is too long: {length} characters, and the limit is {limit}. It wasn't saved."


class Inbox:
    """Accepts messages and runs slash commands."""

    def __init__(
        self,
        store: SessionStore,
        agent: AgentInfo,
        rules: TurnRules,
        *,
        profile: AgentProfile | None = None,
        platforms: Collection[Platform] = (),
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._rules = rules
        self._commands = CommandRunner(store, agent, rules, profile or AgentProfile(), platforms)
        self._platforms = platforms  # that answers can be sent to from here
        self._on_change = on_change  # called when there may be something to run, to stop or to send

    async def accept(self, inbound: Inbound) -> Receipt:
        """Store a message and queue the turn that answers it, or run the slash command that it contains."""
        check_content(inbound.content, inbound.attachment_ids)
        return await self._accept(inbound, parse_command(_get_text(inbound)))

    async def run_command(self, inbound: Inbound, call: CommandCall | MessageCall) -> Receipt:
        """Run a slash command that a program calls with typed arguments; the content of `inbound` is not used."""
        return await self._accept(inbound, call)

    async def _accept(self, inbound: Inbound, call: Call) -> Receipt:
        if inbound.message_id is not None and not is_storable(inbound.message_id):
            raise InvalidMessage(f"message_id: {inbound.message_id!r} contains characters that can't be stored")
        if isinstance(call, MessageCall):
            busy_policy = inbound.busy_policy or call.busy
            inbound = replace(inbound, content=call.text, busy_policy=busy_policy)
        receipt = None
        if isinstance(call, CommandCall) and call.action.reads:
            receipt = await self._try_accept_with_read(inbound, call)
        if receipt is None:
            receipt = await self._accept_with_write(inbound, call)
        crash_point("inbox.accepted")
        self._store.indexer.notify()
        self._on_change()
        return receipt

    async def _accept_with_write(self, inbound: Inbound, call: Call) -> Receipt:
        try:
            return await self._run_write(lambda tx: self._handle_write(tx, inbound, call))
        except CommandRejected as rejected:  # nothing of the command has happened
            error = rejected.error
            return await self._run_write(
                lambda tx: self._record_receipt_once(tx, inbound, self._build_rejection(tx, inbound, error))
            )

    async def _try_accept_with_read(self, inbound: Inbound, call: CommandCall) -> Receipt | None:
        """Run a command that only reads; None if the write path has to deal with it.

        If the process dies after the read, nothing is recorded; the command runs again when its message comes again.
        """
        if call.action.searches:
            await catch_up_index(self._store.engine)
        receipt = await self._store.engine.arun(Read(lambda tx: self._handle_read(tx, inbound, call)))
        crash_point("inbox.command_read")
        is_recorded = inbound.message_id is not None or inbound.answer_address is not None
        if receipt is None or receipt.outcome is Outcome.DUPLICATE or not is_recorded:
            return receipt
        reply = receipt
        return await self._run_write(lambda tx: self._record_receipt_once(tx, inbound, reply))

    async def _run_write(self, run: Callable[[Transaction], Receipt]) -> Receipt:
        crash_point("inbox.before_accept")
        return await self._store.engine.arun(Write(run))

    # -- inside a transaction ------------------------------------------------------------------------------

    def _handle_write(self, tx: Transaction, inbound: Inbound, call: Call) -> Receipt:
        now = self._store.clock.now()
        speaker = access.identify_speaker(tx, inbound.source, self._rules, to_micros(now))
        person = speaker.person
        row = find_session(tx, inbound, person)  # before the receipt, which is not for people without access
        duplicate = _find_duplicate(tx, inbound)
        if duplicate is not None:
            return duplicate
        text = _get_text(inbound)
        if not speaker.can_speak:
            receipt = Receipt(outcome=Outcome.REJECTED, reply=speaker.refusal or None)
        elif len(text) > MAX_MESSAGE_CHARS:
            reply = _TOO_LONG.format(length=len(text), limit=MAX_MESSAGE_CHARS)
            facts = {"error": "too_long", "limit": MAX_MESSAGE_CHARS}
            receipt = Receipt(outcome=Outcome.REJECTED, reply=reply, facts=facts)
        elif isinstance(call, CommandCall) and person is not None:
            receipt = self._commands.run(tx, inbound, call, person, row, now)
        else:
            if isinstance(call, MessageCall) and person is not None:
                check_message_call(call, person)
            receipt = self._store_message(tx, inbound, person, row, now)
        return self._record_receipt(tx, inbound, receipt)

    def _handle_read(self, tx: Transaction, inbound: Inbound, call: CommandCall) -> Receipt | None:
        """Run a command that only reads; None for accounts that are new or may not speak, and for texts too long."""
        speaker = access.find_speaker(tx, inbound.source, self._rules)
        if speaker is None or not speaker.can_speak or speaker.person is None:
            return None
        if len(_get_text(inbound)) > MAX_MESSAGE_CHARS:
            return None
        row = find_session(tx, inbound, speaker.person)
        duplicate = _find_duplicate(tx, inbound)
        if duplicate is not None:
            return duplicate
        try:
            return self._commands.run(tx, inbound, call, speaker.person, row, self._store.clock.now())
        except CommandRejected as rejected:
            return self._build_rejection(tx, inbound, rejected.error)

    def _build_rejection(self, tx: Transaction, inbound: Inbound, error: PalaverError) -> Receipt:
        """Build the receipt of a command that could not be carried out."""
        session_id = inbound.session_id
        if session_id is None:
            arrival = self._store.build_arrival(inbound.source, self._store.clock.now())
            row = lanes.find_current_session(tx, lanes.resolve_key(tx, arrival))
            session_id = row.session.id if row else None
        facts = {**error.facts, "error": error.code}
        return Receipt(outcome=Outcome.REJECTED, reply=str(error), session_id=session_id, facts=facts)

    def _record_receipt_once(self, tx: Transaction, inbound: Inbound, receipt: Receipt) -> Receipt:
        """Record a receipt that was built in an earlier transaction, unless the message was recorded meanwhile."""
        return _find_duplicate(tx, inbound) or self._record_receipt(tx, inbound, receipt)

    def _record_receipt(self, tx: Transaction, inbound: Inbound, receipt: Receipt) -> Receipt:
        """Store the receipt, so that the message is known when it comes again, and queue the delivery of the reply."""
        now = to_micros(self._store.clock.now())
        inbound_messages.save_receipt(tx, inbound, _receipt_to_dict(receipt), now)
        if inbound.answer_address is not None:
            address = str(inbound.answer_address)
            deliveries.mark_target_alive(tx, address)
            if receipt.reply:
                session_no = _find_session_no(tx, receipt.session_id)
                delivery = deliveries.NewDelivery(
                    address=address,
                    content=receipt.reply,
                    kind=DeliveryKind.NOTICE,
                    session_no=session_no,
                    reply_to=inbound.message_id,
                )
                deliveries.enqueue(tx, delivery, now)
        return receipt

    def _store_message(
        self, tx: Transaction, inbound: Inbound, person: Person | None, row: SessionRow | None, now: datetime
    ) -> Receipt:
        """Store a message in the session that it names or, without one, on the lane of its source."""
        arrival = self._store.build_arrival(inbound.source, now)
        lane_key = row.session.key if row else lanes.resolve_key(tx, arrival)
        open_turns = turns.summarize_open(tx, row.no) if row else turns.summarize_open_on_lane(tx, lane_key)
        if open_turns.is_busy:
            busy_since = from_micros(open_turns.oldest_created_at or 0)
            arrival.busy_since = lambda _session_id: busy_since
        address = self._find_answer_address(tx, inbound, row)
        busy_policy = self._find_busy_policy(tx, inbound, lane_key, row, open_turns)
        rejection = self._find_rejection(open_turns, busy_policy)
        if rejection is not None:
            current = row or lanes.find_current_session(tx, lane_key)
            return replace(rejection, session_id=current.session.id if current else None, session_key=lane_key)
        person_id = person.id if person else None
        files = find_attachments(tx, person_id, inbound.content, inbound.attachment_ids)
        message = _build_message(inbound, add_attachments(inbound.content, [file for _, file in files]))
        if row is None:
            is_human = inbound.source.platform not in MACHINE_PLATFORMS
            recorded = lanes.append_message(tx, arrival, message, from_human=is_human)
        else:
            recorded = lanes.append_to_session(tx, row, arrival, message, person_id)
        session_no = row.no if row else sessions.get_no(tx, recorded.session_id)
        attachments.use_in_session(tx, session_no, [no for no, _ in files])
        if recorded.start_reason is not None:  # a reset left the busy session behind
            open_turns = turns.NO_OPEN_TURNS
        replies_at_origin = inbound.reply_to is ReplyTo.ORIGIN
        request = turns.TurnRequest(
            session_no=session_no,
            input_seq=recorded.seq,
            person_id=person_id,
            address=address,
            reply_to=None if replies_at_origin else inbound.message_id,
            facts={QUOTED_SEQS_KEY: [recorded.seq]} if replies_at_origin else None,
            is_steering=busy_policy is BusyPolicy.STEER and _can_steer(open_turns, person_id, address),
        )
        outcome, turn_id = self._enqueue_turn(tx, request, open_turns, busy_policy, to_micros(now))
        turns_ahead = open_turns.queued_count + (open_turns.running_no is not None)
        return Receipt(
            outcome=outcome,
            session_id=recorded.session_id,
            session_key=recorded.session_key,
            turn_id=turn_id,
            seq=recorded.seq,
            turns_ahead=0 if outcome is Outcome.MERGED else turns_ahead,
            reply=self._explain_reset(inbound, recorded),
        )

    def _enqueue_turn(
        self, tx: Transaction, request: turns.TurnRequest, open_turns: turns.OpenTurns, policy: BusyPolicy, now: int
    ) -> tuple[Outcome, TurnId]:
        window = self._rules.merge_window // timedelta(microseconds=1)
        if window and _can_merge_with_last(open_turns, request, now):
            due_at = min(now + window, open_turns.last_created_at + MAX_MERGE_WINDOWS * window)
            merged_id = turns.add_to_queued(tx, open_turns.last_queued_no or 0, replace(request, due_at=due_at))
            if merged_id is None:
                raise Conflict  # a worker just claimed it, or the lane was just moved
            outcome, turn_id = Outcome.MERGED, merged_id
        else:
            turn_id = turns.enqueue(tx, replace(request, due_at=now + window if window else 0), now)
            outcome = Outcome.QUEUED if open_turns.is_busy else Outcome.ACCEPTED
        if request.is_steering:
            return Outcome.STEERED, turn_id
        if policy is BusyPolicy.INTERRUPT and open_turns.running_no is not None:
            turns.request_stop(tx, request.session_no, StopRequest.INTERRUPT, request.person_id)
            return Outcome.INTERRUPTING, turn_id
        return outcome, turn_id

    def _find_busy_policy(
        self,
        tx: Transaction,
        inbound: Inbound,
        lane_key: SessionKey,
        row: SessionRow | None,
        open_turns: turns.OpenTurns,
    ) -> BusyPolicy:
        """Return the busy policy of the message itself, of its session, or of its platform, in this order."""
        if inbound.busy_policy is not None or not open_turns.is_busy:
            return inbound.busy_policy or BusyPolicy.QUEUE
        current = row or lanes.find_current_session(tx, lane_key)
        chosen = session_settings.load(tx, current.no).busy_policy if current else None
        return chosen or self._rules.get_busy_policy(inbound.source)

    def _find_rejection(self, open_turns: turns.OpenTurns, policy: BusyPolicy) -> Receipt | None:
        """Return the receipt of a message that can't be accepted while the agent is busy; None if it can."""
        if not open_turns.is_busy:
            return None
        if policy is BusyPolicy.REJECT:
            return Receipt(outcome=Outcome.REJECTED, reply=_BUSY, facts={"error": "session_busy"})
        limit = self._rules.max_queued
        if open_turns.queued_count < limit:
            return None
        reply = _QUEUE_FULL.format(count=open_turns.queued_count)
        return Receipt(outcome=Outcome.REJECTED, reply=reply, facts={"error": "queue_full", "limit": limit})

    def _find_answer_address(self, tx: Transaction, inbound: Inbound, row: SessionRow | None) -> str | None:
        """Return the chat that the answer is sent to: the sender's or, on request, the one the session comes from."""
        if inbound.reply_to is ReplyTo.SESSION:
            return None if inbound.answer_address is None else str(inbound.answer_address)
        origin = find_delivery_address(row.session.origin) if row and lanes.belongs_to_its_lane(tx, row.no) else None
        if row is None or origin is None:
            raise ChatNotReachable(_NO_ORIGIN, session_id=inbound.session_id)
        if origin.platform not in self._platforms:
            raise ChatNotReachable(_NOT_CONNECTED.format(platform=origin.platform.label), platform=str(origin.platform))
        return str(origin)

    def _explain_reset(self, inbound: Inbound, recorded: RecordedMessage) -> str | None:
        """Return what to tell the person if the reset policy has started a new session; resets are never silent."""
        policy = self._store.config.get_reset_policy(inbound.source)
        if not (recorded.was_auto_reset and recorded.previous_had_messages and policy.notify):
            return None
        return explain_reset(ResetReason(str(recorded.start_reason)), policy)


def check_content(content: str | Sequence[Any], attachment_ids: Sequence[str] = ()) -> None:
    """Raise InvalidMessage for a message that is empty or has parts that people can't send."""
    is_empty = not content.strip() if isinstance(content, str) else not (isinstance(content, Sequence) and content)
    if is_empty and not attachment_ids:
        raise InvalidMessage("content: the message is empty")
    check_message_parts(content)


def _find_session_no(tx: Transaction, session_id: SessionId | None) -> int | None:
    with suppress(SessionNotFound):  # it may have been deleted after a command has read it
        return None if session_id is None else sessions.get_no(tx, session_id)
    return None


def _get_text(inbound: Inbound) -> str:
    return inbound.content if isinstance(inbound.content, str) else join_text_parts(inbound.content)


def _build_message(inbound: Inbound, content: str | Sequence[Any]) -> Message:
    return Message.from_dict({"role": "user", "content": content, "platform_message_id": inbound.message_id})


def _can_merge_with_last(open_turns: turns.OpenTurns, request: turns.TurnRequest, now: int) -> bool:
    """Whether the last queued turn, which still waits for more, may answer this message too. Steering stays apart."""
    return (
        open_turns.last_queued_no is not None
        and open_turns.last_kind is TurnKind.ANSWER
        and not (request.is_steering or open_turns.last_is_steering)
        and (open_turns.last_person_id, open_turns.last_address) == (request.person_id, request.address)
        and open_turns.last_due_at > now
        and open_turns.last_merged_count < MAX_MERGED_MESSAGES
    )


def _can_steer(open_turns: turns.OpenTurns, person_id: PersonId | None, address: str | None) -> bool:
    """Whether the running turn answers this person where they read its answer; only then may they steer it."""
    return (
        open_turns.running_no is not None
        and open_turns.running_person_id == person_id
        and address in {None, open_turns.running_address}
    )


# ---- stored receipts ---------------------------------------------------------------------------------------

_STORED_FIELDS = ("session_id", "session_key", "turn_id", "seq", "reply")


def _find_duplicate(tx: Transaction, inbound: Inbound) -> Receipt | None:
    """Return the receipt of a message that came before; None if it is new."""
    stored = inbound_messages.find_receipt(tx, inbound)
    if stored is None:
        return None
    return Receipt(
        outcome=Outcome.DUPLICATE,
        session_id=SessionId(stored["session_id"]) if "session_id" in stored else None,
        session_key=SessionKey(stored["session_key"]) if "session_key" in stored else None,
        turn_id=TurnId(stored["turn_id"]) if "turn_id" in stored else None,
        seq=stored.get("seq"),
        reply=stored.get("reply"),
        facts={"first": stored["outcome"]},
    )


def _receipt_to_dict(receipt: Receipt) -> dict[str, Any]:
    fields = {name: value for name in _STORED_FIELDS if (value := getattr(receipt, name)) is not None}
    return {"outcome": receipt.outcome.value, **fields}

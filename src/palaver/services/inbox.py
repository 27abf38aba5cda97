"""The one door for messages: every platform, the terminal and the web enter here.

`accept` does all of it in one transaction: who speaks, whether this message has come before, which conversation it
belongs to, the reset policy, the message itself, and the turn that will answer it. When it returns, all of that is
durable, and the platform may be told. If the process dies before, nothing has happened, and the platform brings the
message again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from palaver.domain import crash_points
from palaver.domain.delivery import Address, DeliveryKind
from palaver.domain.errors import InvalidMessage, NoSuchSession, NotReachable, PalaverError, StoreError
from palaver.domain.ids import SessionId, SessionKey, TurnId
from palaver.domain.inbound import Inbound, Outcome, Receipt, ReplyTo, place_of
from palaver.domain.message import Message, text_of_parts
from palaver.domain.policy import ResetReason, explain
from palaver.domain.source import ChatType
from palaver.domain.text import is_storable
from palaver.domain.turn import QUOTES, BusyPolicy, StopRequest, TurnKind
from palaver.services import access, commands
from palaver.services.commands.base import CommandContext
from palaver.services.indexer import catch_up
from palaver.services.store import MACHINES
from palaver.services.view import ViewWithin
from palaver.storage import deliveries, inbound_messages, lanes, session_settings, sessions, turns
from palaver.storage.engines.base import Conflict, Write
from palaver.storage.timestamps import from_micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from palaver.domain.ids import PersonId
    from palaver.domain.person import Person
    from palaver.domain.profile import TurnRules
    from palaver.domain.session import Recorded
    from palaver.domain.source import Platform
    from palaver.services.commands.base import Models
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow

LONGEST = 200_000  # characters in one message
MOST_TOGETHER = 100  # messages that one turn answers; those behind them wait for a turn of their own
LONGEST_BURST = 10  # times as long as messages are waited for: then the first of them is answered, whatever still comes

_FULL = (
    "I am still busy here and {count} messages are waiting already, so I have not taken this one."
    " Send it again later, or /stop."
)
_BUSY = "I am still answering, so I have not taken this message. Send it again when I am done, or /stop me first."
_NOWHERE = "this conversation takes place nowhere else, so its answer cannot be sent there; let it be read here"
_NOT_CONNECTED = (
    "{platform} is not connected to this server, so the answer cannot be sent there; connect it, or let the answer be"
    " read here"
)
_TOO_LONG = "This message is too long for me: {length} characters, and {most} is the most I take. I have not kept it."


class Inbox:
    """Takes messages in."""

    def __init__(
        self,
        store: SessionStore,
        agent: Models,
        rules: TurnRules,
        *,
        platforms: Collection[Platform] = (),
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._agent = agent
        self._rules = rules
        self._platforms = platforms  # to which something can be sent from here
        self._on_change = on_change  # there may be something to run, to stop or to send

    async def accept(self, inbound: Inbound) -> Receipt:
        """Take a message in, durably; what became of it."""
        _check(inbound)
        parsed = commands.parse(_text(inbound))
        if parsed is not None and commands.searches(parsed):
            await catch_up(self._store.engine)
        try:
            receipt = await self._write(lambda tx: self._taken(tx, inbound, parsed))
        except PalaverError as error:
            if parsed is None or isinstance(error, StoreError):
                raise
            refused = error  # a command that could not be carried out: nothing of it has happened
            receipt = await self._write(lambda tx: self._answered(tx, inbound, refused))
        crash_points.crash_point("inbox.accepted")
        self._store.indexer.soon()
        self._on_change()
        return receipt

    async def _write(self, run: Callable[[Transaction], Receipt]) -> Receipt:
        crash_points.crash_point("inbox.before")
        return await self._store.engine.arun(Write(run))

    # -- inside the transaction ----------------------------------------------------------------------------

    def _taken(self, tx: Transaction, inbound: Inbound, parsed: commands.Parsed | None) -> Receipt:
        before = inbound_messages.find(tx, inbound)
        if before is not None:
            return _receipt(before, Outcome.DUPLICATE)
        now = self._store.clock.now()
        who = access.speaker(tx, inbound.source, self._rules, to_micros(now))
        if inbound.answer_to is not None:
            deliveries.revive(tx, str(inbound.answer_to))
        if not who.may_speak:
            receipt = Receipt(outcome=Outcome.REFUSED, reply=who.refusal or None)
        elif len(_text(inbound)) > LONGEST:
            reply = _TOO_LONG.format(length=len(_text(inbound)), most=LONGEST)
            receipt = Receipt(outcome=Outcome.REFUSED, reply=reply, facts={"error": "too_long", "limit": LONGEST})
        elif parsed is not None and who.person is not None and not commands.is_message(parsed):
            receipt = self._commanded(tx, inbound, parsed, who.person, now)
        else:
            receipt = self._said(tx, inbound, parsed, who.person, now)
        return self._kept(tx, inbound, receipt, to_micros(now))

    def _answered(self, tx: Transaction, inbound: Inbound, error: PalaverError) -> Receipt:
        """The gateway says why a command could not be carried out; nothing else happens."""
        before = inbound_messages.find(tx, inbound)
        if before is not None:
            return _receipt(before, Outcome.DUPLICATE)
        found = lanes.current(tx, lanes.key_of(tx, self._store.arrival(inbound.source, self._store.clock.now())))
        receipt = Receipt(
            outcome=Outcome.REFUSED,
            reply=str(error),
            session_id=inbound.session_id or (found.session.id if found else None),
            facts={**error.facts, "error": error.code},
        )
        return self._kept(tx, inbound, receipt, to_micros(self._store.clock.now()))

    def _kept(self, tx: Transaction, inbound: Inbound, receipt: Receipt, now: int) -> Receipt:
        inbound_messages.keep(tx, inbound, _kept(receipt), now)
        if receipt.reply and inbound.answer_to is not None:
            session_no = sessions.number_of(tx, receipt.session_id) if receipt.session_id else None
            outgoing = deliveries.Outgoing(
                address=str(inbound.answer_to),
                content=receipt.reply,
                kind=DeliveryKind.NOTICE,
                session_no=session_no,
                reply_to=inbound.message_id,
            )
            deliveries.enqueue(tx, outgoing, now)
        return receipt

    def _commanded(
        self, tx: Transaction, inbound: Inbound, parsed: commands.Parsed, person: Person, now: datetime
    ) -> Receipt:
        key = lanes.key_of(tx, self._store.arrival(inbound.source, now))
        found = self._shown(tx, inbound, person) if inbound.session_id else lanes.current(tx, key)
        scope: dict[str, Any] = {}
        if self._store.config.is_shared(inbound.source):
            scope = {"place": key, "among": lanes.audience_of(tx, key)}
        elif inbound.source.chat_type is not ChatType.DM:  # one person's lane, but everybody there reads the reply
            scope = {"place": key}
        asked = CommandContext(
            tx=tx,
            now=now,
            arguments=parsed.arguments,
            source=inbound.source,
            principal=person.principal,
            view=ViewWithin(tx, self._store.clock, person.principal, **scope),
            key=key,
            found=found,
            config=self._store.config,
            rules=self._rules,
            agent=self._agent,
            address=_address(inbound),
            reply_to=inbound.message_id,
        )
        reply = commands.run(parsed, asked)
        return Receipt(
            outcome=Outcome.COMMAND,
            session_id=reply.session_id or (found.session.id if found else None),
            session_key=key,
            turn_id=reply.turn_id,
            reply=reply.text,
            facts=reply.facts,
        )

    def _said(
        self, tx: Transaction, inbound: Inbound, parsed: commands.Parsed | None, person: Person | None, now: datetime
    ) -> Receipt:
        arrival = self._store.arrival(inbound.source, now)
        shown = self._shown(tx, inbound, person) if inbound.session_id else None
        key = shown.session.key if shown else lanes.key_of(tx, arrival)
        busy = turns.open_in(tx, shown.no) if shown else turns.open_on(tx, key)
        if busy.any:
            since = from_micros(busy.since or 0)
            arrival.busy_since = lambda _session_id: since
        address = self._destination(tx, inbound, shown, busy)
        policy = self._policy(tx, inbound, parsed, key, shown, busy)
        refusal = self._refusal(busy, policy)
        if refusal is not None:
            current = shown or lanes.current(tx, key)
            session_id = current.session.id if current else None
            why, facts = refusal
            return Receipt(outcome=Outcome.REFUSED, session_id=session_id, session_key=key, reply=why, facts=facts)
        message = _message(inbound, parsed)
        human = inbound.source.platform not in MACHINES
        person_id = person.id if person else None
        if shown is None:
            recorded = lanes.say(tx, arrival, message, human=human)
        else:
            recorded = lanes.say_in(tx, shown, arrival, message, person_id)
        session_no = shown.no if shown else sessions.number_of(tx, recorded.session_id)
        if recorded.began is not None:  # the busy conversation was left behind by a reset
            busy = turns.FREE
        wanted = turns.TurnRequest(
            session_no=session_no,
            input_seq=recorded.seq,
            person_id=person_id,
            address=address,
            reply_to=inbound.message_id if inbound.reply is ReplyTo.HERE else None,
            facts={QUOTES: [recorded.seq]} if inbound.reply is ReplyTo.THERE else None,
            steers=policy is BusyPolicy.STEER and _answers_them(busy, person_id, address),
        )
        outcome, turn_id = self._queued(tx, wanted, busy, policy, to_micros(now))
        return Receipt(
            outcome=outcome,
            session_id=recorded.session_id,
            session_key=recorded.session_key,
            turn_id=turn_id,
            seq=recorded.seq,
            ahead=busy.queued + (busy.running is not None) if outcome is not Outcome.COLLECTED else 0,
            reply=self._notice(inbound, recorded),
        )

    def _queued(
        self, tx: Transaction, wanted: turns.TurnRequest, busy: turns.Open, policy: BusyPolicy, now: int
    ) -> tuple[Outcome, TurnId]:
        together = self._rules.collect // timedelta(microseconds=1)
        if together and _goes_with_last(busy, wanted, now):
            due_at = min(now + together, busy.last_since + LONGEST_BURST * together)
            collected = turns.collect(tx, busy.last_queued or 0, replace(wanted, due_at=due_at))
            if collected is None:
                raise Conflict  # it has just been claimed, or the lane has just been moved
            outcome, turn_id = Outcome.COLLECTED, collected
        else:
            turn_id = turns.enqueue(tx, replace(wanted, due_at=now + together if together else 0), now)
            outcome = Outcome.QUEUED if busy.any else Outcome.ACCEPTED
        if wanted.steers:
            return Outcome.STEERED, turn_id
        if policy is BusyPolicy.INTERRUPT and busy.running is not None:
            turns.wish(tx, wanted.session_no, StopRequest.INTERRUPT)
            return Outcome.INTERRUPTING, turn_id
        return outcome, turn_id

    def _policy(
        self,
        tx: Transaction,
        inbound: Inbound,
        parsed: commands.Parsed | None,
        key: SessionKey,
        shown: SessionRow | None,
        busy: turns.Open,
    ) -> BusyPolicy:
        """What happens to it if the agent is busy: what it asks for itself, the conversation, the platform."""
        asked = inbound.busy or (commands.busy_policy(parsed) if parsed else None)
        if asked is not None or not busy.any:
            return asked or BusyPolicy.QUEUE
        current = shown or lanes.current(tx, key)
        chosen = session_settings.read(tx, current.no).busy if current else None
        return chosen or self._rules.busy_policy_for(inbound.source)

    def _refusal(self, busy: turns.Open, policy: BusyPolicy) -> tuple[str, dict[str, Any]] | None:
        """Why a message is not taken, in words and as data."""
        if not busy.any:
            return None
        if policy is BusyPolicy.REJECT:
            return _BUSY, {"error": "still_answering"}
        if busy.queued < self._rules.queue_limit:
            return None
        return _FULL.format(count=busy.queued), {"error": "queue_full", "limit": self._rules.queue_limit}

    def _shown(self, tx: Transaction, inbound: Inbound, person: Person | None) -> SessionRow:
        """The conversation that a surface shows, if this person may speak in it; nobody in particular may not."""
        if person is None:
            raise NoSuchSession(f"there is no session {inbound.session_id}", session_id=inbound.session_id)
        return sessions.seen(tx, inbound.session_id or "", person.id)

    def _destination(self, tx: Transaction, inbound: Inbound, shown: SessionRow | None, busy: turns.Open) -> str | None:
        """Where the answer is sent: to where the message came from or, if that is wanted, where the conversation is."""
        if inbound.reply is ReplyTo.HERE:
            return _address(inbound)
        there = place_of(shown.session.origin) if shown and lanes.takes_place(tx, shown.no) else None
        if shown is None or there is None:
            raise NotReachable(_NOWHERE, session_id=inbound.session_id)
        if there.platform not in self._platforms:
            raise NotReachable(_NOT_CONNECTED.format(platform=there.platform.label), platform=str(there.platform))
        used = (busy.running_address, busy.last_address, deliveries.last_address(tx, shown.no, there.platform))
        known = [address for address in used if address and replace(Address.parse(address), account="") == there]
        return known[0] if known else str(there)

    def _notice(self, inbound: Inbound, recorded: Recorded) -> str | None:
        """Nobody's conversation is reset in silence."""
        policy = self._store.config.reset_policy_for(inbound.source)
        if not (recorded.was_auto_reset and recorded.after_activity and policy.notify):
            return None
        return explain(ResetReason(str(recorded.began)), policy)


def _check(inbound: Inbound) -> None:
    if not isinstance(inbound.content, str | Sequence) or not inbound.content:
        raise InvalidMessage("content: there is nothing in this message")
    if isinstance(inbound.content, str) and not inbound.content.strip():
        raise InvalidMessage("content: there is nothing but blanks in this message")
    if inbound.message_id is not None and not is_storable(inbound.message_id):
        raise InvalidMessage(f"message_id: {inbound.message_id!r} cannot be an id")


def _text(inbound: Inbound) -> str:
    return inbound.content if isinstance(inbound.content, str) else text_of_parts(inbound.content)


def _message(inbound: Inbound, parsed: commands.Parsed | None) -> Message:
    content = parsed.arguments if parsed is not None and commands.is_message(parsed) else inbound.content
    return Message.from_dict({"role": "user", "content": content, "platform_message_id": inbound.message_id})


def _goes_with_last(busy: turns.Open, wanted: turns.TurnRequest, now: int) -> bool:
    """Whether a message is answered together with the last that waits for more. What steers is told by itself."""
    return (
        busy.last_queued is not None
        and busy.last_kind is TurnKind.ANSWER
        and not (wanted.steers or busy.last_steers)
        and (busy.last_person, busy.last_address) == (wanted.person_id, wanted.address)
        and busy.last_due > now
        and busy.last_gathered < MOST_TOGETHER
    )


def _answers_them(busy: turns.Open, person_id: PersonId | None, address: str | None) -> bool:
    """Whether the run answers this person, where they read its answer: only then it may be told more by them."""
    return busy.running is not None and busy.running_person == person_id and address in {None, busy.running_address}


def _address(inbound: Inbound) -> str | None:
    return None if inbound.answer_to is None else str(inbound.answer_to)


_KEPT = ("session_id", "session_key", "turn_id", "seq", "reply")


def _kept(receipt: Receipt) -> dict[str, Any]:
    kept = {name: value for name in _KEPT if (value := getattr(receipt, name)) is not None}
    return {"outcome": receipt.outcome.value, **kept}


def _receipt(kept: dict[str, Any], outcome: Outcome) -> Receipt:
    return Receipt(
        outcome=outcome,
        session_id=SessionId(kept["session_id"]) if "session_id" in kept else None,
        session_key=SessionKey(kept["session_key"]) if "session_key" in kept else None,
        turn_id=TurnId(kept["turn_id"]) if "turn_id" in kept else None,
        seq=kept.get("seq"),
        reply=kept.get("reply"),
        facts={"first": kept["outcome"]},
    )

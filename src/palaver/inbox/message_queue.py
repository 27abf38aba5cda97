"""Stores a message in the session it belongs to, and queues the turn that answers it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from palaver.accounts import access
from palaver.agent.profiles import store_chat_choices
from palaver.config.agent_rules import NO_CHAT_CHOICES
from palaver.core.clock import from_micros, to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Conflict, Transaction
from palaver.core.errors import ChatNotReachable
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.core.texts import say
from palaver.delivery import chat_moves, notices
from palaver.delivery.chat_posts import list_unanswered_posts
from palaver.inbox.receipts import add_lines, build_message, find_sender, get_text
from palaver.media import table as attachments
from palaver.media.attachments import find_attachments
from palaver.memory.model import MemoryTurnKind
from palaver.memory.queue import queue_memory_turn
from palaver.people import access_table as chat_access
from palaver.sessions import (
    inbound_table as group_messages,
    lanes_table as lanes,
    settings_table as session_settings,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.conversations import explain_automatic_start
from palaver.sessions.gateway_config import MACHINE_PLATFORMS
from palaver.sessions.inbound import Inbound, Outcome, Receipt, ReplyTo, find_delivery_address
from palaver.sessions.quoted_messages import MAX_CONTEXT_MESSAGES, choose_context
from palaver.sessions.speech import add_attachments, format_bracketed_name
from palaver.sessions.turn import ALBUM_ID_KEY, BACKLOG_KEY, QUOTED_SEQS_KEY, BusyPolicy, StopRequest, TurnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from palaver.agent.profiles import CurrentSettings
    from palaver.config.agent_rules import TurnRules
    from palaver.core.ids import PersonId, SessionKey, TurnId
    from palaver.people.model import Person
    from palaver.sessions.model import RecordedMessage
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow

MAX_MERGED_MESSAGES = 100  # that one turn answers; later ones get a turn of their own
MAX_MERGE_WINDOWS = 10  # after so many windows the turn starts, even if messages still come in
RECOVERY_TIME = timedelta(minutes=10)  # after a connection, for which more may wait than otherwise
BUSY_RETRY_SECONDS = 5  # when to send a message again that was refused because the agent is busy
ALBUM_WINDOW = timedelta(seconds=1.5)  # the messages of an album follow each other within this time
_BUSY = say(
    "busy.rejected",
    "The agent is still responding, so your message wasn't accepted. Send it again when it's done, or use /stop first.",
)
_NO_ORIGIN = say(
    "reply.no_chat", "This conversation isn't from a chat, so its answer can't be sent to one. Choose to reply here."
)


def is_addressed(inbound: Inbound, rules: TurnRules) -> bool:
    """Return whether a message is for the agent; a direct message always is."""
    if inbound.source.chat_type is ChatType.DM or inbound.is_addressed:
        return True
    return inbound.source.platform in rules.always_active_platforms


def depends_on_thread(inbound: Inbound, rules: TurnRules) -> bool:
    """Return whether only its thread can say if a message is for the agent: nothing in the message itself does."""
    if inbound.source.platform in rules.always_active_platforms | rules.strict_mention_platforms:
        return False
    return inbound.may_follow_up and (inbound.is_in_own_thread or not inbound.is_addressed)


def is_follow_up(tx: Transaction, inbound: Inbound, arrival: lanes.Arrival, rules: TurnRules) -> bool:
    """Return whether a message without a mention goes on with a thread that the agent answers in.

    That ends when a person there addresses another one, and begins again when the agent is addressed. It never begins
    for people without access, and where each person has a conversation of their own, it is theirs alone.
    """
    source = arrival.source
    if group_messages.find_receipt(tx, inbound) is not None:
        return True  # it was taken as one
    if inbound.message_id is not None and group_messages.has_message(tx, source, inbound.message_id):
        return False  # it was recorded for later
    since = arrival.now_micros - group_messages.MAX_GROUP_MESSAGE_AGE // timedelta(microseconds=1)
    last_seen = group_messages.find_last_seen_since(tx, lanes.resolve_key(tx, arrival), since)
    if last_seen is None and inbound.is_in_own_thread:
        last_seen = 0
    if last_seen is None or group_messages.has_message_to_others(tx, source, last_seen):
        return False
    return access.can_speak(tx, source, rules)


def record_message(tx: Transaction, inbound: Inbound, arrival: lanes.Arrival, rules: TurnRules) -> Receipt:
    """Keep a message that is not for the agent, in a chat that is known."""
    if not _is_known_chat(tx, inbound.source, rules):
        return Receipt(outcome=Outcome.IGNORED)
    text = add_lines(get_text(inbound), [f"[file {format_bracketed_name(file.name)}]" for file in inbound.files])
    if not isinstance(text, str) or not text.strip():
        return Receipt(outcome=Outcome.IGNORED)
    in_thread = inbound.source.thread_id is not None and inbound.addresses_others is not None
    new = group_messages.NewGroupMessage(
        message_id=inbound.message_id,
        sender=find_sender(inbound.source),
        author=inbound.source.user_name or inbound.source.user_id or "",
        text=text,
        is_to_others=in_thread and bool(inbound.addresses_others) and not inbound.is_from_bot,
    )
    last_seen = group_messages.get_last_seen(tx, lanes.resolve_key(tx, arrival)) if in_thread else 0
    is_new = group_messages.add(tx, inbound.source, new, arrival.now_micros, last_seen)
    return Receipt(outcome=Outcome.RECORDED if is_new else Outcome.DUPLICATE)


def _is_known_chat(tx: Transaction, source: SessionSource, rules: TurnRules) -> bool:
    if source.platform in rules.open_platforms or group_messages.has_any(tx, source):
        return True
    speaker = access.find_speaker(tx, source, rules)
    if speaker is not None and speaker.can_speak:
        return True
    return chat_access.is_granted(tx, source, None) or chat_moves.has_lane_in_chat(
        tx, str(source.platform), source.account, source.chat_id
    )


def list_context(tx: Transaction, inbound: Inbound, lane_key: str) -> tuple[Sequence[dict[str, str]], int]:
    """Return what was said in a group since its lane last saw it, and the number of the last message of that.

    A message that starts a thread was written in the chat itself, and so was what came before it.
    """
    source = inbound.source
    if source.chat_type is ChatType.DM:
        return (), 0
    if source.thread_id is not None and source.thread_id == inbound.message_id:
        source = replace(source, thread_id=None)
    messages = group_messages.list_after(tx, source, group_messages.get_last_seen(tx, lane_key), MAX_CONTEXT_MESSAGES)
    return choose_context([(each.author, each.text) for each in messages]), messages[-1].no if messages else 0


@dataclass(frozen=True, slots=True)
class MessageQueue:
    """Stores messages and queues their turns, inside a transaction."""

    store: SessionStore
    settings: CurrentSettings
    list_connected_platforms: Callable[[], Collection[Platform]]  # answers can be sent there

    def store_message(
        self, tx: Transaction, inbound: Inbound, person: Person | None, row: SessionRow | None, now: datetime
    ) -> tuple[Receipt, bool]:
        """Store a message in the session that it names or, without one, on the lane of its source.

        Also return whether there is nothing to do but to run its turn, which nothing in the session holds up.
        """
        arrival = self.store.build_arrival(inbound.source, now)
        lane_key = row.session.key if row else lanes.resolve_key(tx, arrival)
        limit = max(turns.MAX_LOADED_TURNS, self.settings.rules.max_queued + 1)
        open_turns = turns.load_open(tx, row.no, limit) if row else turns.load_open_on_lane(tx, lane_key, limit)
        if open_turns.oldest is not None:
            busy_since = from_micros(open_turns.oldest.created_at)
            arrival.busy_since = lambda _session_id: busy_since
        arrival.said_at = inbound.sent_at if inbound.is_backlog else None
        address = self._find_answer_address(tx, inbound, row)
        busy_policy = self._find_busy_policy(tx, inbound, lane_key, row, open_turns)
        waits_for_backlog = inbound.is_backlog or _waits_for_backlog(inbound, open_turns, now)
        rejection = self._find_rejection(inbound, open_turns, busy_policy, waits_for_backlog=waits_for_backlog)
        if rejection is not None:
            current = row or lanes.find_current_session(tx, lane_key)
            return replace(rejection, session_id=current.session.id if current else None, session_key=lane_key), False
        person_id = person.id if person else None
        files = find_attachments(tx, person_id, inbound.content, inbound.attachment_ids)
        context, last_no = list_context(tx, inbound, lane_key) if row is None else ((), 0)
        posts = list_unanswered_posts(tx, arrival, lane_key) if row is None else []
        content = add_attachments(inbound.content, [file for _, file in files], inbound.transcripts)
        said = [(each["author"], each["text"]) for each in (*posts, *context)]
        quoted = choose_context(said) if posts else context
        message = build_message(inbound, content, quoted, now)
        if row is None:
            is_human = inbound.source.platform not in MACHINE_PLATFORMS
            recorded = lanes.append_message(tx, arrival, message, from_human=is_human)
            if last_no:
                group_messages.mark_seen(tx, recorded.session_key, last_no)
        else:
            recorded = lanes.append_to_session(tx, row, arrival, message, person_id)
        if recorded.was_auto_reset:
            self._queue_memory_turn(tx, recorded.session_key, to_micros(now))
        session_no = recorded.session_no
        place = inbound.source if row is None else row.session.origin
        choices = self.settings.rules.find_chat_choices(place)
        if choices != NO_CHAT_CHOICES:
            store_chat_choices(tx, session_no, choices, self.settings.agent.list_tool_servers(), to_micros(now))
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
            facts=_build_turn_facts(inbound, recorded.seq, is_backlog=waits_for_backlog),
            is_steering=busy_policy is BusyPolicy.STEER and _can_steer(open_turns, person_id, address),
        )
        if row is not None and address is None and not row.session.shared and not request.is_steering:
            notices.announce_page(tx, row.no, inbound.source, self.store.config, to_micros(now))
        outcome, turn_id = self._enqueue_turn(tx, request, open_turns, busy_policy, to_micros(now))
        receipt = Receipt(
            outcome=outcome,
            session_id=recorded.session_id,
            session_key=recorded.session_key,
            turn_id=turn_id,
            seq=recorded.seq,
            turns_ahead=0 if outcome is Outcome.MERGED else open_turns.count,
            reply=self._explain_reset(tx, arrival, recorded, session_no),
        )
        return receipt, outcome is Outcome.ACCEPTED and not recorded.was_auto_reset

    def _enqueue_turn(
        self, tx: Transaction, request: turns.TurnRequest, open_turns: turns.OpenTurns, policy: BusyPolicy, now: int
    ) -> tuple[Outcome, TurnId]:
        album_id = turns.get_album_id(request.facts)
        window = round(self.settings.rules.merge_window_seconds * 1_000_000)
        is_merging = window > 0 or open_turns.is_last_of_album(album_id)
        if album_id is not None:
            window = max(window, ALBUM_WINDOW // timedelta(microseconds=1))
        last = open_turns.last_queued
        if is_merging and last is not None and _can_merge(last, request, now):
            due_at = min(now + window, last.created_at + MAX_MERGE_WINDOWS * window)
            merged_id = turns.add_to_queued(tx, last.no, replace(request, due_at=due_at))
            if merged_id is None:
                raise Conflict  # a worker just claimed it, or the lane was just moved
            outcome, turn_id = Outcome.MERGED, merged_id
        else:
            turn_id = turns.enqueue(tx, replace(request, due_at=now + window) if window else request, now)
            outcome = Outcome.QUEUED if open_turns.is_busy else Outcome.ACCEPTED
        if request.is_steering:
            return Outcome.STEERED, turn_id
        if policy is BusyPolicy.INTERRUPT and open_turns.running is not None:
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
        """Return the busy policy of the message itself, of its session, or of its platform, in this order.

        In a backlog each message would otherwise end the answer to the one before it.
        """
        if inbound.busy_policy is not None or not open_turns.is_busy or inbound.is_backlog:
            return inbound.busy_policy or BusyPolicy.QUEUE
        current = row or lanes.find_current_session(tx, lane_key)
        chosen = session_settings.load(tx, current.no).busy_policy if current else None
        return chosen or self.settings.rules.get_busy_policy(inbound.source)

    def _find_rejection(
        self, inbound: Inbound, open_turns: turns.OpenTurns, policy: BusyPolicy, *, waits_for_backlog: bool
    ) -> Receipt | None:
        """Return the receipt of a message that can't be accepted while the agent is busy; None if it can."""
        if not open_turns.is_busy:
            return None
        if open_turns.is_last_of_album(inbound.album_id):
            return None  # it belongs to what was accepted already
        if policy is BusyPolicy.REJECT:
            return Receipt(outcome=Outcome.REJECTED, reply=_BUSY, facts=_build_busy_facts("session_busy"))
        limit = self.settings.rules.max_queued
        if waits_for_backlog or open_turns.count_newest_live() < limit:
            return None
        reply = say(
            "queue.full",
            "The agent is busy and {number} messages are queued here already, so this one wasn't added. Send it again"
            " later, or use /stop.",
            number=open_turns.queued_count,
        )
        return Receipt(outcome=Outcome.REJECTED, reply=reply, facts=_build_busy_facts("queue_full", limit=limit))

    def _find_answer_address(self, tx: Transaction, inbound: Inbound, row: SessionRow | None) -> str | None:
        """Return the chat that the answer is sent to: the sender's or, on request, the one the session comes from."""
        if inbound.reply_to is ReplyTo.SESSION:
            address = inbound.answer_address
            return None if address is None else str(address)
        origin = find_delivery_address(row.session.origin) if row and lanes.belongs_to_its_lane(tx, row.no) else None
        if row is None or origin is None:
            raise ChatNotReachable(_NO_ORIGIN, session_id=inbound.session_id)
        if origin.platform not in self.list_connected_platforms():
            problem = say(
                "reply.not_connected",
                "{platform} isn't connected to this server, so the answer can't be sent there. Connect it, or choose to"
                " reply here.",
                platform=origin.platform.label,
            )
            raise ChatNotReachable(problem, platform=str(origin.platform))
        return str(origin)

    def _queue_memory_turn(self, tx: Transaction, lane_key: SessionKey, now: int) -> None:
        """Let the agent learn from the session that has just expired, unless the expiry watcher was faster."""
        left = lanes.find_session_before_move(tx, lane_key)
        if left is not None and left.session.is_expired:
            queue_memory_turn(tx, self.settings.rules, left.no, MemoryTurnKind.EXPIRY, now)

    def _explain_reset(
        self, tx: Transaction, arrival: lanes.Arrival, recorded: RecordedMessage, session_no: int
    ) -> str | None:
        """Return what to tell the person if the reset policy has started a new session; resets are never silent."""
        if not (recorded.was_auto_reset and recorded.previous_had_messages):
            return None
        left = lanes.find_session_before_move(tx, recorded.session_key)
        policy = arrival.config.get_reset_policy(arrival.source)
        if left is not None:
            _, policy = lanes.find_reset_rule(tx, arrival, left.no)
        if not policy.notify:
            return None
        return explain_automatic_start(tx, self.store.config, session_no, sessions.get_by_no(tx, session_no).session)


def _waits_for_backlog(inbound: Inbound, open_turns: turns.OpenTurns, now: datetime) -> bool:
    """Return whether a restart or an outage is why a message has to wait: what it has left there comes first."""
    since, oldest = inbound.receiving_since, open_turns.oldest
    if since is None or oldest is None or now - since > RECOVERY_TIME:
        return False
    return oldest.is_backlog or oldest.created_at < to_micros(since)


def _build_busy_facts(error: str, **facts: object) -> dict[str, Any]:
    """Return the facts of a refusal that ends when the agent has answered, with the time after which to try again."""
    return {"error": error, **facts, "retry_after": BUSY_RETRY_SECONDS}


def _build_turn_facts(inbound: Inbound, seq: int, *, is_backlog: bool) -> dict[str, Any] | None:
    facts: dict[str, Any] = {BACKLOG_KEY: True} if is_backlog else {}
    if inbound.reply_to is ReplyTo.ORIGIN:
        facts[QUOTED_SEQS_KEY] = [seq]
    if inbound.album_id is not None:
        facts[ALBUM_ID_KEY] = inbound.album_id
    return facts or None


def _can_merge(last: turns.OpenTurn, request: turns.TurnRequest, now: int) -> bool:
    """Return whether the last queued turn still waits for more, and may answer this message too; steering may not."""
    return (
        last.kind is TurnKind.ANSWER
        and not (request.is_steering or last.is_steering)
        and (last.person_id, last.address) == (request.person_id, request.address)
        and last.due_at > now
        and last.merged_count < MAX_MERGED_MESSAGES
    )


def _can_steer(open_turns: turns.OpenTurns, person_id: PersonId | None, address: str | None) -> bool:
    """Return whether the running turn answers this person where they read its answer; only then may they steer it."""
    running = open_turns.running
    return running is not None and running.person_id == person_id and address in {None, running.address}

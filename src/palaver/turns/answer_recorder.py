"""Records an answer while the agent gives it, and stores it with the end of its turn.

While it grows: its draft, how long its tools took, and what it used. At the end, in one transaction: its messages, its
usage, the state of the turn and the delivery to its chat.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

from palaver.agent.base import (
    AgentEvent,
    Notice,
    ProviderReasoning,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
    UsageReport,
)
from palaver.commands.reply_text import escape_markdown
from palaver.core.ids import PersonId
from palaver.core.source import Platform
from palaver.core.texts import Text, join_texts, say
from palaver.delivery import table as deliveries
from palaver.delivery.notices import find_reader, send_notice_to_address, tell_owners
from palaver.jobs.run_end import EndedTurn, finish_job_run
from palaver.money import calls_table as call_records
from palaver.money.calls_table import add_usage_by_model
from palaver.money.meter import RunCalls
from palaver.people import table as people
from palaver.people.model import Role
from palaver.push import table as push
from palaver.sessions import (
    log_table as events,
    message_table as message_log,
    turn_leases,
    turns_table as turns,
    usage_table as usage,
)
from palaver.sessions.context import clean_chat_text
from palaver.sessions.draft import START_POSITION, Draft, Piece, PieceKind, build_turn_messages
from palaver.sessions.events import EventKind
from palaver.sessions.message import MAX_BYTES_PER_CHAR, MAX_MESSAGE_BYTES, Message
from palaver.sessions.speech import find_attachment_ids
from palaver.sessions.turn import JOB_RUN_KEY, FailureCode, InterruptReason, TurnKind, TurnState
from palaver.sessions.turns_table import get_quoted_seqs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.clock import Clock
    from palaver.core.engines.base import Transaction
    from palaver.core.texts import Reader
    from palaver.live.feed_events import LiveRun
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.turn_leases import TurnLease
    from palaver.sessions.usage import TurnUsage
    from palaver.turns.answer_end import AnswerEnded


MAX_QUOTE_CHARS = 300
MAX_STORED_CHARS = MAX_MESSAGE_BYTES // MAX_BYTES_PER_CHAR // 2  # of an answer, so that it always fits into the log
MAX_NAME_CHARS = 60
PUSH_DELAY_MICROS = 3_000_000  # time for a page that shows the answer to mark it as read
_UNNOTIFIED_PLATFORMS = frozenset({Platform.LOCAL, Platform.API, Platform.CRON})


def build_messages(fields: list[dict[str, Any]], state: TurnState) -> list[Message]:
    """Build the messages of a turn; if the turn did not complete, mark the last answer as interrupted."""
    if state is not TurnState.DONE and fields and fields[-1]["role"] == "assistant":
        fields[-1]["interrupted"] = True
    return [Message.from_dict(message) for message in fields]


def build_text_only_messages(draft: Draft, input_seq: int) -> list[Message]:
    """Build one interrupted message from the text of a draft, without tools and reasoning; none if it has no text."""
    text = draft.text[:MAX_STORED_CHARS]
    fields = {"role": "assistant", "content": text, "answers": input_seq}
    return build_messages([fields], TurnState.FAILED) if draft.text.strip() else []


def finish_turn(
    tx: Transaction,
    config: GatewayConfig,
    lease: TurnLease,
    messages: Sequence[Message],
    end: AnswerEnded,
    now: int,
    *,
    recorder: AnswerRecorder | None = None,
    notices: Sequence[str] = (),
    closing_notices: Sequence[str] = (),
) -> None:
    """Store the messages, the usage, the final state and the delivery of a turn, and end the run of a job that it is.

    All of it or nothing. `recorder` is that of the run, if its own process ends the turn: what it knows is not looked
    up. It has the usage that the meter has not recorded. The facts of `end` are details of a failure for
    people who want to know more; they are not sent to a chat. `notices` are sent to the chat before the answer,
    `closing_notices` after it.
    """
    state, error = end.state, str(end.error) or None
    facts = {"reason": error, **end.facts}
    is_stopped = facts["reason"] == InterruptReason.STOPPED
    stopper_id = turn_leases.find_stopper(tx, lease) if is_stopped else None
    turn_leases.end_turn(tx, lease, state, now, error)
    if recorder is None or recorder.may_have_saved:
        turn_leases.delete_draft(tx, lease.turn_no)
    unrecorded = [replace(each, turn_id=lease.turn_id) for each in _take_usage(tx, lease, recorder)]
    if messages:
        first = unrecorded.pop(0) if unrecorded else None  # recorded by the same statement as the messages
        message_log.append_messages(tx, lease.session_id, messages, now, usage=first)
    for each in unrecorded:
        usage.record_usage(tx, lease.session_id, each, now)
    if state is not TurnState.DONE:
        kind = EventKind.TURN_FAILED if state is TurnState.FAILED else EventKind.TURN_INTERRUPTED
        person_id = stopper_id or lease.person_id
        input_seq = messages[-1].extra.get("answers", lease.input_seq) if messages else lease.input_seq
        turn_facts = {"turn": lease.turn_id, "input_seq": input_seq}
        events.append_event(tx, lease.session_no, kind, now, person_id, **turn_facts, **facts)
    has_texts = bool(end.error or notices or closing_notices)  # of ours: an answer alone needs no reader
    reader = find_reader(tx, lease.person_id, lease.address) if lease.address and has_texts else None
    told = _tell_owners(tx, config, lease, end, reader, now)
    if JOB_RUN_KEY in lease.facts:
        ended_turn = EndedTurn(
            run_id=str(lease.facts[JOB_RUN_KEY]),
            turn_no=lease.turn_no,
            state=state,
            error=end.error or None,
            facts=facts,
            messages=messages,
        )
        finish_job_run(tx, config, ended_turn, now)
    if should_notify_browsers(lease, state):
        push.enqueue(tx, lease.session_no, lease.person_id, now + PUSH_DELAY_MICROS, now)  # type: ignore[arg-type]
    if lease.address is not None:
        stopper_name = _load_name(tx, stopper_id) if stopper_id not in {None, lease.person_id} else None
        ending = format_ending(lease.kind, state, end.error, is_stopped=is_stopped, stopper_name=stopper_name) + told
        for notice in notices:
            _send_notice(tx, lease, lease.address, notice, now, reader)
        may_be_steered = recorder is not None and recorder.may_be_steered
        _enqueue_answer(tx, lease, lease.address, messages, ending, now, reader, may_be_steered=may_be_steered)
        for notice in closing_notices:
            _send_notice(tx, lease, lease.address, notice, now, reader)


def _tell_owners(
    tx: Transaction, config: GatewayConfig, lease: TurnLease, end: AnswerEnded, reader: Reader | None, now: int
) -> str:
    """Tell owners of a failure that only they can do something about, unless one of them reads it anyway; say so."""
    if not isinstance(end.error, Text) or end.error.others is None:
        return ""
    if end.facts.get("code") == FailureCode.BUDGET_EXCEEDED:  # it does what it is there for
        return ""
    is_owner = lease.person_role is Role.OWNER
    if is_owner and (lease.address is None or (reader is not None and reader.is_owner)):
        return ""
    cause = f"{end.facts.get('code')} {end.facts.get('provider', '')}"
    return say("answer.owner_told", " The owner was told.") if tell_owners(tx, config, end.error, cause, now) else ""


def _take_usage(tx: Transaction, lease: TurnLease, recorder: AnswerRecorder | None) -> Sequence[TurnUsage]:
    """Return what the calls of a run have used and is not recorded yet, and forget the calls."""
    if recorder is not None and not recorder.calls.may_be_held:
        return recorder.unrecorded_usage
    reported = [] if recorder is None else recorder.unrecorded_usage
    return call_records.add_usage_by_model([*call_records.take_run_usage(tx, lease), *reported])


def should_notify_browsers(lease: TurnLease, state: TurnState) -> bool:
    """Whether a person waits for this answer on the page: it is sent to no chat, and no terminal or program asked."""
    return (
        lease.person_id is not None
        and lease.address is None
        and lease.kind is TurnKind.ANSWER
        and state is not TurnState.INTERRUPTED
        and JOB_RUN_KEY not in lease.facts
        and lease.platform not in _UNNOTIFIED_PLATFORMS
    )


def _enqueue_answer(
    tx: Transaction,
    lease: TurnLease,
    address: str,
    messages: Sequence[Message],
    ending: str,
    now: int,
    reader: Reader | None,
    *,
    may_be_steered: bool,
) -> None:
    """Queue the answer and why it did not complete, if so; after /compress there is only the latter."""
    if lease.kind is TurnKind.COMPACT:
        if ending:
            _send_notice(tx, lease, address, ending, now, reader)
        return
    parts = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    parts += [ending] if ending else []
    attachment_ids = [
        each for message in messages if message.role == "assistant" for each in find_attachment_ids(message.content)
    ]
    quoted = turns.load_quoted_seqs(tx, lease.turn_no) if may_be_steered else get_quoted_seqs(lease.facts)
    if parts or attachment_ids:
        deliveries.enqueue(
            tx,
            address,
            join_texts("\n\n", [*_format_quotes(tx, lease.session_no, quoted), *parts]),
            now,
            session_no=lease.session_no,
            turn_no=lease.turn_no,
            reply_to=lease.reply_to,
            attachment_ids=attachment_ids,
            reader=reader,
        )


def _send_notice(tx: Transaction, lease: TurnLease, address: str, text: str, now: int, reader: Reader | None) -> None:
    send_notice_to_address(tx, address, text, now, session_no=lease.session_no, reply_to=lease.reply_to, reader=reader)


def _load_name(tx: Transaction, person_id: PersonId | None) -> str:
    name = people.load_names(tx, [person_id]).get(person_id, "") if person_id else ""
    return escape_markdown(clean_chat_text(name, MAX_NAME_CHARS), MAX_NAME_CHARS) or say(
        "answer.someone_else", "someone else"
    )


def record_orphan_usage(tx: Transaction, lease: TurnLease, usages: Sequence[TurnUsage], now: int) -> None:
    """Record the usage of a run that lost its turn to another run, or whose conversation was deleted."""
    call_records.record_run_calls(tx, lease, now)
    for each in usages:
        usage.record_orphan_usage(tx, lease, each, now)


def _format_quotes(tx: Transaction, session_no: int, seqs: Sequence[int]) -> list[str]:
    """Format the questions that an answer has to quote, because the people at its address have not seen them."""
    questions = events.list_events_at(tx, session_no, seqs)
    names = people.load_names(tx, (event.person_id for event in questions if event.person_id is not None))
    return [
        format_quote(names.get(event.person_id or PersonId(""), ""), event.message.text)
        for event in questions
        if event.message
    ]


def format_quote(name: str, text: str) -> str:
    """Quote a question from the web for people elsewhere: always on one line, with Markdown escaped."""
    author = escape_markdown(clean_chat_text(name, MAX_NAME_CHARS), MAX_NAME_CHARS)
    return say(
        "answer.quote",
        "> {author}, from the web: {message}",
        author=author or say("answer.someone", "Someone"),
        message=escape_markdown(text, MAX_QUOTE_CHARS) or say("answer.attachment", "(attachment)"),
    )


def format_ending(
    kind: TurnKind, state: TurnState, error: str | None, *, is_stopped: bool = False, stopper_name: str | None = None
) -> str:
    """Format why a turn did not complete, for people in a chat; empty if it did."""
    if state is TurnState.DONE:
        return ""
    if state is TurnState.FAILED:
        reason = error or ""
        if kind is TurnKind.COMPACT:
            return say("answer.no_summary", "I couldn't summarize the conversation. {reason}", reason=reason)
        return say("answer.failed", "I couldn't answer. {reason}", reason=reason)
    if is_stopped and stopper_name:
        return say("answer.stopped_by", "(Stopped by {name})", name=stopper_name)
    if is_stopped:
        return say("answer.stopped", "(Stopped)")
    return say("answer.interrupted", "(Interrupted. {reason})", reason=error or "")


class AnswerRecorder:
    """Turns the events of the agent into the draft of one run, and the draft into messages."""

    def __init__(self, live: LiveRun, clock: Clock, input_seq: int) -> None:
        self.calls = RunCalls()
        self.may_have_saved = False  # more of the draft was stored, or just is
        self.may_be_steered = False  # the turn answers more messages than when it was claimed, or just is changed so
        self._live = live
        self._clock = clock
        self._parts = [(0, input_seq)]  # the first piece of the draft that answers a message, and its number
        self._reports: list[UsageReport] = []
        # By the number of pieces before. No part of the draft: a run that ends without its process is not continued.
        self._reasoning_at: dict[int, Mapping[str, Any]] = {}
        self._tool_started: dict[str, float] = {}  # by id of each call that has no result yet
        self._started = time.monotonic()

    @property
    def draft(self) -> Draft:
        return self._live.draft

    @property
    def usage(self) -> list[TurnUsage]:
        """The usage of the run so far, as far as models have reported it: one entry for each model."""
        return add_usage_by_model([report.usage for report in self._reports])

    @property
    def unrecorded_usage(self) -> list[TurnUsage]:
        """The part of it that the meter does not record."""
        return add_usage_by_model([report.usage for report in self._reports if not report.is_recorded])

    @property
    def input_seq(self) -> int:
        """The last message that the run answers: the newest one that steered it, else the one it started with."""
        return self._parts[-1][1]

    def record(self, event: AgentEvent) -> None:
        match event:
            case TextDelta(text):
                self._live.draft.add_text(PieceKind.TEXT, text)
            case ReasoningDelta(text):
                self.draft.add_text(PieceKind.REASONING, text)
            case ProviderReasoning(data):
                self._reasoning_at[len(self.draft.pieces)] = data
            case ToolCall(call_id, name, arguments):
                self._tool_started[call_id] = time.monotonic()
                now = self._clock.now().astimezone(UTC).isoformat()
                self.draft.add(Piece(PieceKind.CALL, call_id=call_id, name=name, arguments=arguments, started_at=now))
            case ToolResult(call_id, name, content, failed):
                started = self._tool_started.pop(call_id, None)  # unknown when the call was not reported
                duration = None if started is None else _measure_milliseconds(started)
                self.draft.add(
                    Piece(PieceKind.RESULT, content, call_id=call_id, name=name, failed=failed, duration_ms=duration)
                )
            case UsageReport():
                self.add_usage(event)
            case Notice():
                self._live.notices.append(event)

    def add_usage(self, report: UsageReport) -> None:
        self._reports.append(report)

    def start_part(self, input_seq: int) -> None:
        """Let everything that follows answer another message: the person has steered the run."""
        self._parts.append((self.draft.position.pieces, input_seq))

    def build_answer(self, state: TurnState) -> list[Message]:
        """Build the messages of the answer, each with the number of the message that it answers.

        Raises InvalidMessage when the agent's driver produced something that the log cannot hold.
        """
        pieces = self.draft.get_pieces_since(START_POSITION)
        ends = [first_piece for first_piece, _ in self._parts[1:]] + [len(pieces)]
        fields = [
            message | {"answers": input_seq}
            for (first_piece, input_seq), end in zip(self._parts, ends, strict=True)
            for message in build_turn_messages(
                pieces[first_piece:end], {at - first_piece: data for at, data in self._reasoning_at.items()}
            )
        ]
        if fields and fields[-1]["role"] == "assistant":
            fields[-1]["duration_ms"] = _measure_milliseconds(self._started)
        return build_messages(fields, state)


def _measure_milliseconds(started: float) -> int:
    return round((time.monotonic() - started) * 1000)

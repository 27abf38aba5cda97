"""Records an answer while the agent gives it: its draft, how long its tools took, and what it used."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from palaver.agent.base import Notice, ReasoningDelta, TextDelta, ToolCall, ToolResult, UsageReport
from palaver.money.call_records import add_usage_by_model
from palaver.sessions.draft import START_POSITION, Piece, PieceKind, build_turn_messages
from palaver.turns.finish import build_messages

if TYPE_CHECKING:
    from palaver.agent.base import AgentEvent
    from palaver.core.clock import Clock
    from palaver.live.live_run import LiveRun
    from palaver.sessions.draft import Draft
    from palaver.sessions.message import Message
    from palaver.sessions.turn import TurnState
    from palaver.sessions.usage import TurnUsage


@dataclass(frozen=True, slots=True)
class _AnswerPart:
    """The pieces of the draft from `first_piece` on answer message `input_seq`."""

    first_piece: int
    input_seq: int


class AnswerRecorder:
    """Turns the events of the agent into the draft of one run, and the draft into messages."""

    def __init__(self, live: LiveRun, clock: Clock, input_seq: int) -> None:
        self._live = live
        self._clock = clock
        self._parts = [_AnswerPart(0, input_seq)]
        self._usage: list[TurnUsage] = []
        self._unrecorded_usage: list[TurnUsage] = []
        self._tool_started: dict[str, float] = {}  # by id of each call that has no result yet
        self._started = time.monotonic()

    @property
    def draft(self) -> Draft:
        return self._live.draft

    @property
    def usage(self) -> list[TurnUsage]:
        """What the run has used so far, as far as models have reported it: one entry for each model."""
        return add_usage_by_model(self._usage)

    @property
    def unrecorded_usage(self) -> list[TurnUsage]:
        """The part of it that the meter does not record."""
        return add_usage_by_model(self._unrecorded_usage)

    @property
    def input_seq(self) -> int:
        """The last message that the run answers: the newest one that steered it, else the one it started with."""
        return self._parts[-1].input_seq

    def record(self, event: AgentEvent) -> None:
        match event:
            case TextDelta(text):
                self.draft.add(Piece(PieceKind.TEXT, text))
            case ReasoningDelta(text):
                self.draft.add(Piece(PieceKind.REASONING, text))
            case ToolCall(call_id, name, arguments):
                self._record_call(call_id, name, arguments)
            case ToolResult(call_id, name, content, failed):
                self._record_result(call_id, name, content, failed=failed)
            case UsageReport():
                self.add_usage(event)
            case Notice():
                self._live.notices.append(event)

    def _record_call(self, call_id: str, name: str, arguments: str) -> None:
        self._tool_started[call_id] = time.monotonic()
        started_at = self._clock.now().astimezone(UTC).isoformat()
        self.draft.add(Piece(PieceKind.CALL, call_id=call_id, name=name, arguments=arguments, started_at=started_at))

    def _record_result(self, call_id: str, name: str, content: str, *, failed: bool) -> None:
        started = self._tool_started.pop(call_id, None)
        duration = None if started is None else _measure_milliseconds(started)  # unknown when the call was not reported
        self.draft.add(
            Piece(PieceKind.RESULT, content, call_id=call_id, name=name, failed=failed, duration_ms=duration)
        )

    def add_usage(self, report: UsageReport) -> None:
        self._usage.append(report.usage)
        if not report.is_recorded:
            self._unrecorded_usage.append(report.usage)

    def start_part(self, input_seq: int) -> None:
        """Let everything that follows answer another message: the person has steered the run."""
        self._parts.append(_AnswerPart(self.draft.position.pieces, input_seq))

    def build_answer(self, state: TurnState) -> list[Message]:
        """Build the messages of the answer, each with the number of the message that it answers.

        Raises InvalidMessage when the agent's driver produced something that the log cannot hold.
        """
        pieces = self.draft.get_pieces_since(START_POSITION)
        ends = [part.first_piece for part in self._parts[1:]] + [len(pieces)]
        fields: list[dict[str, Any]] = []
        for part, end in zip(self._parts, ends, strict=True):
            fields += [
                message | {"answers": part.input_seq} for message in build_turn_messages(pieces[part.first_piece : end])
            ]
        if fields and fields[-1]["role"] == "assistant":
            fields[-1]["duration_ms"] = _measure_milliseconds(self._started)
        return build_messages(fields, state)


def _measure_milliseconds(started: float) -> int:
    return round((time.monotonic() - started) * 1000)

"""A turn: one run of the agent for one accepted message, and its states.

queued ──claim──▶ running ──▶ done
   ▲                 │ ├────▶ interrupted   stopped, or its worker died after a tool had side effects
   └──worker died────┘ └────▶ failed        the agent could not answer, or too many workers died on it

Codes of what people are told about a turn: why it failed, and notices while it runs.

Every such text is stored or sent in English, together with its code and its facts. A page that knows the code writes
the text in the reader's language; everyone else shows the text as it is.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from palaver.core.dataclass import dataclass
from palaver.core.texts import Text, say, say_count

if TYPE_CHECKING:
    from palaver.core.ids import PersonId, SessionId, TurnId
    from palaver.core.source import Platform


REASON_FOR_OTHERS_KEY = "reason_for_others"  # in the facts of a failure: what people read who are no owners
JOB_RUN_KEY = "job_run"  # in the facts of a turn: the id of the run that it belongs to

# Keys in the stored facts of a turn.
QUOTED_SEQS_KEY = "quoted_seqs"
MERGED_COUNT_KEY = "merged_count"  # how many messages it answers together
ALBUM_ID_KEY = "album_id"  # of the album whose messages it answers
BACKLOG_KEY = "is_backlog"  # its message came late, or waits behind one that did: it does not count against the limit

MAX_SHARED_CRASHES = 2  # of its process while the agent answered it; then it runs alone: no other turn is to blame
MAX_TURN_CRASHES = MAX_SHARED_CRASHES + 5  # a turn whose process died alone with it so often fails
TRIAL_UPTIME = timedelta(seconds=1)  # of a process that runs such a turn alone for the second time; then it doubles
MAX_QUICK_ATTEMPTS = 2  # that died before the agent was called; after them, the next attempt waits
MAX_REQUEUE_DELAY = timedelta(seconds=30)


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def has_ended(self) -> bool:
        return self not in {TurnState.QUEUED, TurnState.RUNNING}


class TurnKind(StrEnum):
    ANSWER = "answer"
    COMPACT = "compact"  # summarize the conversation so far


class BusyPolicy(StrEnum):
    """The treatment of a message that arrives while the agent is answering another one."""

    QUEUE = "queue"  # it waits for its own turn
    STEER = "steer"  # the running agent gets it after its next tool call
    INTERRUPT = "interrupt"  # the running answer is stopped and kept, and the new message is answered
    REJECT = "reject"


class StopRequest(StrEnum):
    STOP = "stop"  # a person stopped it
    INTERRUPT = "interrupt"  # a new message replaces it


class InterruptReason(StrEnum):
    """The reason for which a turn was interrupted. The page and the terminal say it in their own words."""

    STOPPED = "stopped"  # a person stopped it
    NEW_MESSAGE = "interrupted_by_message"
    TIMED_OUT = "timed_out"
    SERVER_STOPPED = "server_stopped"  # it was shut down while the turn ran, after a tool had side effects
    SERVER_CRASHED = "server_restarted"  # it died while a tool with side effects ran
    ACCESS_ENDED = "access_ended"  # its person lost access before it started

    def explain(self, minutes: int | None = None) -> Text:
        """Return the reason as a sentence; `minutes` is the time limit of a turn."""
        if self is InterruptReason.TIMED_OUT and minutes:
            return say_count(
                "interrupted.timed_out",
                minutes,
                "The answer took longer than {count} minute, so I stopped.",
                "The answer took longer than {count} minutes, so I stopped.",
            )
        return _INTERRUPT_TEXTS[self]


_INTERRUPT_TEXTS = {
    InterruptReason.STOPPED: say("interrupted.stopped", "stopped"),
    InterruptReason.NEW_MESSAGE: say("interrupted.new_message", "A new message arrived."),
    InterruptReason.TIMED_OUT: say(
        "interrupted.took_too_long", "The answer took longer than several minutes, so I stopped."
    ),
    InterruptReason.SERVER_STOPPED: say(
        "interrupted.server_stopped",
        "Palaver shut down during this answer. What its tools have already done stays done.",
    ),
    InterruptReason.SERVER_CRASHED: say(
        "interrupted.server_crashed",
        "Palaver stopped while a tool was running, so we don't know if the tool finished. Tell me how you want to"
        " continue.",
    ),
    InterruptReason.ACCESS_ENDED: say(
        "interrupted.access_ended", "The person who sent this message lost access before it was answered."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    id: TurnId
    session_id: SessionId
    kind: TurnKind
    state: TurnState
    input_seq: int  # the message it answers; the last one, if several were merged
    attempt: int
    person_id: PersonId | None
    created_at: datetime
    is_steering: bool = False  # its message is given to the running turn, if that has another step
    ended_at: datetime | None = None
    error: str | None = None  # why it failed or was interrupted, for the person to read
    delivers_to: Platform | None = None  # where its answer is sent; None: people read it in the conversation
    quoted_seqs: tuple[int, ...] = ()  # messages that are quoted before the answer, because that chat has not seen them


class CrashedTurnAction(StrEnum):
    RETRY = "retry"
    INTERRUPT = "interrupt"
    FAIL = "fail"


def decide_crashed_turn(
    *, had_side_effects: bool, crash_count: int, stop_request: StopRequest | None
) -> CrashedTurnAction:
    """Decide what to do with a turn whose worker died; `crash_count` includes this time, if the agent was called.

    A turn whose tools had side effects is never repeated automatically; one whose workers keep dying fails.
    """
    if had_side_effects or stop_request is not None:
        return CrashedTurnAction.INTERRUPT
    return CrashedTurnAction.RETRY if crash_count < MAX_TURN_CRASHES else CrashedTurnAction.FAIL


def compute_requeue_delay(attempt: int) -> timedelta:
    """Return how long a turn waits whose worker died before it called the agent: never parked, but not in a loop."""
    if attempt <= MAX_QUICK_ATTEMPTS:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(attempt - MAX_QUICK_ATTEMPTS - 1, 10)), MAX_REQUEUE_DELAY)


def compute_trial_uptime(crash_count: int) -> timedelta:
    """Return how long a process must have lived before it runs a turn that may have killed others.

    A process that dies by itself, or is killed again and again, then dies without the turn, which is not blamed for it.
    """
    alone_count = crash_count - MAX_SHARED_CRASHES
    return TRIAL_UPTIME * 2 ** (alone_count - 1) if alone_count > 0 else timedelta(0)


class FailureCode(StrEnum):
    """The reason for which a model did not answer; the fact `code` of an agent error and of the event `turn_failed`."""

    TOO_LONG = "too_long_for_model"
    RATE_LIMITED = "rate_limited"  # seconds: when to try again, if the provider says so
    NO_CREDIT = "no_credit"
    KEY_MISSING = "key_missing"
    KEY_REJECTED = "key_rejected"
    UNKNOWN_MODEL = "unknown_model"
    REQUEST_REJECTED = "request_rejected_by_provider"
    CONTENT_FILTERED = "content_filtered"
    EMPTY_ANSWER = "empty_answer"
    TIMED_OUT = "provider_timed_out"
    CANNOT_CONNECT = "cannot_connect"
    CONNECTION_DROPPED = "connection_dropped"
    UNAVAILABLE = "provider_unavailable"  # status: its HTTP status
    INVALID_RESPONSE = "invalid_response"
    DROPPED_MID_ANSWER = "dropped_mid_answer"
    STALLED_MID_ANSWER = "stalled_mid_answer"
    BUDGET_EXCEEDED = "budget_exceeded"  # scope, subject, period, unit, used, limit, resets_at
    PRICE_UNKNOWN = "price_unknown"  # model; a limit in dollars applies
    INTERNAL_ERROR = "internal_turn_error"  # error: its class
    NO_MODELS = "no_models"  # the provider lists none
    ADDRESS_MISSING = "address_missing"  # provider
    ADDRESS_INVALID = "address_invalid"  # provider: its URL can't be used
    PACKAGES_MISSING = "packages_missing"  # command: what installs them


class NoticeCode(StrEnum):
    SUMMARIZING = "summarizing"
    NEARLY_FULL = "nearly_full"
    SUMMARIZED = "summarized"
    OMITTED = "omitted"
    SHORTENED = "shortened"
    OLDEST_NOT_SEEN = "oldest_not_seen"  # count: of the messages
    TOOL_LIMIT = "tool_limit"  # count: how often tools were used
    CUT_OFF = "cut_off"
    FALLBACK_USED = "fallback_used"  # model, instead_of; and the code and the facts of the failure
    MCP_UNAVAILABLE = "mcp_unavailable"  # server, problem
    PROFILE_MISSING = "profile_missing"  # name
    PERSONALITY_MISSING = "personality_missing"  # name
    BUDGET_NEARLY_USED = "budget_nearly_used"  # scope, subject, period, unit, used, limit, percent, resets_at
    ANSWER_LIMITED = "answer_limited"  # the budget allows no longer answer
    MODEL_NOT_ALLOWED = "model_not_allowed"  # model

"""Codes of what people are told about a turn: why it failed, and notices while it runs.

Every such text is stored or sent in English, together with its code and its facts. A page that knows the code writes
the text in the reader's language; everyone else shows the text as it is.
"""

from __future__ import annotations

from enum import StrEnum


class FailureCode(StrEnum):
    """Why a model did not answer; the fact `code` of an agent error and of the event `turn_failed`."""

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
    """What a run reports; the code of a notice."""

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

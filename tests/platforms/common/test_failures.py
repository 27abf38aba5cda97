"""What a refused or failed request means, whichever platform it was made to."""

from __future__ import annotations

from typing import Any

import pytest

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.platforms.common.failures import (
    Refusal,
    RequestError,
    RequestFailed,
    make_delivery_error,
    make_platform_error,
)


def refuse(**meaning: Any) -> Refusal:
    refusal = Refusal("no (code 7)")
    refusal.reason = "no"
    for name, value in meaning.items():
        setattr(refusal, name, value)
    return refusal


@pytest.mark.parametrize(
    ("error", "delivery", "platform"),
    [
        (refuse(), SendRejected("Chat has refused the message: no"), ConnectionLost),
        (refuse(message_reason="It is too long."), SendRejected("It is too long."), ConnectionLost),
        (refuse(chat_reason="The chat is gone."), TargetUnreachable("The chat is gone."), ConnectionLost),
        (refuse(wait_seconds=7.0), SendRetryable("Chat asks to wait 7 seconds."), ConnectionLost),
        (refuse(account_reason="Fix the token."), SendRetryable("Fix the token."), AccountRefused),
        (refuse(may_have_arrived=True), SendUncertain("Chat did not confirm the message: no (code 7)"), ConnectionLost),
        (
            RequestFailed("it broke", may_have_arrived=False),
            SendRetryable("Chat can't be reached right now: it broke"),
            ConnectionLost,
        ),
        (
            RequestFailed("it broke", may_have_arrived=True),
            SendUncertain("Chat did not confirm the message: it broke"),
            ConnectionLost,
        ),
    ],
)
def test_each_failure_has_its_meaning(error: RequestError, delivery: Exception, platform: type[Exception]) -> None:
    made = make_delivery_error("Chat", error)
    assert (type(made), str(made)) == (type(delivery), str(delivery))
    assert type(make_platform_error("Chat", error)) is platform


def test_a_request_that_can_be_repeated_is_never_uncertain() -> None:
    for error in (refuse(may_have_arrived=True), RequestFailed("it broke", may_have_arrived=True)):
        assert type(make_delivery_error("Chat", error, is_repeatable=True)) is SendRetryable


def test_a_wait_says_how_long_and_for_whom() -> None:
    for is_for_account in (False, True):
        made = make_delivery_error("Chat", refuse(wait_seconds=7.0, is_for_account=is_for_account))
        assert isinstance(made, SendRetryable)
        assert (made.retry_after, made.whole_account) == (7.0, is_for_account)

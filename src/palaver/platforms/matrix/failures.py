"""What a failed request means to the gateway."""

from __future__ import annotations

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    DeliveryError,
    PlatformError,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)
from palaver.platforms.matrix.client import RequestFailed, RequestRefused

TOKEN_RETRY_SECONDS = 60.0  # until the supervisor has found out that the account is refused, or signed in again


def to_delivery_error(error: RequestRefused | RequestFailed) -> DeliveryError:
    """Return what the failure of a send means for the message."""
    if isinstance(error, RequestFailed):
        broken = SendUncertain(f"The connection to the homeserver broke: {error}")
        return broken if error.may_have_arrived else SendRetryable(f"The homeserver can't be reached: {error}")
    if error.is_rate_limit:
        return SendRetryable(
            "The homeserver asks us to send more slowly.", retry_after=error.retry_after, whole_account=True
        )
    if error.is_bad_token:
        return SendRetryable(
            "The homeserver no longer accepts the access token.", retry_after=TOKEN_RETRY_SECONDS, whole_account=True
        )
    if error.status >= 500:
        return SendUncertain(f"The homeserver has a problem: {error}")
    if error.code == "M_NOT_FOUND":
        return TargetUnreachable(f"The homeserver does not know this room or message: {error}")
    return SendRejected(f"The homeserver rejected the message: {error}")


def to_preparation_error(error: RequestRefused | RequestFailed) -> DeliveryError:
    """Return what a failure means that happened before the message itself was sent."""
    found = to_delivery_error(error)
    return SendRetryable(str(found)) if isinstance(found, SendUncertain) else found


def to_platform_error(error: RequestRefused | RequestFailed) -> PlatformError:
    """Return what the failure of a request means for the account."""
    if isinstance(error, RequestFailed):
        return ConnectionLost(f"The homeserver can't be reached: {error}")
    if error.is_bad_token:
        return AccountRefused(
            "The homeserver does not accept the access token. Sign in with the account again, and set the new token "
            f"as access_token or MATRIX_ACCESS_TOKEN. It said: {error.explanation}"
        )
    return ConnectionLost(f"The homeserver has a problem: {error}")

"""What the errors of signal-cli mean, in words with the fix. Pure.

signal-cli answers a request with an error code and, for messages, with a result for each recipient.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import (
    AccountRefused,
    ConnectionLost,
    SendRejected,
    SendRetryable,
    SendUncertain,
    TargetUnreachable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.core.errors import DeliveryError, PlatformError

USER_ERROR: Final = -1
UNTRUSTED_KEY_ERROR: Final = -4
RATE_LIMIT_ERROR: Final = -5
INVALID_REQUEST_CODES: Final = frozenset({-32600, -32601, -32602, -32700})

RATE_LIMIT_SECONDS: Final = 300.0  # if Signal does not say how long
MAX_RATE_LIMIT_SECONDS: Final = 86_400.0
CAPTCHA_RETRY_SECONDS: Final = 3600.0  # Signal says a day, but not when the captcha is solved

INSTALL_STEP: Final = (
    "Download the file that ends in `Linux-native.tar.gz` from https://github.com/AsamK/signal-cli/releases, unpack it "
    "and set `program` to the path of the file `signal-cli`. It needs no Java. On macOS: `brew install signal-cli`."
)
LINK_AGAIN: Final = (
    "Signal no longer accepts this device: it was removed from the linked devices on the phone, or was not connected "
    "for 30 days. To link it again, choose Connect now on the page, or run `palaver platforms link signal`, and scan "
    "the new code with the phone."
)
REGISTER_AGAIN: Final = (
    "Signal no longer accepts this number: it was registered on another device, or was deleted. Register it again with "
    "`signal-cli register` and `signal-cli verify`, and the same `--config` as the first time."
)
_UNAUTHORIZED: Final = re.compile(
    r"^User .* is not registered|AuthorizationFailed|Authorization failed|\[40[13]\]|StatusCode: 40[13]|Deregistered",
    re.IGNORECASE | re.MULTILINE,
)
_NO_JAVA: Final = re.compile(r"JAVA_HOME|no 'java' command|java: not found", re.IGNORECASE)
_OLD_JAVA: Final = re.compile(r"UnsupportedClassVersionError|class file version")
_OLD_VERSION: Final = re.compile(r"DeprecatedVersion|\[499\]|StatusCode: 499")
_UNKNOWN_CHAT: Final = re.compile(
    r"group not found|not a (?:group member|member in group)|is not registered|Invalid group id", re.IGNORECASE
)
_UNRESOLVED: Final = re.compile(r"UnknownHost|UnresolvedAddress|NoRouteToHost|ConnectException|Name or service")
_PRIVATE: Final = re.compile(r"\+[0-9]{5,}|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[A-Za-z0-9+/]{40,}=*")


class RpcError(Exception):
    """signal-cli has answered a request with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.code = int(error.get("code", 0))
        self.message = str(error.get("message") or "")
        response = (error.get("data") or {}).get("response") or {}
        self.results: Sequence[Mapping[str, Any]] = response.get("results") or ()
        super().__init__(f"signal-cli answered with error {self.code}")  # its text may name people


def hide_people(text: str) -> str:
    """Return a line of signal-cli without phone numbers, ids and keys."""
    return _PRIVATE.sub("…", text)


def is_unauthorized(text: str) -> bool:
    """Whether signal-cli says that Signal refuses our account."""
    return bool(_UNAUTHORIZED.search(text))


def make_delivery_error(error: RpcError, command: str) -> DeliveryError:
    """Return what an answer to `send` and the like means for the message; `command` starts signal-cli in a shell."""
    kinds = {str(each.get("type")) for each in error.results}
    if error.code == RATE_LIMIT_ERROR or kinds == {"RATE_LIMIT_FAILURE"}:
        return _make_rate_limit_error(error.results, command)
    if error.code == UNTRUSTED_KEY_ERROR or kinds == {"IDENTITY_FAILURE"}:
        return SendRejected(
            "The safety number of this person has changed, so Signal holds the message back. Compare the safety number "
            f"with them. Then stop Palaver, run `{command} trust --verified-safety-number NUMBER PERSON`, start "
            "Palaver and send it again."
        )
    if kinds == {"UNREGISTERED_FAILURE"} or _UNKNOWN_CHAT.search(error.message):
        return TargetUnreachable(
            "This person is no longer on Signal, or the account is no longer in this group.",
        )
    if kinds == {"INVALID_PRE_KEY_FAILURE"}:
        return SendRejected("The keys of this person's device are not valid. Ask them to open Signal once.")
    if "NETWORK_FAILURE" in kinds:
        return SendUncertain("The connection to Signal broke while the message was being sent.")
    return _make_other_error(error)


def _make_other_error(error: RpcError) -> DeliveryError:
    if _UNRESOLVED.search(error.message):
        return SendRetryable("Signal can't be reached right now.")
    if is_unauthorized(error.message):
        return SendRetryable("Signal refuses this device right now.")
    if error.code == USER_ERROR or error.code in INVALID_REQUEST_CODES:
        return SendRejected(f"signal-cli refuses the message: {hide_people(error.message)}")
    return SendUncertain(f"signal-cli failed while the message was being sent (error {error.code}).")


def _make_rate_limit_error(results: Sequence[Mapping[str, Any]], command: str) -> SendRetryable:
    token = next((each["token"] for each in results if each.get("token")), None)
    if token is None:
        seconds = max((float(each.get("retryAfterSeconds") or 0) for each in results), default=0.0)
        wait = min(seconds or RATE_LIMIT_SECONDS, MAX_RATE_LIMIT_SECONDS)
        return SendRetryable("Signal asks to send more slowly.", retry_after=wait, whole_account=True)
    return SendRetryable(
        "Signal asks for proof that a person uses this account. Open "
        "https://signalcaptchas.org/challenge/generate.html, solve the captcha and copy the address of the link `Open "
        f"Signal`. Then stop Palaver, run `{command} submitRateLimitChallenge --challenge {token} --captcha 'ADDRESS'` "
        "and start Palaver. The message is then sent within an hour.",
        retry_after=CAPTCHA_RETRY_SECONDS,
    )


def make_exit_error(output: str, code: int | None, *, is_primary: bool = False) -> PlatformError:
    """Return why signal-cli has ended, from what it has written last."""
    if is_unauthorized(output):
        return AccountRefused(REGISTER_AGAIN if is_primary else LINK_AGAIN)
    if refused := find_setup_error(output):
        return refused
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
    reason = f": {hide_people(last)[:200]}" if last else "."
    return ConnectionLost(f"signal-cli has ended (exit code {code}){reason}")


def find_setup_error(output: str) -> AccountRefused | None:
    """Return what is wrong with the installation of signal-cli; None if nothing is."""
    if _NO_JAVA.search(output):
        return AccountRefused(f"signal-cli needs Java, which is not installed. {INSTALL_STEP}")
    if _OLD_VERSION.search(output):
        return AccountRefused(f"Signal no longer accepts this version of signal-cli. {INSTALL_STEP}")
    if _OLD_JAVA.search(output):
        return AccountRefused(f"The Java on this machine is too old for this signal-cli. {INSTALL_STEP}")
    return None

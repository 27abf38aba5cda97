"""What an operator should know of an account on Signal: the version of signal-cli, how long it stays linked. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from palaver.delivery.adapter import AccountInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.platforms.signal.accounts_file import LinkedAccount

# Signal's server changes, and then older versions no longer receive all messages.
OLDEST_RECEIVING_VERSION: Final = (0, 14, 5)
OLDEST_RECEIVING_DATE: Final = "June 2026"
LINK_LIFETIME: Final = timedelta(days=30)  # a linked device that is not connected for so long is removed
IDLE_WARNING: Final = timedelta(days=20)


def describe_account(
    version: str,
    account: LinkedAccount | None,
    *,
    devices: Sequence[Mapping[str, Any]] = (),
    connected_at: datetime | None = None,
    now: datetime,
) -> AccountInfo:
    """Return what is known of an account; None for one that is not linked yet."""
    details = [f"signal-cli {version}"]
    warnings = []
    if is_outdated(version):
        oldest = ".".join(map(str, OLDEST_RECEIVING_VERSION))
        warnings.append(
            f"signal-cli {version} is too old: since {OLDEST_RECEIVING_DATE}, versions before {oldest} miss messages. "
            "Install the newest one from https://github.com/AsamK/signal-cli/releases."
        )
    if account is None:
        return AccountInfo(warnings=tuple(warnings), details=tuple(details), is_linked=False)
    details.append(_describe_device(account, devices))
    if not account.is_primary:
        warnings += _describe_idleness(devices, connected_at, now)
    return AccountInfo(user_id=account.aci, name=account.number, warnings=tuple(warnings), details=tuple(details))


def is_outdated(version: str) -> bool:
    """Whether a version may miss messages; an unknown one counts as new."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return match is not None and tuple(map(int, match.groups())) < OLDEST_RECEIVING_VERSION


def _describe_device(account: LinkedAccount, devices: Sequence[Mapping[str, Any]]) -> str:
    if account.is_primary:
        return "Registered number"
    own = next((each for each in devices if each.get("id") == account.device_id), {})
    created = _read_time(own.get("createdTimestamp"))
    return f"Linked device {account.device_id}" + (f", since {created:%Y-%m-%d}" if created else "")


def _describe_idleness(devices: Sequence[Mapping[str, Any]], connected_at: datetime | None, now: datetime) -> list[str]:
    warnings = []
    days = LINK_LIFETIME.days
    if connected_at is not None and now - connected_at > IDLE_WARNING:
        warnings.append(
            f"This device was last connected {(now - connected_at).days} days ago. Signal removes a linked device that "
            f"is not connected for {days} days."
        )
    phone = next((each for each in devices if each.get("id") == 1), {})
    seen = _read_time(phone.get("lastSeenTimestamp"))
    if seen is not None and now - seen > IDLE_WARNING:
        warnings.append(
            f"The phone of this account was last seen on {seen:%Y-%m-%d}. Open Signal on it: Signal ends linked "
            "devices whose phone is not used."
        )
    return warnings


def _read_time(milliseconds: object) -> datetime | None:
    if not isinstance(milliseconds, int) or milliseconds <= 0:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)

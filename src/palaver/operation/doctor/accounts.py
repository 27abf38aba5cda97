"""The accounts on chat platforms: their settings, what the running server says, and on request a real sign-in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from palaver.core.errors import PalaverError
from palaver.delivery.health import load_health
from palaver.delivery.health_model import STATE_WORDS, AccountState
from palaver.operation.doctor.finding import make_ok, make_problem, make_warning
from palaver.operation.doctor.finding_texts import FindingCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from palaver.delivery.health_model import AccountHealth
    from palaver.gateway.configured_account import ConfiguredAccount
    from palaver.operation.doctor.finding import Finding
    from palaver.operation.doctor.fix_commands import FixCommands
    from palaver.sessions.store import SessionStore

PROBE_SECONDS: Final = 20.0
_BAD_STATES: Final = frozenset({AccountState.REFUSED, AccountState.DEAF})


def check_accounts(
    store: SessionStore, accounts: Sequence[ConfiguredAccount], commands: FixCommands, *, probes: bool
) -> Iterator[Finding]:
    """Check the accounts that are set up. With `probes`, those that no server runs sign in once."""
    if not accounts:
        yield make_ok(FindingCode.PLATFORMS_NONE)
        return
    health = {(each.platform, each.account): each for each in load_health(store, [each.key for each in accounts])}
    for account in accounts:
        status = health.get(account.key)
        subject = status.label if status is not None else str(account.platform)
        if account.problem is not None:
            yield make_problem(
                FindingCode.ACCOUNT_PROBLEM,
                subject=subject,
                problem=account.problem,
                command=commands.format("platforms"),
            )
        elif status is not None and status.status is not None and status.status.state is not AccountState.OFF:
            yield from _describe_running(subject, status, account, commands)
        elif probes:
            yield asyncio.run(_probe(subject, account))
        else:
            yield make_ok(FindingCode.ACCOUNT_IDLE, subject=subject)


def _describe_running(
    subject: str, health: AccountHealth, account: ConfiguredAccount, commands: FixCommands
) -> Iterator[Finding]:
    status = health.status
    assert status is not None  # noqa: S101  (the caller has checked it)
    error = account.hide_secrets(status.error or "")
    words, command = STATE_WORDS[status.state], commands.format("platforms")
    if status.state in _BAD_STATES:
        yield make_problem(
            FindingCode.ACCOUNT_FAILED,
            subject=subject,
            state=words,
            problem=error or "no error was reported",
            command=commands.format("platforms test"),
        )
    else:
        yield make_ok(FindingCode.ACCOUNT_RUNS, subject=subject, state=words, details=_join(status.details))
    for warning in status.warnings:
        yield make_warning(
            FindingCode.ACCOUNT_WARNING, subject=subject, problem=account.hide_secrets(warning), command=command
        )
    if health.failed or health.uncertain:
        yield make_warning(
            FindingCode.DELIVERIES_FAILED,
            subject=subject,
            failed=health.failed,
            uncertain=health.uncertain,
            command=command,
        )


def _join(details: Sequence[str]) -> str:
    return "".join(f". {detail}" for detail in details)


async def _probe(subject: str, account: ConfiguredAccount) -> Finding:
    """Sign in with an account, as the server does before it connects it."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            adapter = await account.create()
            try:
                info = await adapter.probe()
            finally:
                await adapter.close()
    except PalaverError as error:
        return make_problem(FindingCode.SIGN_IN_FAILED, subject=subject, problem=account.hide_secrets(str(error)))
    except TimeoutError:
        return make_problem(FindingCode.SIGN_IN_TOO_SLOW, subject=subject, seconds=f"{PROBE_SECONDS:.0f}")
    except Exception as error:  # noqa: BLE001  (an SDK may raise anything, and the other checks go on)
        text = account.hide_secrets(f"{type(error).__name__}: {error}")
        return make_problem(FindingCode.SIGN_IN_ERROR, subject=subject, problem=text[:300])
    if info.warnings:
        problem = account.hide_secrets(" ".join(info.warnings))
        return make_warning(FindingCode.SIGN_IN_WARNING, subject=subject, name=info.name, problem=problem)
    name = info.name or info.user_id
    return make_ok(FindingCode.SIGN_IN, subject=subject, name=name, details=_join(info.details))

"""Tests an account with values that are not stored: signs in and out again, without connecting it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.core.errors import InvalidInput
from palaver.gateway.account_runner import describe_connection_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.gateway.configured_account import ConfiguredAccount
    from palaver.settings.live_settings import LiveSettings

PROBE_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountTest:
    """How signing in went."""

    seconds: float
    name: str | None = None  # of the account on the platform
    warnings: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    is_linked: bool = True
    error: str | None = None


async def run_account_test(
    live: LiveSettings, platform: str, account: str, values: Mapping[str, object]
) -> AccountTest:
    """Build the adapter from values, and from the stored ones that are left out, and let it sign in."""
    complete = _add_stored(live, platform, account, values)
    configured = await asyncio.to_thread(live.catalog.build_account, live.current.settings, platform, account, complete)
    started_at = time.monotonic()
    if configured.problem is not None:
        return AccountTest(seconds=0.0, error=configured.problem)
    try:
        return await _probe(configured, started_at)
    except Exception as error:  # noqa: BLE001  (whatever an adapter raises, it is shown)
        words = describe_connection_error(error, configured)
        return AccountTest(seconds=round(time.monotonic() - started_at, 3), error=words)


async def _probe(configured: ConfiguredAccount, started_at: float) -> AccountTest:
    async with asyncio.timeout(PROBE_SECONDS):
        adapter = await configured.create()
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            info = await adapter.probe()
    finally:
        async with asyncio.timeout(CLOSE_SECONDS):
            await adapter.close()
    return AccountTest(
        seconds=round(time.monotonic() - started_at, 3),
        name=info.name,
        warnings=tuple(map(configured.hide_secrets, info.warnings)),
        details=tuple(map(configured.hide_secrets, info.details)),
        is_linked=info.is_linked,
    )


def _add_stored(live: LiveSettings, platform: str, account: str, values: Mapping[str, object]) -> dict[str, object]:
    """Add stored values. A stored secret is not sent to an address that was only given."""
    catalog, entries = live.catalog, live.current.settings.accounts
    entry = next((each for each in entries if (each.platform, each.name) == (platform, account)), None)
    stored = {} if entry is None else dict(entry.settings)
    prefix = ("platforms", platform, *(("accounts", account) if account else ()), "settings")
    exposed = live.find_exposed_secrets({(*prefix, name): value for name, value in values.items()})
    secrets = sorted({name for name in stored if catalog.is_secret(platform, name)} - values.keys())
    if exposed:
        raise InvalidInput(
            f"Enter {', '.join(secrets)} again: a stored secret is not sent to another address.", settings=secrets
        )
    if any(catalog.is_terminal_only(platform, name) and values[name] != stored.get(name) for name in values):
        raise InvalidInput("This setting starts a program on the server, so it can be changed only there.")
    return {**stored, **values}

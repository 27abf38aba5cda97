"""Tests an account with values that are not stored: signs in and out again, without connecting it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from palaver.domain.errors import InvalidInput
from palaver.services.platforms.account_runner import describe_connection_error
from palaver.services.settings.secret_exposure import ADDRESS_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.config import Settings
    from palaver.services.platforms.configured_account import ConfiguredAccount
    from palaver.services.settings.platform_catalog import PlatformCatalog

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
    catalog: PlatformCatalog, settings: Settings, platform: str, account: str, values: Mapping[str, object]
) -> AccountTest:
    """Build the adapter from values, and from the stored ones that are left out, and let it sign in."""
    complete = _add_stored(catalog, settings, platform, account, values)
    configured = await asyncio.to_thread(catalog.build_account, settings, platform, account, complete)
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


def _add_stored(
    catalog: PlatformCatalog, settings: Settings, platform: str, account: str, values: Mapping[str, object]
) -> dict[str, object]:
    """Add stored values. A stored secret is not sent to an address that was only given."""
    entries = (each for each in settings.accounts if (each.platform, each.name) == (platform, account))
    entry = next(entries, None)
    stored = {} if entry is None else dict(entry.settings)
    has_other_address = any(values[name] != stored.get(name) for name in ADDRESS_NAMES & values.keys())
    secrets = {name for name in stored if catalog.is_secret(platform, name)} - values.keys()
    if has_other_address and secrets:
        raise InvalidInput(
            f"Enter {', '.join(sorted(secrets))} again: a stored secret is not sent to another address.",
            settings=sorted(secrets),
        )
    if any(catalog.is_terminal_only(platform, name) and values[name] != stored.get(name) for name in values):
        raise InvalidInput("This setting starts a program on the server, so it can be changed only there.")
    return {**stored, **values}

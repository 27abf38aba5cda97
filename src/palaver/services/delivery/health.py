"""How the platforms are doing: whether this process is connected to them, and what does not arrive."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.domain.delivery import DeliveryState
from palaver.domain.platform_health import PlatformHealth
from palaver.domain.source import Platform
from palaver.storage import deliveries
from palaver.storage.engines.base import Read
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction

LATELY = timedelta(days=1)


async def platform_health(store: SessionStore, connected: Iterable[Platform]) -> Sequence[PlatformHealth]:
    """Every platform that is connected or has something to tell, by name."""
    here = frozenset(connected)
    since = to_micros(store.clock.now() - LATELY)

    def read(tx: Transaction) -> list[PlatformHealth]:
        waiting = deliveries.waiting(tx)
        troubles = deliveries.troubles(tx, since)
        named = here | {Platform(name) for name in (*waiting, *(each.platform for each in troubles))}
        return [_health(platform, here, waiting.get(str(platform), 0), troubles) for platform in sorted(named)]

    return await store.engine.arun(Read(read))


def _health(
    platform: Platform, here: frozenset[Platform], waiting: int, troubles: Sequence[deliveries.Trouble]
) -> PlatformHealth:
    ours = [trouble for trouble in troubles if trouble.platform == platform]
    return PlatformHealth(
        platform=platform,
        connected=platform in here,
        waiting=waiting,
        uncertain=sum(trouble.state is DeliveryState.UNCERTAIN for trouble in ours),
        failed=sum(trouble.state is DeliveryState.FAILED for trouble in ours),
        trouble=ours[0].error if ours else None,
        trouble_at=ours[0].at if ours else None,
    )

"""The health of each platform: whether this process is connected to it, and which deliveries did not arrive."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from palaver.domain.delivery import DeliveryState
from palaver.domain.platform_health import PlatformHealth
from palaver.domain.source import Platform
from palaver.storage import delivery_queries
from palaver.storage.engines.base import Read
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction

PROBLEM_WINDOW = timedelta(days=1)  # older problems are not reported


async def load_platform_health(store: SessionStore, connected: Iterable[Platform]) -> Sequence[PlatformHealth]:
    """Load the health of every platform that is connected, has open deliveries or had problems, sorted by name."""
    connected_here = frozenset(connected)
    since = to_micros(store.clock.now() - PROBLEM_WINDOW)

    def read(tx: Transaction) -> list[PlatformHealth]:
        open_counts = delivery_queries.count_open_by_platform(tx)
        problems = delivery_queries.list_problems(tx, since)
        platforms = connected_here | {Platform(name) for name in (*open_counts, *(each.platform for each in problems))}
        return [
            _build_health(platform, platform in connected_here, open_counts.get(str(platform), 0), problems)
            for platform in sorted(platforms)
        ]

    return await store.engine.arun(Read(read))


def _build_health(
    platform: Platform, connected: bool, open_count: int, problems: Sequence[delivery_queries.DeliveryProblem]
) -> PlatformHealth:
    own = [problem for problem in problems if problem.platform == platform]
    return PlatformHealth(
        platform=platform,
        connected=connected,
        pending=open_count,
        uncertain=sum(problem.state is DeliveryState.UNCERTAIN for problem in own),
        failed=sum(problem.state is DeliveryState.FAILED for problem in own),
        last_error=own[0].error if own else None,
        last_error_at=own[0].at if own else None,
    )

"""The health of each platform: whether this process is connected to it, and which deliveries did not arrive."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

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
    """Load the health of every platform that is set up, connected, or has open or failed deliveries, sorted by name."""
    connected_here, configured = frozenset(connected), frozenset(store.config.chat_platforms)
    since = to_micros(store.clock.now() - PROBLEM_WINDOW)

    def read(tx: Transaction) -> list[PlatformHealth]:
        open_counts = delivery_queries.count_open_by_platform(tx)
        problems = delivery_queries.list_problems(tx, since)
        with_deliveries = {Platform(name) for name in (*open_counts, *(each.platform for each in problems))}
        return [
            PlatformHealth(
                platform=platform,
                configured=platform in configured,
                connected=platform in connected_here,
                pending=open_counts.get(str(platform), 0),
                **_count_problems([problem for problem in problems if problem.platform == platform]),
            )
            for platform in sorted(configured | connected_here | with_deliveries)
        ]

    return await store.engine.arun(Read(read))


def _count_problems(problems: Sequence[delivery_queries.DeliveryProblem]) -> dict[str, Any]:
    return {
        "uncertain": sum(problem.state is DeliveryState.UNCERTAIN for problem in problems),
        "failed": sum(problem.state is DeliveryState.FAILED for problem in problems),
        "last_error": problems[0].error if problems else None,
        "last_error_at": problems[0].at if problems else None,
    }

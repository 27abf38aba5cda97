"""Measures what a look of the scheduler costs with few and with many jobs.

    python -m benchmarks.jobs [--few 100] [--many 10000] [--looks 300] [--postgres URL URL]

Each size has a database of its own. *Idle* is a look at which nothing is due, the usual case; *one due* is a look that passes
the slot of one job whose earlier run has not ended, in one transaction. Looks at both sizes alternate, so that a noisy moment
affects both. The last column is the ratio of the medians: about 1 means that the cost does not depend on the number of jobs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from palaver import SessionSource, SessionStore
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.model import JobRunKind, JobState
from palaver.jobs.scheduler import Scheduler
from palaver.live.feed import Feed
from palaver.people import table as people
from palaver.people.model import Role
from palaver.platforms.loopback import LOOPBACK
from palaver.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.engines.base import Transaction

JOBS_PER_PERSON = 100
JOBS_PER_TRANSACTION = 500
WARM_UP_LOOKS = 20


@dataclass
class JobStore:
    """A store with some jobs, and the seconds that looks at it took."""

    store: SessionStore
    clock: FakeClock
    scheduler: Scheduler
    idle_seconds: list[float] = field(default_factory=list)
    due_seconds: list[float] = field(default_factory=list)

    async def look(self) -> float:
        started = time.perf_counter()
        await self.scheduler.poll()
        return time.perf_counter() - started

    async def measure_look(self) -> None:
        """Look when nothing is due, then when the slot of the first job has come."""
        self.idle_seconds.append(await self.look())
        self.clock.advance(minutes=5)
        self.due_seconds.append(await self.look())


def fill_store(url: str, count: int) -> JobStore:
    """Add jobs, of which the first runs every five minutes and the others in a year."""
    clock = FakeClock()
    store = SessionStore.open(url, clock=clock)
    now = clock.now()

    def add(tx: Transaction, first: int, last: int) -> None:
        for number in range(first, last):
            user = f"user{number // JOBS_PER_PERSON}"
            source = SessionSource(LOOPBACK, user, user_id=user, user_name=user)
            person_row = people.find_or_add_by_source(tx, source, to_micros(now))
            if person_row is None:
                raise AssertionError("every source has a person")
            people.set_role(tx, person_row.person.id, Role.MEMBER)
            new_job = jobs.NewJob(
                person_id=person_row.person.id,
                name=f"Job {number}",
                prompt="What is new?",
                schedule="every 5m" if number == 0 else "0 7 * * *",
                timezone="UTC",
                anchor=now,
                targets=("origin",),
                origin=source,
                toolsets=(),
                state=JobState.ACTIVE,
                next_slot=now + (timedelta(minutes=5) if number == 0 else timedelta(days=365, seconds=number)),
            )
            job_row = jobs.insert(tx, new_job, to_micros(now))
            if number == 0:  # it never ends, because no worker runs: later slots are skipped
                job_runs.enqueue(tx, job_row, now, JobRunKind.MANUAL, to_micros(now))

    for first in range(0, count, JOBS_PER_TRANSACTION):
        last = min(first + JOBS_PER_TRANSACTION, count)
        store.engine.run(Write(lambda tx, first=first, last=last: add(tx, first, last)))
    return JobStore(store, clock, Scheduler(store, Feed(store), lambda: 2))


async def measure(urls: Sequence[str], counts: Sequence[int], looks: int) -> list[JobStore]:
    stores = [fill_store(url, count) for url, count in zip(urls, counts, strict=True)]
    try:
        for each in stores:
            for _ in range(WARM_UP_LOOKS):
                await each.measure_look()
            each.idle_seconds.clear()
            each.due_seconds.clear()
        for number in range(looks):
            for each in stores if number % 2 else reversed(stores):
                await each.measure_look()
    finally:
        for each in stores:
            each.store.close()
    return stores


def format_report(counts: Sequence[int], stores: Sequence[JobStore]) -> str:
    headers = " | ".join(f"{count:,} jobs" for count in counts)
    lines = [f"| look | {headers} | ratio |", "|---|---|---|---|"]
    samples = {
        "idle": [each.idle_seconds for each in stores],
        "one due": [each.due_seconds for each in stores],
    }
    for name, seconds in samples.items():
        few, many = (statistics.median(each) for each in seconds)
        lines.append(f"| {name} | {few * 1e6:,.0f} µs | {many * 1e6:,.0f} µs | {many / few:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=100)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--looks", type=int, default=300)
    parser.add_argument("--postgres", nargs=2, metavar=("URL", "URL"), help="two empty databases instead of SQLite")
    options = parser.parse_args()
    counts = (options.few, options.many)
    with tempfile.TemporaryDirectory() as folder:
        urls = options.postgres or [f"sqlite:///{Path(folder) / f'{count}.db'}" for count in counts]
        stores = asyncio.run(measure(urls, counts, options.looks))
    print(format_report(counts, stores))  # noqa: T201


if __name__ == "__main__":
    main()

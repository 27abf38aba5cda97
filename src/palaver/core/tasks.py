"""Tasks that run beside others: they end together, and wait for an event at most so long.

Imported by child processes, too: only the standard library.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable


async def wait_for_event(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait until an event is set, at most so long; return whether it is."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True


async def cancel_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, however they do."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


class BackgroundTasks:
    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine, name=self._name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self, seconds: float = 0.0) -> None:
        """Let them end by themselves for so long, and cancel the others."""
        tasks = set(self._tasks)
        if tasks and seconds:
            await asyncio.wait(tasks, timeout=seconds)
        await cancel_tasks(tasks)


async def run_together(*coroutines: Coroutine[Any, Any, object], until: str = asyncio.FIRST_COMPLETED) -> None:
    """Run several things at once until one ends, or one fails; then all end, and its error is raised."""
    tasks = {asyncio.create_task(coroutine) for coroutine in coroutines}
    try:
        done, _ = await asyncio.wait(tasks, return_when=until)
        for task in done:
            task.result()
    finally:
        await cancel_tasks(tasks)

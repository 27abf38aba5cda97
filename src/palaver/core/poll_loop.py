"""The loop of a background worker: poll for work, then sleep until something wakes it or the next work is due."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from palaver.core.engines.base import WorkKind, write_kind
from palaver.core.errors import StoreError

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable

RETRY_SECONDS = 1.0  # pause after a poll that failed


async def run_poll_loop(
    poll: Callable[[], Awaitable[float]],
    wake: asyncio.Event,
    *,
    is_stopped: Callable[[], bool],
    log: logging.Logger,
    failure_event: str,
    kind: WorkKind = WorkKind.BACKGROUND,
) -> None:
    """Call `poll` until `is_stopped`. It returns the seconds until the next call; setting `wake` makes that call now.

    A poll that fails is logged as `failure_event` and tried again: without this loop no work of its kind is done.
    """
    write_kind.set(kind)  # of the task that runs this loop, and of those that it starts
    while not is_stopped():
        wake.clear()
        try:
            wait = await poll()
        except StoreError as error:
            log.warning(failure_event, extra={"error": str(error)})
            wait = RETRY_SECONDS
        except Exception:  # whatever it is, the loop must go on
            log.exception(failure_event)
            wait = RETRY_SECONDS
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await wake.wait()

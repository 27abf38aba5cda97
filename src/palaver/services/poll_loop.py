"""The loop of whoever works for others: look what there is to do, then rest until woken or until something is due."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from palaver.domain.errors import StoreError

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable

AGAIN_AFTER = 1.0  # seconds, when the store could not be reached


async def keep_looking(
    look: Callable[[], Awaitable[float]],
    woken: asyncio.Event,
    *,
    is_over: Callable[[], bool],
    log: logging.Logger,
    trouble: str,
) -> None:
    """Look, and look again after the seconds that a look returns or as soon as somebody wakes us, until it is over.

    A look that fails is logged and tried again: without this loop nothing of its kind is done any more.
    """
    while not is_over():
        woken.clear()
        try:
            wait = await look()
        except StoreError as error:
            log.warning("%s: %s", trouble, error)
            wait = AGAIN_AFTER
        except Exception:
            log.exception(trouble)
            wait = AGAIN_AFTER
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await woken.wait()

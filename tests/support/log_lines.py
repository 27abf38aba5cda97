"""What a server would write to its log."""

from __future__ import annotations

import io
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from palaver.core.logs import configure_logging

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def capture_log_lines() -> Iterator[io.StringIO]:
    """Yield what is written to the log, as people would read it."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = io.StringIO()
    configure_logging(stream)
    try:
        yield stream
    finally:
        root.handlers[:] = before
        root.setLevel(level)

"""Reports of what was used, for one principal: an operation of their view, kept apart by its subject."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput
from palaver.domain.usage_report import Grouping
from palaver.services.operation import operation
from palaver.storage import usage_reports
from palaver.storage.engines.base import Read
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from palaver.domain.clock import Clock
    from palaver.domain.usage_report import Report
    from palaver.storage.engines.base import Transaction, Work

USUAL = timedelta(days=30)
LONGEST = timedelta(days=3660)
MOST_GROUPS = 1000


class ReportOperations:
    """What was used; the view that it belongs to says of which conversations."""

    if TYPE_CHECKING:  # what the view gives
        _clock: Clock

        def _audiences(self, tx: Transaction) -> Sequence[int] | None: ...

    @operation
    def usage(
        self, by: str = "day", *, first: date | None = None, last: date | None = None, limit: int = MOST_GROUPS
    ) -> Work[Report]:
        """What was used from the first day to the last, both included, in UTC; the last thirty days by themselves."""
        if by not in list(Grouping):
            raise InvalidInput(f"by: {by!r} is not allowed; use one of {', '.join(Grouping)}", by=by)
        if not 1 <= limit <= MOST_GROUPS:
            raise InvalidInput(f"limit: {limit} is not allowed (1 to {MOST_GROUPS})")
        end = last or self._clock.now().astimezone(UTC).date()
        begin = first or max(end - USUAL, _EARLIEST) + timedelta(days=1)
        if not _EARLIEST <= begin <= end <= _LATEST or end - begin > LONGEST:
            raise InvalidInput("from and to: give two days, the earlier one first, not more than ten years apart")
        span = _begin(begin), _begin(end + timedelta(days=1))
        return Read(lambda tx: usage_reports.report(tx, Grouping(by), *span, self._audiences(tx), limit))


_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC).date()
_LATEST = datetime(9990, 1, 1, tzinfo=UTC).date()


def _begin(day: date) -> int:
    return to_micros(datetime.combine(day, time(), tzinfo=UTC))

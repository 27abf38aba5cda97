"""Reports of tokens and cost: `view.usage`."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from palaver.core.argument_checks import check_count
from palaver.core.engines.base import Read
from palaver.core.errors import InvalidInput
from palaver.core.operation import R, operation
from palaver.core.timestamps import to_micros
from palaver.sessions import usage_reports
from palaver.sessions.usage_report import UsageGrouping
from palaver.sessions.view.part import ViewPart

if TYPE_CHECKING:
    from datetime import date

    from palaver.core.engines.base import Transaction, Work
    from palaver.sessions.usage_report import UsageReport

DEFAULT_PERIOD = timedelta(days=30)
MAX_PERIOD = timedelta(days=3660)
MAX_ROWS = 1000
_EARLIEST_DAY = datetime(1970, 1, 1, tzinfo=UTC).date()
_LATEST_DAY = datetime(9990, 1, 1, tzinfo=UTC).date()


class UsageOperations(ViewPart[R]):
    """Reports what the conversations in the view's scope used."""

    @operation
    def report(
        self, by: str = "day", *, first: date | None = None, last: date | None = None, limit: int = MAX_ROWS
    ) -> Work[UsageReport]:
        """Report the usage from the first day to the last, both included, in UTC; by default of the last 30 days."""
        if by not in list(UsageGrouping):
            raise InvalidInput(f"by: {by!r} is not allowed. Use one of {', '.join(UsageGrouping)}.", by=by)
        check_count("limit", limit, maximum=MAX_ROWS)
        end_day = last or self._scope.clock.now().astimezone(UTC).date()
        start_day = first or max(end_day - DEFAULT_PERIOD, _EARLIEST_DAY) + timedelta(days=1)
        if not _EARLIEST_DAY <= start_day <= end_day <= _LATEST_DAY or end_day - start_day > MAX_PERIOD:
            raise InvalidInput("from and to: give two days, the earlier one first, at most ten years apart.")
        start, stop = _get_start_of_day(start_day), _get_start_of_day(end_day + timedelta(days=1))

        def run(tx: Transaction) -> UsageReport:
            audiences = self._scope.list_audiences(tx)
            return usage_reports.load_report(tx, UsageGrouping(by), start, stop, audiences, limit)

        return Read(run)


def _get_start_of_day(day: date) -> int:
    return to_micros(datetime.combine(day, time(), tzinfo=UTC))

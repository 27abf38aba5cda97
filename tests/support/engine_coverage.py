"""A check at the end of `make test`: no statement has run on SQLite only.

Most tests run on SQLite. This check names the statements that no test on PostgreSQL reaches, so that nobody has to
remember which tests need the mark `both_engines`. It knows the statements of the test processes themselves, not those
of processes that tests start.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import palaver
from palaver.core.engines.postgres_connection import PostgresTransaction
from palaver.core.engines.sqlite import SqliteTransaction

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(palaver.__file__).parent
ENGINES = PACKAGE / "core" / "engines"
BASE = str(ENGINES / "base.py")
METHODS = ("fetch_one", "fetch_all", "execute", "execute_many")
# Functions with statements for SQLite alone; PostgreSQL has others there, or none.
SQLITE_ONLY = frozenset(
    {
        *("invariants.list_schema_names", "invariants.close_open_work"),
        *("message_table._find_target", "message_table._append_in_steps"),
        *(
            "retention_table.measure_database.<locals>.<genexpr>",
            "search_table.index_batch",
            "search_table.find_messages",
        ),
        *("search_table.merge_piece", "search_table.merge_pages", "search_table.set_delete_merge"),
        *("deletion_table.delete", "deletion_table._delete_events"),
        *(
            "table_copy.read_serial",
            "table_copy.write_serial",
            "table_copy._is_counted",
            "table_copy._load_tables_sqlite",
        ),
    }
)

Places = set[tuple[str, str, int]]  # file, function and line of each statement that has run


class EngineCoverage:
    """Records where statements run on each engine, in every worker, and compares them at the end of a whole run."""

    def __init__(self) -> None:
        self.places: dict[str, Places] = {"sqlite": set(), "postgres": set()}
        for transaction in (SqliteTransaction, PostgresTransaction):
            for method in METHODS:
                self._record(transaction, method, self.places[transaction.name])

    @staticmethod
    def _record(transaction: type, method: str, places: Places) -> None:
        run: Callable[..., Any] = getattr(transaction, method)

        def run_and_record(self: Any, *arguments: Any) -> Any:
            caller = sys._getframe(1)
            if caller.f_code.co_filename == BASE and caller.f_back is not None:  # a helper such as `fetch_value`
                caller = caller.f_back
            places.add((caller.f_code.co_filename, caller.f_code.co_qualname, caller.f_lineno))
            return run(self, *arguments)

        setattr(transaction, method, run_and_record)

    def find_uncovered(self) -> list[str]:
        """Return the places of statements that have run on SQLite, and never on PostgreSQL."""
        return sorted(
            f"{Path(file).relative_to(PACKAGE)}:{line} in {function}"
            for file, function, line in self.places["sqlite"] - self.places["postgres"]
            if Path(file).is_relative_to(PACKAGE)
            and (Path(file).parent != ENGINES or Path(file).stem == "table_copy")
            and f"{Path(file).stem}.{function}" not in SQLITE_ONLY
        )

    # -- from the workers to the process that reports --------------------------------------------------------

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["places"] = {engine: sorted(each) for engine, each in self.places.items()}
        elif _is_whole_run(session) and (uncovered := self.find_uncovered()):
            lines = "\n  ".join(uncovered)
            session.config.get_terminal_writer().line(
                f"\nThese statements have run on SQLite only. Mark a test of each with `both_engines`:\n  {lines}",
                red=True,
            )
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for engine, places in getattr(node, "workeroutput", {}).get("places", {}).items():
            self.places[engine].update((file, function, line) for file, function, line in places)


def _is_whole_run(session: pytest.Session) -> bool:
    """Whether all tests have run, without a failure."""
    config = session.config
    selects = config.option.keyword or config.option.markexpr or config.args != config.getini("testpaths")
    return not selects and session.exitstatus == pytest.ExitCode.OK

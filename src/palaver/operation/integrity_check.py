"""The complete check of a store: the file or server itself, the schema, what must always be true, and the files.

It changes nothing, and the store may be in use: every part reads for a short time only, in bounded memory, except the
check of a SQLite file, which reads it whole on a connection of its own.
"""

from __future__ import annotations

import time
from dataclasses import field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines import migrate
from palaver.core.engines.base import Engine, Read, Write
from palaver.core.engines.integrity import describe_missing_names, find_file_problems, list_expected_names
from palaver.core.engines.sqlite import DIALECT as SQLITE_DIALECT, SqliteEngine
from palaver.operation import invariants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from palaver.sessions.store import SessionStore


SESSIONS_PER_READ: Final = 500
FILES_PER_READ: Final = 500
MAX_LISTED: Final = 20  # problems that are named; all are counted
UPLOAD_SECONDS: Final = 60  # an attachment is recorded just before its bytes are in place


def find_engine_problems(engine: Engine) -> list[str]:
    """Check a SQLite file completely, or that a server answers; return what is wrong."""
    if isinstance(engine, SqliteEngine):
        return find_file_problems(engine.path, SQLITE_DIALECT)
    engine.run(Read(lambda tx: tx.fetch_one("SELECT 1")))
    return []


def find_schema_problems(engine: Engine) -> list[str]:
    if engine.name == "sqlite":
        dialect = SQLITE_DIALECT
    else:
        from palaver.core.engines.postgres_migration import DIALECT as dialect  # noqa: N811  (psycopg is an extra)
    expected = list_expected_names(migrate.load_migrations(dialect).values())
    missing = expected - engine.run(Read(invariants.list_schema_names))
    return [describe_missing_names(missing).rstrip(".")] if missing else []


@dataclass(slots=True)
class CheckResult:
    title: str
    problems: list[str] = field(default_factory=list)  # sentences without a period, at most MAX_LISTED
    problem_count: int = 0
    repairable_count: int = 0  # of the problems, those that `palaver doctor --repair` solves

    @property
    def is_ok(self) -> bool:
        return self.problem_count == 0

    @property
    def is_repairable(self) -> bool:
        return 0 < self.problem_count == self.repairable_count

    def add(self, problem: str | invariants.WrongSession) -> None:
        self.problem_count += 1
        if isinstance(problem, invariants.WrongSession):
            self.repairable_count += problem.is_repairable
            problem = problem.problem
        if len(self.problems) < MAX_LISTED:
            self.problems.append(problem)


def check_integrity(store: SessionStore, attachments: Path) -> Iterator[CheckResult]:
    """Check a whole store, part by part; blocks for as long as that takes."""
    engine = store.engine
    parts: dict[str, Iterable[str | invariants.WrongSession]] = {
        "Database file" if engine.name == "sqlite" else "Database": find_engine_problems(engine),
        "Tables and indexes": find_schema_problems(engine),
        "Logs, counters and search index": iterate_wrong_sessions(engine),
        "Running turns": _check_ranges(engine, invariants.ONE_RUNNING_TURN),
        "Chats and their conversations": chain(
            _check_ranges(engine, invariants.NO_LANE_ON_ENDED_SESSION),
            engine.run(Read(lambda tx: invariants.list_lost_lanes(tx, MAX_LISTED), is_long=True)),
        ),
        "Attached files": _check_files(engine, attachments),
    }
    for title, problems in parts.items():
        result = CheckResult(title)
        for problem in problems:
            result.add(problem)
        yield result


def _check_ranges(engine: Engine, rule: tuple[str, str]) -> Iterator[str]:
    for after, up_to in _iterate_ranges(engine):
        find = partial(invariants.find_wrong_rows, rule=rule, after=after, up_to=up_to, limit=SESSIONS_PER_READ)
        yield from engine.run(Read(find, is_long=True))


def iterate_wrong_sessions(engine: Engine) -> Iterator[invariants.WrongSession]:
    """Yield the sessions that contradict themselves; each range of sessions is read by itself."""
    for after, up_to in _iterate_ranges(engine):
        find = partial(invariants.find_wrong_counters, after=after, up_to=up_to, limit=SESSIONS_PER_READ)
        yield from engine.run(Read(find))


def _iterate_ranges(engine: Engine) -> Iterator[tuple[int, int]]:
    """Yield ranges of session numbers: greater than the first, up to the second."""
    after = 0
    find_end = partial(invariants.find_next_session_no, count=SESSIONS_PER_READ)
    while (up_to := engine.run(Read(partial(find_end, after=after)))) is not None:
        yield after, up_to
        after = up_to


def _check_files(engine: Engine, folder: Path) -> Iterator[str]:
    after = 0
    newest = (time.time() - UPLOAD_SECONDS) * 1_000_000
    list_files = partial(invariants.list_files, limit=FILES_PER_READ)
    while files := engine.run(Read(partial(list_files, after=after))):
        for file in files:
            problem = _find_file_problem(folder / file.sha256[:2] / file.sha256, file.size)
            if problem is not None and file.created_at < newest:
                yield f"attachment {file.id}: {problem}"
        after = files[-1].no


def _find_file_problem(path: Path, size: int) -> str | None:
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        return f"its file {path} is missing"
    except OSError as error:
        return f"its file {path} can't be read ({error.strerror})"
    return None if found == size else f"its file {path} has {found} bytes instead of {size}"


def list_problems(store: SessionStore) -> tuple[list[str], list[str]]:
    """Return what a repair would solve, and what it would leave, as sentences without a period."""
    repairable: list[str] = []
    others: list[str] = []
    for wrong in iterate_wrong_sessions(store.engine):
        (repairable if wrong.is_repairable else others).append(wrong.problem)
    return repairable, others


def repair_store(store: SessionStore) -> Iterator[str]:
    """Repair a store where its logs know the truth; yield what was changed, as sentences without a period.

    Each conversation is repaired in a transaction of its own. The store may be in use, and the repair may be killed:
    what is repaired stays so, and the next repair goes on.
    """
    seen: set[int] = set()
    for wrong in iterate_wrong_sessions(store.engine):
        if wrong.is_repairable and wrong.no not in seen:
            seen.add(wrong.no)
            yield from store.engine.run(Write(partial(invariants.repair_session, session_no=wrong.no)))

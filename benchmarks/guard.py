"""Shows within two minutes whether a turn, the path of a message, the start or memory has become worse.

    python -m benchmarks.guard [--json]

Each figure is measured beside its raw limit in the same round, and hardly depends on the machine or on what else runs on
it: processor time instead of elapsed time, numbers of statements and commits, memory beyond that of Python itself.

The exit code is 1 if a ratio is more than 15 % worse than the recorded one, or not recorded. The rule:
every figure is measured in `MIN_ROUNDS` rounds, and the lower quartile of its ratios counts, because other processes only
add to what Palaver uses. While that is too high, what it belongs to is measured again, up to `MAX_ROUNDS` rounds in all,
of which again the lower quartile counts. So a noisy moment costs time; a change stays.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.corpus import make_key, make_text
from benchmarks.recorded import RECORDED_FILE, read_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.drivers import Driver
    from benchmarks.drivers.raw import RawFull
    from palaver.gateway.gateway import Gateway

    D = TypeVar("D", bound=Driver)

MIN_ROUNDS = 5
MAX_ROUNDS = 15
MAX_RATIO_OF_RECORDED = 1.15
BLOCKS = 4
TURNS_PER_BLOCK = 250
PATH_TURNS_PER_BLOCK = 40
TRACED_TURNS = 20
SESSIONS = 10
HOW_TO_RECORD = f"This records it in {RECORDED_FILE.name}: python -m benchmarks --record --only GUARD"
MEMORY_FOLDER = Path("/dev/shm")  # where a commit costs no time of a disk


@dataclass(frozen=True)
class Figure:
    """One number of Palaver, and the same one of the raw limit."""

    palaver: float
    raw: float
    unit: str

    @property
    def ratio(self) -> float:
        return self.palaver / self.raw


Figures = dict[str, Figure]


@contextmanager
def make_folder() -> Iterator[Path]:
    parent = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="palaver-guard-", dir=parent) as folder:
        yield Path(folder)


# ---- one turn --------------------------------------------------------------------------------------------


class StatementTrace:
    """Counts the statements of all connections of Palaver's own SQLite that are opened after it."""

    def __init__(self) -> None:
        import apsw

        self.statements: list[str] = []
        self.is_on = False
        apsw.connection_hooks.append(self._trace_connection)

    def _trace_connection(self, connection: Any) -> None:
        import apsw

        connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._record, id=self)

    def _record(self, event: dict[str, Any]) -> None:
        if self.is_on and not event["trigger"]:
            self.statements.append(event["sql"])


def _open_driver(driver_class: type[D], folder: Path) -> D:
    folder.mkdir()
    driver = driver_class(folder)
    driver.open()
    _run_turns(driver, TURNS_PER_BLOCK)
    return driver


def _run_turns(driver: Driver, count: int) -> float:
    """Return the microseconds of processor time that each of these turns takes, in all threads."""
    start = time.process_time()
    for number in range(count):
        driver.run_turn(make_key(number % SESSIONS), make_text(number, "u"), make_text(number, "a"), 100, 50)
    return (time.process_time() - start) / count * 1e6


def _count_raw_statements(raw: RawFull) -> list[str]:
    statements: list[str] = []
    raw.connections[0].set_trace_callback(statements.append)
    _run_turns(raw, TRACED_TURNS)
    raw.connections[0].set_trace_callback(None)
    return statements


def _compare_statements(what: str, palaver: list[str], raw: list[str]) -> Figures:
    def count(statements: list[str], start: str = "") -> float:
        return sum(text.startswith(start) for text in statements) / TRACED_TURNS

    return {
        f"{what}: statements": Figure(count(palaver), count(raw), ""),
        # Reads end with COMMIT, too.
        f"{what}: commits": Figure(count(palaver, "BEGIN IMMEDIATE"), count(raw, "BEGIN IMMEDIATE"), ""),
    }


def measure_turn() -> Figures:
    """Run turns on existing conversations, alternately by Palaver and by hand-written SQL."""
    from benchmarks.drivers.palaver import Palaver
    from benchmarks.drivers.raw import RawFull

    trace = StatementTrace()
    with make_folder() as folder:
        palaver, raw = _open_driver(Palaver, folder / "palaver"), _open_driver(RawFull, folder / "raw")
        times = [_run_turns(driver, TURNS_PER_BLOCK // 5) for _ in range(BLOCKS * 5) for driver in (palaver, raw)]
        palaver.close()
        palaver.open()
        _run_turns(palaver, TURNS_PER_BLOCK)
        trace.is_on = True
        _run_turns(palaver, TRACED_TURNS)
        trace.is_on = False
        raw_statements = _count_raw_statements(raw)
        palaver.close()
        raw.close()
    used = min(times[::2]), min(times[1::2])  # all turns are alike: what other processes do to caches only adds
    return {"turn: processor time": Figure(*used, "µs")} | _compare_statements("turn", trace.statements, raw_statements)


# ---- the path, the start, memory ---------------------------------------------------------------------------


def measure_path() -> Figures:
    """Answer one message after another, from `accept` to the stored answer, alternately with hand-written turns."""
    from benchmarks.drivers.raw import RawFull

    with make_folder() as folder:
        raw = _open_driver(RawFull, folder / "raw")
        figures = asyncio.run(_measure_path(f"sqlite:///{folder}/palaver.db", raw))
        raw.close()
    return figures


async def _measure_path(url: str, raw: RawFull) -> Figures:
    from benchmarks import path
    from palaver import SessionStore

    async def run_turns(gateway: Gateway, block: int, count: int) -> float:
        start = time.process_time()
        for number in range(count):
            await path.run_path_turn(gateway, block, number)
        return (time.process_time() - start) / count * 1e6

    trace = StatementTrace()
    times: list[float] = []
    with SessionStore.open(url) as store:
        async with path.run_gateway(store, SESSIONS) as gateway:
            await run_turns(gateway, 0, PATH_TURNS_PER_BLOCK)
            for block in range(1, BLOCKS + 1):
                times += [await run_turns(gateway, block, PATH_TURNS_PER_BLOCK), _run_turns(raw, TURNS_PER_BLOCK)]
            trace.is_on = True
            await run_turns(gateway, BLOCKS + 1, TRACED_TURNS)
            trace.is_on = False
    used = statistics.median(times[::2]), statistics.median(times[1::2])
    statements = _compare_statements("path", trace.statements, _count_raw_statements(raw))
    return {"path: processor time": Figure(*used, "µs")} | statements


def measure_start() -> Figures:
    """Start `palaver serve` and a bare FastAPI application: the processor time until each answers, and its memory then."""
    from benchmarks.http import FilledStore

    with make_folder() as folder:
        (folder / "home").mkdir()
        store = FilledStore(folder / "home")
        with store.start_palaver():  # not measured: creates the store and the bytecode
            pass
        python_mib = _measure_interpreter_mib()
        used = []
        for start in (store.start_palaver, store.start_bare):
            with start() as server:
                used.append((server.read_cpu_seconds() * 1e3, server.read_memory_mib() - python_mib))
    (cpu, memory), (bare_cpu, bare_memory) = used
    return {
        "start: processor time": Figure(cpu, bare_cpu, "ms"),
        "memory when ready, without Python": Figure(memory, bare_memory, "MiB"),
    }


def _measure_interpreter_mib() -> float:
    script = "print(open('/proc/self/status').read().partition('VmRSS:')[2].split()[0])"
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout) / 1024


MEASUREMENTS: dict[str, Callable[[], Figures]] = {
    "turn": measure_turn,
    "path": measure_path,
    "start": measure_start,
}


# ---- the rule --------------------------------------------------------------------------------------------


def select_rounds(rounds: Mapping[str, list[Figure]]) -> Figures:
    """Return the round of each figure that counts: the lower quartile of the ratios."""
    return {
        name: sorted(figures, key=lambda figure: figure.ratio)[len(figures) // 4] for name, figures in rounds.items()
    }


def find_worse(figures: Figures, recorded: Mapping[str, float]) -> list[str]:
    return [
        name
        for name, figure in figures.items()
        if name in recorded and figure.ratio > recorded[name] * MAX_RATIO_OF_RECORDED
    ]


def check(
    recorded: Mapping[str, float], measurements: Mapping[str, Callable[[], Figures]]
) -> tuple[Figures, list[str]]:
    """Measure, and measure again what looks worse. Returns the figures, and the names of the figures that are worse."""
    figures, worse = Figures(), list[str]()
    for measure in measurements.values():
        rounds: dict[str, list[Figure]] = {}
        for number in range(1, MAX_ROUNDS + 1):
            for name, figure in measure().items():
                rounds.setdefault(name, []).append(figure)
            selected = select_rounds(rounds)
            worse_of_these = find_worse(selected, recorded)
            if number >= MIN_ROUNDS and not worse_of_these:
                break
        figures |= selected
        worse += worse_of_these
    return figures, worse


def format_report(figures: Figures, worse: list[str], recorded: Mapping[str, float]) -> str:
    lines = ["| | Palaver | raw limit | ratio | recorded |", "|---|---|---|---|---|"]
    for name, figure in figures.items():
        before = f"{recorded[name]:.2f}×" if name in recorded else "–"
        values = " | ".join(f"{value:.1f} {figure.unit}".strip() for value in (figure.palaver, figure.raw))
        lines.append(f"| {name} | {values} | {figure.ratio:.2f}× | {before} |")
    if unrecorded := figures.keys() - recorded.keys():
        lines.append(f"\nNot recorded: {', '.join(sorted(unrecorded))}. {HOW_TO_RECORD}")
    for name in worse:
        figure = figures[name]
        lines.append(
            f"\n{name}: {figure.ratio:.2f} times the raw limit, recorded {recorded[name]:.2f}"
            f" (+{(figure.ratio / recorded[name] - 1) * 100:.0f} %; up to +15 % is allowed). Find out why. If it is worth"
            f" its cost, say so in the commit. {HOW_TO_RECORD}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    recorded = {name: each.ratio for name, each in read_recorded().items()}
    figures, worse = check(recorded, MEASUREMENTS)
    if options.json:
        print(json.dumps({"figures": {name: asdict(figure) for name, figure in figures.items()}, "worse": worse}))
    else:
        print(format_report(figures, worse, recorded))
    return 1 if worse or figures.keys() - recorded.keys() else 0


if __name__ == "__main__":
    sys.exit(main())

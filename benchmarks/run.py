"""One interleaved run: repetitions outermost, then workloads and sizes, the systems innermost.

A noisy minute hits every system alike, and ratios are taken within a repetition. Every measurement is a
process of its own, in the environment of its system, on a fresh copy of its store. One JSON line is written
for each.

    python -m benchmarks.run --drivers palaver,raw_full --work W1,W1L --sizes 10,1000 --reps 3
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import drivers, measure
from benchmarks.drivers import OURS
from benchmarks.places import BASE, REPOSITORY, RESULTS, VENVS
from benchmarks.seeds import SeedFailed, discard, prepare
from benchmarks.servers import Postgres
from benchmarks.workloads import CROWD, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.seeds import Ready

    Result = dict[str, Any]

SHAPES = {"W1L": "long", "W2": "long", "W4": "corpus", "W5": "long"}  # otherwise "sessions"
SIZES = {
    "W1": (10, 1_000, 10_000, 100_000),
    "W1L": (10, 1_000, 10_000),
    "W1IO": (10, 10_000),
    "W2": (50, 1_000, 10_000),
    "W3": (1_000, 10_000, 100_000),
    "W4": (100_000,),
    "W5": (1_000, 10_000),
    "W6P": (100,),
    "W6T": (100,),
    "W7": (100,),
    "W8": (10_000, 100_000),
    "W9": (100,),
    "W10": (10_000,),
}
PATIENCE = 900.0  # seconds for one measurement
SEED_PATIENCE = 3600.0


@dataclass(frozen=True)
class Step:
    """One workload at one size, by several systems."""

    work: str
    size: int
    drivers: tuple[str, ...]
    n: int = 300
    seconds: float = 8.0
    reps: int | None = None  # fewer than the run has


@dataclass
class Run:
    """What a measurement needs to know."""

    server: Postgres = field(default_factory=Postgres)
    kills: int = 20

    def measure(self, step: Step, driver: str, rep: int) -> Result:
        """The numbers of one system."""
        shape = SHAPES.get(step.work, "sessions")
        try:
            ready = prepare(driver, shape, step.size, self.server, fill)
        except SeedFailed as error:
            return {"error": str(error)}
        try:
            return {"seed_mib": ready.mib, **self._measured(step, driver, rep, ready)}
        finally:
            discard(ready)

    def _measured(self, step: Step, driver: str, rep: int, ready: Ready) -> Result:
        match step.work:
            case "W1IO":
                return traced(driver, ready, step)
            case "W6P":
                return by_processes(driver, ready, step)
            case "W7":
                return killed(driver, ready, self.kills, random.Random(100 + rep))
        return call(driver, step.work, ready.root, ready.address, size=step.size, n=step.n, seconds=step.seconds)


def perform(steps: Sequence[Step], reps: int, out: Path, *, kills: int = 20) -> None:
    """Do every step, `reps` times, and write the results."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with Postgres() as server, out.open("a") as file:

        def write(line: Result) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        run = Run(server, kills)
        write({"machine": machine(), "at": int(time.time())})
        for rep in range(reps):
            for step in steps:
                if step.reps is not None and rep >= step.reps:
                    continue
                for driver in _turned(step.drivers, rep):
                    if _too_much(step, driver):
                        continue
                    start = time.time()
                    result = run.measure(step, driver, rep)
                    took = round(time.time() - start, 1)
                    named = {"driver": driver, "work": step.work, "size": step.size, "rep": rep}
                    write({**named, "at": int(start), "took_s": took, **result})
                    _say(step, driver, rep, took, result)


def _turned(names: tuple[str, ...], by: int) -> tuple[str, ...]:
    """Another one begins in every repetition."""
    by %= max(1, len(names))
    return names[by:] + names[:by]


def _too_much(step: Step, driver: str) -> bool:
    return step.work not in SHAPES and step.size > drivers.load(driver).most_sessions


def _say(step: Step, driver: str, rep: int, took: float, result: Result) -> None:
    outcome = result.get("error") or result.get("unsupported") or ""
    done = f"# {rep} {step.work:5} {step.size:>9,} {driver:18} {took:6.1f} s  {outcome}"
    print(done.rstrip(), file=sys.stderr, flush=True)


# -- processes ----------------------------------------------------------------------------------------------


def interpreter(driver: str) -> str:
    """The Python that has the system."""
    venv = drivers.load(driver).venv
    return sys.executable if venv == OURS else str(VENVS / venv / "bin" / "python")


@cache
def installed(driver: str) -> bool:
    """Whether the system can be measured here."""
    python = interpreter(driver)
    if not os.path.exists(python):
        return False
    modules = drivers.load(driver).modules
    look = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
    asked = [python, "-P", "-c", look]
    return subprocess.run(asked, capture_output=True, timeout=60, check=False).returncode == 0


def command(driver: str, work: str, root: Path, **options: object) -> list[str]:
    """The arguments that start a worker."""
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    worker = ["-P", "-m", "benchmarks.worker", "--driver", driver, "--work", work, "--root", str(root)]
    return [interpreter(driver), *worker, *given]


def environment(address: str) -> dict[str, str]:
    """Of a worker: ours to import, bytecode kept as in an ordinary installation."""
    ours = {"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "", "NO_COLOR": "1"}
    return {**os.environ, **ours, "PERF_PG_DSN": address}


def call(
    driver: str,
    work: str,
    root: Path,
    address: str,
    *,
    given: str | None = None,
    patience: float = PATIENCE,
    before: Sequence[str] = (),
    **options: object,
) -> Result:
    """The result of one worker."""
    try:
        done = subprocess.run(
            [*before, *command(driver, work, root, **options)],
            input=given,
            capture_output=True,
            text=True,
            timeout=patience,
            env=environment(address),
            cwd=tempfile.gettempdir(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {patience:.0f} s"}
    result = _result_in(done.stdout)
    if result is not None:
        return result
    last = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()][-4:]
    return {"error": f"exit {done.returncode}: {' | '.join(last)}"[-500:]}


def _result_in(output: str) -> Result | None:
    for line in reversed(output.splitlines()):
        if line.startswith("RESULT "):
            result: Result = json.loads(line.removeprefix("RESULT "))
            return result
    return None


def fill(driver: str, root: Path, shape: str, size: int, address: str) -> Result:
    """Run the seed of a driver."""
    return call(driver, "seed", root, address, shape=shape, size=size, patience=SEED_PATIENCE)


# -- workloads of more than one process ---------------------------------------------------------------------

_TRACED = (
    "fsync,fdatasync,sync_file_range,msync,write,pwrite64,pwritev,rename,renameat,renameat2,unlink,unlinkat,"
    "ftruncate,openat"
)


def traced(driver: str, ready: Ready, step: Step) -> Result:
    """W1IO: what a turn asks of the disk, by strace between two marks."""
    if ready.address:
        return {"unsupported": "the server does the writing"}
    trace = BASE / "scratch" / f"trace-{driver}"
    strace = ("strace", "-f", "-o", str(trace), "-e", f"trace={_TRACED}")
    result = call(driver, "W1IO", ready.root, "", size=step.size, n=20, seconds=20, before=strace)
    if "error" in result or "unsupported" in result:
        return result
    try:
        with trace.open(errors="replace") as lines:
            counts, written = _counted(lines)
    finally:
        trace.unlink()
    turns = result["turn"]["n"]
    syncs = counts.get("fsync", 0) + counts.get("fdatasync", 0)
    return {
        "turns": turns,
        "fsyncs_per_turn": round(syncs / turns, 2),
        "bytes_per_turn": written // turns,
        "calls_per_turn": {name: round(count / turns, 2) for name, count in counts.items()},
    }


def _counted(lines: Iterable[str]) -> tuple[dict[str, int], int]:
    """System calls by name and bytes written, between the marks."""
    counts: dict[str, int] = {}
    written = 0
    inside = False
    for line in lines:
        if "/nonexistent/BEGIN" in line:
            inside = True
            continue
        if "/nonexistent/END" in line:
            break
        named = re.match(r"\d+\s+(?P<resumed><\.\.\. )?(?P<name>\w+)", line)
        if not inside or not named:
            continue
        name = named["name"]
        ended = re.search(r"= (\d+)$", line.strip())
        if name.startswith(("write", "pwrite")) and ended:
            written += int(ended[1])
        if not named["resumed"]:  # a call that another thread interrupts has two lines
            counts[name] = counts.get(name, 0) + 1
    return counts, written


def by_processes(driver: str, ready: Ready, step: Step) -> Result:
    """W6P: four processes take turns on one store."""
    processes = [
        subprocess.Popen(
            command(driver, "one-of-several", ready.root, n=step.n, number=number),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(ready.address),
            cwd=tempfile.gettempdir(),
        )
        for number in range(CROWD)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            while (line := process.stdout.readline()) and line.strip() != "ready":
                pass
        deadline = time.monotonic() + 420
        for process in processes:
            assert process.stdin is not None
            if process.poll() is None:
                process.stdin.write("go\n")
                process.stdin.flush()
        outputs = [_rest_of(process, deadline) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    results = [result for output in outputs if (result := _result_in(output)) is not None]
    if not results:
        return {"error": "no process came through"}
    acked = [pair for result in results for pair in result["acked"]]
    wall = max(result["end"] for result in results) - min(result["start"] for result in results)
    return {
        "form": "processes",
        "turns_per_s": round(len(acked) / 2 / wall, 1),
        "failed_processes": CROWD - len(results),
        "errors": together(result["errors"] for result in results),
        **call(driver, "check", ready.root, ready.address, given=json.dumps(acked)),
    }


def _rest_of(process: subprocess.Popen[str], deadline: float) -> str:
    try:
        return process.communicate(timeout=max(1.0, deadline - time.monotonic()))[0]
    except subprocess.TimeoutExpired:
        return ""


def killed(driver: str, ready: Ready, kills: int, rng: random.Random) -> Result:
    """W7: append, say so, be killed at any moment, again and again; then look for what was acknowledged."""
    acked, failed = {}, 0
    for number in range(kills):
        with subprocess.Popen(
            command(driver, "append-until-killed", ready.root, number=number),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(ready.address),
            cwd=tempfile.gettempdir(),
        ) as victim:
            assert victim.stdout is not None
            try:
                said = victim.stdout.readline()
                if not said:
                    failed += 1
                    continue
                time.sleep(rng.uniform(0.01, 0.6))
            finally:
                victim.send_signal(signal.SIGKILL)
            said += victim.stdout.read()
        whole = [line for line in said.split(b"\n")[:-1] if line.isdigit()]
        acked[number] = int(whole[-1])
    left = call(driver, "after-the-kills", ready.root, ready.address, given=json.dumps(acked))
    return {"kills": kills, "did_not_open": failed, **left}


# -- the machine --------------------------------------------------------------------------------------------


def machine() -> Result:
    """What everything is measured on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "fdatasync": measure.device(),
    }


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def stop_politely() -> None:
    """A termination ends like an interruption: servers are stopped on the way out."""

    def stop(*_: object) -> None:
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, stop)


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drivers", default="palaver,raw_full", help="of " + ", ".join(drivers.REGISTRY))
    parser.add_argument("--work", default="W1", help="of " + ", ".join(SIZES))
    parser.add_argument("--sizes", default="", help="by default those of the full form")
    parser.add_argument("--reps", type=int, default=1)
    parser.add_argument("--n", type=int, default=Step.n, help="turns at most")
    parser.add_argument("--seconds", type=float, default=Step.seconds, help="per measurement, at most")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS / "run.jsonl", help="to which results are added")
    given = parser.parse_args()
    steps = [
        Step(work, int(size), tuple(given.drivers.split(",")), given.n, given.seconds)
        for work in given.work.split(",")
        for size in (given.sizes.split(",") if given.sizes else SIZES[work])
    ]
    stop_politely()
    perform(steps, given.reps, given.out, kills=given.kills)


if __name__ == "__main__":
    main()

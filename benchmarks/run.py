"""Runs workloads interleaved: repetitions in the outermost loop, then workloads and sizes, systems in the innermost.

So a noisy minute affects all systems equally, and ratios are computed within a repetition. Every measurement runs in
a process of its own, in the environment of its system, on a new copy of its store, and writes one JSON line.

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
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import drivers, measure
from benchmarks.drivers import THIS_INTERPRETER
from benchmarks.paths import BASE_DIR, REPOSITORY_DIR, RESULTS_DIR, VENVS_DIR
from benchmarks.postgres_server import PostgresServer
from benchmarks.seeds import SeedFailed, discard_store, prepare_store
from benchmarks.workloads import CONCURRENT_CALLERS, sum_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.seeds import PreparedStore

    Result = dict[str, Any]

SHAPES = {"W1L": "long", "W2": "long", "W4": "corpus", "W5": "long"}  # default: "sessions"
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
# What is measured by a module of its own, which prints JSON.
MODULES = {
    "PATH": ("benchmarks.path", "--sessions", "10", "--seconds", "1"),
    "HTTP": ("benchmarks.http", "--short"),
    "GUARD": ("benchmarks.guard",),
}
TIMEOUT_SECONDS = 900.0  # for one measurement
SEED_TIMEOUT_SECONDS = 3600.0


@dataclass(frozen=True)
class Step:
    """One workload at one size, for several systems."""

    work: str
    size: int
    drivers: tuple[str, ...]
    n: int = 300
    seconds: float = 8.0
    reps: int | None = None  # if fewer than the run does


@dataclass
class Runner:
    """Runs single measurements."""

    server: PostgresServer = field(default_factory=PostgresServer)
    kills: int = 20

    def measure(self, step: Step, driver: str, rep: int) -> Result:
        """Measure one system on a new copy of its store."""
        if step.work in MODULES:
            return run_module(step.work)
        shape = SHAPES.get(step.work, "sessions")
        try:
            store = prepare_store(driver, shape, step.size, self.server, fill_store)
        except SeedFailed as error:
            return {"error": str(error)}
        try:
            return {"seed_mib": store.mib, **self._measure_step(step, driver, rep, store)}
        finally:
            discard_store(store)

    def _measure_step(self, step: Step, driver: str, rep: int, store: PreparedStore) -> Result:
        match step.work:
            case "W1IO":
                return measure_writes(driver, store, step)
            case "W6P":
                return measure_processes(driver, store, step)
            case "W7":
                return measure_kills(driver, store, self.kills, random.Random(100 + rep))
        return run_worker(driver, step.work, store.root, store.url, size=step.size, n=step.n, seconds=step.seconds)


def run_steps(steps: Sequence[Step], reps: int, out: Path, *, kills: int = 20) -> None:
    """Run every step `reps` times and append the results to the file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with PostgresServer() as server, out.open("a") as file:

        def write(line: Result) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        runner = Runner(server, kills)
        write({"machine": describe_machine(), "at": int(time.time())})
        for rep in range(reps):
            for step in steps:
                if step.reps is not None and rep >= step.reps:
                    continue
                for driver in _rotate(step.drivers, rep):
                    if _is_too_large(step, driver):
                        continue
                    start = time.time()
                    result = runner.measure(step, driver, rep)
                    took = round(time.time() - start, 1)
                    labels = {"driver": driver, "work": step.work, "size": step.size, "rep": rep}
                    write({**labels, "at": int(start), "took_s": took, **result})
                    _print_progress(step, driver, rep, took, result)


def _rotate(names: tuple[str, ...], offset: int) -> tuple[str, ...]:
    """Start with another driver in every repetition."""
    offset %= max(1, len(names))
    return names[offset:] + names[:offset]


def _is_too_large(step: Step, driver: str) -> bool:
    return step.work not in SHAPES and step.size > drivers.load(driver).max_sessions


def _print_progress(step: Step, driver: str, rep: int, took: float, result: Result) -> None:
    outcome = result.get("error") or result.get("unsupported") or ""
    line = f"# {rep} {step.work:5} {step.size:>9,} {driver:18} {took:6.1f} s  {outcome}"
    print(line.rstrip(), file=sys.stderr, flush=True)


# -- processes ----------------------------------------------------------------------------------------------


def find_interpreter(driver: str) -> str:
    """Return the Python interpreter of the system's environment."""
    venv = drivers.load(driver).venv
    return sys.executable if venv == THIS_INTERPRETER else str(VENVS_DIR / venv / "bin" / "python")


@cache
def is_installed(driver: str) -> bool:
    """Check whether the system's modules can be imported in its environment."""
    python = find_interpreter(driver)
    if not os.path.exists(python):
        return False
    modules = drivers.load(driver).modules
    script = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
    command = [python, "-P", "-c", script]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def build_command(driver: str, work: str, root: Path, **options: object) -> list[str]:
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    worker = ["-P", "-m", "benchmarks.worker", "--driver", driver, "--work", work, "--root", str(root)]
    return [find_interpreter(driver), *worker, *arguments]


def build_environment(url: str) -> dict[str, str]:
    """Return the environment of a worker: with this repository to import, and bytecode caching as in a normal install."""
    overrides = {"PYTHONPATH": str(REPOSITORY_DIR), "PYTHONDONTWRITEBYTECODE": "", "NO_COLOR": "1"}
    return {**os.environ, **overrides, "PERF_PG_DSN": url}


def run_worker(
    driver: str,
    work: str,
    root: Path,
    url: str,
    *,
    input_text: str | None = None,
    timeout: float = TIMEOUT_SECONDS,
    command_prefix: Sequence[str] = (),
    **options: object,
) -> Result:
    """Run a worker and return its result, or an error."""
    try:
        completed = subprocess.run(
            [*command_prefix, *build_command(driver, work, root, **options)],
            input=input_text,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=build_environment(url),
            cwd=tempfile.gettempdir(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"timed out after {timeout:.0f} s"}
    result = _parse_result(completed.stdout)
    if result is not None:
        return result
    last_lines = [line for line in (completed.stderr or completed.stdout).splitlines() if line.strip()][-4:]
    return {"error": f"exit {completed.returncode}: {' | '.join(last_lines)}"[-500:]}


def run_module(work: str) -> Result:
    """Run a module that compares Palaver with a raw limit by itself."""
    command = [sys.executable, "-P", "-m", *MODULES[work], "--json"]
    completed = subprocess.run(
        command, env=build_environment(""), capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    try:
        found: Any = json.loads(completed.stdout)
    except ValueError:
        return {"error": f"exit {completed.returncode}: {completed.stderr}"[-500:]}
    match work:
        case "PATH":
            by_level: Result = {}
            for each in found:
                by_level.setdefault(str(each["concurrent"]), {})[each["kind"]] = each["whole_p50"]
            return {
                "levels": {level: each | {"ratio": each["path"] / each["bare"]} for level, each in by_level.items()}
            }
        case "HTTP":
            return {"rows": dict(map(_summarize_row, found["found"]))}
    result: Result = found
    return result


def _summarize_row(row: Result) -> tuple[str, Result]:
    """Return the name of a row of `benchmarks.http`, without what is in parentheses, and its medians."""
    palaver, bare = (statistics.median(row[column]) for column in ("palaver", "bare"))
    return row["what"].partition(" (")[0], {
        "palaver": palaver,
        "bare": bare,
        "ratio": palaver / bare if bare else None,
        "unit": row["unit"],
    }


def _parse_result(output: str) -> Result | None:
    for line in reversed(output.splitlines()):
        if line.startswith("RESULT "):
            result: Result = json.loads(line.removeprefix("RESULT "))
            return result
    return None


def fill_store(driver: str, root: Path, shape: str, size: int, url: str) -> Result:
    """Let a driver fill an empty store."""
    return run_worker(driver, "seed", root, url, shape=shape, size=size, timeout=SEED_TIMEOUT_SECONDS)


# -- workloads with several processes ---------------------------------------------------------------------

_TRACED_CALLS = (
    "fsync,fdatasync,sync_file_range,msync,write,pwrite64,pwritev,rename,renameat,renameat2,unlink,unlinkat,"
    "ftruncate,openat"
)


def measure_writes(driver: str, store: PreparedStore, step: Step) -> Result:
    """W1IO: count the disk writes and syncs of a turn with strace, between two marks."""
    if store.url:
        return {"unsupported": "the database server writes, not this process"}
    trace = BASE_DIR / "scratch" / f"trace-{driver}"
    strace = ("strace", "-f", "-o", str(trace), "-e", f"trace={_TRACED_CALLS}")
    result = run_worker(driver, "W1IO", store.root, "", size=step.size, n=20, seconds=20, command_prefix=strace)
    if "error" in result or "unsupported" in result:
        return result
    try:
        with trace.open(errors="replace") as lines:
            counts, written = _count_calls(lines)
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


def _count_calls(lines: Iterable[str]) -> tuple[dict[str, int], int]:
    """Count the system calls by name, and the bytes written, between the two marks."""
    counts: dict[str, int] = {}
    written = 0
    inside = False
    for line in lines:
        if "/nonexistent/BEGIN" in line:
            inside = True
            continue
        if "/nonexistent/END" in line:
            break
        match = re.match(r"\d+\s+(?P<resumed><\.\.\. )?(?P<name>\w+)", line)
        if not inside or not match:
            continue
        name = match["name"]
        returned = re.search(r"= (\d+)$", line.strip())
        if name.startswith(("write", "pwrite")) and returned:
            written += int(returned[1])
        if not match["resumed"]:  # an interrupted call has two lines
            counts[name] = counts.get(name, 0) + 1
    return counts, written


def measure_processes(driver: str, store: PreparedStore, step: Step) -> Result:
    """W6P: run turns in four processes on one store."""
    processes = [
        subprocess.Popen(
            build_command(driver, "one-process", store.root, n=step.n, number=number),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=build_environment(store.url),
            cwd=tempfile.gettempdir(),
        )
        for number in range(CONCURRENT_CALLERS)
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
        outputs = [_read_rest(process, deadline) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    results = [result for output in outputs if (result := _parse_result(output)) is not None]
    if not results:
        return {"error": "all processes failed"}
    acked = [pair for result in results for pair in result["acked"]]
    wall = max(result["end"] for result in results) - min(result["start"] for result in results)
    return {
        "form": "processes",
        "turns_per_s": round(len(acked) / 2 / wall, 1),
        "failed_processes": CONCURRENT_CALLERS - len(results),
        "errors": sum_counts(result["errors"] for result in results),
        **run_worker(driver, "check", store.root, store.url, input_text=json.dumps(acked)),
    }


def _read_rest(process: subprocess.Popen[str], deadline: float) -> str:
    try:
        return process.communicate(timeout=max(1.0, deadline - time.monotonic()))[0]
    except subprocess.TimeoutExpired:
        return ""


def measure_kills(driver: str, store: PreparedStore, kills: int, rng: random.Random) -> Result:
    """W7: kill processes that append and acknowledge messages, at random moments; then look for every acknowledged one."""
    acked, failed = {}, 0
    for number in range(kills):
        with subprocess.Popen(
            build_command(driver, "append-until-killed", store.root, number=number),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=build_environment(store.url),
            cwd=tempfile.gettempdir(),
        ) as victim:
            assert victim.stdout is not None
            try:
                output = victim.stdout.readline()
                if not output:
                    failed += 1
                    continue
                time.sleep(rng.uniform(0.01, 0.6))
            finally:
                victim.send_signal(signal.SIGKILL)
            output += victim.stdout.read()
        complete_lines = [line for line in output.split(b"\n")[:-1] if line.isdigit()]
        acked[number] = int(complete_lines[-1])
    findings = run_worker(driver, "check-after-kills", store.root, store.url, input_text=json.dumps(acked))
    return {"kills": kills, "did_not_open": failed, **findings}


# -- the machine --------------------------------------------------------------------------------------------


def describe_machine() -> Result:
    return {
        "cpu": _read_cpu_name(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "fdatasync": measure.measure_device(),
    }


def _read_cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def exit_on_sigterm() -> None:
    """Let SIGTERM raise SystemExit, so that `finally` blocks stop the servers."""

    def stop(*_: object) -> None:
        raise SystemExit(143)

    signal.signal(signal.SIGTERM, stop)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drivers", default="palaver,raw_full", help="choose from " + ", ".join(drivers.REGISTRY))
    parser.add_argument("--work", default="W1", help="choose from " + ", ".join(SIZES))
    parser.add_argument("--sizes", default="", help="default: the sizes of --full")
    parser.add_argument("--reps", type=int, default=1)
    parser.add_argument("--n", type=int, default=Step.n, help="maximum number of turns")
    parser.add_argument("--seconds", type=float, default=Step.seconds, help="maximum seconds per measurement")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS_DIR / "run.jsonl", help="file to append the results to")
    options = parser.parse_args()
    steps = [
        Step(work, int(size), tuple(options.drivers.split(",")), options.n, options.seconds)
        for work in options.work.split(",")
        for size in (options.sizes.split(",") if options.sizes else SIZES[work])
    ]
    exit_on_sigterm()
    run_steps(steps, options.reps, options.out, kills=options.kills)


if __name__ == "__main__":
    main()

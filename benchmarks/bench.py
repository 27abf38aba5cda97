"""Benchmarks Palaver and its peers on the same workloads. Prints tables, and whether each target is met.

    python -m benchmarks              the short form: 5 to 8 minutes, plus filling the stores on the first run
    python -m benchmarks --full       everything, takes hours: every peer at every size, a million messages
    python -m benchmarks --peers      install the peers first, each in its own virtual environment
    python -m benchmarks --only W1,W9

Peers that are not installed are skipped. The last line of the output names the files with the results and the report;
they are never inside the repository.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

if __package__ in {None, ""}:  # run as a file: import as if run as a module
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import drivers, run
from benchmarks.paths import BENCHMARKS_DIR, RESULTS_DIR
from benchmarks.report import build_report
from benchmarks.results import Results
from benchmarks.run import Step

SQLITE_DRIVERS = ("raw_full", "raw_apsw", "palaver")
POSTGRES_DRIVERS = ("raw_pg", "palaver_pg")
CORE_DRIVERS = SQLITE_DRIVERS + POSTGRES_DRIVERS

# One variant of each peer for the short form: the one that its documentation shows first.
COMMON_PEERS = ("hermes", "oa_sqlite", "langgraph", "adk_sqlite", "agno", "nanobot", "llm")


def list_short_steps() -> list[Step]:
    """Return the most informative steps that fit into a few minutes; peers run once, at small sizes."""
    return [
        Step("W1", 10, CORE_DRIVERS, n=1000, seconds=2),
        Step("W1", 10_000, CORE_DRIVERS, n=1000, seconds=2),
        Step("W1", 100_000, CORE_DRIVERS, n=1000, seconds=2),
        Step("W1L", 10_000, CORE_DRIVERS, n=500, seconds=2),
        Step("W2", 50, CORE_DRIVERS, seconds=1),
        Step("W2", 10_000, CORE_DRIVERS, seconds=1),
        Step("W3", 1_000, CORE_DRIVERS, seconds=1),
        Step("W3", 100_000, CORE_DRIVERS, seconds=1),
        Step("W4", 100_000, ("raw_full_fts", "palaver", "palaver_pg"), seconds=2, reps=2),
        Step("W9", 100, (*SQLITE_DRIVERS, "palaver_aio", "palaver_pg"), seconds=1.5),
        Step("W8", 100_000, SQLITE_DRIVERS, reps=2),
        Step("W10", 10_000, ("palaver",), reps=1),
        Step("W1", 10, (*COMMON_PEERS, "palaver_calls", "palaver_aio"), n=200, seconds=1, reps=1),
        Step("W1", 1_000, ("raw_full", "palaver", *COMMON_PEERS), n=200, seconds=1, reps=1),
        Step("W1L", 1_000, ("raw_full", "palaver", *COMMON_PEERS), n=100, seconds=1, reps=1),
        Step("W2", 50, COMMON_PEERS, seconds=0.5, reps=1),
        Step("W3", 1_000, COMMON_PEERS, seconds=0.5, reps=1),
    ]


def list_full_steps() -> list[Step]:
    raw = ("raw_full", "raw_normal", "raw_full_fts", "raw_full_fts_lazy", "raw_apsw", "raw_pg")
    palaver = ("palaver", "palaver_calls", "palaver_aio", "palaver_pg")
    everything = (*raw, *palaver, *drivers.PEERS)
    without_lazy = tuple(name for name in everything if name != "raw_full_fts_lazy")
    with_search = ("raw_full", "raw_full_fts", "palaver", "palaver_pg", "hermes", "llm")
    steps = [Step("W1", size, everything, n=1000, seconds=5) for size in (10, 1_000, 10_000, 100_000)]
    steps += [Step("W1L", size, without_lazy, n=300, seconds=4) for size in (10, 1_000, 10_000)]
    steps += [Step("W2", size, without_lazy, seconds=2.5) for size in (50, 1_000, 10_000)]
    steps += [Step("W3", size, without_lazy, seconds=2) for size in (1_000, 10_000, 100_000)]
    steps += [Step("W4", 100_000, with_search, seconds=4)]
    steps += [Step("W5", size, without_lazy, seconds=3) for size in (1_000, 10_000)]
    steps += [Step("W6P", 100, without_lazy, n=500), Step("W6T", 100, without_lazy, n=500)]
    steps += [Step("W8", 10_000, without_lazy), Step("W8", 100_000, CORE_DRIVERS)]
    steps += [Step("W9", 100, without_lazy, seconds=3), Step("W10", 10_000, ("palaver",))]
    steps += [Step("W1IO", size, without_lazy, reps=1) for size in (10, 10_000)]
    steps += [Step("W7", 100, without_lazy, reps=1)]
    million_drivers = ("raw_full_fts", "palaver", "palaver_pg", "hermes")
    return [*steps, Step("W4", 1_000_000, million_drivers, seconds=4, reps=1)]


def select_available(steps: list[Step], only: set[str]) -> list[Step]:
    """Return the selected steps, without the systems that are not installed."""
    selected = [step for step in steps if not only or step.work in only]
    missing = {name for step in selected for name in step.drivers if not run.is_installed(name)}
    if missing:
        print(f"# not installed, skipped: {', '.join(sorted(missing))}", file=sys.stderr)
    available = []
    for step in selected:
        names = tuple(name for name in step.drivers if name not in missing)
        if names:
            available.append(Step(step.work, step.size, names, step.n, step.seconds, step.reps))
    return available


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--short", action="store_true", help="a few minutes (the default)")
    form.add_argument("--full", action="store_true", help="everything")
    parser.add_argument("--peers", action="store_true", help="install the peers first")
    parser.add_argument("--only", default="", metavar="W1,W2", help="only these workloads")
    parser.add_argument("--reps", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument("--out", type=Path, help="file for the results (default: a new one)")
    options = parser.parse_args()
    if options.peers and subprocess.run([str(BENCHMARKS_DIR / "install_peers.sh")], check=False).returncode:
        print("# some peers could not be installed", file=sys.stderr)
    only = {name for name in options.only.upper().split(",") if name}
    steps = select_available(list_full_steps() if options.full else list_short_steps(), only)
    if not steps:
        parser.error("nothing to measure: check --only, or install the peers with --peers")
    out = options.out or RESULTS_DIR / time.strftime("%Y%m%d-%H%M%S.jsonl")
    run.exit_on_sigterm()
    start = time.monotonic()
    try:
        run.run_steps(steps, options.reps, out)
    except KeyboardInterrupt:
        print("# interrupted; the report covers what was measured so far", file=sys.stderr)
    report = build_report(Results.read([out]))
    out.with_suffix(".md").write_text(report)
    print(report)
    minutes = (time.monotonic() - start) / 60
    print(f"# {minutes:.1f} minutes; results in {out}, report next to it", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

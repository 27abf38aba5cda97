"""Benchmarks Palaver next to the raw limit and its peers. Prints whether each target is met, and the tables.

    python -m benchmarks              every target in less than ten minutes, plus filling the stores on the first run
    python -m benchmarks --full       everything, takes hours: every peer at every size, a million messages
    python -m benchmarks --full --peers   install the peers first, each in its own virtual environment
    python -m benchmarks --only W1,PATH
    python -m benchmarks --record     write the ratios to the raw limit into recorded.json: of a release, or of a change
                                      that is worth what it costs

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
from benchmarks.recorded import RECORDED_FILE, record
from benchmarks.report import build_report
from benchmarks.results import Results
from benchmarks.run import MODULES, Step
from benchmarks.targets import list_ratios

CORE_DRIVERS = ("raw_full", "raw_apsw", "palaver", "raw_pg", "palaver_pg")


def list_short_steps() -> list[Step]:
    """Return what the targets need, in less than ten minutes."""
    forms = ("raw_full", "palaver", "palaver_aio", "palaver_calls")
    postgres = ("raw_pg", "palaver_pg")
    return [
        *(Step("W1", size, (*forms, *postgres), n=600, seconds=1.5) for size in (10, 10_000)),
        Step("W1", 1_000, ("raw_full", "palaver"), n=600, seconds=1.5),
        Step("W2", 10_000, ("raw_full", "palaver", *postgres), seconds=0.5, reps=3),
        Step("W3", 100_000, ("raw_full", "palaver"), seconds=0.5, reps=3),
        Step("W4", 100_000, ("raw_full_fts", "palaver_pg"), seconds=1, reps=2),
        Step("W9", 100, ("raw_full", "palaver", "palaver_aio", *postgres), seconds=1.5, reps=3),
        Step("W10", 10_000, ("palaver",), reps=2),
        *(Step(work, 0, ("palaver",), reps=1) for work in MODULES),
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
    steps += [Step("W4", 1_000_000, million_drivers, seconds=4, reps=1)]
    return [*steps, *(Step(work, 0, ("palaver",), reps=1) for work in MODULES)]


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
    parser.add_argument("--record", action="store_true", help=f"write the ratios into {RECORDED_FILE.name}")
    parser.add_argument("--reps", type=int, help="repetitions (default: 5; with --full: 3)")
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
        run.run_steps(steps, options.reps or (3 if options.full else 5), out)
    except KeyboardInterrupt:
        print("# interrupted; the report covers what was measured so far", file=sys.stderr)
    results = Results.read([out])
    report = build_report(results)
    out.with_suffix(".md").write_text(report)
    print(report)
    if options.record:
        record(list_ratios(results), f"{results.machines[-1]['cpu']}, {results.machines[-1]['cores']} cores")
    minutes = (time.monotonic() - start) / 60
    print(f"# {minutes:.1f} minutes; results in {out}, report next to it", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

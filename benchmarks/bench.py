"""Palaver and its peers on the same work, as tables and a verdict on each target.

    python -m benchmarks              the short form: 5 to 8 minutes once its stores are filled
    python -m benchmarks --full       everything, hours: every peer at every size, a million messages
    python -m benchmarks --peers      install the peers first, each in an environment of its own
    python -m benchmarks --only W1,W9

Peers that are not installed are left out. Results and the report are written to the folder that is named in
the end, never into the repository.
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
from benchmarks.places import HERE, RESULTS
from benchmarks.report import markdown
from benchmarks.results import Results
from benchmarks.run import Step

OURS = ("raw_full", "raw_apsw", "palaver")
SERVER = ("raw_pg", "palaver_pg")
CORE = OURS + SERVER

# One of each kind for the short form: the variant that its own documentation shows first.
USUAL = ("hermes", "oa_sqlite", "langgraph", "adk_sqlite", "agno", "nanobot", "llm")


def short() -> list[Step]:
    """What tells most in a few minutes; the peers at small sizes, once."""
    return [
        Step("W1", 10, CORE, n=1000, seconds=2),
        Step("W1", 10_000, CORE, n=1000, seconds=2),
        Step("W1", 100_000, CORE, n=1000, seconds=2),
        Step("W1L", 10_000, CORE, n=500, seconds=2),
        Step("W2", 50, CORE, seconds=1),
        Step("W2", 10_000, CORE, seconds=1),
        Step("W3", 1_000, CORE, seconds=1),
        Step("W3", 100_000, CORE, seconds=1),
        Step("W4", 100_000, ("raw_full_fts", "palaver", "palaver_pg"), seconds=2, reps=2),
        Step("W9", 100, (*OURS, "palaver_aio", "palaver_pg"), seconds=1.5),
        Step("W8", 100_000, OURS, reps=2),
        Step("W10", 10_000, ("palaver",), reps=1),
        Step("W1", 10, (*USUAL, "palaver_calls", "palaver_aio"), n=200, seconds=1, reps=1),
        Step("W1", 1_000, ("raw_full", "palaver", *USUAL), n=200, seconds=1, reps=1),
        Step("W1L", 1_000, ("raw_full", "palaver", *USUAL), n=100, seconds=1, reps=1),
        Step("W2", 50, USUAL, seconds=0.5, reps=1),
        Step("W3", 1_000, USUAL, seconds=0.5, reps=1),
    ]


def full() -> list[Step]:
    """Everything."""
    raw = ("raw_full", "raw_normal", "raw_full_fts", "raw_full_fts_lazy", "raw_apsw", "raw_pg")
    ours = ("palaver", "palaver_calls", "palaver_aio", "palaver_pg")
    everyone = (*raw, *ours, *drivers.PEERS)
    plain = tuple(name for name in everyone if name != "raw_full_fts_lazy")
    searching = ("raw_full", "raw_full_fts", "palaver", "palaver_pg", "hermes", "llm")
    steps = [Step("W1", size, everyone, n=1000, seconds=5) for size in (10, 1_000, 10_000, 100_000)]
    steps += [Step("W1L", size, plain, n=300, seconds=4) for size in (10, 1_000, 10_000)]
    steps += [Step("W2", size, plain, seconds=2.5) for size in (50, 1_000, 10_000)]
    steps += [Step("W3", size, plain, seconds=2) for size in (1_000, 10_000, 100_000)]
    steps += [Step("W4", 100_000, searching, seconds=4)]
    steps += [Step("W5", size, plain, seconds=3) for size in (1_000, 10_000)]
    steps += [Step("W6P", 100, plain, n=500), Step("W6T", 100, plain, n=500)]
    steps += [Step("W8", 10_000, plain), Step("W8", 100_000, CORE)]
    steps += [Step("W9", 100, plain, seconds=3), Step("W10", 10_000, ("palaver",))]
    steps += [Step("W1IO", size, plain, reps=1) for size in (10, 10_000)]
    steps += [Step("W7", 100, plain, reps=1)]
    million = ("raw_full_fts", "palaver", "palaver_pg", "hermes")
    return [*steps, Step("W4", 1_000_000, million, seconds=4, reps=1)]


def available(steps: list[Step], only: set[str]) -> list[Step]:
    """The steps that are asked for, without the systems that are not installed here."""
    wanted = [step for step in steps if not only or step.work in only]
    missing = {name for step in wanted for name in step.drivers if not run.installed(name)}
    if missing:
        print(f"# not installed, left out: {', '.join(sorted(missing))}", file=sys.stderr)
    kept = []
    for step in wanted:
        names = tuple(name for name in step.drivers if name not in missing)
        if names:
            kept.append(Step(step.work, step.size, names, step.n, step.seconds, step.reps))
    return kept


def main() -> int:
    """Measure, print the report, say where everything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--short", action="store_true", help="a few minutes (the default)")
    form.add_argument("--full", action="store_true", help="everything")
    parser.add_argument("--peers", action="store_true", help="install the peers first")
    parser.add_argument("--only", default="", metavar="W1,W2", help="these workloads alone")
    parser.add_argument("--reps", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument("--out", type=Path, help="a file for the results (default: a new one)")
    given = parser.parse_args()
    if given.peers and subprocess.run([str(HERE / "install_peers.sh")], check=False).returncode:
        print("# some peers could not be installed", file=sys.stderr)
    only = {name for name in given.only.upper().split(",") if name}
    steps = available(full() if given.full else short(), only)
    if not steps:
        parser.error("nothing to measure: check --only, or install the peers with --peers")
    out = given.out or RESULTS / time.strftime("%Y%m%d-%H%M%S.jsonl")
    run.stop_politely()
    began = time.monotonic()
    try:
        run.perform(steps, given.reps, out)
    except KeyboardInterrupt:
        print("# interrupted; the report covers what was measured until now", file=sys.stderr)
    report = markdown(Results.read([out]))
    out.with_suffix(".md").write_text(report)
    print(report)
    minutes = (time.monotonic() - began) / 60
    print(f"# {minutes:.1f} minutes; results in {out}, report beside them", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

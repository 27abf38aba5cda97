"""Runs one workload of one driver in this process and prints its result as one JSON line.

`run.py` starts it with the interpreter of the system under test.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import corpus, drivers, workloads
from benchmarks.corpus import extract_tokens, make_text
from benchmarks.drivers import UnsupportedError
from benchmarks.workloads import Caller, Options

if TYPE_CHECKING:
    from benchmarks.drivers import Driver

WORKLOADS = {
    "W1": workloads.w1,
    "W1IO": workloads.w1,
    "W1L": workloads.w1l,
    "W2": workloads.w2,
    "W3": workloads.w3,
    "W4": workloads.w4,
    "W5": workloads.w5,
    "W6T": workloads.w6t,
    "W8": workloads.w8,
    "W9": workloads.w9,
    "W10": workloads.w10,
}


def run_one_process(driver: Driver, number: int, n: int) -> dict[str, Any]:
    """Run one process of W6P: open the store, wait for a line on standard input, run the turns."""
    driver.open()
    caller = Caller(number)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic()
    workloads.run_turns(driver, caller, n)
    return {"start": start, "end": time.monotonic(), "errors": caller.errors, "acked": caller.acked}


def append_until_killed(driver: Driver, number: int) -> None:
    """Append messages until the process is killed (W7). Prints the number of each message once it is acknowledged."""
    driver.open()
    i = 0
    while True:
        driver.append(f"crash{number}", "user" if i % 2 == 0 else "assistant", make_text(i, "n"))
        os.write(1, b"%d\n" % i)
        i += 1


def check_after_kills(driver: Driver, acked: dict[str, int]) -> dict[str, Any]:
    """Look for the messages that killed processes had acknowledged; `acked` has the highest number of each process."""
    result = {"acked": 0, "lost": 0, "torn": 0, "unreadable": 0, "more": 0}
    try:
        driver.open()
    except Exception as error:  # a store that does not open is a finding
        return {**result, "unreadable": len(acked), "examples": [f"open: {error}"[:100]]}
    examples: list[str] = []
    for number, highest in acked.items():
        result["acked"] += highest + 1
        try:
            tokens = extract_tokens(driver.load(f"crash{number}"))
        except Exception as error:  # an unreadable chat is a finding
            result["unreadable"] += 1
            examples.append(f"{number}: {type(error).__name__}: {error}"[:100])
            continue
        stored = set(tokens)
        missing = sum(1 for i in range(highest + 1) if f"n{i}" not in stored)
        result["lost"] += missing
        result["more"] += max(0, len(tokens) - highest - 1)
        if tokens != [f"n{i}" for i in range(len(tokens))]:
            result["torn"] += 1
            examples.append(f"{number}: {len(tokens)} messages out of order, {missing} missing")
    return {**result, "examples": examples[:5]}


def run_work(options: argparse.Namespace) -> dict[str, Any]:
    driver = drivers.load(options.driver)(Path(options.root))
    corpus.make_text(0)
    corpus.make_text(3)  # builds the texts of both alphabets before anything is timed
    match options.work:
        case "seed":
            return workloads.fill_store(driver, options.shape, options.size)
        case "one-process":
            return run_one_process(driver, options.number, options.n)
        case "append-until-killed":
            append_until_killed(driver, options.number)
        case "check-after-kills":
            return check_after_kills(driver, json.load(sys.stdin))
        case "check":
            return workloads.check_stored(driver, [tuple(pair) for pair in json.load(sys.stdin)])
    try:
        return WORKLOADS[options.work](driver, options.size, Options(options.n, options.seconds))
    except UnsupportedError as reason:
        return {"unsupported": str(reason)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--shape", default="sessions")
    parser.add_argument("--n", type=int, default=Options.n)
    parser.add_argument("--seconds", type=float, default=Options.seconds)
    parser.add_argument("--number", type=int, default=0)
    result = run_work(parser.parse_args())
    print(f"\nRESULT {json.dumps(result)}", flush=True)
    os._exit(0)  # some peers leave threads running


if __name__ == "__main__":
    main()

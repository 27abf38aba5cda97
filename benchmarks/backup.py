"""Measures what a backup costs those who write meanwhile, and how long it takes.

    python -m benchmarks.backup [--megabytes 500] [--seconds 15] [--folder DIR]

A store is filled to the given size. Then messages are stored at a steady pace, one every five milliseconds, each with a
durable commit: first alone, then while a server makes a backup on a thread of the same process, then while
`palaver backup` runs in another process. The figures are the times until a message is stored.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import quantile
from palaver import SessionSource, SessionStore
from palaver.operation.backups import BackupRequest

if TYPE_CHECKING:
    from collections.abc import Callable

PACE_SECONDS = 0.005
MESSAGE = "a line of an ordinary message, with some words that differ from one to the next "
SOURCE = SessionSource("telegram", "ada", user_id="ada")


def fill_store(store: SessionStore, path: Path, megabytes: int) -> None:
    """Append messages to many sessions until the file has the size; the search index catches up."""
    number = 0
    while path.stat().st_size < megabytes * 1_000_000:
        for _ in range(20):
            number += 1
            source = SessionSource("telegram", str(number), user_id=str(number))
            session_id = store.record_user_message(source, f"{number} hello").session_id
            store.append_to_transcript(session_id, [f"{number}.{line} " + MESSAGE * 12 for line in range(40)])
    store.search("hello")


def measure_messages(store: SessionStore, is_over: Callable[[], bool]) -> list[float]:
    """Store messages at a steady pace until it is over; return how long each took."""
    samples = []
    next_at = time.perf_counter()
    while not is_over():
        started = time.perf_counter()
        store.record_user_message(SOURCE, "during the measurement")
        samples.append(time.perf_counter() - started)
        next_at = max(next_at + PACE_SECONDS, time.perf_counter())
        time.sleep(max(0.0, next_at - time.perf_counter()))
    return samples


def print_row(name: str, samples: list[float], seconds: float) -> None:
    p50, p99, longest = (value * 1000 for value in (quantile(samples, 0.5), quantile(samples, 0.99), max(samples)))
    print(f"| {name} | {len(samples):,} | {p50:.2f} ms | {p99:.1f} ms | {longest:.0f} ms | {seconds:.1f} s |")  # noqa: T201


def run_in_thread(store: SessionStore, home: Path) -> tuple[list[float], float]:
    thread = threading.Thread(target=BackupRequest(home / "palaver.db", home).run)
    started = time.perf_counter()
    thread.start()
    samples = measure_messages(store, lambda: not thread.is_alive())
    return samples, time.perf_counter() - started


def run_in_process(store: SessionStore, home: Path) -> tuple[list[float], float]:
    started = time.perf_counter()
    command = [sys.executable, "-m", "palaver", "--home", str(home), "backup"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples = measure_messages(store, lambda: process.poll() is not None)
    assert process.returncode == 0  # noqa: S101
    return samples, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--folder", type=Path, help="where the store is made; it should be on a real disk")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        home = Path(folder)
        path = home / "palaver.db"
        with SessionStore.open(path) as store:
            fill_store(store, path, arguments.megabytes)
            print(f"{path.stat().st_size / 1e6:.0f} MB\n")  # noqa: T201
            print("| while | messages | median | 99th percentile | longest | takes |\n|---|--:|--:|--:|--:|--:|")  # noqa: T201
            deadline = time.perf_counter() + arguments.seconds
            print_row(
                "nothing else", measure_messages(store, lambda: time.perf_counter() > deadline), arguments.seconds
            )
            for name, run in (("the server makes a backup", run_in_thread), ("`palaver backup` runs", run_in_process)):
                samples, seconds = run(store, home)
                print_row(name, samples, seconds)


if __name__ == "__main__":
    main()

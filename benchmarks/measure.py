"""Timers and counters of this process."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def time_calls(call: Callable[[int], object], *, max_calls: int, seconds: float, min_calls: int = 3) -> list[float]:
    """Time each call. Stops after `max_calls` calls, or after the given seconds once `min_calls` calls are done."""
    samples: list[float] = []
    start_time = time.perf_counter()
    for i in range(max_calls):
        start = time.perf_counter()
        call(i)
        end = time.perf_counter()
        samples.append(end - start)
        if end - start_time > seconds and len(samples) >= min_calls:
            break
    return samples


def quantile(values: list[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def summarize(samples: list[float]) -> dict[str, float]:
    """Summarize samples in seconds as microseconds."""
    return {
        "n": len(samples),
        "median_us": round(quantile(samples, 0.5) * 1e6, 1),
        "p99_us": round(quantile(samples, 0.99) * 1e6, 1),
        "mean_us": round(sum(samples) / max(1, len(samples)) * 1e6, 1),
        "max_us": round(max(samples, default=0.0) * 1e6, 1),
    }


def read_io_counters() -> dict[str, int]:
    with open("/proc/self/io") as file:
        return {name: int(value) for name, value in (line.split(":") for line in file)}


def read_rss_mib() -> float:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmRSS"):
                return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def measure_tree_bytes(root: Path) -> int:
    """Return the total size of all files below a folder."""
    total = 0
    for base, _, names in os.walk(root):
        for name in names:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                continue
    return total


def measure_device() -> dict[str, float]:
    """Time a durable write of 4 KiB on the measured disk, appended to a file and in place."""
    from benchmarks.paths import LIVE_DIR

    LIVE_DIR.mkdir(parents=True, exist_ok=True)
    path = LIVE_DIR / "probe"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def write(i: int) -> None:
        os.pwrite(file, b"x" * 4096, i * 4096)
        os.fdatasync(file)

    try:
        growing = time_calls(write, max_calls=300, seconds=3.0)
        in_place = time_calls(write, max_calls=len(growing), seconds=3.0)
    finally:
        os.close(file)
        path.unlink()
    return {
        "growing_us": round(quantile(growing, 0.5) * 1e6, 1),
        "in_place_us": round(quantile(in_place, 0.5) * 1e6, 1),
    }

"""Folders of the benchmarks. They never write into the repository."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

BENCHMARKS_DIR = Path(__file__).resolve().parent
REPOSITORY_DIR = BENCHMARKS_DIR.parent

BASE_DIR = Path(os.environ.get("PERF_BASE") or Path(tempfile.gettempdir()) / "palaver-bench")
VENVS_DIR = BASE_DIR / "venvs"  # one virtual environment for each peer
SEEDS_DIR = BASE_DIR / "scratch" / "seed"  # filled stores, cached between runs
LIVE_DIR = BASE_DIR / "scratch" / "live"  # the copies that are measured
RESULTS_DIR = BASE_DIR / "results"
POSTGRES_DIR = BASE_DIR / "scratch" / "postgres"

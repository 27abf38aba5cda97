"""Where everything lies. Nothing is ever written into the repository."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent

BASE = Path(os.environ.get("PERF_BASE") or Path(tempfile.gettempdir()) / "palaver-bench")
VENVS = BASE / "venvs"  # one virtual environment per peer
SEEDS = BASE / "scratch" / "seed"  # filled stores, kept between runs
LIVE = BASE / "scratch" / "live"  # the copy that is measured
RESULTS = BASE / "results"
CLUSTER = BASE / "scratch" / "postgres"

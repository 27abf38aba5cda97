"""`python -m benchmarks`: runs the short form by default."""

from __future__ import annotations

import sys

from benchmarks.bench import main

sys.exit(main())

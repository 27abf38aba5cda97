"""`python -m benchmarks`: the short form unless told otherwise."""

from __future__ import annotations

import sys

from benchmarks.bench import main

sys.exit(main())

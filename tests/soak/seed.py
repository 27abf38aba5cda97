"""The seed of a test that acts at random: the same in every `make test`, and a new one in every soak run."""

from __future__ import annotations

import os
import random
import sys

import pytest

DEFAULT_SEED = 20261115


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test; `PALAVER_SOAK_SEED` repeats it."""
    is_soak = request.config.getoption("--soak")
    given = os.environ.get("PALAVER_SOAK_SEED")
    value = int(given) if given else random.SystemRandom().randrange(10**9) if is_soak else DEFAULT_SEED
    note = f"PALAVER_SOAK_SEED={value} repeats {request.node.nodeid}"
    print(note)  # noqa: T201  (shown when the test fails)
    if is_soak:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\n{note}\n")
    return value

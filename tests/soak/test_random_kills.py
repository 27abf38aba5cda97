"""Random kills for minutes: real gateway processes on both engines, killed, paused and run in pairs.

The checker, `FinalState`, reads only the database and what went out: every acknowledged message is stored once and in
order, and answered once, or its failure is visible; nothing is sent twice, and what may have been is `uncertain`.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from typing import TYPE_CHECKING

import pytest

from conftest import create_sqlite_database, empty_database
from scenarios.gateway_harness import FakePlatform, finish_all_work
from scenarios.random_killer import RandomKiller

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.gateway_harness import GatewayLauncher

pytestmark = pytest.mark.soak

SOAK_SECONDS = 60 * float(os.environ.get("PALAVER_SOAK_MINUTES", "10"))
ROUNDS_PER_DATABASE = 25  # then an empty one, because the checker reads all of it
LEASE_SECONDS = 0.8


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_random_kills_and_pauses_lose_nothing_and_duplicate_nothing(
    request: pytest.FixtureRequest, gateway_launcher: GatewayLauncher, tmp_path: Path, engine: str, seed: int
) -> None:
    chance = random.Random(seed)
    deadline = time.monotonic() + SOAK_SECONDS / 2
    for number in itertools.count():
        if number % ROUNDS_PER_DATABASE == 0:
            folder = tmp_path / str(number)
            folder.mkdir()
            if engine == "sqlite":
                url = create_sqlite_database(folder)
            else:
                url = empty_database(request.getfixturevalue("postgres_database"))
            has_keys, streams = chance.random() < 0.5, chance.random() < 0.7
            platform = FakePlatform(url, folder, has_idempotency_keys=has_keys, streams=streams)
            killer = RandomKiller(gateway_launcher, chance)
        print(f"round {number}, {has_keys=}, {streams=}")  # noqa: T201  (shown when the test fails)
        killer.add_messages(platform)
        for _ in range(killer.choose_kill_count()):
            if chance.random() < 0.3:
                killer.run_two_and_kill(platform, LEASE_SECONDS)
            else:
                killer.run_and_kill(platform)
        finish_all_work(gateway_launcher, platform, duplicates=killer.choose_duplicates(platform)).check()
        if time.monotonic() > deadline:
            break

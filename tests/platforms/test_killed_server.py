"""`palaver serve` with several platforms, killed in mid-work and started again: nothing is lost or comes twice."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import yaml

from palaver import SessionStore
from palaver.core.engines.base import Read
from support.process import find_free_port, start_palaver

from .local_platform import ADA, BEN, start_local_platforms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from palaver.core.engines.base import Row
    from support.warm_process import WarmLauncher

    from .local_platform import LocalPlatform

TIMEOUT_SECONDS = 120.0
WORD = re.compile(r"\bword-[a-z-]+-\d+\b")
ROUNDS = 2  # after three crashes in the same turn it is given up, and the person is told

pytestmark = pytest.mark.slow


class KilledServer:
    """A server that is killed and started again on the same folder."""

    def __init__(self, launcher: WarmLauncher, home: Path, platforms: list[LocalPlatform]) -> None:
        self._launcher = launcher
        self._home = home
        self._port = find_free_port()
        settings = {
            str(local.platform): {"access": "everyone", "streaming": False, "settings": local.build_settings()}
            for local in platforms
        }
        (home / "config.yaml").write_text(yaml.safe_dump({"platforms": settings}))
        for local in platforms:
            local.hook_url = f"http://127.0.0.1:{self._port}/hooks/{local.platform}"

    def start(self) -> None:
        command = ("serve", "--port", str(self._port), "--no-open")
        self._process = start_palaver(self._launcher, self._home, *command)
        # What it prints is read all the time: it would wait otherwise.
        self._reading = asyncio.create_task(asyncio.to_thread(self._process.communicate, timeout=3 * TIMEOUT_SECONDS))

    async def kill(self) -> None:
        self._process.kill()
        await self._reading


@pytest.mark.parametrize(
    "names",
    [("telegram", "discord", "webhook"), pytest.param((), marks=pytest.mark.soak)],  # polled, connected, called
    ids=["three_platforms", "all_platforms"],
)
async def test_a_killed_server_loses_and_doubles_nothing_on_any_platform(
    launcher: WarmLauncher, tmp_path: Path, names: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with AsyncExitStack() as stack:
        platforms = await start_local_platforms(stack, tmp_path, *names)
        server = KilledServer(launcher, home, platforms)
        server.start()
        stack.push_async_callback(server.kill)
        store = stack.enter_context(SessionStore.open(f"sqlite:///{home}/palaver.db"))
        await wait_for(lambda: list_live_platforms(store), {str(local.platform) for local in platforms})
        for number in range(ROUNDS):
            await asyncio.gather(*(say(local, number) for local in platforms))
            await asyncio.sleep(0.4 * number)  # some messages are accepted, some answered, some on their way
            await server.kill()
            server.start()
        await wait_for(lambda: count_stored_words(store), Counter(list_words(*platforms)))
        await wait_for(lambda: count_open_work(store), 0)
        for local in platforms:
            answers = await count_answers(local)
            assert [word for word, count in answers.items() if count > 1] == [], local.platform
            missing = {*list_words(local)} - {*answers}
            assert len(missing) <= count_reported(store, local), f"{local.platform}: {missing} were not answered"
            assert list(local.list_problems()) == []


def list_words(*platforms: LocalPlatform) -> list[str]:
    return [
        f"word-{local.platform}-{person}-{number}"
        for local in platforms
        for person in (ADA, BEN)
        for number in range(ROUNDS)
    ]


async def say(local: LocalPlatform, number: int) -> None:
    for person in (ADA, BEN):
        await local.say(person, person, f"Please note word-{local.platform}-{person}-{number}")


async def count_answers(local: LocalPlatform) -> Counter[str]:
    """Return how often each word stands in the answers that people see."""
    counts: Counter[str] = Counter()
    for chat in (ADA, BEN):
        for answer in await local.list_answers(chat):
            counts.update(set(WORD.findall(answer)))
    return counts


async def wait_for(read: Callable[[], object], expected: object) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (value := await asyncio.to_thread(read)) != expected:
        assert time.monotonic() < deadline, f"{value} instead of {expected}"
        await asyncio.sleep(0.1)


# ---- what the server has stored ------------------------------------------------------------------------------


def fetch_all(store: SessionStore, sql: str, *params: object) -> list[Row]:
    return list(store.engine.run(Read(lambda tx: tx.fetch_all(sql, *params))))


def list_live_platforms(store: SessionStore) -> set[str]:
    return {row[0] for row in fetch_all(store, "SELECT platform FROM platform_account WHERE state = 'live'")}


def count_stored_words(store: SessionStore) -> Counter[str]:
    """Return how often each word stands in the messages of people."""
    rows = fetch_all(store, "SELECT content FROM event WHERE kind = 'message' AND role = 'user'")
    return Counter(word for (content,) in rows for word in WORD.findall(content))


def count_open_work(store: SessionStore) -> int:
    [(turns,)] = fetch_all(store, "SELECT count(*) FROM turn WHERE state IN ('queued', 'running')")
    [(unsent,)] = fetch_all(store, "SELECT count(*) FROM delivery WHERE state IN ('pending', 'sending')")
    return int(turns) + int(unsent)


def count_reported(store: SessionStore, local: LocalPlatform) -> int:
    """Return how many answers are reported as not delivered, or perhaps not."""
    sql = "SELECT count(*) FROM delivery WHERE platform = $1 AND state IN ('uncertain', 'failed')"
    [(count,)] = fetch_all(store, sql, str(local.platform))
    return int(count)

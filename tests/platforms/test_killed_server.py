"""`palaver serve` with several platforms, killed in mid-work and started again: nothing is lost or comes twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from palaver import SessionStore

from .killed_server import WORD, KilledServer, count_open_work, fetch_all, list_live_platforms, wait_for
from .local_platform import ADA, BEN, start_local_platforms

if TYPE_CHECKING:
    from pathlib import Path

    from support.warm_process import WarmLauncher

    from .local_platform import LocalPlatform

ROUNDS = 2

pytestmark = pytest.mark.slow


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


# ---- what the server has stored ------------------------------------------------------------------------------


def count_stored_words(store: SessionStore) -> Counter[str]:
    """Return how often each word stands in the messages of people."""
    rows = fetch_all(store, "SELECT content FROM event WHERE kind = 'message' AND role = 'user'")
    return Counter(word for (content,) in rows for word in WORD.findall(content))


def count_reported(store: SessionStore, local: LocalPlatform) -> int:
    """Return how many answers are reported as not delivered, or perhaps not."""
    sql = "SELECT count(*) FROM delivery WHERE platform = $1 AND state IN ('uncertain', 'failed')"
    [(count,)] = fetch_all(store, sql, str(local.platform))
    return int(count)

"""Places that people share: one of them never has all, and nobody waits behind everything that another wants."""

from __future__ import annotations

import asyncio

import pytest

from palaver.core.fair_slots import FairSlots, QueueFull
from support.gateway import wait_until


class Work:
    """Work that takes a place and goes on until it is told to end."""

    def __init__(self, slots: FairSlots) -> None:
        self.slots = slots
        self.running: list[str] = []
        self.started: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    async def start(self, name: str) -> asyncio.Task[None]:
        """Start work of a key, which is the first letter of its name; give it the chance to get a place."""
        self._ends[name] = asyncio.Event()
        task = asyncio.create_task(self._run(name))
        await asyncio.sleep(0)
        return task

    async def end(self, name: str, task: asyncio.Task[None]) -> None:
        self._ends[name].set()
        await task
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _run(self, name: str) -> None:
        async with self.slots.hold(name[0]):
            self.running.append(name)
            self.started.append(name)
            try:
                await self._ends[name].wait()
            finally:
                self.running.remove(name)


async def test_one_key_never_has_all_places() -> None:
    work = Work(FairSlots(2, per_key=1))
    tasks = {name: await work.start(name) for name in ("a1", "a2", "a3", "b1")}
    assert work.running == ["a1", "b1"]
    await work.end("b1", tasks["b1"])
    assert work.running == ["a1"]
    for name in ("a1", "a2", "a3"):
        assert work.running == [name]
        await work.end(name, tasks[name])


async def test_keys_that_wait_take_turns() -> None:
    work = Work(FairSlots(1, per_key=1))
    names = ("a1", "a2", "a3", "b1", "b2", "c1")
    tasks = {name: await work.start(name) for name in names}
    for name in ("a1", "a2", "b1", "c1", "a3", "b2"):
        assert work.running == [name]
        await work.end(name, tasks[name])


async def test_a_key_waits_only_so_often() -> None:
    slots = FairSlots(2, per_key=1, max_waiting_per_key=1)
    work = Work(slots)
    tasks = {name: await work.start(name) for name in ("a1", "a2")}
    with pytest.raises(QueueFull):
        async with slots.hold("a"):
            pass
    async with slots.hold("b"):
        pass
    for name, task in tasks.items():
        await work.end(name, task)


async def test_work_that_is_canceled_gives_its_place_back() -> None:
    work = Work(FairSlots(1, per_key=1))
    first, waiting, last = [await work.start(name) for name in ("a1", "b1", "c1")]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    chosen = await work.start("d1")
    work._ends["a1"].set()  # "c1" is given the place ...
    await first
    last.cancel()  # ... and canceled before it has run
    await asyncio.gather(last, return_exceptions=True)
    await asyncio.sleep(0)
    assert work.started[-1] == "d1"
    await work.end("d1", chosen)
    again = await work.start("a1")
    assert work.running == ["a1"]
    await work.end("a1", again)


async def test_a_waiter_that_was_just_canceled_gets_no_place() -> None:
    work = Work(FairSlots(1, per_key=1))
    first, waiting, last = [await work.start(name) for name in ("a1", "b1", "c1")]
    work._ends["a1"].set()
    waiting.cancel()  # its future is canceled now; it notices later
    await asyncio.gather(first, waiting, return_exceptions=True)
    await asyncio.sleep(0)
    assert work.running == ["c1"]
    await work.end("c1", last)


async def test_a_key_pauses_after_its_work_while_others_have_its_place() -> None:
    work = Work(FairSlots(1, per_key=1, min_pause=3600))
    tasks = {name: await work.start(name) for name in ("a1", "a2", "b1")}
    await work.end("a1", tasks["a1"])
    assert work.running == ["b1"]
    await work.end("b1", tasks["b1"])
    assert work.running == []
    tasks["a2"].cancel()
    await asyncio.gather(tasks["a2"], return_exceptions=True)


async def test_a_key_gets_its_next_place_after_its_pause() -> None:
    work = Work(FairSlots(1, per_key=1, min_pause=0.001))
    tasks = {name: await work.start(name) for name in ("a1", "a2")}
    await work.end("a1", tasks["a1"])
    await wait_until(lambda: work.running == ["a2"])
    await work.end("a2", tasks["a2"])

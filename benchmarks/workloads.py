"""What is measured. Each workload takes an unopened driver, a size and options, and returns its numbers.

Everything here runs inside the environment of the system under test, so it needs the standard library alone.
A workload checks what it reads back before it times anything.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import corpus, measure
from benchmarks.corpus import key, text, tokens
from benchmarks.drivers import AsyncDriver, Unsupported
from benchmarks.measure import summary, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.drivers import Driver

    Result = dict[str, Any]

CALLERS = (1, 32)  # W9
CROWD = 4  # W6
CHATS_EACH = 25  # W6


@dataclass(frozen=True)
class Options:
    """How long and how often."""

    n: int = 300  # at most so many turns
    seconds: float = 8.0  # at most so long


# -- W1: one turn -------------------------------------------------------------------------------------------


def w1(driver: Driver, size: int, options: Options) -> Result:
    """Turns on chats that exist, among `size` of them, then on new ones."""
    driver.open()
    first = _warm_up(driver)
    n = min(options.n, 10 * size)  # short transcripts stay short
    rng = random.Random(1234)
    picks = [key(rng.randrange(size)) for _ in range(n)]
    result = _turns(driver, lambda i: picks[i], n, options.seconds)
    fresh = timed(
        lambda i: driver.turn(f"new{i}", text(i, "u"), text(i, "a"), 100, 50),
        at_most=max(3, n // 2),
        seconds=options.seconds / 2,
    )
    said = driver.load(picks[0])
    assert tokens(said)[-1].startswith("a"), said[-1]
    driver.close()
    return {**result, "first": first, "new": summary(fresh), "rss_mib": measure.rss_mib()}


def w1l(driver: Driver, size: int, options: Options) -> Result:
    """Turns on one chat with `size` messages behind it."""
    driver.open()
    _warm_up(driver)
    driver.turn(key(0), text(1, "w"), text(1, "W"), 10, 20)
    result = _turns(driver, lambda i: key(0), options.n, options.seconds)
    driver.close()
    return result


def _warm_up(driver: Driver) -> Result:
    """Until caches are warm and the log of the database has its size, on chats that are not measured.

    Returns what the first of these turns cost, which is what a process sees that has just been started.
    """
    samples = timed(
        lambda i: driver.turn(f"warm{i % 20}", text(i, "w"), text(i, "W"), 10, 20), at_most=600, seconds=3.0
    )
    return summary(samples[:200])


def _turns(driver: Driver, chat: Callable[[int], str], n: int, seconds: float) -> Result:
    _settle(driver)
    before, cpu = measure.io_counters(), time.process_time()
    mark("BEGIN")
    samples = timed(lambda i: driver.turn(chat(i), text(i, "u"), text(i, "a"), 100, 50), at_most=n, seconds=seconds)
    mark("END")
    cpu = time.process_time() - cpu
    after, done = measure.io_counters(), len(samples)
    result = {"turn": summary(samples), "cpu_us_per_turn": round(cpu / done * 1e6, 1)}
    if not driver.server:
        result |= {f"{name}_per_turn": (after[name] - before[name]) // done for name in ("wchar", "rchar")}
    later = _settle(driver)
    return result if later is None else {**result, "later_us_per_turn": round(later / done * 1e6, 1)}


def _settle(driver: Driver) -> float | None:
    """How long it takes to do what the turns have put off; None where nothing is."""
    start = time.perf_counter()
    try:
        driver.settle()
    except Unsupported:
        return None
    return time.perf_counter() - start


def mark(name: str) -> None:
    """Leave a mark that strace sees."""
    try:
        os.unlink(f"/nonexistent/{name}")
    except OSError:
        return


# -- W2 to W5: reading, lists, search, undo -----------------------------------------------------------------


def w2(driver: Driver, size: int, options: Options) -> Result:
    """A transcript of `size` messages: all of it, and its last 50."""
    driver.open()
    chat = key(0)
    start = time.perf_counter()
    said = driver.load(chat)
    first = time.perf_counter() - start
    assert len(said) == size, (len(said), size)
    assert said[-1]["content"] == text(size - 1), said[-1]
    load = timed(lambda _: driver.load(chat), at_most=100, seconds=options.seconds)
    result: Result = {"first_load_us": round(first * 1e6, 1), "load": summary(load)}
    try:
        tail = driver.tail(chat, 50)
        assert [m["content"] for m in tail] == [m["content"] for m in said[-50:]], (len(tail), tail[:1])
        samples = timed(lambda _: driver.tail(chat, 50), at_most=300, seconds=options.seconds / 2)
        result["tail50"] = summary(samples)
    except Unsupported as reason:
        result["tail50_unsupported"] = str(reason)
    driver.close()
    return result


def w3(driver: Driver, size: int, options: Options) -> Result:
    """The first page of the list: the 50 chats active last, among `size`."""
    driver.open()
    rng = random.Random(5)
    touched = []
    for i in range(5):
        touched.append(key(rng.randrange(size)))
        driver.turn(touched[-1], text(i, "u"), text(i, "a"), 1, 1)
        time.sleep(0.002)
    found = driver.recent(50)
    page = timed(lambda _: driver.recent(50), at_most=300, seconds=options.seconds)
    driver.close()
    return {
        "list50": summary(page),
        "newest_first": found[0][0] == touched[-1] and len(found) == min(50, size),
        # a store that keeps whole seconds cannot put these in order, but they are its newest
        "newest_five": {row[0] for row in found[:5]} == set(touched),
        "has_count": found[0][2] is not None,
    }


def w4(driver: Driver, size: int, options: Options) -> Result:
    """Search among `size` messages: words that are rare and common, in English and in Chinese, 20 hits."""
    driver.open()
    result: Result = {"store_mib": round(driver.store_bytes() / 2**20)}
    for name, word in corpus.WORDS.items():
        there = corpus.texts_with(word, size, 20)
        result[name] = _searched(lambda word=word: driver.search(word, 20), there, options.seconds / 2)  # type: ignore[misc]
    theirs = corpus.texts_with(corpus.COMMON, 100, 20)  # chat 0 holds the first hundred messages
    try:
        result["own"] = _searched(lambda: driver.search_own(key(0), corpus.COMMON, 20), theirs, options.seconds / 2)
    except Unsupported as reason:
        result["own_unsupported"] = str(reason)
    turns = timed(
        lambda i: driver.turn(key(i % 50), text(i, "u"), text(i, "a"), 1, 1),
        at_most=100,
        seconds=options.seconds,
    )
    driver.close()
    return {**result, "turn": summary(turns)}


def _searched(search: Callable[[], list[Any]], there: int, seconds: float) -> Result:
    """Time a search, and say how many of the messages that are there it finds."""
    try:
        found = len(search())
    except Unsupported:
        raise
    except Exception as error:  # a peer may refuse a word: that is a finding
        return {"failed": f"{type(error).__name__}: {error}"[:100], "hits": 0, "there": there}
    return {**summary(timed(lambda _: search(), at_most=100, seconds=seconds)), "hits": found, "there": there}


def w5(driver: Driver, size: int, options: Options) -> Result:
    """Take the last turn of `size` messages back, and rewrite the transcript without it."""
    driver.open()
    result: Result = {}
    for name, take_back in (("undo", driver.undo), ("rewrite", driver.rewrite)):
        try:
            result[name] = summary(_taken_back(driver, take_back, options.seconds))
        except Unsupported as reason:
            result[f"{name}_unsupported"] = str(reason)
    driver.close()
    return result


def _taken_back(driver: Driver, take_back: Callable[[str], None], seconds: float) -> list[float]:
    chat, samples = key(0), []
    began = time.perf_counter()
    before = len(driver.load(chat))
    for i in range(30):
        start = time.perf_counter()
        take_back(chat)
        samples.append(time.perf_counter() - start)
        if i == 0:
            left = len(driver.load(chat))
            assert left == before - 2, (before, left)
        driver.turn(chat, text(i, "u"), text(i, "a"), 1, 1)
        if time.perf_counter() - began > seconds and i >= 2:
            break
    return samples


# -- W6 and W9: several callers -----------------------------------------------------------------------------


@dataclass
class Caller:
    """One of several, and what it has been told is stored."""

    number: int
    acked: list[tuple[str, str]] = field(default_factory=list)  # (chat, token)
    errors: dict[str, int] = field(default_factory=dict)

    def failed(self, error: Exception) -> None:
        """Note a call that did not succeed."""
        name = f"{type(error).__name__}: {str(error)[:60]}"
        self.errors[name] = self.errors.get(name, 0) + 1

    def turn(self, i: int) -> tuple[str, str, str]:
        """Chat, user text and answer of its turn number `i`; the turn's tokens count once it is acknowledged."""
        me = self.number
        return f"w{me}s{i % CHATS_EACH}", text(i, f"{me}u"), text(i, f"{me}a")

    def turn_done(self, i: int) -> None:
        """Its turn number `i` was acknowledged."""
        chat = f"w{self.number}s{i % CHATS_EACH}"
        self.acked += [(chat, f"{self.number}u{i}"), (chat, f"{self.number}a{i}")]


def take_turns(driver: Driver, caller: Caller, n: int) -> None:
    """Turns of one caller on chats of its own."""
    for i in range(n):
        try:
            driver.turn(*caller.turn(i), 1, 1)
        except Exception as error:  # counted, and part of the result
            caller.failed(error)
        else:
            caller.turn_done(i)


async def take_turns_awaiting(driver: AsyncDriver, caller: Caller, n: int) -> None:
    """The same, awaited."""
    for i in range(n):
        try:
            await driver.aturn(*caller.turn(i), 1, 1)
        except Exception as error:  # counted, and part of the result
            caller.failed(error)
        else:
            caller.turn_done(i)


def w6t(driver: Driver, size: int, options: Options) -> Result:
    """Four callers take turns on one open store."""
    driver.open()
    callers = [Caller(number) for number in range(CROWD)]
    start = time.monotonic()
    if isinstance(driver, AsyncDriver):

        async def all_of_them(driver: AsyncDriver = driver) -> None:
            await asyncio.gather(*(take_turns_awaiting(driver, caller, options.n) for caller in callers))

        driver.run(all_of_them())
    else:
        _in_threads([lambda c=c: take_turns(driver, c, options.n) for c in callers])  # type: ignore[misc]
    wall = time.monotonic() - start
    driver.close()
    acked = [token for caller in callers for token in caller.acked]
    return {
        "form": driver.concurrency,
        "turns_per_s": round(len(acked) / 2 / wall, 1),
        "errors": together(caller.errors for caller in callers),
        **checked(driver, acked),
    }


def w9(driver: Driver, size: int, options: Options) -> Result:
    """One caller, then 32, each appending to a chat of its own on one open store, for a while each."""
    driver.open()
    _warm_up(driver)
    result: Result = {"form": driver.concurrency}
    acked: list[tuple[str, str]] = []
    errors = []
    for count in CALLERS:
        callers = [Caller(number) for number in range(count)]
        rate = _crowd(driver, callers, options.seconds)
        result[f"by_{count}"] = round(rate, 1)
        acked += [token for caller in callers for token in caller.acked]
        errors += [caller.errors for caller in callers]
    result["times"] = round(result[f"by_{CALLERS[-1]}"] / result[f"by_{CALLERS[0]}"], 2)
    driver.close()
    return {**result, "errors": together(errors), **checked(driver, acked)}


def _crowd(driver: Driver, callers: list[Caller], seconds: float) -> float:
    """Appends per second by these callers together."""
    chats = {caller.number: f"c{len(callers)}n{caller.number}" for caller in callers}
    for caller in callers:
        driver.append(chats[caller.number], "user", text(0, "w"))
    start = time.monotonic()

    def appends(caller: Caller) -> None:
        chat, i = chats[caller.number], 0
        while time.monotonic() - start < seconds:
            try:
                driver.append(chat, _role(i), text(i, "n"))
            except Exception as error:  # counted, and part of the result
                caller.failed(error)
            else:
                caller.acked.append((chat, f"n{i}"))
            i += 1

    async def appends_awaiting(driver: AsyncDriver, caller: Caller) -> None:
        chat, i = chats[caller.number], 0
        while time.monotonic() - start < seconds:
            try:
                await driver.aappend(chat, _role(i), text(i, "n"))
            except Exception as error:  # counted, and part of the result
                caller.failed(error)
            else:
                caller.acked.append((chat, f"n{i}"))
            i += 1

    if isinstance(driver, AsyncDriver):

        async def all_of_them(driver: AsyncDriver = driver) -> None:
            await asyncio.gather(*(appends_awaiting(driver, caller) for caller in callers))

        driver.run(all_of_them())
    else:
        _in_threads([lambda c=c: appends(c) for c in callers])  # type: ignore[misc]
    wall = time.monotonic() - start
    return sum(len(caller.acked) for caller in callers) / wall


def _role(i: int) -> str:
    """Who says message number `i`; some stores merge two that follow each other by the same side."""
    return "assistant" if i % 2 == 0 else "user"


def _in_threads(work: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def together(errors: Iterable[dict[str, int]]) -> dict[str, int]:
    """Several counts as one."""
    total: dict[str, int] = {}
    for some in errors:
        for name, count in some.items():
            total[name] = total.get(name, 0) + count
    return total


def checked(driver: Driver, acked: list[tuple[str, str]]) -> Result:
    """Open the store afresh and look for everything that was acknowledged."""
    by_chat: dict[str, list[str]] = {}
    for chat, token in acked:
        by_chat.setdefault(chat, []).append(token)
    driver = type(driver)(driver.root)
    driver.open()
    lost = doubled = 0
    for chat, expected in by_chat.items():
        try:
            found = tokens(driver.load(chat))
        except Exception as error:  # an unreadable chat is a finding
            return {"acked": len(acked), "unreadable": f"{chat}: {type(error).__name__}: {error}"[:200]}
        there = set(found)
        lost += sum(1 for token in expected if token not in there)
        doubled += len(found) - len(there)
    driver.close()
    return {"acked": len(acked), "lost": lost, "doubled": doubled}


# -- W8 and W10: starting -----------------------------------------------------------------------------------


def w8(driver: Driver, size: int, options: Options) -> Result:
    """Import, open, first read and first turn of a fresh process, and the memory it holds."""
    start = time.monotonic()
    driver.open()
    opened = time.monotonic()
    said = driver.load(key(size // 2))
    read = time.monotonic()
    assert len(said) == 2, len(said)
    rss = measure.rss_mib()
    driver.turn(key(1), text(1, "u"), text(1, "a"), 1, 1)
    done = time.monotonic()
    result = {
        "open_s": round(opened - start, 4),
        "first_read_s": round(read - opened, 4),
        "first_turn_s": round(done - read, 4),
        "rss_mib": rss,
        "rss_after_turn_mib": measure.rss_mib(),
    }
    driver.close()
    return result


def w10(driver: Driver, size: int, options: Options) -> Result:
    """The command line on a home with `size` chats: how long until each command has answered."""
    result: Result = {}
    for name, (arguments, environment) in driver.commands().items():
        samples = []
        for _ in range(10):
            start = time.perf_counter()
            done = subprocess.run(
                arguments,
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=60,
                check=False,
            )
            samples.append(time.perf_counter() - start)
            if done.returncode:
                last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                result[name] = {"failed": f"exit {done.returncode}: {''.join(last)}"[:150]}
                break
        else:
            result[name] = summary(samples)
    return {"commands": result}


# -- seeds --------------------------------------------------------------------------------------------------

MESSAGES_EACH = 100  # of a chat in a corpus


def seed(driver: Driver, shape: str, size: int) -> Result:
    """Fill the store: `size` chats of two messages, one chat of `size` messages, or `size` messages in all."""
    plans = {
        "sessions": lambda: corpus.plan(size, 2),
        "long": lambda: corpus.plan(1, size),
        "corpus": lambda: corpus.plan(max(1, size // MESSAGES_EACH), MESSAGES_EACH),
    }
    start = time.monotonic()
    driver.open()
    driver.seed(plans[shape]())
    room = driver.store_bytes()
    try:
        driver.close()
    except Exception as error:  # some seeds have closed it already
        print(f"closing after the seed: {error}", file=sys.stderr)
    return {"seconds": round(time.monotonic() - start, 1), "mib": round(room / 2**20, 1)}

"""The workloads. Each takes an unopened driver, a size and options, and returns its numbers.

This module runs in the environment of the system under test, so it imports only the standard library. A workload checks
what it reads back before it times anything.
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
from benchmarks.corpus import extract_tokens, make_key, make_text
from benchmarks.drivers import AsyncDriver, UnsupportedError
from benchmarks.measure import summarize, time_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.drivers import Driver

    Result = dict[str, Any]

CALLER_COUNTS = (1, 32)  # W9
CONCURRENT_CALLERS = 4  # W6
CHATS_PER_CALLER = 25  # W6


@dataclass(frozen=True)
class Options:
    """Limits of one measurement."""

    n: int = 300  # maximum number of turns
    seconds: float = 8.0  # maximum duration


# -- W1: one turn -------------------------------------------------------------------------------------------


def w1(driver: Driver, size: int, options: Options) -> Result:
    """Run turns on existing chats, in a store with `size` chats, then on new chats."""
    driver.open()
    first = _warm_up(driver)
    n = min(options.n, 10 * size)  # keeps the transcripts short
    rng = random.Random(1234)
    picks = [make_key(rng.randrange(size)) for _ in range(n)]
    result = _measure_turns(driver, lambda i: picks[i], n, options.seconds)
    new_samples = time_calls(
        lambda i: driver.run_turn(f"new{i}", make_text(i, "u"), make_text(i, "a"), 100, 50),
        max_calls=max(3, n // 2),
        seconds=options.seconds / 2,
    )
    messages = driver.load(picks[0])
    assert extract_tokens(messages)[-1].startswith("a"), messages[-1]
    driver.close()
    return {**result, "first": first, "new": summarize(new_samples), "rss_mib": measure.read_rss_mib()}


def w1l(driver: Driver, size: int, options: Options) -> Result:
    """Run turns on one chat that already has `size` messages."""
    driver.open()
    _warm_up(driver)
    driver.run_turn(make_key(0), make_text(1, "w"), make_text(1, "W"), 10, 20)
    result = _measure_turns(driver, lambda i: make_key(0), options.n, options.seconds)
    driver.close()
    return result


def _warm_up(driver: Driver) -> Result:
    """Run turns on other chats until caches are warm and the database's log has reached its usual size.

    Returns the times of the first of these turns: those of a process that has just started.
    """
    samples = time_calls(
        lambda i: driver.run_turn(f"warm{i % 20}", make_text(i, "w"), make_text(i, "W"), 10, 20),
        max_calls=600,
        seconds=3.0,
    )
    return summarize(samples[:200])


def _measure_turns(driver: Driver, choose_chat: Callable[[int], str], n: int, seconds: float) -> Result:
    _finish_pending_work(driver)
    before, cpu = measure.read_io_counters(), time.process_time()
    mark_for_strace("BEGIN")
    samples = time_calls(
        lambda i: driver.run_turn(choose_chat(i), make_text(i, "u"), make_text(i, "a"), 100, 50),
        max_calls=n,
        seconds=seconds,
    )
    mark_for_strace("END")
    cpu = time.process_time() - cpu
    after, done = measure.read_io_counters(), len(samples)
    result = {"turn": summarize(samples), "cpu_us_per_turn": round(cpu / done * 1e6, 1)}
    if not driver.server:
        result |= {f"{name}_per_turn": (after[name] - before[name]) // done for name in ("wchar", "rchar")}
    pending = _finish_pending_work(driver)
    return result if pending is None else {**result, "later_us_per_turn": round(pending / done * 1e6, 1)}


def _finish_pending_work(driver: Driver) -> float | None:
    """Return the seconds that the deferred work of the turns takes, or None if the system defers nothing."""
    start = time.perf_counter()
    try:
        driver.finish_pending_work()
    except UnsupportedError:
        return None
    return time.perf_counter() - start


def mark_for_strace(name: str) -> None:
    """Make a system call that is easy to find in the output of strace."""
    try:
        os.unlink(f"/nonexistent/{name}")
    except OSError:
        return


# -- W2 to W5: reading, lists, search, undo -----------------------------------------------------------------


def w2(driver: Driver, size: int, options: Options) -> Result:
    """Load a transcript of `size` messages, and its last 50 messages."""
    driver.open()
    chat = make_key(0)
    start = time.perf_counter()
    messages = driver.load(chat)
    first = time.perf_counter() - start
    assert len(messages) == size, (len(messages), size)
    assert messages[-1]["content"] == make_text(size - 1), messages[-1]
    load = time_calls(lambda _: driver.load(chat), max_calls=100, seconds=options.seconds)
    result: Result = {"first_load_us": round(first * 1e6, 1), "load": summarize(load)}
    try:
        tail = driver.load_last(chat, 50)
        assert [m["content"] for m in tail] == [m["content"] for m in messages[-50:]], (len(tail), tail[:1])
        samples = time_calls(lambda _: driver.load_last(chat, 50), max_calls=300, seconds=options.seconds / 2)
        result["tail50"] = summarize(samples)
    except UnsupportedError as reason:
        result["tail50_unsupported"] = str(reason)
    driver.close()
    return result


def w3(driver: Driver, size: int, options: Options) -> Result:
    """Load the first page of the list: the 50 most recently active chats of `size`."""
    driver.open()
    rng = random.Random(5)
    used_chats = []
    for i in range(5):
        used_chats.append(make_key(rng.randrange(size)))
        driver.run_turn(used_chats[-1], make_text(i, "u"), make_text(i, "a"), 1, 1)
        time.sleep(0.002)
    listed = driver.list_recent(50)
    page = time_calls(lambda _: driver.list_recent(50), max_calls=300, seconds=options.seconds)
    driver.close()
    return {
        "list50": summarize(page),
        "newest_first": listed[0][0] == used_chats[-1] and len(listed) == min(50, size),
        # a store with times in whole seconds cannot order these five, but they must be the newest
        "newest_five": {row[0] for row in listed[:5]} == set(used_chats),
        "has_count": listed[0][2] is not None,
    }


def w4(driver: Driver, size: int, options: Options) -> Result:
    """Search `size` messages for rare and common words, in English and in Chinese, with up to 20 hits."""
    driver.open()
    result: Result = {"store_mib": round(driver.measure_store_bytes() / 2**20)}
    for name, word in corpus.SEARCH_WORDS.items():
        expected = corpus.count_texts_with(word, size, 20)
        result[name] = _measure_search(lambda word=word: driver.search(word, 20), expected, options.seconds / 2)  # type: ignore[misc]
    own_count = corpus.count_texts_with(corpus.COMMON, 100, 20)  # chat 0 has the first hundred messages
    try:
        result["own"] = _measure_search(
            lambda: driver.search_own(make_key(0), corpus.COMMON, 20), own_count, options.seconds / 2
        )
    except UnsupportedError as reason:
        result["own_unsupported"] = str(reason)
    turns = time_calls(
        lambda i: driver.run_turn(make_key(i % 50), make_text(i, "u"), make_text(i, "a"), 1, 1),
        max_calls=100,
        seconds=options.seconds,
    )
    driver.close()
    return {**result, "turn": summarize(turns)}


def _measure_search(search: Callable[[], list[Any]], expected: int, seconds: float) -> Result:
    """Time a search and count how many of the expected messages it finds."""
    try:
        hits = len(search())
    except UnsupportedError:
        raise
    except Exception as error:  # a peer that rejects a word is a finding
        return {"failed": f"{type(error).__name__}: {error}"[:100], "hits": 0, "there": expected}
    return {
        **summarize(time_calls(lambda _: search(), max_calls=100, seconds=seconds)),
        "hits": hits,
        "there": expected,
    }


def w5(driver: Driver, size: int, options: Options) -> Result:
    """Undo the last turn of a transcript of `size` messages, and rewrite the transcript without it."""
    driver.open()
    result: Result = {}
    for name, remove_last_turn in (("undo", driver.undo), ("rewrite", driver.rewrite)):
        try:
            result[name] = summarize(_measure_undo(driver, remove_last_turn, options.seconds))
        except UnsupportedError as reason:
            result[f"{name}_unsupported"] = str(reason)
    driver.close()
    return result


def _measure_undo(driver: Driver, remove_last_turn: Callable[[str], None], seconds: float) -> list[float]:
    chat, samples = make_key(0), []
    start_time = time.perf_counter()
    before = len(driver.load(chat))
    for i in range(30):
        start = time.perf_counter()
        remove_last_turn(chat)
        samples.append(time.perf_counter() - start)
        if i == 0:
            left = len(driver.load(chat))
            assert left == before - 2, (before, left)
        driver.run_turn(chat, make_text(i, "u"), make_text(i, "a"), 1, 1)
        if time.perf_counter() - start_time > seconds and i >= 2:
            break
    return samples


# -- W6 and W9: several callers -----------------------------------------------------------------------------


@dataclass
class Caller:
    """One of several concurrent callers, with the messages that the store has acknowledged to it."""

    number: int
    acked: list[tuple[str, str]] = field(default_factory=list)  # (chat, token)
    errors: dict[str, int] = field(default_factory=dict)

    def record_error(self, error: Exception) -> None:
        name = f"{type(error).__name__}: {str(error)[:60]}"
        self.errors[name] = self.errors.get(name, 0) + 1

    def build_turn(self, i: int) -> tuple[str, str, str]:
        """Return the chat, the user's text and the answer of turn number `i`."""
        number = self.number
        return f"w{number}s{i % CHATS_PER_CALLER}", make_text(i, f"{number}u"), make_text(i, f"{number}a")

    def record_turn(self, i: int) -> None:
        """Record that the store has acknowledged turn number `i`."""
        chat = f"w{self.number}s{i % CHATS_PER_CALLER}"
        self.acked += [(chat, f"{self.number}u{i}"), (chat, f"{self.number}a{i}")]


def run_turns(driver: Driver, caller: Caller, n: int) -> None:
    """Run the turns of one caller on its own chats."""
    for i in range(n):
        try:
            driver.run_turn(*caller.build_turn(i), 1, 1)
        except Exception as error:  # counted: part of the result
            caller.record_error(error)
        else:
            caller.record_turn(i)


async def run_turns_async(driver: AsyncDriver, caller: Caller, n: int) -> None:
    for i in range(n):
        try:
            await driver.arun_turn(*caller.build_turn(i), 1, 1)
        except Exception as error:  # counted: part of the result
            caller.record_error(error)
        else:
            caller.record_turn(i)


def w6t(driver: Driver, size: int, options: Options) -> Result:
    """Run turns of four concurrent callers on one open store."""
    driver.open()
    callers = [Caller(number) for number in range(CONCURRENT_CALLERS)]
    start = time.monotonic()
    if isinstance(driver, AsyncDriver):

        async def run_callers(driver: AsyncDriver = driver) -> None:
            await asyncio.gather(*(run_turns_async(driver, caller, options.n) for caller in callers))

        driver.run(run_callers())
    else:
        _run_in_threads([lambda c=c: run_turns(driver, c, options.n) for c in callers])  # type: ignore[misc]
    wall = time.monotonic() - start
    driver.close()
    acked = [token for caller in callers for token in caller.acked]
    return {
        "form": driver.concurrency,
        "turns_per_s": round(len(acked) / 2 / wall, 1),
        "errors": sum_counts(caller.errors for caller in callers),
        **check_stored(driver, acked),
    }


def w9(driver: Driver, size: int, options: Options) -> Result:
    """Append messages with one caller, then with 32 concurrent ones, each to its own chat, on one open store."""
    driver.open()
    _warm_up(driver)
    result: Result = {"form": driver.concurrency}
    acked: list[tuple[str, str]] = []
    errors = []
    for count in CALLER_COUNTS:
        callers = [Caller(number) for number in range(count)]
        rate = _measure_append_rate(driver, callers, options.seconds)
        result[f"by_{count}"] = round(rate, 1)
        acked += [token for caller in callers for token in caller.acked]
        errors += [caller.errors for caller in callers]
    result["times"] = round(result[f"by_{CALLER_COUNTS[-1]}"] / result[f"by_{CALLER_COUNTS[0]}"], 2)
    driver.close()
    return {**result, "errors": sum_counts(errors), **check_stored(driver, acked)}


def _measure_append_rate(driver: Driver, callers: list[Caller], seconds: float) -> float:
    """Return the appends per second of these callers together."""
    chats = {caller.number: f"c{len(callers)}n{caller.number}" for caller in callers}
    for caller in callers:
        driver.append(chats[caller.number], "user", make_text(0, "w"))
    start = time.monotonic()

    def append_messages(caller: Caller) -> None:
        chat, i = chats[caller.number], 0
        while time.monotonic() - start < seconds:
            try:
                driver.append(chat, _choose_role(i), make_text(i, "n"))
            except Exception as error:  # counted: part of the result
                caller.record_error(error)
            else:
                caller.acked.append((chat, f"n{i}"))
            i += 1

    async def append_messages_async(driver: AsyncDriver, caller: Caller) -> None:
        chat, i = chats[caller.number], 0
        while time.monotonic() - start < seconds:
            try:
                await driver.aappend(chat, _choose_role(i), make_text(i, "n"))
            except Exception as error:  # counted: part of the result
                caller.record_error(error)
            else:
                caller.acked.append((chat, f"n{i}"))
            i += 1

    if isinstance(driver, AsyncDriver):

        async def run_callers(driver: AsyncDriver = driver) -> None:
            await asyncio.gather(*(append_messages_async(driver, caller) for caller in callers))

        driver.run(run_callers())
    else:
        _run_in_threads([lambda c=c: append_messages(c) for c in callers])  # type: ignore[misc]
    wall = time.monotonic() - start
    return sum(len(caller.acked) for caller in callers) / wall


def _choose_role(i: int) -> str:
    """Alternate the roles, because some stores merge consecutive messages of the same role."""
    return "assistant" if i % 2 == 0 else "user"


def _run_in_threads(work: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=target) for target in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sum_counts(errors: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counts in errors:
        for name, count in counts.items():
            total[name] = total.get(name, 0) + count
    return total


def check_stored(driver: Driver, acked: list[tuple[str, str]]) -> Result:
    """Open the store again and look for every acknowledged message."""
    by_chat: dict[str, list[str]] = {}
    for chat, token in acked:
        by_chat.setdefault(chat, []).append(token)
    driver = type(driver)(driver.root)
    driver.open()
    lost = doubled = 0
    for chat, expected in by_chat.items():
        try:
            stored = extract_tokens(driver.load(chat))
        except Exception as error:  # an unreadable chat is a finding
            return {"acked": len(acked), "unreadable": f"{chat}: {type(error).__name__}: {error}"[:200]}
        unique = set(stored)
        lost += sum(1 for token in expected if token not in unique)
        doubled += len(stored) - len(unique)
    driver.close()
    return {"acked": len(acked), "lost": lost, "doubled": doubled}


# -- W8 and W10: starting -----------------------------------------------------------------------------------


def w8(driver: Driver, size: int, options: Options) -> Result:
    """Measure import, open, first read, first turn and memory of a new process."""
    start = time.monotonic()
    driver.open()
    opened = time.monotonic()
    messages = driver.load(make_key(size // 2))
    read = time.monotonic()
    assert len(messages) == 2, len(messages)
    rss = measure.read_rss_mib()
    driver.run_turn(make_key(1), make_text(1, "u"), make_text(1, "a"), 1, 1)
    done = time.monotonic()
    result = {
        "open_s": round(opened - start, 4),
        "first_read_s": round(read - opened, 4),
        "first_turn_s": round(done - read, 4),
        "rss_mib": rss,
        "rss_after_turn_mib": measure.read_rss_mib(),
    }
    driver.close()
    return result


def w10(driver: Driver, size: int, options: Options) -> Result:
    """Time the commands of the command line in turn, on a home folder with `size` chats."""
    commands = driver.list_commands()
    samples: dict[str, list[float]] = {name: [] for name in commands}
    failures: Result = {}
    for _ in range(10):
        for name, (arguments, environment) in commands.items():
            start = time.perf_counter()
            done = subprocess.run(
                arguments,
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=60,
                check=False,
            )
            samples[name].append(time.perf_counter() - start)
            if done.returncode:
                last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                failures[name] = {"failed": f"exit {done.returncode}: {''.join(last)}"[:150]}
    return {"commands": {name: summarize(times) for name, times in samples.items()} | failures}


# -- seeds --------------------------------------------------------------------------------------------------

MESSAGES_PER_CHAT = 100  # in a corpus


def fill_store(driver: Driver, shape: str, size: int) -> Result:
    """Fill the store with `size` chats of two messages, one chat of `size` messages, or `size` messages in total."""
    plans = {
        "sessions": lambda: corpus.make_plan(size, 2),
        "long": lambda: corpus.make_plan(1, size),
        "corpus": lambda: corpus.make_plan(max(1, size // MESSAGES_PER_CHAT), MESSAGES_PER_CHAT),
    }
    start = time.monotonic()
    driver.open()
    driver.seed(plans[shape]())
    store_bytes = driver.measure_store_bytes()
    try:
        driver.close()
    except Exception as error:  # some drivers have already closed it
        print(f"closing after the seed: {error}", file=sys.stderr)
    return {"seconds": round(time.monotonic() - start, 1), "mib": round(store_bytes / 2**20, 1)}

"""Measures a gateway whose one adapter receives messages from many chats at a steady rate.

    python -m benchmarks.platform_load [--chats 1000] [--rate 50] [--seconds 60] [--postgres URL]

People in as many direct chats write to the demo agent (without its pauses) through the loopback adapter, whose platform takes
every message at once. The table shows how long `accept` takes, how long it takes until the answer has reached the platform,
and the memory of the process before and after. Every message must be answered exactly once.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.corpus import make_text
from benchmarks.measure import quantile
from palaver import SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.drivers.demo import DemoAgent
from palaver.gateway.gateway import Gateway
from palaver.platforms.loopback import LOOPBACK, LoopbackAdapter

SETTLE_SECONDS = 3.0  # before memory is read
MAX_WAIT_SECONDS = 60.0  # for the last answers


def read_memory_mib() -> float:
    """Return the resident set of this process."""
    fields = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if ":" in line
    )
    return int(fields["VmRSS"].split()[0]) / 1024


async def measure(url: str, chats: int, rate: float, seconds: float) -> str:
    adapter = LoopbackAdapter()
    rules = TurnRules(max_running=32, max_running_per_person=3, open_platforms=frozenset({LOOPBACK}))
    with SessionStore.open(url) as store:
        gateway = Gateway(store, DemoAgent(word_delay=0), profile=AgentProfile(), rules=rules, adapters=[adapter])
        async with gateway.run(grace_seconds=5):
            await adapter.say("hello", user="first")
            await wait_until_answered(adapter, 1)
            await asyncio.sleep(SETTLE_SECONDS)
            idle = read_memory_mib()
            adapter.sent.clear()
            accept_times, answer_times, sent_count = await send_steadily(adapter, chats, rate, seconds)
            busy = read_memory_mib()
            await asyncio.sleep(SETTLE_SECONDS)
            after = read_memory_mib()
    answers = Counter(message.address.chat_id for message in adapter.sent)
    header = "| chats | messages/s | sent | answered | accept p50 / p99 | answer delivered p50 / p99 | memory idle / busy / after |"
    row = (
        f"| {chats:,} | {rate:g} | {sent_count:,} | {answers.total():,} |"
        f" {quantile(accept_times, 0.5) * 1e3:.1f} / {quantile(accept_times, 0.99) * 1e3:.1f} ms |"
        f" {quantile(answer_times, 0.5) * 1e3:.0f} / {quantile(answer_times, 0.99) * 1e3:.0f} ms |"
        f" {idle:.0f} / {busy:.0f} / {after:.0f} MiB |"
    )
    return f"{header}\n|{'---|' * 7}\n{row}"


async def send_steadily(
    adapter: LoopbackAdapter, chats: int, rate: float, seconds: float
) -> tuple[list[float], list[float], int]:
    """Send messages at a rate, whatever the gateway does; return the times of accept and answer, and how many were sent."""
    rng = random.Random(7)
    accept_times: list[float] = []
    sent_at: dict[str, float] = {}
    answer_times: list[float] = []
    count = round(rate * seconds)

    async def send_one(number: int) -> None:
        user = f"user-{rng.randrange(chats)}"
        key = f"message-{number}"
        started = sent_at[key] = time.perf_counter()
        await adapter.say(make_text(number), user=user, message_id=key)
        accept_times.append(time.perf_counter() - started)

    seen = 0
    tasks: set[asyncio.Task[None]] = set()
    first = time.perf_counter()
    for number in range(count):
        await asyncio.sleep(max(0.0, first + number / rate - time.perf_counter()))
        task = asyncio.create_task(send_one(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        seen = note_answers(adapter, seen, sent_at, answer_times)
    await asyncio.gather(*tasks)
    deadline = time.perf_counter() + MAX_WAIT_SECONDS
    while seen < count and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)
        seen = note_answers(adapter, seen, sent_at, answer_times)
    return accept_times, answer_times, count


def note_answers(adapter: LoopbackAdapter, seen: int, sent_at: dict[str, float], answer_times: list[float]) -> int:
    """Note how long the answers took that have arrived since the last call."""
    now = time.perf_counter()
    for message in adapter.sent[seen:]:
        answer_times.append(now - sent_at[message.reply_to or ""])
    return len(adapter.sent)


async def wait_until_answered(adapter: LoopbackAdapter, count: int) -> None:
    deadline = time.perf_counter() + MAX_WAIT_SECONDS
    while len(adapter.sent) < count and time.perf_counter() < deadline:
        await asyncio.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--postgres", metavar="URL", help="measure on this database instead of a new SQLite file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.postgres or str(Path(folder) / "palaver.db")
        print(asyncio.run(measure(url, options.chats, options.rate, options.seconds)))


if __name__ == "__main__":
    main()

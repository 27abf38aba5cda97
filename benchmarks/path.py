"""Measures the whole path of a message, from `accept` to the first word and to the stored answer.

    python -m benchmarks.path [--sessions 10,100000] [--seconds 3] [--postgres URL]

The agent is the demo agent without its pauses, so the time is Palaver's own: inbox, queue, claim, run, feed and the end of
the turn. For comparison, a bare turn writes the same conversation through the async store: message, transcript, answer.
Both alternate in one process for several rounds; the table shows the medians.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import make_text
from benchmarks.measure import quantile
from palaver import SessionSource, SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.source import Platform
from palaver.drivers.demo import DemoAgent
from palaver.gateway.gateway import Gateway
from palaver.live.feed_events import DraftGrew, EventAppended, TurnChanged
from palaver.sessions.inbound import Inbound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

ROUNDS = 3
CONCURRENCY_LEVELS = (1, 10, 100)
TURNS_PER_SESSION = 20  # then a new session, so that the transcript stays short during the measurement


def make_source(user: object) -> SessionSource:
    return SessionSource("telegram", f"user-{user}", user_id=f"user-{user}", user_name=f"User {user}")


def seed_sessions(store: SessionStore, sessions: int) -> None:
    for person in range(sessions):
        store.record_user_message(make_source(person), make_text(person))


async def run_bare_turn(store: SessionStore, person: int, number: int) -> tuple[float, float]:
    start = time.perf_counter()
    recorded = await store.aio.record_user_message(
        make_source(f"bare-{person}-{number // TURNS_PER_SESSION}"), make_text(number)
    )
    await store.aio.load_transcript(recorded.session_id)
    await store.aio.append_to_transcript(recorded.session_id, {"role": "assistant", "content": make_text(number + 1)})
    seconds_taken = time.perf_counter() - start
    return seconds_taken, seconds_taken


async def run_path_turn(gateway: Gateway, person: int, number: int) -> tuple[float, float]:
    """Return the seconds until a follower in this process gets the first word, and until the answer is stored."""
    source = make_source(f"path-{person}-{number // TURNS_PER_SESSION}")
    principal = (await gateway.store.aio.get_or_create_person(source)).principal
    start = time.perf_counter()
    receipt = await gateway.inbox.accept(Inbound(source=source, content=make_text(number), message_id=str(number)))
    first, seq = None, receipt.seq or 0
    # From before the message: a turn that has already ended is sent only with the message that it answers.
    async with aclosing(gateway.feed.follow(principal, receipt.session_id or "", after=seq - 1)) as feed:
        async for item in feed:
            is_answer = isinstance(item, DraftGrew) or (isinstance(item, EventAppended) and item.event.seq > seq)
            if first is None and is_answer:
                first = time.perf_counter() - start
            if isinstance(item, TurnChanged) and item.turn.id == receipt.turn_id and item.turn.state.has_ended:
                break
    return first or 0.0, time.perf_counter() - start


async def measure_concurrent(
    run_turn: Callable[[int, int], Awaitable[tuple[float, float]]], concurrent: int, seconds: float
) -> dict[str, float]:
    until = time.perf_counter() + seconds
    first_times: list[float] = []
    full_times: list[float] = []

    async def run_person(person: int) -> None:
        count = time.monotonic_ns() // TURNS_PER_SESSION * TURNS_PER_SESSION
        while time.perf_counter() < until:
            count += 1
            first, full = await run_turn(person, count)
            first_times.append(first)
            full_times.append(full)

    start = time.perf_counter()
    await asyncio.gather(*(run_person(person) for person in range(concurrent)))
    seconds_taken = time.perf_counter() - start
    return {
        "first_p50": quantile(first_times, 0.5) * 1e3,
        "first_p99": quantile(first_times, 0.99) * 1e3,
        "whole_p50": quantile(full_times, 0.5) * 1e3,
        "whole_p99": quantile(full_times, 0.99) * 1e3,
        "per_second": len(full_times) / seconds_taken,
    }


@asynccontextmanager
async def run_gateway(store: SessionStore, sessions: int) -> AsyncIterator[Gateway]:
    """Run a gateway on a store with so many sessions."""
    await asyncio.to_thread(seed_sessions, store, sessions)
    gateway = Gateway(
        store,
        DemoAgent(word_delay=0),
        profile=AgentProfile(),
        rules=TurnRules(max_running=128, max_running_per_person=8, open_platforms=frozenset({Platform.TELEGRAM})),
    )
    async with gateway.run(grace_seconds=5):
        yield gateway


async def measure(url: str, sessions: int, seconds: float) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    with SessionStore.open(url) as store:
        async with run_gateway(store, sessions) as gateway:
            for concurrent in CONCURRENCY_LEVELS:
                rounds: dict[str, list[dict[str, float]]] = {"path": [], "bare": []}
                for _ in range(ROUNDS):
                    rounds["bare"].append(
                        await measure_concurrent(
                            lambda person, number: run_bare_turn(store, person, number), concurrent, seconds
                        )
                    )
                    rounds["path"].append(
                        await measure_concurrent(
                            lambda person, number: run_path_turn(gateway, person, number), concurrent, seconds
                        )
                    )
                for kind, round_results in rounds.items():
                    medians = {
                        key: statistics.median(result[key] for result in round_results) for key in round_results[0]
                    }
                    results.append({"sessions": sessions, "concurrent": concurrent, "kind": kind, **medians})
    return results


def format_table(results: list[dict[str, Any]]) -> str:
    lines = [
        "| sessions | concurrent | accept → first word p50 / p99 | accept → answer stored p50 / p99 | turns/s | bare store turn p50 | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for path in (result for result in results if result["kind"] == "path"):
        bare = next(
            result
            for result in results
            if result["kind"] == "bare"
            and (result["sessions"], result["concurrent"]) == (path["sessions"], path["concurrent"])
        )
        lines.append(
            f"| {path['sessions']:,} | {path['concurrent']} | {path['first_p50']:.2f} / {path['first_p99']:.2f} ms"
            f" | {path['whole_p50']:.2f} / {path['whole_p99']:.2f} ms | {path['per_second']:,.0f}"
            f" | {bare['whole_p50']:.2f} ms | {path['whole_p50'] / bare['whole_p50']:.1f}× |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", default="10,100000", help="numbers of sessions in the store, separated by commas")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds of each measurement")
    parser.add_argument("--postgres", help="an empty database; default: a SQLite file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    for sessions in map(int, options.sessions.split(",")):
        with tempfile.TemporaryDirectory(prefix="palaver-path-") as folder:
            url = options.postgres or f"sqlite:///{Path(folder)}/palaver.db"
            results += asyncio.run(measure(url, sessions, options.seconds))
    print(json.dumps(results, indent=1) if options.json else format_table(results))


if __name__ == "__main__":
    main()

"""The whole path: from `accept` to the first word and to the stored answer, beside a bare turn of the store.

    python -m benchmarks.path [--sessions 10,100000] [--seconds 3] [--postgres URL]

The agent is the demo without its pauses, so what is measured is Palaver: the door, the queue, the claim, the run, the
feed and the end. `bare` is the same conversation written by hand through the awaitable store: message, transcript, answer.
Both are measured in turn in one process, several times; the middle of the rounds is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from benchmarks.corpus import text
from benchmarks.measure import quantile
from palaver import SessionSource, SessionStore
from palaver.agent.demo import DemoAgent
from palaver.domain.feed_events import Drafted, Happened, TurnChanged
from palaver.domain.inbound import Inbound
from palaver.domain.profile import AgentProfile, TurnRules
from palaver.domain.source import Platform
from palaver.services.gateway import Gateway

ROUNDS = 3
CONCURRENT = (1, 10, 100)


TURNS_EACH = 20  # in one conversation, so that what is measured does not grow while it is measured


def source(who: object) -> SessionSource:
    return SessionSource("telegram", f"user-{who}", user_id=f"user-{who}", user_name=f"User {who}")


def seed(store: SessionStore, sessions: int) -> None:
    for i in range(sessions):
        store.record_user_message(source(i), text(i))


async def bare_turn(store: SessionStore, i: int, n: int) -> tuple[float, float]:
    began = time.perf_counter()
    recorded = await store.aio.record_user_message(source(f"bare-{i}-{n // TURNS_EACH}"), text(n))
    await store.aio.load_transcript(recorded.session_id)
    await store.aio.append_to_transcript(recorded.session_id, {"role": "assistant", "content": text(n + 1)})
    took = time.perf_counter() - began
    return took, took


async def path_turn(gateway: Gateway, i: int, n: int) -> tuple[float, float]:
    """Seconds to the first word that a follower in this process hears, and to the stored answer."""
    who = source(f"path-{i}-{n // TURNS_EACH}")
    principal = (await gateway.store.aio.person_for(who)).principal
    began = time.perf_counter()
    receipt = await gateway.inbox.accept(Inbound(source=who, content=text(n), message_id=str(n)))
    first = None
    async with aclosing(gateway.feed.follow(principal, receipt.session_id or "", after=receipt.seq)) as feed:
        async for item in feed:
            if first is None and (isinstance(item, Drafted) or isinstance(item, Happened)):
                first = time.perf_counter() - began
            if isinstance(item, TurnChanged) and item.turn.id == receipt.turn_id and item.turn.state.ended:
                break
    return first or 0.0, time.perf_counter() - began


async def crowd(turn, concurrent: int, seconds: float) -> dict[str, float]:
    until = time.perf_counter() + seconds
    firsts: list[float] = []
    wholes: list[float] = []

    async def person(i: int) -> None:
        count = time.monotonic_ns() // TURNS_EACH * TURNS_EACH
        while time.perf_counter() < until:
            count += 1
            first, whole = await turn(i, count)
            firsts.append(first)
            wholes.append(whole)

    began = time.perf_counter()
    await asyncio.gather(*(person(i) for i in range(concurrent)))
    took = time.perf_counter() - began
    return {
        "first_p50": quantile(firsts, 0.5) * 1e3,
        "first_p99": quantile(firsts, 0.99) * 1e3,
        "whole_p50": quantile(wholes, 0.5) * 1e3,
        "whole_p99": quantile(wholes, 0.99) * 1e3,
        "per_second": len(wholes) / took,
    }


async def measure(url: str, sessions: int, seconds: float) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    with SessionStore.open(url) as store:
        await asyncio.to_thread(seed, store, sessions)
        gateway = Gateway(
            store,
            DemoAgent(pace=0),
            profile=AgentProfile(),
            rules=TurnRules(concurrency=128, per_person=8, open_to_all=frozenset({Platform.TELEGRAM})),
        )
        async with gateway.running(patience=5):
            for concurrent in CONCURRENT:
                rounds: dict[str, list[dict[str, float]]] = {"path": [], "bare": []}
                for _ in range(ROUNDS):
                    rounds["bare"].append(await crowd(lambda i, n: bare_turn(store, i, n), concurrent, seconds))
                    rounds["path"].append(await crowd(lambda i, n: path_turn(gateway, i, n), concurrent, seconds))
                for kind, results in rounds.items():
                    middle = {key: statistics.median(each[key] for each in results) for key in results[0]}
                    found.append({"sessions": sessions, "concurrent": concurrent, "kind": kind, **middle})
    return found


def table(found: list[dict[str, object]]) -> str:
    lines = [
        "| sessions | at once | accept → first word p50 / p99 | accept → answer stored p50 / p99 | turns/s | bare store turn p50 | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for path in (each for each in found if each["kind"] == "path"):
        bare = next(
            each
            for each in found
            if each["kind"] == "bare"
            and (each["sessions"], each["concurrent"]) == (path["sessions"], path["concurrent"])
        )
        lines.append(
            f"| {path['sessions']:,} | {path['concurrent']} | {path['first_p50']:.2f} / {path['first_p99']:.2f} ms"
            f" | {path['whole_p50']:.2f} / {path['whole_p99']:.2f} ms | {path['per_second']:,.0f}"
            f" | {bare['whole_p50']:.2f} ms | {path['whole_p50'] / bare['whole_p50']:.1f}× |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", default="10,100000")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--postgres", help="an empty database; without it SQLite")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = []
    for sessions in map(int, given.sessions.split(",")):
        with tempfile.TemporaryDirectory(prefix="palaver-path-") as folder:
            url = given.postgres or f"sqlite:///{Path(folder)}/palaver.db"
            found += asyncio.run(measure(url, sessions, given.seconds))
    print(json.dumps(found, indent=1) if given.json else table(found))


if __name__ == "__main__":
    main()

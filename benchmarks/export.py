"""Measures how long accepting messages takes while a long conversation is exported.

    python -m benchmarks.export [--messages 10000] [--format markdown] [--clients 4] [--seconds 5] [--rounds 3]
                                [--postgres URL] [--src PATH]

One person runs `/export` repeatedly in a conversation of 10,000 messages, while clients send messages in other
conversations, with a short pause after each. The benchmark times `accept` for these messages with and without exports,
alternating for several rounds; all rounds count. `--src` measures the `src` folder of another checkout.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import make_text
from benchmarks.measure import quantile

if TYPE_CHECKING:
    from palaver import SessionStore

MESSAGES_PER_SESSION = 8  # fewer than a session may queue: no agent answers here
MAX_PAUSE_SECONDS = 0.01  # after each message of a client
SEED_BATCH = 500


class NoAgent:
    """Stands in for the agent that the inbox asks for its models; it never runs."""

    model = "none"
    description = "no agent"

    def list_models(self) -> list[str]:
        return ["none"]

    def check_model(self, name: str) -> None:
        """Every model is accepted."""

    async def get_price(self, name: str) -> None:
        """No price is known."""

    def list_tool_servers(self) -> list[str]:
        return []


class Benchmark:
    """One store with a long conversation, and an inbox."""

    def __init__(self, store: SessionStore, export_format: str) -> None:
        from palaver import SessionSource
        from palaver.agent.profiles import CurrentSettings
        from palaver.config.agent_rules import TurnRules
        from palaver.inbox import Inbox
        from palaver.sessions.inbound import Inbound

        self._source_class, self._inbound_class = SessionSource, Inbound
        self._store = store
        self._inbox = Inbox(store, CurrentSettings(NoAgent(), TurnRules()))
        self._export_text = f"/export {export_format}"
        self._exporter_source = SessionSource.local_cli()
        self._message_count = 0

    def seed(self, messages: int) -> None:
        first = self._store.record_user_message(self._exporter_source, make_text(0))
        for start in range(1, messages, SEED_BATCH):
            numbers = range(start, min(start + SEED_BATCH, messages))
            batch = [{"role": "user" if n % 2 == 0 else "assistant", "content": make_text(n)} for n in numbers]
            self._store.append_to_transcript(first.session_id, batch)

    async def measure(self, clients: int, seconds: float, *, with_exports: bool) -> tuple[list[float], list[float]]:
        """Return the seconds that each accepted message and each export took."""
        until = time.perf_counter() + seconds
        accept_times: list[float] = []
        export_times: list[float] = []
        tasks = [asyncio.create_task(self._send_messages(client, until, accept_times)) for client in range(clients)]
        exporting = asyncio.create_task(self._export(export_times)) if with_exports else None
        await asyncio.gather(*tasks)
        if exporting is not None:
            exporting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await exporting
            await asyncio.sleep(1)  # a read that has started on its thread ends there
        return accept_times, export_times

    async def _send_messages(self, client: int, until: float, times: list[float]) -> None:
        pauses = random.Random(client)
        while time.perf_counter() < until:
            self._message_count += 1
            user = f"user-{client}"
            chat = f"{user}-{self._message_count // MESSAGES_PER_SESSION}"
            source = self._source_class("api", chat, user_id=user, user_name=user)
            inbound = self._inbound_class(
                source=source, content=make_text(self._message_count), message_id=str(self._message_count)
            )
            start = time.perf_counter()
            await self._inbox.accept(inbound)
            times.append(time.perf_counter() - start)
            await asyncio.sleep(pauses.uniform(0, MAX_PAUSE_SECONDS))

    async def _export(self, times: list[float]) -> None:
        while True:
            start = time.perf_counter()
            receipt = await self._inbox.accept(
                self._inbound_class(source=self._exporter_source, content=self._export_text)
            )
            assert receipt.facts, receipt
            times.append(time.perf_counter() - start)


async def run(url: str, options: argparse.Namespace) -> dict[str, list[float]]:
    from palaver import SessionStore

    results: dict[str, list[float]] = {"without": [], "with": [], "exports": []}
    with SessionStore.open(url) as store:
        benchmark = Benchmark(store, options.format)
        await asyncio.to_thread(benchmark.seed, options.messages)
        await benchmark.measure(options.clients, 0.5, with_exports=False)  # warms up
        for _ in range(options.rounds):
            accept_times, _ = await benchmark.measure(options.clients, options.seconds, with_exports=False)
            results["without"] += accept_times
            accept_times, export_times = await benchmark.measure(options.clients, options.seconds, with_exports=True)
            results["with"] += accept_times
            results["exports"] += export_times
    return results


def print_results(results: dict[str, list[float]]) -> None:
    quantiles: dict[str, Any] = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    print("| accept | messages | p50 | p99 | max |")
    print("|---|---|---|---|---|")
    for name in ("without", "with"):
        values = [f"{quantile(results[name], q) * 1e3:.2f} ms" for q in quantiles.values()]
        print(f"| {name} exports | {len(results[name]):,} | {' | '.join(values)} |")
    ratios = [f"{quantile(results['with'], q) / quantile(results['without'], q):.1f}×" for q in quantiles.values()]
    print(f"| ratio | | {' | '.join(ratios)} |")
    exports = results["exports"]
    print(f"\n{len(exports)} exports, {quantile(exports, 0.5) * 1e3:.0f} ms each (p50)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=10_000, help="messages of the conversation that is exported")
    parser.add_argument("--format", choices=["markdown", "json"], default="markdown")
    parser.add_argument("--clients", type=int, default=4, help="clients that send messages")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of each half of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--postgres", metavar="URL", help="an empty database; default: a SQLite file")
    parser.add_argument("--src", metavar="PATH", help="the src folder to measure instead of this checkout's")
    options = parser.parse_args()
    if options.src:
        sys.path.insert(0, options.src)
    with tempfile.TemporaryDirectory() as folder:
        url = options.postgres or f"sqlite:///{Path(folder) / 'palaver.db'}"
        print_results(asyncio.run(run(url, options)))


if __name__ == "__main__":
    main()

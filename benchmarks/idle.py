"""Measures what a waiting `palaver serve` costs, and how soon it notices a change by another process.

    python -m benchmarks.idle [--seconds N] [--changes N] [--postgres] [--json]

*Processor* is what all threads of the server use while no request arrives, in percent of one core; *wake-ups* are the
context switches of its threads. *Noticed* is the time from the commit of another process (a message that it appends to a
conversation) until a client that follows the conversation has it. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.http import FilledStore, PalaverClient, Server, build_environment
from benchmarks.memory import open_client

if TYPE_CHECKING:
    from typing import Any

SETTLE_SECONDS = 8.0  # after the start, until its work is done
WRITER = """
import sys, time
from palaver import SessionStore
url, session_id = sys.argv[1:]
with SessionStore.open(url) as store:
    for line in sys.stdin:
        store.append_to_transcript(session_id, {"role": "user", "content": line.strip()})
        print(time.monotonic(), flush=True)
"""


def count_wake_ups(server: Server) -> int:
    total = 0
    for status in Path(f"/proc/{server.process.pid}/task").glob("*/status"):
        text = status.read_text()
        total += int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return total


async def measure_idle(server: Server, seconds: float) -> tuple[float, float]:
    """Return the processor in percent of a core, and the wake-ups per second."""
    await asyncio.sleep(SETTLE_SECONDS)
    cpu, wake_ups = server.read_cpu_seconds(), count_wake_ups(server)
    await asyncio.sleep(seconds)
    return (server.read_cpu_seconds() - cpu) / seconds * 100, (count_wake_ups(server) - wake_ups) / seconds


async def measure_changes(client: PalaverClient, url: str, count: int) -> list[float]:
    """Return the milliseconds from each commit of another process until a follower has the message."""
    follower = await client.open_follower()
    writer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WRITER, url, client.session_id),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=build_environment(),
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    times = []
    for number in range(count):
        await asyncio.sleep(0.7 + number % 7 / 10)  # long enough to be idle again, and not in step with anything
        follower.reset()
        text = f"change-{number}-{time.time_ns()}"
        writer.stdin.write(f"{text}\n".encode())
        committed = float(await writer.stdout.readline())
        await follower.wait_for(text.encode())
        arrived = next(at for at, frame in follower.frames if text.encode() in frame)
        times.append((arrived - committed) * 1e3)
    writer.stdin.close()
    await writer.wait()
    follower.transport.close()
    return times


async def measure(server: Server, url: str, options: argparse.Namespace) -> dict[str, Any]:
    async with open_client(server) as http_client:
        client = PalaverClient(http_client, server)
        await client.start_session()
        cpu, wake_ups = await measure_idle(server, options.seconds)
        followers = [await client.open_follower() for _ in range(10)]
        cpu_followed, wake_ups_followed = await measure_idle(server, options.seconds)
        for follower in followers:
            follower.transport.close()
        changes = await measure_changes(client, url, options.changes)
    return {
        "cpu_percent": cpu,
        "wake_ups_per_second": wake_ups,
        "cpu_percent_10_followers": cpu_followed,
        "wake_ups_per_second_10_followers": wake_ups_followed,
        "noticed_ms": changes,
    }


def main() -> None:
    from benchmarks.postgres_server import DATABASE_PREFIX, PostgresServer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--changes", type=int, default=30)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="palaver-idle-"))
    try:
        with PostgresServer() as postgres:
            url = ""
            if options.postgres:
                postgres.create_database(f"{DATABASE_PREFIX}idle")
                url = postgres.build_url(f"{DATABASE_PREFIX}idle")
            store = FilledStore(folder / "home", url)
            with store.start_palaver() as server:
                database = url or f"sqlite:///{folder}/home/palaver.db"
                result = asyncio.run(measure(server, database, options))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps(result))
        return
    changes = result["noticed_ms"]
    print("| | no followers | 10 followers |\n|---|---|---|")
    print(f"| processor, of one core | {result['cpu_percent']:.2f} % | {result['cpu_percent_10_followers']:.2f} % |")
    wake_ups = result["wake_ups_per_second"], result["wake_ups_per_second_10_followers"]
    print(f"| wake-ups per second | {wake_ups[0]:.1f} | {wake_ups[1]:.1f} |")
    print(
        f"\nA change by another process is noticed after {statistics.median(changes):.1f} ms (median of {len(changes)},"
        f" longest {max(changes):.1f} ms)."
    )


if __name__ == "__main__":
    main()

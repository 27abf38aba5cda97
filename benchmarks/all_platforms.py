"""Runs `palaver serve` with every platform at once, each on a server of its own on this machine, and disturbs them.

    python -m benchmarks.all_platforms [--seconds 600] [--only NAME,…] [--seed N] [--kill]

On each platform two people talk to the demo agent, in direct chats and in a group. All the time faults happen at random: a
refusal because of too many messages, an internal error, an answer that is lost after the message was taken, a cut
connection; with `--kill` the server is also killed and started again in the middle. At the end every message must be in the
conversations once, and its answer in the chat once; an answer that may or may not have arrived must be reported as uncertain.
The table also shows the start, the idle cost, and how long answers took while other platforms were disturbed. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from benchmarks.http import Server, print_note
from benchmarks.measure import quantile
from benchmarks.memory import open_client
from benchmarks.paths import REPOSITORY_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from platforms.local_platform import LocalPlatform

IDLE_SECONDS = 30.0
LIVE_SECONDS = 120.0  # for all accounts to be connected
LAST_ANSWER_SECONDS = 180.0  # for the last answers, after the last fault
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 4.0, 14.0  # between two messages in a chat
MIN_FAULT_SECONDS, MAX_FAULT_SECONDS = 8.0, 25.0  # between two faults of a platform
AFTERMATH_SECONDS = 15.0  # after a fault, its platform counts as disturbed
SAID = re.compile(r"\bword-[a-z-]+-\d+\b")


@dataclass
class Talk:
    """What was said on one platform, and what came back."""

    local: LocalPlatform
    said: dict[str, tuple[str, float]] = field(default_factory=dict)  # word → chat and time
    answered: dict[str, float] = field(default_factory=dict)  # word → seconds until its answer stood in the chat
    disturbed: set[str] = field(default_factory=set)  # words said while this platform was disturbed
    faults: Counter[str] = field(default_factory=Counter)
    calm_from: float = 0.0

    @property
    def name(self) -> str:
        return str(self.local.platform)

    def count_answers(self, texts: dict[str, list[str]]) -> Counter[str]:
        """Return how often each word stands in the answers in its chat."""
        counts: Counter[str] = Counter()
        for chat, answers in texts.items():
            for answer in answers:
                counts.update({word for word in SAID.findall(answer) if self.said.get(word, ("",))[0] == chat})
        return counts

    def find_strays(self, texts: dict[str, list[str]]) -> list[str]:
        """Return the words that stand in an answer in another chat than the one in which they were said."""
        return [
            word
            for chat, answers in texts.items()
            for answer in answers
            for word in SAID.findall(answer)
            if self.said.get(word, ("",))[0] != chat
        ]

    async def list_texts(self) -> dict[str, list[str]]:
        return {chat: list(await self.local.list_answers(chat)) for chat in self.local.chats}


class Gateway:
    """`palaver serve` as a process that can be killed and started again, and its children."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.server: Server | None = None

    def start(self) -> Server:
        command = ["-m", "palaver", "--home", str(self.home), "serve", "--no-open", "--link", "--port"]
        environ = {"PALAVER_DATABASE_URL": f"sqlite:///{self.home}/palaver.db"}
        self.server = Server(command, "/readyz", self.home / "server.log", environ)
        return self.server

    def kill(self) -> None:
        assert self.server is not None
        self.server.process.kill()
        self.server.process.wait()

    def list_pids(self) -> Iterator[int]:
        """Yield the process and all its descendants."""
        assert self.server is not None
        pending = [self.server.process.pid]
        while pending:
            pid = pending.pop()
            yield pid
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                pending += [int(child) for child in children.read_text().split()]

    def read_memory_mib(self) -> tuple[float, float]:
        """Return the resident memory of the server, and that of its children."""
        sizes = [
            int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024
            for pid in self.list_pids()
        ]
        return sizes[0], sum(sizes[1:])

    def read_cpu_seconds(self) -> tuple[float, float]:
        times = []
        for pid in self.list_pids():
            tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
            times.append(sum(int(task.read_text().split()[0]) for task in tasks) / 1e9)
        return times[0], sum(times[1:])


async def wait_until_live(client: httpx2.AsyncClient, names: set[str]) -> float:
    """Wait until all accounts are connected; return the seconds that it took."""
    started = time.perf_counter()
    while True:
        accounts = (await client.get("/api/platforms")).json()["accounts"]
        waiting = {each["platform"]: each for each in accounts if each["platform"] in names and each["state"] != "live"}
        if not waiting and len(accounts) >= len(names):
            return time.perf_counter() - started
        if time.perf_counter() - started > LIVE_SECONDS:
            raise SystemExit(f"Not connected: { {name: each['error'] for name, each in waiting.items()} }")
        await asyncio.sleep(0.05)


async def talk(run: Talk, chat: str, until: float, rng: random.Random) -> None:
    """Write a message in a chat again and again."""
    people = [each for each in run.local.chats if each != "group"]
    for number in range(1_000_000):
        await asyncio.sleep(rng.uniform(MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS))
        now = time.monotonic()
        if now > until:
            return
        word = f"word-{run.name}-{chat}-{number}"
        if now < run.calm_from:
            run.disturbed.add(word)
        run.said[word] = (chat, now)
        await run.local.say(rng.choice(people) if chat == "group" else chat, chat, f"Please note {word}")


async def disturb(run: Talk, until: float, rng: random.Random) -> None:
    """Let faults happen again and again."""
    faults = sorted(run.local.faults)
    while faults:
        await asyncio.sleep(rng.uniform(MIN_FAULT_SECONDS, MAX_FAULT_SECONDS))
        if time.monotonic() > until:
            return
        fault = rng.choice(faults)
        run.faults[fault.value] += 1
        run.calm_from = time.monotonic() + AFTERMATH_SECONDS
        await run.local.disturb(fault)


async def watch_answers(run: Talk) -> None:
    """Note when answers arrive, until canceled."""
    while True:
        for word in run.count_answers(await run.list_texts()):
            if word not in run.answered:
                run.answered[word] = time.monotonic() - run.said[word][1]
        await asyncio.sleep(0.1)


async def run_all(locals_: list[LocalPlatform], home: Path, options: argparse.Namespace) -> tuple[list[str], bool]:
    gateway = Gateway(home)
    settings = {str(local.platform): {"access": "everyone", "settings": local.build_settings()} for local in locals_}
    (home / "config.yaml").write_text(yaml.safe_dump({"platforms": settings}))
    runs = [Talk(local) for local in locals_]
    names = {run.name for run in runs}

    def start() -> Server:
        server = gateway.start()
        for local in locals_:
            local.hook_url = f"{server.url}/hooks/{local.platform}"
        return server

    server = start()
    clients = AsyncExitStack()
    try:
        client = await clients.enter_async_context(open_client(server))
        live_seconds = await wait_until_live(client, names)
        first_start = server.start_seconds + live_seconds
        print_note(f"all connected after {first_start:.1f} s; idle for {IDLE_SECONDS:g} s")
        await asyncio.sleep(5)
        cpu = gateway.read_cpu_seconds()
        await asyncio.sleep(IDLE_SECONDS)
        idle_cpu = [
            (after - before) / IDLE_SECONDS * 100 for before, after in zip(cpu, gateway.read_cpu_seconds(), strict=True)
        ]
        idle_memory = gateway.read_memory_mib()

        until = time.monotonic() + options.seconds
        watching = [asyncio.create_task(watch_answers(run)) for run in runs]
        rng = random.Random(options.seed)
        working = [
            asyncio.create_task(talk(run, chat, until, random.Random(rng.random())))
            for run in runs
            for chat in run.local.chats
        ] + [asyncio.create_task(disturb(run, until, random.Random(rng.random()))) for run in runs]
        if options.kill:
            await asyncio.sleep(options.seconds / 2)
            print_note("killing the server")
            gateway.kill()
            for run in runs:
                run.calm_from = time.monotonic() + 60
            server = await asyncio.to_thread(start)
            client = await clients.enter_async_context(open_client(server))
        await asyncio.gather(*working)
        await wait_for_answers(client, runs)
        accounts = {each["platform"]: each for each in (await client.get("/api/platforms")).json()["accounts"]}
        for task in watching:
            task.cancel()
        busy_memory = gateway.read_memory_mib()
    finally:
        await clients.aclose()
        if gateway.server is not None and gateway.server.process.poll() is None:
            await asyncio.to_thread(gateway.server.stop)

    stored = count_stored_words(home)
    lines = [
        f"Connected after {first_start:.1f} s. Idle: {idle_memory[0]:.0f} MiB and {idle_cpu[0]:.1f} % of a core"
        f" (children: {idle_memory[1]:.0f} MiB, {idle_cpu[1]:.1f} %). After the run: {busy_memory[0]:.0f} MiB"
        f" (children: {busy_memory[1]:.0f} MiB).",
        "",
        "| platform | faults | said | stored once | answered once | uncertain | lost or doubled | calm p50 / p95 | disturbed p50 / p95 |",
        f"|{'---|' * 9}",
    ]
    is_right = True
    for run in runs:
        row, is_row_right = await describe(run, stored, accounts[run.name])
        lines.append(row)
        is_right = is_right and is_row_right
    return lines, is_right


async def wait_for_answers(client: httpx2.AsyncClient, runs: list[Talk]) -> None:
    """Wait until nothing is to be sent any more."""
    deadline = time.monotonic() + LAST_ANSWER_SECONDS
    while time.monotonic() < deadline:
        accounts = (await client.get("/api/platforms")).json()["accounts"]
        missing = sum(len(run.said) - len(run.answered) for run in runs)
        uncertain = sum(each["uncertain"] + each["failed"] for each in accounts)
        if missing <= uncertain and not any(each["waiting"] for each in accounts):
            await asyncio.sleep(3)
            return
        await asyncio.sleep(0.5)


def count_stored_words(home: Path) -> Counter[str]:
    """Return how often each word stands in a message of a person, in all conversations."""
    from palaver import SessionStore

    counts: Counter[str] = Counter()
    with SessionStore.open(f"sqlite:///{home}/palaver.db") as store:
        for text in list_user_messages(store):
            counts.update(SAID.findall(text))
    return counts


def list_user_messages(store: Any) -> Iterator[str]:
    from palaver.core.engines.base import Read

    sql = "SELECT content FROM event WHERE kind = 'message' AND role = 'user'"
    for (content,) in store.engine.run(Read(lambda tx: tx.fetch_all(sql))):
        yield content or ""


async def describe(run: Talk, stored: Counter[str], account: dict[str, Any]) -> tuple[str, bool]:
    texts = await run.list_texts()
    counts = run.count_answers(texts)
    doubled = [word for word, count in counts.items() if count > 1]
    missing = [word for word in run.said if word not in counts]
    not_stored = [word for word in run.said if stored[word] != 1]
    strays = run.find_strays(texts)
    reported = account["uncertain"] + account["failed"]
    silently_lost = max(0, len(missing) - reported)
    problems = [*run.local.list_problems()]
    for label, words in (
        ("not stored once", not_stored),
        ("answered twice", doubled),
        ("not answered", missing),
        ("in the wrong chat", strays),
        ("requests that break the published types", problems),
    ):
        if words:
            print_note(f"{run.name}: {label}: {words[:5]}{' …' if len(words) > 5 else ''} ({len(words)})")
    times: dict[bool, list[float]] = defaultdict(list)
    for word, seconds in run.answered.items():
        times[word in run.disturbed].append(seconds)
    speeds = [
        f"{quantile(times[is_disturbed], 0.5):.2f} / {quantile(times[is_disturbed], 0.95):.2f} s"
        if times[is_disturbed]
        else "–"
        for is_disturbed in (False, True)
    ]
    wrong = len(doubled) + len(not_stored) + len(strays) + silently_lost + len(problems)
    row = (
        f"| {run.local.platform.label} | {run.faults.total()} | {len(run.said)} | {len(run.said) - len(not_stored)} |"
        f" {len(counts) - len(doubled)} | {reported} | {wrong} | {speeds[0]} | {speeds[1]} |"
    )
    return row, wrong == 0


async def measure(options: argparse.Namespace, folder: Path) -> bool:
    sys.path.insert(0, str(REPOSITORY_DIR / "tests"))
    from platforms.local_platform import load_local_platforms

    classes = load_local_platforms(*(options.only.split(",") if options.only else ()))
    async with AsyncExitStack() as stack:
        locals_ = []
        for each in classes:
            own = folder / str(each.platform)
            own.mkdir()
            locals_.append(await stack.enter_async_context(each(own)))
        home = folder / "home"
        home.mkdir()
        lines, is_right = await run_all(locals_, home, options)
    print("\n".join(lines))
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--only", metavar="NAME,…", help="only these platforms")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kill", action="store_true", help="kill the server in the middle and start it again")
    options = parser.parse_args()
    logging.getLogger("mail.log").setLevel(logging.ERROR)  # of the local SMTP server
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if asyncio.run(measure(options, Path(folder))) else 1)


if __name__ == "__main__":
    main()

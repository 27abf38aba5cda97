"""Measures a real `palaver serve` over HTTP, next to a bare FastAPI application on the same uvicorn.

    python -m benchmarks.http [--short | --full] [--sessions N] [--messages N] [--followers N] [--postgres [URL]] [--json]

For every response, the bare application sends a constant of the same size. Its followers receive as many frames of the
same size, with the pauses that the demo agent makes between words. So the difference between the two columns is what
Palaver does: access checks, sign-in, store, turn, feed. Requests to the two servers alternate.

Modules are imported where they are needed: the bare application is in this file too, and must not load what it does not
use.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import inspect
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from typing import Self

    import httpx2

    from benchmarks.drivers.palaver_seed import Bulk, Row
    from benchmarks.postgres_server import PostgresServer

PAGE_SIZE = 50  # sessions or messages
MAX_HITS = 20
WARM_UP_REQUESTS = 10  # not measured
IDLE_FOLLOWERS = 100
STREAMS_PER_OWNER = 50
TIMEOUT_SECONDS = 60.0
SMALL_STORE_SESSIONS = 10
LONG_TITLE = "Interminable"  # the title of the long conversation
TURNS_PER_SESSION = 20  # then a new session, so that the transcript stays short during the measurement


@dataclass(frozen=True)
class Sizes:
    """How much to store and how much to measure."""

    sessions: int = 100_000
    messages: int = 100_000  # in all sessions together
    long_messages: int = 10_000  # in the one long session
    starts: int = 5
    idle_seconds: float = 10.0
    requests: int = 200
    turns: int = 20
    followers: int = 50
    busy_messages: int = 15  # sent while the followers listen
    is_short: bool = False  # only what has a target

    @property
    def messages_per_session(self) -> int:
        """Messages in one session."""
        return max(1, self.messages // self.sessions)

    @property
    def stored_messages(self) -> int:
        """Messages in all sessions except the long one."""
        return self.messages_per_session * self.sessions


SHORT = Sizes(starts=7, turns=2, is_short=True)
FULL = Sizes(messages=1_000_000, starts=10, requests=1000, turns=100, followers=500, busy_messages=60)

# hermes-webui, version of 2026-08-22: measured separately, also on two cores.
HERMES_FIGURES = {
    "start": "1.4–1.6 s (4.2 s the first time)",
    "start among many": "5.1 s with 10,000",
    "memory": "125 MB",
    "memory at the end": "150 MB after a few turns; 247 MB after listing 10,000",
    "processor": "not measured; 5 polls per minute and page",
    "page": "0.51–0.83 s of 1,000, 5.1–6.2 s of 10,000 (whole list)",
    "search": "1.9–4.0 s in 10,000 sessions, no match",
    "first": "0.06–0.07 s with its API, 0.3–0.4 s on its page",
}


@dataclass
class Measurement:
    """One row of the table."""

    what: str
    unit: str  # ms, MiB or %
    palaver: list[float]
    bare: list[float] = field(default_factory=list)
    hermes: str = ""


def print_note(text: str) -> None:
    print(f"# {text}", file=sys.stderr, flush=True)


# ---- the bare server -------------------------------------------------------------------------------------------


def serve_bare(port: int) -> None:
    """Run a FastAPI application that only sends constants, and frames to its followers."""
    import uvicorn
    from fastapi import FastAPI
    from fastapi.responses import Response, StreamingResponse

    app = FastAPI()
    queues: set[asyncio.Queue[bytes]] = set()
    answer_tasks: set[asyncio.Task[None]] = set()
    answer_lock = asyncio.Lock()

    def send_frame(name: str, facts: str, size: int) -> None:
        head = f'event: {name}\ndata: {{{facts},"rest":"'
        frame = f'{head}{"x" * (size - len(head) - 4)}"}}\n\n'.encode()
        for queue in queues:
            queue.put_nowait(frame)

    async def answer(request: dict) -> None:
        async with answer_lock:
            for _ in range(request["frames"]):
                await asyncio.sleep(request["pace"])
                send_frame("draft", '"replaces_draft":false', request["draft"])
            send_frame("event", '"role":"assistant"', request["event"])
            send_frame("turn", '"state":"done"', request["event"])

    async def listen() -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues.add(queue)
        try:
            yield b"retry: 1000\n\n"
            while True:
                yield await queue.get()
        finally:
            queues.discard(queue)

    # No return annotations: FastAPI could not resolve local names.
    @app.get("/bytes/{size}", response_model=None)
    async def send_constant(size: int):
        return Response(b'"' + b"x" * (size - 2) + b'"', media_type="application/json")

    @app.post("/say", response_model=None)
    async def accept_message(request: dict):
        send_frame("event", f'"role":"user","content":"{request["content"]}"', request["event"])
        task = asyncio.create_task(answer(request))
        answer_tasks.add(task)
        task.add_done_callback(answer_tasks.discard)
        return Response(b'"' + b"x" * (request["receipt"] - 2) + b'"', status_code=202, media_type="application/json")

    @app.get("/live", response_model=None)
    async def stream_frames():
        return StreamingResponse(listen(), media_type="text/event-stream")

    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, access_log=False, server_header=False, ws="none")


# ---- processes -------------------------------------------------------------------------------------------


class Server:
    """A server process. The constructor returns as soon as the server answers; leaving the `with` block stops it."""

    def __init__(self, command: list[str], ready: str, log: Path, environ: dict[str, str] | None = None) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with log.open("wb") as errors:
            start_time = time.perf_counter()
            self.process = subprocess.Popen(
                [sys.executable, *command, str(self.port)],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=build_environment() | (environ or {}),
                text=True,
            )
        try:
            while not is_answering(self.port, ready):
                if self.process.poll() is not None or time.perf_counter() - start_time > TIMEOUT_SECONDS:
                    raise RuntimeError(f"{' '.join(command)} did not answer: {log.read_text()[-1000:]}")
                time.sleep(0.002)
        except BaseException:  # also an interruption: the caller never gets an object that it could stop
            self.stop()
            raise
        self.start_seconds = time.perf_counter() - start_time

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def read_sign_in_token(self) -> str:
        """Return the secret of the sign-in link that the server prints."""
        for line in self.process.stdout or ():
            if match := re.search(r"/sign-in#(\S+)", line):
                return match[1]
        raise RuntimeError("the server printed no sign-in link")

    def read_memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def read_cpu_seconds(self) -> float:
        """Return the CPU seconds that all its threads have used."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def is_answering(port: int, path: str) -> bool:
    """Check whether a server answers on this port, with the smallest possible request."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            return b" 200 " in connection.recv(64)
    except OSError:
        return False


def build_environment() -> dict[str, str]:
    """Return the environment of a server: without the caller's settings, and with bytecode caching as in a normal install."""
    from benchmarks.paths import REPOSITORY_DIR

    excluded = re.compile(r"PALAVER_|PYTHONDONTWRITEBYTECODE$|.*_(API_KEY|BASE_URL)$|.*_HOME_CHANNEL")
    inherited = {name: value for name, value in os.environ.items() if not excluded.match(name)}
    return inherited | {"PYTHONPATH": str(REPOSITORY_DIR), "PALAVER_MODEL": "demo"}


@dataclass(frozen=True)
class FilledStore:
    """A filled store, and the two servers to compare."""

    home: Path
    database: str = ""  # URL; empty: the SQLite file in `home`

    def start_palaver(self) -> Server:
        command = ["-m", "palaver", "--home", str(self.home), "serve", "--no-open", "--port"]
        database = {"PALAVER_DATABASE_URL": self.database} if self.database else {}
        return Server(command, "/readyz", self.home.with_suffix(".log"), database)

    def start_bare(self) -> Server:
        return Server(["-m", "benchmarks.http", "--bare"], "/bytes/2", self.home.with_suffix(".bare.log"))


# ---- stores ----------------------------------------------------------------------------------------------


class SinglePersonBulk:
    """Inserts copies of a session so that all of them belong to the person of the first one."""

    PEOPLE_TABLES = frozenset({"audience", "person", "audience_member", "identity"})

    def __init__(self, bulk: Bulk) -> None:
        self._bulk = bulk
        self._person: Row = bulk.load_rows("person", "id")[0]
        self.list_filled_tables = bulk.list_filled_tables
        self.load_rows = bulk.load_rows
        self.commit_and_close = bulk.commit_and_close

    def insert_rows(self, table: str, rows: list[Row]) -> None:
        if table in self.PEOPLE_TABLES:
            return
        owner_columns = {"audience_no": self._person["audience_no"], "person_id": self._person["id"]}
        self._bulk.insert_rows(
            table,
            [row | {name: owner_columns[name] for name in owner_columns if row.get(name) is not None} for row in rows],
        )


def fill_store(database: str, sizes: Sizes) -> None:
    """Write the owner's sessions, all of equal length, and a long one, and index all messages."""
    from benchmarks.corpus import make_plan, make_text
    from benchmarks.drivers.palaver_seed import PostgresBulk, SqliteBulk, copy_conversations
    from palaver import SessionSource, SessionStore

    def build_messages(texts: Iterable[str]) -> list[dict[str, str]]:
        return [{"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(texts)]

    def write_session(key: str, texts: Iterable[str]) -> str:
        session_id = store.get_or_create_session(SessionSource("local", key)).session_id
        store.append_to_transcript(session_id, build_messages(texts))
        return session_id

    plan = make_plan(sizes.sessions, sizes.messages_per_session)
    key, messages = next(plan)
    with SessionStore.open(database) as store:
        write_session(key, (content for _, content in messages))
    file = database.removeprefix("sqlite:///")
    bulk = PostgresBulk(database) if file == database else SqliteBulk(Path(file))
    copy_conversations(SinglePersonBulk(bulk), key, plan)
    with SessionStore.open(database) as store:
        if sizes.long_messages:
            texts = (make_text(i, "long") for i in range(sizes.long_messages))
            store.rename_session(write_session("long", texts), LONG_TITLE)
        store.search("aneverwrittenword")  # a search updates the index first


def prepare_store(name: str, server: PostgresServer | None, sizes: Sizes) -> FilledStore:
    """Prepare a new store for a run. SQLite files are filled once and copied; a PostgreSQL database is filled every time."""
    from benchmarks import drivers
    from benchmarks.paths import LIVE_DIR, SEEDS_DIR
    from benchmarks.postgres_server import DATABASE_PREFIX

    home = LIVE_DIR / "http" / name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if server is not None:
        print_note(f"filling {sizes.stored_messages:,} messages")
        server.create_database(f"{DATABASE_PREFIX}http_{name}")
        url = server.build_url(f"{DATABASE_PREFIX}http_{name}")
        fill_store(url, sizes)
        return FilledStore(home, url)
    digest = hashlib.sha256(drivers.fingerprint("palaver").encode())
    for source in (SinglePersonBulk, fill_store):
        digest.update(inspect.getsource(source).encode())
    name_prefix = f"{sizes.sessions}-{sizes.stored_messages}-{sizes.long_messages}"
    seed_dir = SEEDS_DIR / "http" / f"{name_prefix}-{digest.hexdigest()[:10]}"
    if not seed_dir.exists():
        for old_dir in seed_dir.parent.glob(f"{name_prefix}-*"):
            shutil.rmtree(old_dir)
        print_note(f"filling {sizes.stored_messages:,} messages")
        unfinished = seed_dir.with_suffix(".unfinished")
        unfinished.mkdir(parents=True)
        fill_store(f"sqlite:///{unfinished / 'palaver.db'}", sizes)
        unfinished.rename(seed_dir)
    shutil.copytree(seed_dir, home, dirs_exist_ok=True)
    os.sync()
    return FilledStore(home)


# ---- clients ---------------------------------------------------------------------------------------------


class Follower(asyncio.Protocol):
    """Plays an open page that follows a session. Uses a plain socket, so that reading costs this process little."""

    def __init__(self, request: bytes, start_marker: bytes, keep_marker: bytes) -> None:
        self._request = request
        self._start_marker = start_marker
        self._keep_marker = keep_marker
        self._rest = b""
        self._changed = asyncio.Event()
        self._position = 0
        self.frames: list[tuple[float, bytes]] = []
        self.connected = asyncio.get_running_loop().create_future()
        self.closed = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        for frame in frames:
            if self._start_marker in frame and not self.connected.done():
                self.connected.set_result(None)
            if self._keep_marker in frame:
                self.frames.append((now, frame))
        self._changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self._changed.set()
        if not self.connected.done():
            self.connected.set_exception(RuntimeError(f"the server refused a follower: {self._rest[:300]!r}"))

    async def wait_for(self, *words: bytes) -> float:
        """Return when the next frame that contains all these words arrived."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                self._changed.clear()
                while self._position < len(self.frames):
                    at, frame = self.frames[self._position]
                    self._position += 1
                    if all(word in frame for word in words):
                        return at
                if self.closed:
                    raise RuntimeError("the stream ended")
                await self._changed.wait()

    def reset(self) -> None:
        """Forget the frames received so far."""
        self.frames.clear()
        self._position = 0


@dataclass(frozen=True)
class TurnFrames:
    """Sizes in bytes of what Palaver sends for one turn, so that the bare server can send as much."""

    receipt: int
    event: int
    draft: int
    frames: int  # number of draft frames


class WebClient:
    """A client that sends requests to a server and follows its stream."""

    def __init__(self, client: httpx2.AsyncClient, server: Server) -> None:
        self.client = client
        self._port = server.port

    async def get(self, path: str) -> bytes:
        response = await self.client.get(path)
        response.raise_for_status()
        return response.content

    async def open_follower(self, keep_marker: bytes = b"") -> Follower:
        """Open a stream of the current session and wait until it has started."""
        path, start_marker = self.get_stream()
        cookies = await self.get_follower_cookies()
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nCookie: {cookies}\r\n\r\n"
        loop = asyncio.get_running_loop()
        _, follower = await loop.create_connection(
            lambda: Follower(head.encode(), start_marker, keep_marker), host="127.0.0.1", port=self._port
        )
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await follower.connected
        return follower

    async def get_follower_cookies(self) -> str:
        """Return the cookies with which the next stream is opened."""
        return format_cookies(self.client)

    async def start_session(self) -> None:
        """Start a new session."""

    async def wait_until_idle(self) -> None:
        """Wait until every message is answered."""

    def get_stream(self) -> tuple[str, bytes]:
        """Return the path of the stream and the bytes that its first frame contains."""
        raise NotImplementedError

    async def send_message(self, text: str) -> bytes:
        """Send a message and return the receipt."""
        raise NotImplementedError


def format_cookies(client: httpx2.AsyncClient) -> str:
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


class PalaverClient(WebClient):
    session_id = ""

    def __init__(self, client: httpx2.AsyncClient, server: Server) -> None:
        super().__init__(client, server)
        self._follower_cookies: list[str] = []
        self._follower_count = 0

    async def get_follower_cookies(self) -> str:
        """Return the cookies of one of several owners: a person has a limited number of streams."""
        import httpx2

        number, self._follower_count = self._follower_count // STREAMS_PER_OWNER, self._follower_count + 1
        while number >= len(self._follower_cookies):
            person = {"name": f"follower {len(self._follower_cookies)}", "role": "owner"}
            link = (await self.client.post("/api/people", json=person)).raise_for_status().json()["link"]["url"]
            url = str(self.client.base_url).rstrip("/")
            async with httpx2.AsyncClient(base_url=url, headers={"Origin": url}) as owner:
                token = link.partition("#")[2]
                (await owner.post("/api/sign-in/link", json={"token": token})).raise_for_status()
                self._follower_cookies.append(format_cookies(owner))
        return self._follower_cookies[number]

    async def start_session(self) -> None:
        response = await self.client.post("/api/sessions", json={})
        self.session_id = response.raise_for_status().json()["id"]

    async def wait_until_idle(self) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while (session := json.loads(await self.get(f"/api/sessions/{self.session_id}")))["queued"] or session[
                "running"
            ]:
                await asyncio.sleep(0.1)

    def get_stream(self) -> tuple[str, bytes]:
        return f"/api/live?all=true&follow={self.session_id}", f"id: {self.session_id}:".encode()

    async def send_message(self, text: str) -> bytes:
        body = {"content": text, "key": text}
        response = await self.client.post(f"/api/sessions/{self.session_id}/messages", json=body)
        if response.status_code != 202:
            raise RuntimeError(f"not accepted: {response.status_code} {response.text}")
        return response.content


class BareClient(WebClient):
    frames: TurnFrames  # of Palaver's last turn

    def get_stream(self) -> tuple[str, bytes]:
        return "/live", b"retry:"

    async def send_message(self, text: str) -> bytes:
        body = {"content": text, "pace": get_demo_word_delay(), **asdict(self.frames)}
        response = await self.client.post("/say", json=body)
        return response.raise_for_status().content


def get_demo_word_delay() -> float:
    """Return the seconds between two words of the demo agent."""
    from palaver.drivers.demo import DemoAgent

    return inspect.signature(DemoAgent).parameters["word_delay"].default


@contextlib.asynccontextmanager
async def open_clients(palaver: Server, bare: Server) -> AsyncIterator[tuple[PalaverClient, BareClient]]:
    """Yield a client that is signed in as the owner by the link, and a client of the bare server."""
    import httpx2

    async with (
        httpx2.AsyncClient(base_url=palaver.url, headers={"Origin": palaver.url}, timeout=TIMEOUT_SECONDS) as owner,
        httpx2.AsyncClient(base_url=bare.url, timeout=TIMEOUT_SECONDS) as anonymous,
    ):
        token = await asyncio.to_thread(palaver.read_sign_in_token)
        response = await owner.post("/api/sign-in/link", json={"token": token})
        response.raise_for_status()
        yield PalaverClient(owner, palaver), BareClient(anonymous, bare)


# ---- measurements ------------------------------------------------------------------------------------


def measure_starts(store: FilledStore, count: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds from process start to first response, of Palaver and of the bare server."""
    with store.start_palaver():  # not measured: may create the store and the bytecode
        pass
    palaver_times: list[float] = []
    bare_times: list[float] = []
    for _ in range(count):
        for start, times in ((store.start_palaver, palaver_times), (store.start_bare, bare_times)):
            with start() as server:
                times.append(server.start_seconds * 1e3)
    return palaver_times, bare_times


async def measure_idle(palaver: Server, bare: Server, seconds: float, label: str) -> list[Measurement]:
    """Measure memory and CPU of both servers while no request arrives."""
    await asyncio.sleep(2)  # let the work after the start finish
    before = [server.read_cpu_seconds() for server in (palaver, bare)]
    await asyncio.sleep(seconds)
    after = [server.read_cpu_seconds() for server in (palaver, bare)]
    used = [(end - start) / seconds * 100 for start, end in zip(before, after, strict=True)]
    return [
        Measurement(f"idle memory, {label}", "MiB", [palaver.read_memory_mib()], [bare.read_memory_mib()]),
        Measurement(f"idle CPU, {label}", "%", [used[0]], [used[1]]),
    ]


async def measure_requests(
    palaver: PalaverClient, bare: BareClient, path: str, count: int, is_right: Callable[[Any], bool]
) -> tuple[list[float], list[float]]:
    """Return the milliseconds of Palaver's responses and of constants of the same size. Requests alternate."""
    response = await palaver.get(path)
    if not is_right(json.loads(response)):
        raise RuntimeError(f"{path} returned an unexpected response: {response[:500]!r}")
    constant = f"/bytes/{len(response)}"
    palaver_times: list[float] = []
    bare_times: list[float] = []
    for i in range(WARM_UP_REQUESTS + count):
        for request, times in ((palaver.get(path), palaver_times), (bare.get(constant), bare_times)):
            start_time = time.perf_counter()
            await request
            if i >= WARM_UP_REQUESTS:
                times.append((time.perf_counter() - start_time) * 1e3)
    return palaver_times, bare_times


async def run_turn(web: WebClient, follower: Follower, text: str) -> tuple[float, float, float, TurnFrames]:
    """Return the milliseconds to receipt, first words and stored answer, and the sizes of what was sent."""
    follower.reset()
    start_time = time.perf_counter()
    receipt = await web.send_message(text)
    accepted = time.perf_counter()
    first = await follower.wait_for(b"event: draft")
    stored = await follower.wait_for(b"event: event", b'"role":"assistant"')
    await follower.wait_for(b"event: turn", b'"state":"done"')
    draft_sizes = [len(frame) + 2 for _, frame in follower.frames if b"event: draft" in frame]
    [event, *_] = [len(frame) + 2 for _, frame in follower.frames if b"event: event" in frame]
    sizes = TurnFrames(len(receipt), event, sum(draft_sizes) // len(draft_sizes), len(draft_sizes))
    times = [(moment - start_time) * 1e3 for moment in (accepted, first, stored)]
    return times[0], times[1], times[2], sizes


async def measure_turns(palaver: PalaverClient, bare: BareClient, count: int) -> list[Measurement]:
    """Send messages one after another and wait for each answer."""
    measurements = [
        Measurement("send → accepted (202)", "ms", []),
        Measurement("send → first words on the live stream", "ms", [], hermes=HERMES_FIGURES["first"]),
        Measurement("send → answer stored", "ms", []),
    ]
    followers: list[Follower] = []
    for i in range(-1, count):
        if i % TURNS_PER_SESSION == 0 or i < 0:
            for follower in followers:
                follower.transport.close()
            await palaver.start_session()
            followers = [await palaver.open_follower(), await bare.open_follower()]
        text = f"turn-{i}-{time.time_ns()}"
        *palaver_times, bare.frames = await run_turn(palaver, followers[0], text)
        *bare_times, _ = await run_turn(bare, followers[1], text)
        if i >= 0:
            for row, palaver_time, bare_time in zip(measurements, palaver_times, bare_times, strict=True):
                row.palaver.append(palaver_time)
                row.bare.append(bare_time)
    for follower in followers:
        follower.transport.close()
    measurements[1].what += f" ({get_demo_word_delay() * 1e3:.0f} ms of this is the demo's pause)"
    measurements[
        2
    ].what += f" ({bare.frames.frames * get_demo_word_delay() * 1e3:.0f} ms of this are the demo's pauses)"
    return measurements


async def measure_broadcast(web: WebClient, followers: int, messages: int) -> tuple[list[float], int]:
    """Send messages in the middle of answers.

    Returns the milliseconds until each follower has received each message, and how often a follower did not receive a
    message exactly once.
    """
    await web.start_session()
    watcher = await web.open_follower()
    crowd = [await web.open_follower(b'"role":"user"') for _ in range(followers)]
    await web.send_message("Begin.")
    rng = random.Random(5)
    send_times: dict[bytes, float] = {}
    for i in range(messages):
        await watcher.wait_for(b"event: draft")
        await asyncio.sleep(rng.uniform(0.05, 0.25))
        text = f"busy-{i:04d}-{time.time_ns()}"
        send_times[text.encode()] = time.perf_counter()
        await web.send_message(text)
        await watcher.wait_for(b"event: turn", b'"state":"done"')
    await watcher.wait_for(b"event: turn", b'"state":"done"')
    await web.wait_until_idle()
    times, errors = [], 0
    for follower in crowd:
        with contextlib.suppress(RuntimeError, TimeoutError):
            await follower.wait_for(text.encode())
        for message, sent in send_times.items():
            arrivals = [at for at, frame in follower.frames if message in frame]
            times += [(at - sent) * 1e3 for at in arrivals[:1]]
            errors += len(arrivals) != 1
    for follower in (watcher, *crowd):
        follower.transport.close()
    return times, errors


# ---- the whole run -------------------------------------------------------------------------------------------


async def measure_small_store(store: FilledStore, sizes: Sizes, measurements: list[Measurement]) -> None:
    """Measure starts, idle servers and the first page on a small store."""
    print_note("starting")
    measurements.append(
        Measurement(
            f"start to ready, {SMALL_STORE_SESSIONS} sessions",
            "ms",
            *measure_starts(store, sizes.starts),
            HERMES_FIGURES["start"],
        )
    )
    with store.start_palaver() as palaver, store.start_bare() as bare:
        async with open_clients(palaver, bare) as (palaver_client, bare_client):
            print_note("idle")
            measurements += await measure_idle(palaver, bare, sizes.idle_seconds, "no followers")
            measurements[-2].hermes, measurements[-1].hermes = HERMES_FIGURES["memory"], HERMES_FIGURES["processor"]
            if sizes.is_short:
                return
            await palaver_client.start_session()
            followers = [
                await web.open_follower() for web in (palaver_client, bare_client) for _ in range(IDLE_FOLLOWERS)
            ]
            measurements += await measure_idle(palaver, bare, sizes.idle_seconds, f"{IDLE_FOLLOWERS} followers")
            if any(follower.closed for follower in followers):
                raise RuntimeError("the server disconnected an idle follower")
            for follower in followers:
                follower.transport.close()
            times = await measure_requests(
                palaver_client,
                bare_client,
                "/api/sessions",
                sizes.requests,
                lambda page: len(page["sessions"]) == SMALL_STORE_SESSIONS,
            )
            measurements.append(Measurement(f"first page, {SMALL_STORE_SESSIONS} sessions", "ms", *times))


@dataclass(frozen=True)
class Query:
    """A request to the large store, and a check of its response."""

    what: str
    path: str
    is_right: Callable[[Any], bool]
    hermes: str = ""


def list_queries(sizes: Sizes, long_id: str) -> Iterator[Query]:
    """Yield the requests that a page makes; `long_id` is the id of the long session."""
    from benchmarks.corpus import COMMON, RARE, count_texts_with

    among = f"{sizes.sessions:,} sessions"
    page = min(PAGE_SIZE, sizes.sessions)
    yield Query(
        f"first page, {among}",
        "/api/sessions",
        lambda body: len(body["sessions"]) == page,
        HERMES_FIGURES["page"],
    )
    yield Query(
        f"first page of everyone’s, {among}",
        "/api/sessions?all=true",
        lambda body: len(body["sessions"]) == page,
    )
    messages = f"/api/sessions/{long_id}/messages?limit={PAGE_SIZE}"
    yield Query(
        f"open a session of {sizes.long_messages:,} messages (the last {PAGE_SIZE})",
        messages,
        lambda body: len(body["events"]) == PAGE_SIZE and body["has_more_before"],
    )
    yield Query(
        f"jump to its middle ({PAGE_SIZE} around)",
        f"{messages}&around={sizes.long_messages // 2}",
        lambda body: len(body["events"]) >= PAGE_SIZE // 2 and body["has_more_before"] and body["has_more_after"],
    )
    for kind, word in (("rare", RARE), ("common", COMMON)):
        hits = min(
            MAX_HITS,
            count_texts_with(word, sizes.stored_messages, MAX_HITS)
            + count_texts_with(word, sizes.long_messages, MAX_HITS),
        )
        yield Query(
            f"search for a {kind} word, {sizes.stored_messages:,} messages",
            f"/api/search?query={word}&limit={MAX_HITS}",
            lambda body, hits=hits: len(body["hits"]) == hits,
            HERMES_FIGURES["search"],
        )


async def measure_large_store(store: FilledStore, sizes: Sizes, measurements: list[Measurement]) -> None:
    """Measure starts, reads, searches, turns and followers on a large store."""
    if not sizes.is_short:
        print_note("starting on the large store")
        times = measure_starts(store, max(2, sizes.starts // 2))
        what = f"start to ready, {sizes.sessions:,} sessions"
        measurements.append(Measurement(what, "ms", *times, HERMES_FIGURES["start among many"]))
    with store.start_palaver() as palaver, store.start_bare() as bare:
        async with open_clients(palaver, bare) as (palaver_client, bare_client):
            found = json.loads(await palaver_client.get(f"/api/sessions?query={LONG_TITLE}"))
            queries = list_queries(sizes, found["sessions"][0]["id"])
            for query in itertools.islice(queries, 1 if sizes.is_short else None):
                print_note(query.what)
                times = await measure_requests(palaver_client, bare_client, query.path, sizes.requests, query.is_right)
                measurements.append(Measurement(query.what, "ms", *times, query.hermes))
            print_note("turns")
            measurements += await measure_turns(palaver_client, bare_client, sizes.turns)
            print_note("followers")
            measurements.append(await measure_followers(palaver_client, bare_client, sizes))
            memory = [palaver.read_memory_mib()], [bare.read_memory_mib()]
            measurements.append(Measurement("memory at the end", "MiB", *memory, HERMES_FIGURES["memory at the end"]))


async def measure_followers(palaver_client: PalaverClient, bare_client: BareClient, sizes: Sizes) -> Measurement:
    """Measure how soon many followers of a busy session receive a message."""
    palaver_times, errors = await measure_broadcast(palaver_client, sizes.followers, sizes.busy_messages)
    bare_times, bare_errors = await measure_broadcast(bare_client, sizes.followers, sizes.busy_messages)
    what = f"send → received by each of {sizes.followers} followers of a busy session"
    return Measurement(f"{what} (lost or duplicated: {errors}, bare: {bare_errors})", "ms", palaver_times, bare_times)


def format_table(measurements: list[Measurement]) -> str:
    from benchmarks.measure import quantile

    lines = [
        "| what | n | Palaver p50 / p99 | bare p50 / p99 | ratio | added, p50 | hermes-webui |",
        "|---|---|---|---|---|---|---|",
    ]

    def format_value(value: float, unit: str) -> str:
        if unit == "ms" and abs(value) >= 1000:
            return f"{value / 1000:.2f} s"
        return f"{value:.2f} {unit}" if abs(value) < 10 else f"{value:,.0f} {unit}"

    for row in measurements:
        medians, p99s = ([quantile(times, q) for times in (row.palaver, row.bare)] for q in (0.5, 0.99))
        single = len(row.palaver) == 1
        columns = [
            format_value(medians[i], row.unit)
            if single
            else f"{format_value(medians[i], row.unit)} / {format_value(p99s[i], row.unit)}"
            for i in (0, 1)
        ]
        ratios = [f"{palaver / bare:.1f}×" if bare >= 0.005 else "–" for palaver, bare in (medians, p99s)]
        ratio = ratios[0] if single else " / ".join(ratios)
        added = format_value(medians[0] - medians[1], row.unit)
        lines.append(
            f"| {row.what} | {len(row.palaver):,} | {columns[0]} | {columns[1]} | {ratio} | {added} | {row.hermes} |"
        )
    return "\n".join(lines)


def format_machine() -> str:
    """Describe the machine in one line."""
    from benchmarks import run

    facts = run.describe_machine()
    return (
        f"{facts['cpu']}, {facts['cores']} cores, load {facts['load']} at the start; {facts['system']};"
        f" Python {facts['python']}; fdatasync of 4 KiB: {facts['fdatasync']['growing_us']:.0f} µs"
    )


async def run_benchmark(sizes: Sizes, server: PostgresServer | None, measurements: list[Measurement]) -> None:
    """Run all measurements and append each to the list as soon as it is done."""
    from benchmarks.postgres_server import DATABASE_PREFIX

    small_sizes = replace(sizes, sessions=SMALL_STORE_SESSIONS, messages=SMALL_STORE_SESSIONS * 2, long_messages=0)
    for name, size, measure_store in (
        ("small", small_sizes, measure_small_store),
        ("large", sizes, measure_large_store),
    ):
        store = await asyncio.to_thread(prepare_store, name, server, size)
        await measure_store(store, sizes, measurements)
        shutil.rmtree(store.home)
        if server is not None:
            server.drop_database(f"{DATABASE_PREFIX}http_{name}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--short", action="store_true", help="only what has a target")
    form.add_argument("--full", action="store_true", help="a million messages, 500 followers, more samples")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--messages", type=int, help="messages in all sessions together")
    parser.add_argument("--followers", type=int)
    parser.add_argument("--requests", type=int, help="requests of each kind")
    parser.add_argument("--turns", type=int)
    parser.add_argument(
        "--postgres",
        nargs="?",
        const="",
        metavar="URL",
        help="a server whose role may create databases; without URL: starts one",
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        serve_bare(options.bare)
        return
    from benchmarks.run import exit_on_sigterm

    exit_on_sigterm()
    size_names = ("sessions", "messages", "followers", "requests", "turns")
    changes = {name: value for name in size_names if (value := getattr(options, name)) is not None}
    sizes = replace(FULL if options.full else SHORT if options.short else Sizes(), **changes)
    with contextlib.ExitStack() as stack:
        server = None
        if options.postgres is not None:
            from benchmarks.postgres_server import PostgresServer

            if options.postgres:
                os.environ["PERF_PG_DSN"] = options.postgres
            server = stack.enter_context(PostgresServer())
        machine_line = format_machine()
        measurements: list[Measurement] = []
        try:
            asyncio.run(run_benchmark(sizes, server, measurements))
        finally:  # also prints what was measured before a failure
            if options.json:
                print(json.dumps({"machine": machine_line, "found": [asdict(row) for row in measurements]}, indent=1))
            elif measurements:
                print(
                    f"{machine_line}\n\n{format_table(measurements)}\n\nWith fewer than 100 samples, p99 is the slowest one."
                )


if __name__ == "__main__":
    main()

"""The web: a real `palaver serve`, asked over HTTP, beside a bare FastAPI application on the same uvicorn.

    python -m benchmarks.http [--full] [--sessions N] [--messages N] [--followers N] [--postgres [URL]] [--json]

The agent is the demo with its pauses of 20 ms between words; the bare application makes the same pauses. For every
answer it gives a constant of the same size, and to its followers frames of the same size and number, so what stands
between the two columns is Palaver: the guard, the sign-in, the store, the turn, the feed. Requests to the one and to
the other take turns. The imports are where they are needed, because the bare application is this file too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
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
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    import httpx2

    from benchmarks.drivers.palaver_seed import Bulk, Row
    from benchmarks.servers import Postgres

PACE = 0.02  # seconds between two words of the demo agent
PAGE = 50  # conversations, messages
HITS = 20
WARM = 10  # requests before the first that counts
IDLE_FOLLOWERS = 100
BETWEEN = 0.5  # seconds between two messages in a busy conversation: shorter than an answer and what it needs
PATIENCE = 60.0
FEW = 10  # sessions in the small store
TURNS_EACH = 20  # in one conversation, so that what is measured does not grow while it is measured


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    sessions: int = 100_000
    messages: int = 100_000  # in all of them together
    long: int = 10_000  # messages in the one long conversation
    starts: int = 5
    idle: float = 10.0  # seconds
    requests: int = 200
    turns: int = 20
    followers: int = 50
    busy: int = 15  # messages that they see


FULL = Sizes(messages=1_000_000, starts=10, requests=1000, turns=100, followers=500, busy=60)

# What was measured of hermes-webui by the same questions, on two cores of the same kind.
HERMES = {
    "start": "1.4–1.6 s (the first time 4.2 s)",
    "start among many": "5.1 s among 10,000",
    "memory": "125 MB",
    "memory at the end": "150 MB after a few turns; 247 MB after a list of 10,000",
    "processor": "not measured; 5 polls a minute for each page",
    "page": "0.51–0.83 s among 1,000, 5.1–6.2 s among 10,000, whole list",
    "search": "1.9–4.0 s among 10,000 sessions, no match",
    "first": "0.06–0.07 s without the model's time",
}


@dataclass
class Found:
    """One line of the table."""

    what: str
    unit: str  # ms, MiB or %
    palaver: list[float]
    bare: list[float] = field(default_factory=list)
    hermes: str = ""


def note(text: str) -> None:
    print(f"# {text}", file=sys.stderr, flush=True)


# ---- the limit -------------------------------------------------------------------------------------------


def serve_bare(port: int) -> None:
    """A FastAPI application that does nothing but answer: constants, and frames to whoever listens."""
    import uvicorn
    from fastapi import FastAPI
    from fastapi.responses import Response, StreamingResponse

    app = FastAPI()
    listening: set[asyncio.Queue[bytes]] = set()
    answering: set[asyncio.Task[None]] = set()

    def tell(name: str, role: str, text: str, size: int) -> None:
        known = f'event: {name}\ndata: {{"role":"{role}","content":"{text}","rest":"'
        frame = f'{known}{"x" * (size - len(known) - 4)}"}}\n\n'.encode()
        for each in listening:
            each.put_nowait(frame)

    async def answer(frames: int, size: int, event: int) -> None:
        for _ in range(frames):
            await asyncio.sleep(PACE)
            tell("draft", "", "", size)
        tell("event", "assistant", "", event)
        tell("turn", "", '","state":"done', event)

    async def listen() -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        listening.add(queue)
        try:
            yield b"retry: 1000\n\n"
            while True:
                yield await queue.get()
        finally:
            listening.discard(queue)

    # Without annotations of their answers: FastAPI could not find such names in here.
    @app.get("/bytes/{size}", response_model=None)
    async def constant(size: int):
        return Response(b'"' + b"x" * (size - 2) + b'"', media_type="application/json")

    @app.post("/say", response_model=None)
    async def say(said: dict):
        tell("event", "user", said["content"], said["event"])
        task = asyncio.create_task(answer(said["frames"], said["draft"], said["event"]))
        answering.add(task)
        task.add_done_callback(answering.discard)
        return Response(b'"' + b"x" * (said["receipt"] - 2) + b'"', status_code=202, media_type="application/json")

    @app.get("/live", response_model=None)
    async def live():
        return StreamingResponse(listen(), media_type="text/event-stream")

    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, access_log=False, server_header=False, ws="none")


# ---- processes -------------------------------------------------------------------------------------------


class Server:
    """A server as a process, once it answers."""

    def __init__(self, command: list[str], ready: str, log: Path, environ: dict[str, str] | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with log.open("wb") as errors:
            began = time.perf_counter()
            self.process = subprocess.Popen(
                [sys.executable, *command, str(self.port)],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment() | (environ or {}),
                text=True,
            )
        while not answers(self.port, ready):
            if self.process.poll() is not None or time.perf_counter() - began > PATIENCE:
                self.stop()
                raise RuntimeError(f"{' '.join(command)} does not answer: {log.read_text()[-1000:]}")
            time.sleep(0.002)
        self.start = time.perf_counter() - began

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def link(self) -> str:
        """The secret that it has printed."""
        for line in self.process.stdout or ():
            if found := re.search(r"/sign-in#(\S+)", line):
                return found[1]
        raise RuntimeError("the server has printed no link")

    def memory(self) -> float:
        """MiB that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def processor(self) -> float:
        """Seconds of a core that its threads have used."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def answers(port: int, path: str) -> bool:
    """Whether a server answers there, by as little as can be asked."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            return b" 200 " in connection.recv(64)
    except OSError:
        return False


def environment() -> dict[str, str]:
    """Of a server: no settings of whoever runs this, bytecode kept as in an ordinary installation."""
    from benchmarks.places import REPOSITORY

    ours = re.compile(r"PALAVER_|PYTHONDONTWRITEBYTECODE$|.*_(API_KEY|BASE_URL)$|.*_HOME_CHANNEL")
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return kept | {"PYTHONPATH": str(REPOSITORY), "PALAVER_MODEL": "demo"}


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.stop()


@dataclass(frozen=True)
class Place:
    """A filled store, and the servers on it."""

    home: Path
    database: str  # its URL; empty: the file in `home`

    def palaver(self) -> Server:
        command = ["-m", "palaver", "--home", str(self.home), "serve", "--no-open", "--port"]
        database = {"PALAVER_DATABASE_URL": self.database} if self.database else {}
        return Server(command, "/readyz", self.home.with_suffix(".log"), database)

    def bare(self) -> Server:
        return Server(["-m", "benchmarks.http", "--bare"], "/bytes/2", self.home.with_suffix(".bare.log"))


# ---- stores ----------------------------------------------------------------------------------------------


class OnePersons:
    """Copies of a conversation that all belong to the person of the first, as people's own do."""

    PEOPLE = frozenset({"audience", "person", "audience_member", "identity"})

    def __init__(self, bulk: Bulk) -> None:
        self._bulk = bulk
        self._person: Row = bulk.rows("person", "id")[0]
        self.tables, self.rows, self.finish = bulk.tables, bulk.rows, bulk.finish

    def insert(self, table: str, rows: list[Row]) -> None:
        if table in self.PEOPLE:
            return
        theirs = {"audience_no": self._person["audience_no"], "person_id": self._person["id"]}
        self._bulk.insert(
            table, [row | {name: theirs[name] for name in theirs if row.get(name) is not None} for row in rows]
        )


def fill(database: str, sessions: int, messages: int, long: int) -> None:
    """The owner's conversations, of equal length, and a long one beside them, all of it indexed."""
    from benchmarks.corpus import plan, text
    from benchmarks.drivers.palaver_seed import PostgresBulk, SqliteBulk, copy_conversations
    from palaver import SessionSource, SessionStore

    conversations = plan(sessions, max(1, messages // sessions))
    key, said = next(conversations)
    with SessionStore.open(database) as store:
        session_id = store.record_user_message(SessionSource("local", key), said[0][1]).session_id
        if said[1:]:
            store.append_to_transcript(session_id, [{"role": role, "content": content} for role, content in said[1:]])
    file = database.removeprefix("sqlite:///")
    bulk = PostgresBulk(database) if file == database else SqliteBulk(Path(file))
    copy_conversations(OnePersons(bulk), key, conversations)
    with SessionStore.open(database) as store:
        if long:
            session_id = store.get_or_create_session(SessionSource("local", "long")).session_id
            roles = ("user", "assistant")
            store.append_to_transcript(
                session_id, [{"role": roles[i % 2], "content": text(i, "long")} for i in range(long)]
            )
            store.rename_session(session_id, "The long one")
        store.search("nobodyhassaidthis")  # a search first lets the index catch up


def prepare(name: str, server: Postgres | None, sessions: int, messages: int, long: int = 0) -> Place:
    """A store of its own for a run. Filled files are kept, and copied; a database is filled each time."""
    from benchmarks import drivers
    from benchmarks.places import LIVE, SEEDS

    home = LIVE / "http" / name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    filled = f"{sessions:,} sessions, {messages:,} messages"
    if server is not None:
        from benchmarks.servers import PREFIX

        note(f"filling {filled}")
        server.create(f"{PREFIX}http_{name}")
        address = server.address(f"{PREFIX}http_{name}")
        fill(address, sessions, messages, long)
        return Place(home, address)
    made_by = hashlib.sha256(Path(__file__).read_bytes() + drivers.fingerprint("palaver").encode()).hexdigest()[:10]
    kept = SEEDS / "http" / f"{sessions}-{messages}-{long}-{made_by}"
    if not kept.exists():
        for older in kept.parent.glob(f"{sessions}-{messages}-{long}-*"):
            shutil.rmtree(older)
        note(f"filling {filled}")
        fill(f"sqlite:///{home / 'palaver.db'}", sessions, messages, long)
        unfinished = kept.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(home, unfinished)
        unfinished.rename(kept)
    else:
        shutil.copytree(kept, home, dirs_exist_ok=True)
    os.sync()
    return Place(home, "")


# ---- clients ---------------------------------------------------------------------------------------------


class Follower(asyncio.Protocol):
    """An open page: a bare socket, so that listening costs whoever measures as little as can be."""

    def __init__(self, request: bytes, begins: bytes, keeps: bytes) -> None:
        self._request = request
        self._begins = begins
        self._keeps = keeps
        self._rest = b""
        self._news = asyncio.Event()
        self.told: list[tuple[float, bytes]] = []
        self.follows = asyncio.get_running_loop().create_future()
        self.over = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        for frame in frames:
            if self._begins in frame and not self.follows.done():
                self.follows.set_result(None)
            if self._keeps in frame:
                self.told.append((now, frame))
        self._news.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.over = True
        self._news.set()
        if not self.follows.done():
            self.follows.set_exception(RuntimeError(f"a follower was not let in: {self._rest[:300]!r}"))

    async def until(self, *words: bytes) -> float:
        """When a frame with all these words was there."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self._news.clear()
                for at, frame in self.told:
                    if all(word in frame for word in words):
                        return at
                if self.over:
                    raise RuntimeError("a stream has ended")
                await self._news.wait()


@dataclass(frozen=True)
class Frames:
    """What one turn of Palaver says on the wire, for the limit to say as much."""

    receipt: int
    event: int
    draft: int
    frames: int


class Web:
    """Somebody who asks a server, and follows what it says."""

    def __init__(self, client: httpx2.AsyncClient, server: Server) -> None:
        self.client = client
        self._port = server.port

    async def get(self, path: str) -> bytes:
        answer = await self.client.get(path)
        answer.raise_for_status()
        return answer.content

    async def follower(self, keeps: bytes = b"") -> Follower:
        """A page that follows the conversation, once it does."""
        path, begins = self.stream()
        cookies = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nCookie: {cookies}\r\n\r\n"
        loop = asyncio.get_running_loop()
        made = await loop.create_connection(
            lambda: Follower(head.encode(), begins, keeps), host="127.0.0.1", port=self._port
        )
        async with asyncio.timeout(PATIENCE):
            await made[1].follows
        return made[1]

    async def begin(self) -> None:
        """Another conversation."""

    def stream(self) -> tuple[str, bytes]:
        """Where its stream is, and how it begins."""
        raise NotImplementedError

    async def say(self, text: str) -> bytes:
        """Say something; the receipt."""
        raise NotImplementedError


class PalaverWeb(Web):
    session_id = ""

    async def begin(self) -> None:
        made = await self.client.post("/api/sessions", json={})
        self.session_id = made.raise_for_status().json()["id"]

    def stream(self) -> tuple[str, bytes]:
        return f"/api/live?follow={self.session_id}", f"id: {self.session_id}:".encode()

    async def say(self, text: str) -> bytes:
        body = {"content": text, "key": text}
        said = await self.client.post(f"/api/sessions/{self.session_id}/messages", json=body)
        if said.status_code != 202:
            raise RuntimeError(f"not accepted: {said.status_code} {said.text}")
        return said.content


class BareWeb(Web):
    frames = Frames(200, 500, 150, 20)

    def stream(self) -> tuple[str, bytes]:
        return "/live", b"retry:"

    async def say(self, text: str) -> bytes:
        said = await self.client.post("/say", json={"content": text, **asdict(self.frames)})
        return said.raise_for_status().content


@contextlib.asynccontextmanager
async def asking(palaver: Server, bare: Server) -> AsyncIterator[tuple[PalaverWeb, BareWeb]]:
    """The owner, signed in by the link, and a stranger at the limit."""
    import httpx2

    async with (
        httpx2.AsyncClient(base_url=palaver.url, headers={"Origin": palaver.url}, timeout=PATIENCE) as owner,
        httpx2.AsyncClient(base_url=bare.url, timeout=PATIENCE) as stranger,
    ):
        answer = await owner.post("/api/sign-in/link", json={"token": await asyncio.to_thread(palaver.link)})
        answer.raise_for_status()
        yield PalaverWeb(owner, palaver), BareWeb(stranger, bare)


# ---- what is measured ------------------------------------------------------------------------------------


def starts(place: Place, many: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the start of a process to its first answer."""
    with running(place.palaver()):  # the first one may have to make its store, and every one's bytecode
        pass
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(many):
        for start, times in zip((place.palaver, place.bare), taken, strict=True):
            with running(start()) as server:
                times.append(server.start * 1e3)
    return taken


async def idle(palaver: Server, bare: Server, seconds: float, who: str) -> list[Found]:
    """What both hold and use while nobody asks anything."""
    await asyncio.sleep(2)  # what a start leaves to be done
    before = [each.processor() for each in (palaver, bare)]
    await asyncio.sleep(seconds)
    used = [(each.processor() - was) / seconds * 100 for each, was in zip((palaver, bare), before, strict=True)]
    return [
        Found(f"idle memory, {who}", "MiB", [palaver.memory()], [bare.memory()], HERMES["memory"]),
        Found(f"idle processor, {who}", "%", [used[0]], [used[1]], HERMES["processor"]),
    ]


async def requests(
    palaver: PalaverWeb, bare: BareWeb, path: str, many: int, right: Callable[[Any], bool]
) -> tuple[list[float], list[float]]:
    """Milliseconds for an answer, and for a constant of the same size, by turns."""
    answer = await palaver.get(path)
    if not right(json.loads(answer)):
        raise RuntimeError(f"{path} answers something else than it should: {answer[:500]!r}")
    constant = f"/bytes/{len(answer)}"
    taken: tuple[list[float], list[float]] = ([], [])
    for i in range(WARM + many):
        for ask, times in zip((palaver.get(path), bare.get(constant)), taken, strict=True):
            began = time.perf_counter()
            await ask
            if i >= WARM:
                times.append((time.perf_counter() - began) * 1e3)
    return taken


async def turn(web: Web, follower: Follower, text: str) -> tuple[float, float, float, Frames]:
    """Milliseconds to the receipt, to the first words and to the stored answer; what went over the wire."""
    follower.told.clear()
    began = time.perf_counter()
    receipt = await web.say(text)
    accepted = time.perf_counter()
    first = await follower.until(b"event: draft")
    stored = await follower.until(b"event: event", b'"role":"assistant"')
    await follower.until(b"event: turn", b'"state":"done"')
    drafts = [len(frame) + 2 for _, frame in follower.told if b"event: draft" in frame]
    [event, *_] = [len(frame) + 2 for _, frame in follower.told if b"event: event" in frame]
    said = Frames(len(receipt), event, sum(drafts) // len(drafts), len(drafts))
    taken = [(moment - began) * 1e3 for moment in (accepted, first, stored)]
    return taken[0], taken[1], taken[2], said


async def turns(palaver: PalaverWeb, bare: BareWeb, many: int) -> list[Found]:
    """Messages that are sent and answered, one after the other."""
    found = [
        Found("send → accepted (202)", "ms", []),
        Found("send → first words on the live stream", "ms", [], hermes=HERMES["first"]),
        Found("send → answer stored", "ms", []),
    ]
    followers: list[Follower] = []
    for i in range(-1, many):
        if i % TURNS_EACH == 0 or i < 0:
            for follower in followers:
                follower.transport.close()
            await palaver.begin()
            followers = [await palaver.follower(), await bare.follower()]
        text = f"turn-{i}-{time.time_ns()}"
        *mine, said = await turn(palaver, followers[0], text)
        bare.frames = said
        *limit, _ = await turn(bare, followers[1], text)
        if i >= 0:
            for each, taken, least in zip(found, mine, limit, strict=True):
                each.palaver.append(taken)
                each.bare.append(least)
    for follower in followers:
        follower.transport.close()
    found[1].what += f" ({PACE * 1e3:.0f} ms of it are the demo's pause)"
    found[2].what += f" ({bare.frames.frames * PACE * 1e3:.0f} ms of it are the demo's pauses)"
    return found


async def seen(web: Web, followers: int, messages: int) -> tuple[list[float], int]:
    """Milliseconds from sending until each follower has the message, while answers grow all the time.

    Also how many were lost on the way.
    """
    await web.begin()
    crowd = [await web.follower(b'"role":"user"') for _ in range(followers)]
    began: dict[str, float] = {}
    start = time.perf_counter()
    for i in range(messages):
        await asyncio.sleep(max(0.0, start + i * BETWEEN - time.perf_counter()))
        text = f"busy-{i:04d}-{time.time_ns()}"
        began[text] = time.perf_counter()
        await web.say(text)
    taken, lost = [], 0
    for follower in crowd:
        with contextlib.suppress(RuntimeError, TimeoutError):
            await follower.until(text.encode())
        moments = {text: [at for at, frame in follower.told if text.encode() in frame] for text in began}
        taken += [(at[0] - began[text]) * 1e3 for text, at in moments.items() if at]
        lost += sum(len(at) != 1 for at in moments.values())
        follower.transport.close()
    await asyncio.sleep(2 * BETWEEN)  # the last answers come to their end
    return taken, lost


# ---- all of it -------------------------------------------------------------------------------------------


async def at_rest(place: Place, sizes: Sizes) -> list[Found]:
    """A small store: starting, and doing nothing."""
    note("starting")
    found = [Found(f"start to ready, {FEW} sessions", "ms", *starts(place, sizes.starts), HERMES["start"])]
    with running(place.palaver()) as palaver, running(place.bare()) as bare:
        async with asking(palaver, bare) as (owner, stranger):
            note("idle")
            found += await idle(palaver, bare, sizes.idle, "no followers")
            await owner.begin()
            followers = [await web.follower() for web in (owner, stranger) for _ in range(IDLE_FOLLOWERS)]
            found += await idle(palaver, bare, sizes.idle, f"{IDLE_FOLLOWERS} followers")
            if any(follower.over for follower in followers):
                raise RuntimeError("a follower was cut while nothing happened")
            for follower in followers:
                follower.transport.close()
            times = await requests(
                owner, stranger, "/api/sessions", sizes.requests, lambda page: len(page["sessions"]) == FEW
            )
            found.append(Found(f"first page, {FEW} sessions", "ms", *times))
    return found


async def at_work(place: Place, sizes: Sizes) -> list[Found]:
    """A large store: reading, finding, talking, following."""
    from benchmarks.corpus import COMMON, RARE, texts_with

    there = f"{sizes.sessions:,} sessions"
    messages = max(1, sizes.messages // sizes.sessions) * sizes.sessions
    page = min(PAGE, sizes.sessions)
    note("starting among many")
    found = [
        Found(f"start to ready, {there}", "ms", *starts(place, max(2, sizes.starts // 2)), HERMES["start among many"])
    ]
    with running(place.palaver()) as palaver, running(place.bare()) as bare:
        async with asking(palaver, bare) as (owner, stranger):
            long = json.loads(await owner.get("/api/sessions?text=The long one"))["sessions"][0]["id"]
            hits = {
                word: min(HITS, texts_with(word, messages, HITS) + texts_with(word, sizes.long, HITS))
                for word in (RARE, COMMON)
            }
            asked: list[tuple[str, str, Callable[[Any], bool], str]] = [
                (f"first page, {there}", "/api/sessions", lambda got: len(got["sessions"]) == page, HERMES["page"]),
                (
                    f"first page of everybody's, {there}",
                    "/api/sessions?all=true",
                    lambda got: len(got["sessions"]) == page,
                    "",
                ),
                (
                    f"open a session of {sizes.long:,} messages (the last {PAGE})",
                    f"/api/sessions/{long}/messages?limit={PAGE}",
                    lambda got: len(got["events"]) == PAGE and got["more_before"],
                    "",
                ),
                (
                    f"jump into its middle ({PAGE} around)",
                    f"/api/sessions/{long}/messages?limit={PAGE}&around={sizes.long // 2}",
                    lambda got: len(got["events"]) >= PAGE // 2 and got["more_before"] and got["more_after"],
                    "",
                ),
                *(
                    (
                        f"search a {kind} word, {messages:,} messages",
                        f"/api/search?text={word}",
                        lambda got, word=word: len(got["hits"]) == hits[word],
                        HERMES["search"],
                    )
                    for kind, word in (("rare", RARE), ("common", COMMON))
                ),
            ]
            note("reading and finding")
            for what, path, right, hermes in asked:
                found.append(Found(what, "ms", *await requests(owner, stranger, path, sizes.requests, right), hermes))
            note("talking")
            found += await turns(owner, stranger, sizes.turns)
            note("following")
            found.append(await followed(owner, stranger, sizes))
            found.append(
                Found(
                    "memory after all of this", "MiB", [palaver.memory()], [bare.memory()], HERMES["memory at the end"]
                )
            )
    return found


async def followed(owner: PalaverWeb, stranger: BareWeb, sizes: Sizes) -> Found:
    who = f"send → seen by each of {sizes.followers} followers of a busy session"
    mine, lost = await seen(owner, sizes.followers, sizes.busy)
    limit, lost_there = await seen(stranger, sizes.followers, sizes.busy)
    if lost_there:
        raise RuntimeError(f"the limit itself has lost {lost_there} messages; use fewer followers")
    return Found(f"{who} ({lost} lost or doubled)", "ms", mine, limit)


def table(found: list[Found]) -> str:
    from benchmarks.measure import quantile

    lines = [
        "| what | n | Palaver p50 / p99 | bare p50 / p99 | ratio | adds, p50 | hermes-webui |",
        "|---|---|---|---|---|---|---|",
    ]

    def shown(value: float, unit: str) -> str:
        if unit == "ms" and value >= 1000:
            return f"{value / 1000:.2f} s"
        return f"{value:.2f} {unit}" if value < 10 else f"{value:,.0f} {unit}"

    for each in found:
        middle, most = ([quantile(times, q) for times in (each.palaver, each.bare)] for q in (0.5, 0.99))
        single = len(each.palaver) == 1
        columns = [
            shown(middle[i], each.unit) if single else f"{shown(middle[i], each.unit)} / {shown(most[i], each.unit)}"
            for i in (0, 1)
        ]
        ratios = [f"{mine / limit:.1f}×" if limit >= 0.005 else "–" for mine, limit in (middle, most)]
        ratio = ratios[0] if single else " / ".join(ratios)
        adds = shown(middle[0] - middle[1], each.unit)
        lines.append(
            f"| {each.what} | {len(each.palaver):,} | {columns[0]} | {columns[1]} | {ratio} | {adds} | {each.hermes} |"
        )
    return "\n".join(lines)


async def measure(sizes: Sizes, server: Postgres | None) -> list[Found]:
    small = await asyncio.to_thread(prepare, "small", server, FEW, FEW * 2)
    found = await at_rest(small, sizes)
    large = await asyncio.to_thread(prepare, "large", server, sizes.sessions, sizes.messages, sizes.long)
    found += await at_work(large, sizes)
    for place in (small, large):
        shutil.rmtree(place.home)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http")
    parser.add_argument("--full", action="store_true", help="a million messages, 500 followers, more of everything")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--messages", type=int, help="in all of them together")
    parser.add_argument("--followers", type=int)
    parser.add_argument("--requests", type=int, help="of each kind")
    parser.add_argument("--turns", type=int)
    parser.add_argument(
        "--postgres", nargs="?", const="", metavar="URL", help="a server that lets us create databases; alone: our own"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        serve_bare(given.bare)
        return
    named = ("sessions", "messages", "followers", "requests", "turns")
    changes = {name: value for name in named if (value := getattr(given, name)) is not None}
    sizes = replace(FULL if given.full else Sizes(), **changes)
    with contextlib.ExitStack() as stack:
        server = None
        if given.postgres is not None:
            from benchmarks.servers import Postgres

            if given.postgres:
                os.environ["PERF_PG_DSN"] = given.postgres
            server = stack.enter_context(Postgres())
        found = asyncio.run(measure(sizes, server))
    print(json.dumps([asdict(each) for each in found], indent=1) if given.json else table(found))


if __name__ == "__main__":
    main()

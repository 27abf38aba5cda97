"""The web: a real `palaver serve`, asked over HTTP, beside a bare FastAPI application on the same uvicorn.

    python -m benchmarks.http [--full] [--sessions N] [--messages N] [--followers N] [--postgres [URL]] [--json]

The bare application gives a constant of the same size for every answer, and its followers frames of the same size and
number, with the pauses that the demo agent makes between words. So what stands between the two columns is Palaver: the
guard, the sign-in, the store, the turn, the feed. Requests to the one and to the other take turns.

Imports are where they are needed: the bare application is this file too, and must not start with what it does not use.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import inspect
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

    import httpx2

    from benchmarks.drivers.palaver_seed import Bulk, Row
    from benchmarks.servers import Postgres

PAGE = 50  # conversations, messages
HITS = 20
WARM = 10  # requests before the first that counts
IDLE_FOLLOWERS = 100
PATIENCE = 60.0
SMALL = 10  # sessions in the small store
LONG = "Interminable"  # the title of the long conversation
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

    @property
    def each(self) -> int:
        """Messages in one conversation."""
        return max(1, self.messages // self.sessions)

    @property
    def stored(self) -> int:
        """Messages in all but the long one."""
        return self.each * self.sessions


FULL = Sizes(messages=1_000_000, starts=10, requests=1000, turns=100, followers=500, busy=60)

# hermes-webui as it was on 2026-08-22, measured apart from this, on two cores too.
HERMES = {
    "start": "1.4–1.6 s (the first time 4.2 s)",
    "start among many": "5.1 s among 10,000",
    "memory": "125 MB",
    "memory at the end": "150 MB after a few turns; 247 MB after a list of 10,000",
    "processor": "not measured; 5 polls a minute for each page",
    "page": "0.51–0.83 s among 1,000, 5.1–6.2 s among 10,000, whole list",
    "search": "1.9–4.0 s among 10,000 sessions, no match",
    "first": "0.06–0.07 s by its API, 0.3–0.4 s on its page",
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
    speaking = asyncio.Lock()

    def tell(name: str, facts: str, size: int) -> None:
        known = f'event: {name}\ndata: {{{facts},"rest":"'
        frame = f'{known}{"x" * (size - len(known) - 4)}"}}\n\n'.encode()
        for each in listening:
            each.put_nowait(frame)

    async def answer(said: dict) -> None:
        async with speaking:
            for _ in range(said["frames"]):
                await asyncio.sleep(said["pace"])
                tell("draft", '"afresh":false', said["draft"])
            tell("event", '"role":"assistant"', said["event"])
            tell("turn", '"state":"done"', said["event"])

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
        tell("event", f'"role":"user","content":"{said["content"]}"', said["event"])
        task = asyncio.create_task(answer(said))
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
        try:
            while not answers(self.port, ready):
                if self.process.poll() is not None or time.perf_counter() - began > PATIENCE:
                    raise RuntimeError(f"{' '.join(command)} does not answer: {log.read_text()[-1000:]}")
                time.sleep(0.002)
        except BaseException:  # an interruption too: whoever waits for it will never have it to stop
            self.stop()
            raise
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
    database: str = ""  # its URL, where it is not the file in `home`

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


def fill(database: str, sizes: Sizes) -> None:
    """The owner's conversations, of equal length, and a long one beside them, all of it indexed."""
    from benchmarks.corpus import plan, text
    from benchmarks.drivers.palaver_seed import PostgresBulk, SqliteBulk, copy_conversations
    from palaver import SessionSource, SessionStore

    def messages(texts: Iterable[str]) -> list[dict[str, str]]:
        return [{"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(texts)]

    def write(key: str, texts: Iterable[str]) -> str:
        session_id = store.get_or_create_session(SessionSource("local", key)).session_id
        store.append_to_transcript(session_id, messages(texts))
        return session_id

    conversations = plan(sizes.sessions, sizes.each)
    key, said = next(conversations)
    with SessionStore.open(database) as store:
        write(key, (content for _, content in said))
    file = database.removeprefix("sqlite:///")
    bulk = PostgresBulk(database) if file == database else SqliteBulk(Path(file))
    copy_conversations(OnePersons(bulk), key, conversations)
    with SessionStore.open(database) as store:
        if sizes.long:
            store.rename_session(write("long", (text(i, "long") for i in range(sizes.long))), LONG)
        store.search("nobodyhassaidthis")  # a search first lets the index catch up


def prepare(name: str, server: Postgres | None, sizes: Sizes) -> Place:
    """A store of its own for a run. Filled files are kept, and copied; a database is filled each time."""
    from benchmarks import drivers
    from benchmarks.places import LIVE, SEEDS
    from benchmarks.servers import PREFIX

    home = LIVE / "http" / name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if server is not None:
        note(f"filling {sizes.stored:,} messages")
        server.create(f"{PREFIX}http_{name}")
        address = server.address(f"{PREFIX}http_{name}")
        fill(address, sizes)
        return Place(home, address)
    made_by = hashlib.sha256(drivers.fingerprint("palaver").encode())
    for ours in (OnePersons, fill):
        made_by.update(inspect.getsource(ours).encode())
    kind = f"{sizes.sessions}-{sizes.stored}-{sizes.long}"
    kept = SEEDS / "http" / f"{kind}-{made_by.hexdigest()[:10]}"
    if not kept.exists():
        for older in kept.parent.glob(f"{kind}-*"):
            shutil.rmtree(older)
        note(f"filling {sizes.stored:,} messages")
        unfinished = kept.with_suffix(".unfinished")
        unfinished.mkdir(parents=True)
        fill(f"sqlite:///{unfinished / 'palaver.db'}", sizes)
        unfinished.rename(kept)
    shutil.copytree(kept, home, dirs_exist_ok=True)
    os.sync()
    return Place(home)


# ---- clients ---------------------------------------------------------------------------------------------


class Follower(asyncio.Protocol):
    """An open page: a bare socket, so that listening costs whoever measures as little as can be."""

    def __init__(self, request: bytes, begins: bytes, keeps: bytes) -> None:
        self._request = request
        self._begins = begins
        self._keeps = keeps
        self._rest = b""
        self._news = asyncio.Event()
        self._place = 0
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
        """When the next frame with all these words was there."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self._news.clear()
                while self._place < len(self.told):
                    at, frame = self.told[self._place]
                    self._place += 1
                    if all(word in frame for word in words):
                        return at
                if self.over:
                    raise RuntimeError("a stream has ended")
                await self._news.wait()

    def forget(self) -> None:
        """Begin again with what comes next."""
        self.told.clear()
        self._place = 0


@dataclass(frozen=True)
class Frames:
    """What one turn of Palaver says on the wire, for the limit to say as much."""

    receipt: int
    event: int
    draft: int
    frames: int  # of the draft


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

    async def quiet(self) -> None:
        """Wait until everything is answered."""

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

    async def quiet(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while (session := json.loads(await self.get(f"/api/sessions/{self.session_id}")))["queued"] or session[
                "running"
            ]:
                await asyncio.sleep(0.1)

    def stream(self) -> tuple[str, bytes]:
        return f"/api/live?follow={self.session_id}", f"id: {self.session_id}:".encode()

    async def say(self, text: str) -> bytes:
        body = {"content": text, "key": text}
        said = await self.client.post(f"/api/sessions/{self.session_id}/messages", json=body)
        if said.status_code != 202:
            raise RuntimeError(f"not accepted: {said.status_code} {said.text}")
        return said.content


class BareWeb(Web):
    frames: Frames  # of Palaver's last turn

    def stream(self) -> tuple[str, bytes]:
        return "/live", b"retry:"

    async def say(self, text: str) -> bytes:
        said = await self.client.post("/say", json={"content": text, "pace": demo_pace(), **asdict(self.frames)})
        return said.raise_for_status().content


def demo_pace() -> float:
    """Seconds between two words of the demo agent."""
    from palaver.agent.demo import DemoAgent

    return inspect.signature(DemoAgent).parameters["pace"].default


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
        Found(f"idle memory, {who}", "MiB", [palaver.memory()], [bare.memory()]),
        Found(f"idle processor, {who}", "%", [used[0]], [used[1]]),
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
    follower.forget()
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
    found[1].what += f" ({demo_pace() * 1e3:.0f} ms of it are the demo's pause)"
    found[2].what += f" ({bare.frames.frames * demo_pace() * 1e3:.0f} ms of it are the demo's pauses)"
    return found


async def seen(web: Web, followers: int, messages: int) -> tuple[list[float], int]:
    """Milliseconds from sending a message in the middle of an answer until each follower has it.

    Also how often a follower did not get a message exactly once.
    """
    await web.begin()
    watching = await web.follower()
    crowd = [await web.follower(b'"role":"user"') for _ in range(followers)]
    await web.say("Begin.")
    moments = random.Random(5)
    began: dict[bytes, float] = {}
    for i in range(messages):
        await watching.until(b"event: draft")
        await asyncio.sleep(moments.uniform(0.05, 0.25))
        text = f"busy-{i:04d}-{time.time_ns()}"
        began[text.encode()] = time.perf_counter()
        await web.say(text)
        await watching.until(b"event: turn", b'"state":"done"')
    await watching.until(b"event: turn", b'"state":"done"')
    await web.quiet()
    taken, wrong = [], 0
    for follower in crowd:
        with contextlib.suppress(RuntimeError, TimeoutError):
            await follower.until(text.encode())
        for said, sent in began.items():
            got = [at for at, frame in follower.told if said in frame]
            taken += [(at - sent) * 1e3 for at in got[:1]]
            wrong += len(got) != 1
    for follower in (watching, *crowd):
        follower.transport.close()
    return taken, wrong


# ---- all of it -------------------------------------------------------------------------------------------


async def at_rest(place: Place, sizes: Sizes, found: list[Found]) -> None:
    """A small store: starting, and doing nothing."""
    note("starting")
    found.append(Found(f"start to ready, {SMALL} sessions", "ms", *starts(place, sizes.starts), HERMES["start"]))
    with running(place.palaver()) as palaver, running(place.bare()) as bare:
        async with asking(palaver, bare) as (owner, stranger):
            note("idle")
            found += await idle(palaver, bare, sizes.idle, "no followers")
            found[-2].hermes, found[-1].hermes = HERMES["memory"], HERMES["processor"]
            await owner.begin()
            followers = [await web.follower() for web in (owner, stranger) for _ in range(IDLE_FOLLOWERS)]
            found += await idle(palaver, bare, sizes.idle, f"{IDLE_FOLLOWERS} followers")
            if any(follower.over for follower in followers):
                raise RuntimeError("a follower was cut while nothing happened")
            for follower in followers:
                follower.transport.close()
            times = await requests(
                owner, stranger, "/api/sessions", sizes.requests, lambda page: len(page["sessions"]) == SMALL
            )
            found.append(Found(f"first page, {SMALL} sessions", "ms", *times))


@dataclass(frozen=True)
class Question:
    """Something to ask of the large store, and what a right answer holds."""

    what: str
    path: str
    right: Callable[[Any], bool]
    hermes: str = ""


def questions(sizes: Sizes, long: str) -> Iterator[Question]:
    """What a page asks; `long` is the id of the long conversation."""
    from benchmarks.corpus import COMMON, RARE, texts_with

    there = f"{sizes.sessions:,} sessions"
    page = min(PAGE, sizes.sessions)
    yield Question(f"first page, {there}", "/api/sessions", lambda got: len(got["sessions"]) == page, HERMES["page"])
    yield Question(
        f"first page of everybody's, {there}", "/api/sessions?all=true", lambda got: len(got["sessions"]) == page
    )
    messages = f"/api/sessions/{long}/messages?limit={PAGE}"
    yield Question(
        f"open a session of {sizes.long:,} messages (the last {PAGE})",
        messages,
        lambda got: len(got["events"]) == PAGE and got["more_before"],
    )
    yield Question(
        f"jump into its middle ({PAGE} around)",
        f"{messages}&around={sizes.long // 2}",
        lambda got: len(got["events"]) >= PAGE // 2 and got["more_before"] and got["more_after"],
    )
    for kind, word in (("rare", RARE), ("common", COMMON)):
        hits = min(HITS, texts_with(word, sizes.stored, HITS) + texts_with(word, sizes.long, HITS))
        yield Question(
            f"search a {kind} word, {sizes.stored:,} messages",
            f"/api/search?text={word}&limit={HITS}",
            lambda got, hits=hits: len(got["hits"]) == hits,
            HERMES["search"],
        )


async def at_work(place: Place, sizes: Sizes, found: list[Found]) -> None:
    """A large store: reading, finding, talking, following."""
    note("starting among many")
    start = starts(place, max(2, sizes.starts // 2))
    found.append(Found(f"start to ready, {sizes.sessions:,} sessions", "ms", *start, HERMES["start among many"]))
    with running(place.palaver()) as palaver, running(place.bare()) as bare:
        async with asking(palaver, bare) as (owner, stranger):
            long = json.loads(await owner.get(f"/api/sessions?text={LONG}"))["sessions"][0]["id"]
            for each in questions(sizes, long):
                note(each.what)
                times = await requests(owner, stranger, each.path, sizes.requests, each.right)
                found.append(Found(each.what, "ms", *times, each.hermes))
            note("talking")
            found += await turns(owner, stranger, sizes.turns)
            note("following")
            found.append(await followed(owner, stranger, sizes))
            held = [palaver.memory()], [bare.memory()]
            found.append(Found("memory after all of this", "MiB", *held, HERMES["memory at the end"]))


async def followed(owner: PalaverWeb, stranger: BareWeb, sizes: Sizes) -> Found:
    """The crowd at a busy conversation."""
    mine, wrong = await seen(owner, sizes.followers, sizes.busy)
    limit, wrong_there = await seen(stranger, sizes.followers, sizes.busy)
    what = f"send → seen by each of {sizes.followers} followers of a busy session"
    return Found(f"{what} (lost or doubled: {wrong}, bare: {wrong_there})", "ms", mine, limit)


def table(found: list[Found]) -> str:
    from benchmarks.measure import quantile

    lines = [
        "| what | n | Palaver p50 / p99 | bare p50 / p99 | ratio | adds, p50 | hermes-webui |",
        "|---|---|---|---|---|---|---|",
    ]

    def shown(value: float, unit: str) -> str:
        if unit == "ms" and abs(value) >= 1000:
            return f"{value / 1000:.2f} s"
        return f"{value:.2f} {unit}" if abs(value) < 10 else f"{value:,.0f} {unit}"

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


def machine() -> str:
    """What it is measured on, in a line."""
    from benchmarks import run

    facts = run.machine()
    return (
        f"{facts['cpu']}, {facts['cores']} cores, load {facts['load']} at the start; {facts['system']};"
        f" Python {facts['python']}; fdatasync of 4 KiB: {facts['fdatasync']['growing_us']:.0f} µs"
    )


async def measure(sizes: Sizes, server: Postgres | None, found: list[Found]) -> None:
    """Everything, added to what was found as it comes."""
    from benchmarks.servers import PREFIX

    few = replace(sizes, sessions=SMALL, messages=SMALL * 2, long=0)
    for name, size, part in (("small", few, at_rest), ("large", sizes, at_work)):
        place = await asyncio.to_thread(prepare, name, server, size)
        await part(place, sizes, found)
        shutil.rmtree(place.home)
        if server is not None:
            server.drop(f"{PREFIX}http_{name}")


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
    from benchmarks.run import stop_politely

    stop_politely()
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
        where = machine()
        found: list[Found] = []
        try:
            asyncio.run(measure(sizes, server, found))
        finally:  # what was measured before something failed is worth having
            if given.json:
                print(json.dumps({"machine": where, "found": [asdict(each) for each in found]}, indent=1))
            elif found:
                print(f"{where}\n\n{table(found)}\n\nThe p99 of fewer than a hundred is the slowest of them.")


if __name__ == "__main__":
    main()

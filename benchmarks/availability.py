"""Measures whether one person can slow another: what a second person waits while the first one attacks the server.

    python -m benchmarks.availability [--postgres] [--seconds N] [--only NAME,…] [--seed N] [--json]

A real `palaver serve` runs on a store with a very long conversation of the attacker (`--megabytes`, `--messages`). The
second person, Ben, sends messages, lists conversations and searches, all the time: first in quiet, then during each
attack, then in quiet again. The table has the median and the 99th percentile of what Ben waited, the ratio of the
latter to the quiet one, and how many of Ben's requests failed. Each attack is a process of its own (`--attack`), with
the lowest priority, because a real attacker is on another machine; `--same-priority` lets it compete with Ben and the
server for the processor. Attacks stay on loopback and are bounded in number and time. Their order comes from the seed.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import hmac
import io
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from benchmarks.postgres_server import DATABASE_PREFIX, PostgresServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

TIMEOUT_SECONDS = 60.0
ATTACKER_NICENESS = 19
PROBE_PAUSE_SECONDS = 0.02
BEN_CONVERSATIONS = 40
DATABASE = f"{DATABASE_PREFIX}availability"
WEBHOOK_SECRET = base64.b64encode(b"k" * 32).decode()
CONFIG = f"""
model: demo
people:
  messages_per_minute: {{member: 6000, guest: 6000}}
platforms:
  webhook:
    settings: {{secret: "{WEBHOOK_SECRET}"}}
"""


@dataclass
class World:
    """A running server and the people on it."""

    url: str
    home: Path
    database_url: str
    ben: httpx2.AsyncClient
    mallory: httpx2.AsyncClient
    ben_sessions: list[str]
    large_session: str  # of Mallory: few messages, many bytes
    long_session: str  # of Mallory: very many messages
    seed: int
    import_messages: int
    has_attacker_same_priority: bool = False
    documents: list[tuple[str, bytes]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)  # of the attacker's requests, by status
    keys: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def is_sqlite(self) -> bool:
        return self.database_url.startswith("sqlite:")

    async def attempt(self, request: Awaitable[httpx2.Response]) -> httpx2.Response | None:
        """Send a request of the attacker and count what came of it."""
        try:
            response = await request
        except httpx2.HTTPError as error:
            self.outcomes[type(error).__name__] += 1
            return None
        self.outcomes[str(response.status_code)] += 1
        return response


# ---- what Ben does -----------------------------------------------------------------------------------------


@dataclass
class Waits:
    """What Ben waited, in seconds, by kind of request; and what failed."""

    times: dict[str, list[float]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)

    async def measure(self, kind: str, request: Awaitable[httpx2.Response]) -> None:
        started = time.perf_counter()
        try:
            response = await request
        except httpx2.HTTPError as error:
            self.failures[f"{kind}: {type(error).__name__}"] += 1
        else:
            if not response.is_success:
                self.failures[f"{kind}: {response.status_code}"] += 1
        self.times.setdefault(kind, []).append(time.perf_counter() - started)


async def probe(world: World, waits: Waits, stop: asyncio.Event) -> None:
    """Send a message, list and search, one after the other, until `stop` is set."""
    for session_id in itertools.cycle(world.ben_sessions):
        body = {"content": "good morning", "key": f"ben-{next(world.keys)}"}
        await waits.measure("accept", world.ben.post(f"/api/sessions/{session_id}/messages", json=body))
        for kind, path in (("list", "/api/sessions"), ("search", "/api/search?query=morning")):
            await waits.measure(kind, world.ben.get(path))
            await asyncio.sleep(PROBE_PAUSE_SECONDS)
        if stop.is_set():
            return


# ---- attacks -----------------------------------------------------------------------------------------------


async def open_streams(world: World, stop: asyncio.Event) -> None:
    """One person opens more live streams than the server has places."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(300):
            client = await stack.enter_async_context(
                httpx2.AsyncClient(base_url=world.url, cookies=world.mallory.cookies, timeout=TIMEOUT_SECONDS)
            )
            with contextlib.suppress(httpx2.HTTPError):
                response = await stack.enter_async_context(client.stream("GET", "/api/live"))
                world.outcomes[str(response.status_code)] += 1
            if stop.is_set():
                return
        await stop.wait()


async def upload_files(world: World, stop: asyncio.Event) -> None:
    """One person uploads as much as the server takes."""
    content = b"a line of text\n" * 100_000
    numbers = random.Random(world.seed)

    async def upload() -> None:
        for number in range(200):
            if stop.is_set():
                return
            unique = content + str(numbers.random()).encode()
            await world.attempt(world.mallory.post("/api/attachments", files={"file": (f"f{number}.txt", unique)}))

    await asyncio.gather(*(upload() for _ in range(4)))


async def export_large_session(world: World, stop: asyncio.Event) -> None:
    """One person downloads a very large conversation, as JSON and as a page, again and again."""

    async def download(document_format: str) -> None:
        while not stop.is_set():
            path = f"/api/sessions/{world.large_session}/export?format={document_format}"
            with contextlib.suppress(httpx2.HTTPError):
                async with world.mallory.stream("GET", path) as response:
                    world.outcomes[str(response.status_code)] += 1
                    async for _ in response.aiter_bytes():
                        if stop.is_set():
                            return

    await asyncio.gather(download("json"), download("html"))


async def import_conversations(world: World, stop: asyncio.Event) -> None:
    """One person imports very many messages, which all have to be indexed."""
    lines = [{"type": "header", "format": "palaver.export/1", "scope": "person"}]
    per_session, moment = 500, "2026-01-02T03:04:05+00:00"
    for number in range(world.import_messages // per_session):
        lines.append({"type": "session", "id": f"import{number}", "created_at": moment})
        for seq in range(1, per_session + 1):
            event = {
                "seq": seq,
                "kind": "message",
                "created_at": moment,
                "role": "user",
                "content": f"morning {seq} x{number}",
            }
            lines.append({"type": "event", "session": f"import{number}"} | event)
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    response = await world.attempt(world.mallory.post("/api/imports?name=mine.jsonl", content=body))
    if response is not None and response.is_success:
        import_id = response.json()["id"]
        for _ in range(100):
            state = (await world.mallory.get(f"/api/imports/{import_id}")).json()
            if state["state"] not in {"checking", "uploaded", "queued"}:
                break
            await asyncio.sleep(0.2)
        await world.attempt(world.mallory.post(f"/api/imports/{import_id}/start", json={}))
    await stop.wait()


async def change_long_session(world: World, stop: asyncio.Event) -> None:
    """One person branches and edits conversations with very many messages and very many bytes."""
    while not stop.is_set():
        for session_id in (world.long_session, world.large_session):
            await world.attempt(world.mallory.post(f"/api/sessions/{session_id}/fork", json={}))
            body = {"seq": 1, "content": "another one", "key": f"edit-{next(world.keys)}"}
            await world.attempt(world.mallory.post(f"/api/sessions/{session_id}/edit", json=body))
            await world.attempt(world.mallory.post(f"/api/sessions/{session_id}/undo", json={"turns": 1000}))
            await world.attempt(world.mallory.post(f"/api/sessions/{session_id}/redo", json={}))
            if stop.is_set():
                return


async def share_large_session(world: World, stop: asyncio.Event) -> None:
    """One person shares a very large conversation as a page."""
    while not stop.is_set():
        await world.attempt(world.mallory.post(f"/api/sessions/{world.large_session}/shares", json={}))
        await asyncio.sleep(0.1)


async def send_slow_webhooks(world: World, stop: asyncio.Event) -> None:
    """A stranger sends webhooks without a signature, a byte at a time; a signed one of another sender gets through."""
    host, port = world.url.removeprefix("http://").split(":")

    async def trickle() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                _reader, writer = await asyncio.open_connection(host, int(port), local_addr=("127.0.0.2", 0))
                head = f"POST /hooks/webhook HTTP/1.1\r\nHost: {host}:{port}\r\nTransfer-Encoding: chunked\r\n\r\n"
                writer.write(head.encode())
                while not stop.is_set():
                    writer.write(b"1\r\nx\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.2)
                writer.close()

    async def send_signed() -> None:
        async with httpx2.AsyncClient(base_url=world.url, timeout=TIMEOUT_SECONDS) as client:
            while not stop.is_set():
                number, now = f"m{next(world.keys)}", str(int(time.time()))
                body = json.dumps({"text": "good morning"}).encode()
                signed = f"{number}.{now}.".encode() + body
                digest = hmac.new(WEBHOOK_SECRET.encode(), signed, hashlib.sha256).digest()
                signature = f"v1,{base64.b64encode(digest).decode()}"
                headers = {"webhook-id": number, "webhook-timestamp": now, "webhook-signature": signature}
                started = time.perf_counter()
                await world.attempt(client.post("/hooks/webhook", content=body, headers=headers))
                if time.perf_counter() - started > 5:
                    world.outcomes["signed webhook waited over 5 s"] += 1
                await asyncio.sleep(0.2)

    await asyncio.gather(send_signed(), *(trickle() for _ in range(16)))


async def send_costly_documents(world: World, stop: asyncio.Event) -> None:
    """One person sends documents whose text is costly to read."""
    while not stop.is_set():
        ids = []
        for name, content in world.documents[:4]:
            response = await world.attempt(world.mallory.post("/api/attachments", files={"file": (name, content)}))
            if response is not None and response.is_success:
                ids.append(response.json()["id"])
        session = await world.attempt(world.mallory.post("/api/sessions", json={}))
        if session is not None and session.is_success and ids:
            body = {"content": "read these", "attachment_ids": ids, "key": f"doc-{next(world.keys)}"}
            await world.attempt(world.mallory.post(f"/api/sessions/{session.json()['id']}/messages", json=body))
        await asyncio.sleep(0.5)


def build_costly_document(number: int) -> tuple[str, bytes]:
    """Return a spreadsheet that is small as a file and has very many cells."""
    row = "<row>" + "".join(f"<c><v>{column}</v></c>" for column in range(200)) + "</row>"
    sheet = (
        '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        + row * 20_000
        + f"<row><c><v>{number}</v></c></row></sheetData></worksheet>"
    )
    office = "http://schemas.openxmlformats.org"
    parts = {
        "[Content_Types].xml": f'<?xml version="1.0"?><Types xmlns="{office}/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<?xml version="1.0"?><Relationships xmlns="{office}/package/2006/relationships"><Relationship'
        f' Id="r1" Type="{office}/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<?xml version="1.0"?><workbook xmlns="{office}/spreadsheetml/2006/main" xmlns:r='
        f'"{office}/officeDocument/2006/relationships"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<?xml version="1.0"?><Relationships xmlns="{office}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/worksheets/sheet1.xml": sheet,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return f"sheet{number}.xlsx", buffer.getvalue()


async def guess_passwords(world: World, stop: asyncio.Event) -> None:
    """A stranger tries passwords, fifty at a time, from another address."""
    transport = httpx2.AsyncHTTPTransport(local_address="127.0.0.3", limits=httpx2.Limits(max_connections=50))
    async with httpx2.AsyncClient(
        base_url=world.url, headers={"Origin": world.url}, transport=transport, timeout=TIMEOUT_SECONDS
    ) as stranger:

        async def guess() -> None:
            while not stop.is_set():
                body = {"name": "ben", "password": f"guess {next(world.keys)}"}
                await world.attempt(stranger.post("/api/sign-in/password", json=body))
                await asyncio.sleep(0.05)

        await asyncio.gather(*(guess() for _ in range(50)))


async def hold_lock(world: World, stop: asyncio.Event) -> None:
    """Another program holds a lock: of the SQLite file, or of a row that twenty messages at a time want to change."""
    if not world.is_sqlite:
        await send_to_locked_row(world, stop)
        return
    script = (
        "import apsw, sys; db = apsw.Connection(sys.argv[1]); db.set_busy_timeout(20000); db.execute('BEGIN IMMEDIATE');"
        " print('held', flush=True); sys.stdin.read()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(world.home / "palaver.db"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    await process.stdout.readline()
    world.outcomes["lock held"] += 1
    try:
        await stop.wait()
    finally:
        process.stdin.close()
        await process.wait()


async def send_to_locked_row(world: World, stop: asyncio.Event) -> None:
    import psycopg

    async def send() -> None:
        while not stop.is_set():
            body = {"content": "good morning", "key": f"locked-{next(world.keys)}"}
            await world.attempt(world.mallory.post(f"/api/sessions/{world.large_session}/messages", json=body))

    with psycopg.connect(world.database_url) as connection:
        connection.execute("SELECT 1 FROM session WHERE id = %s FOR UPDATE", [world.large_session])
        tasks = [asyncio.create_task(send()) for _ in range(20)]
        await stop.wait()
        connection.rollback()
        await asyncio.gather(*tasks)


async def pause_server(world: World, stop: asyncio.Event) -> None:
    """Another server on the same database is paused again and again, in the middle of whatever it does."""
    home = Path(tempfile.mkdtemp(prefix="palaver-availability-"))
    (home / "config.yaml").write_text(CONFIG + f"database_url: {json.dumps(world.database_url)}\n")
    process = start_server(home)
    numbers = random.Random(world.seed)
    try:
        await asyncio.to_thread(read_address, process, home)
        while not stop.is_set():
            process.send_signal(signal.SIGSTOP)
            world.outcomes["paused"] += 1
            await asyncio.sleep(1.0)
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(numbers.uniform(0, 0.5))
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)


ATTACKS: dict[str, Callable[[World, asyncio.Event], Awaitable[None]]] = {
    "streams": open_streams,
    "uploads": upload_files,
    "export": export_large_session,
    "import": import_conversations,
    "edit": change_long_session,
    "share": share_large_session,
    "webhooks": send_slow_webhooks,
    "documents": send_costly_documents,
    "passwords": guess_passwords,
    "lock": hold_lock,
    "pause": pause_server,
}
POSTGRES_ONLY = {"pause"}


# ---- the server --------------------------------------------------------------------------------------------


def fill_store(database_url: str, megabytes: int, messages: int) -> None:
    """Put two conversations that nobody could have typed into a new store."""
    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Read, Write
    from palaver.sessions import log_table as events, table as sessions

    with SessionStore.open(database_url) as store:
        for chat, count, text in (("large", megabytes, "x" * 1_000_000), ("long", messages, "morning")):
            source = SessionSource("telegram", chat, user_id="mallory")
            session_id = store.record_user_message(source, chat).session_id
            no = store.engine.run(Read(lambda tx, session_id=session_id: sessions.get(tx, session_id).no))
            start = store.engine.run(Read(lambda tx, no=no: events.get_last_seq(tx, no))) + 1
            step = 20 if chat == "large" else 20_000
            for first in range(start, start + count, step):
                last = min(first + step, start + count)
                rows = [
                    (no, seq, 1_000_000 + seq, "user" if seq % 2 else "assistant", text, None, None, None)
                    for seq in range(first, last)
                ]

                def insert(tx: Any, rows: list[Any] = rows, no: int = no) -> None:
                    tx.execute_many(events.INSERT_MESSAGE, rows)
                    tx.execute(
                        "UPDATE session SET last_seq = $2, message_count = message_count + $3, unindexed = 1 WHERE no = $1",
                        no,
                        rows[-1][1],
                        len(rows),
                    )

                store.engine.run(Write(insert))
        while store.search("nothing to be found"):
            pass


def start_server(home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "palaver", "serve", "--port", "0", "--no-open", "--link"]
    with (home / "server.log").open("wb") as log:
        return subprocess.Popen(
            command, env=os.environ | {"PALAVER_HOME": str(home)}, stdout=subprocess.PIPE, stderr=log, text=True
        )


def read_address(process: subprocess.Popen[str], home: Path) -> tuple[str, str]:
    """Return where a server listens, and a token that signs in, as soon as it says so."""
    for line in process.stdout or ():
        if found := re.search(r"(http://\S+)/sign-in#(\S+)", line):
            return found[1], found[2]
    raise SystemExit(f"The server did not start: {(home / 'server.log').read_text()[-2000:]}")


@contextlib.contextmanager
def open_database(home: Path, *, is_postgres: bool) -> Iterator[str]:
    if not is_postgres:
        yield f"sqlite:///{home / 'palaver.db'}"
        return
    with PostgresServer() as server:
        server.create_database(DATABASE)
        yield server.build_url(DATABASE)


@contextlib.asynccontextmanager
async def open_world(args: argparse.Namespace) -> AsyncIterator[World]:
    home = Path(tempfile.mkdtemp(prefix="palaver-availability-"))
    process = None
    stack = contextlib.AsyncExitStack()
    try:
        database_url = stack.enter_context(open_database(home, is_postgres=args.postgres))
        (home / "config.yaml").write_text(CONFIG + f"database_url: {json.dumps(database_url)}\n")
        fill_store(database_url, args.megabytes, args.messages)
        process = start_server(home)
        url, token = read_address(process, home)
        async with contextlib.AsyncExitStack() as clients:

            async def sign_in(secret: str) -> httpx2.AsyncClient:
                limits = httpx2.Limits(max_connections=100)
                client = await clients.enter_async_context(
                    httpx2.AsyncClient(base_url=url, headers={"Origin": url}, timeout=TIMEOUT_SECONDS, limits=limits)
                )
                (await client.post("/api/sign-in/link", json={"token": secret})).raise_for_status()
                return client

            async def invite(name: str) -> httpx2.AsyncClient:
                response = await owner.post("/api/people", json={"name": name, "role": "member"})
                return await sign_in(response.raise_for_status().json()["link"]["url"].partition("#")[2])

            owner = await sign_in(token)
            ben, mallory = await invite("ben"), await invite("mallory")
            found = give_sessions(database_url, (await mallory.get("/api/me")).json()["person"]["id"])
            ben_sessions = [(await ben.post("/api/sessions", json={})).json()["id"] for _ in range(BEN_CONVERSATIONS)]
            yield World(
                *(url, home, database_url, ben, mallory, ben_sessions, *found),
                *(args.seed, args.import_messages, args.same_priority),
            )
    finally:
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        await stack.aclose()
        shutil.rmtree(home, ignore_errors=True)


def give_sessions(database_url: str, person_id: str) -> tuple[str, str]:
    """Let the two conversations belong to this person; return their ids."""
    from palaver import SessionStore
    from palaver.core.engines.base import Write

    def give(tx: Any) -> list[Any]:
        tx.execute(
            "UPDATE audience_member SET person_id = $1 WHERE audience_no IN (SELECT audience_no FROM session)",
            person_id,
        )
        return list(tx.fetch_all("SELECT id FROM session ORDER BY no LIMIT 2"))

    with SessionStore.open(database_url) as store:
        (large,), (long,) = store.engine.run(Write(give))
    return str(large), str(long)


# ---- measuring ---------------------------------------------------------------------------------------------


async def measure(world: World, name: str | None, seconds: float) -> tuple[Waits, Counter[str]]:
    """Let Ben work for so long, during an attack or in quiet."""
    waits, stop = Waits(), asyncio.Event()
    is_locked = name == "lock" and world.is_sqlite  # what is sent meanwhile has to wait
    attacker = await start_attack(world, name) if name else None
    task = asyncio.create_task(probe(world, waits, stop) if not is_locked else probe_reads(world, waits, stop))
    await asyncio.sleep(seconds)
    stop.set()
    await asyncio.wait_for(task, 2 * TIMEOUT_SECONDS)
    if attacker is None:
        return waits, Counter()
    output, _ = await asyncio.wait_for(attacker.communicate(b""), 2 * TIMEOUT_SECONDS)  # the end of its input ends it
    return waits, Counter(json.loads(output))


async def start_attack(world: World, name: str) -> asyncio.subprocess.Process:
    """Start the attack in another process; it ends when its input does, and prints what it counted."""
    facts = {
        "url": world.url,
        "home": str(world.home),
        "database_url": world.database_url,
        "cookies": dict(world.mallory.cookies),
        "large_session": world.large_session,
        "long_session": world.long_session,
        "seed": world.seed,
        "import_messages": world.import_messages,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.availability", "--attack", name, "--world", json.dumps(facts)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=None if world.has_attacker_same_priority else lambda: os.nice(ATTACKER_NICENESS),
    )
    assert process.stdout is not None
    await process.stdout.readline()  # it begins
    await asyncio.sleep(1.0)
    return process


async def run_attack(name: str, facts: dict[str, Any]) -> Counter[str]:
    """Attack until standard input ends; return how often each outcome came."""
    stop = asyncio.Event()
    limits = httpx2.Limits(max_connections=100)
    async with httpx2.AsyncClient(
        base_url=facts["url"],
        headers={"Origin": facts["url"]},
        cookies=facts["cookies"],
        timeout=TIMEOUT_SECONDS,
        limits=limits,
    ) as mallory:
        world = World(
            facts["url"], Path(facts["home"]), facts["database_url"], mallory, mallory, [], facts["large_session"], facts["long_session"],
            facts["seed"], facts["import_messages"],
        )  # fmt: skip
        if name == "documents":
            world.documents = [build_costly_document(number) for number in range(8)]
        print("begins", flush=True)
        attack = asyncio.create_task(ATTACKS[name](world, stop))
        await asyncio.to_thread(sys.stdin.read)
        stop.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(attack, TIMEOUT_SECONDS)
        return world.outcomes


async def probe_reads(world: World, waits: Waits, stop: asyncio.Event) -> None:
    while not stop.is_set():
        for kind, path in (("list", "/api/sessions"), ("search", "/api/search?query=morning")):
            await waits.measure(kind, world.ben.get(path))
            await asyncio.sleep(PROBE_PAUSE_SECONDS)


def get_percentile(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    all_names = [name for name in ATTACKS if args.postgres or name not in POSTGRES_ONLY]
    names = args.only.split(",") if args.only else all_names
    random.Random(args.seed).shuffle(names)
    rows = []
    async with open_world(args) as world:
        await measure(world, None, 2.0)  # warm
        measured = [("quiet", *await measure(world, None, args.seconds))]
        for name in names:
            measured.append((name, *await measure(world, name, args.seconds)))
            await asyncio.sleep(args.pause)
        measured.append(("quiet again", *await measure(world, None, args.seconds)))
    quiet: dict[str, list[float]] = {}
    for name, waits, _ in measured:
        if name == "quiet":
            for kind, times in waits.times.items():
                quiet.setdefault(kind, []).extend(times)
    for name, waits, outcomes in measured:
        for kind, times in waits.times.items():
            p99, base = get_percentile(times, 0.99), get_percentile(quiet[kind], 0.99)
            rows.append(
                {
                    "attack": name,
                    "request": kind,
                    "requests": len(times),
                    "median_ms": round(get_percentile(times, 0.5) * 1e3, 2),
                    "p99_ms": round(p99 * 1e3, 2),
                    "ratio": round(p99 / base, 2),
                    "failures": sum(count for what, count in waits.failures.items() if what.startswith(f"{kind}:")),
                    "attacker": dict(outcomes),
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures what a second person waits while one person attacks.")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of SQLite")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement")
    parser.add_argument("--pause", type=float, default=3.0, help="seconds between two attacks")
    parser.add_argument("--megabytes", type=int, default=300, help="of the large conversation")
    parser.add_argument("--messages", type=int, default=1_000_000, help="in the long conversation")
    parser.add_argument("--import-messages", type=int, default=50_000)
    parser.add_argument("--only", help=f"some of {', '.join(ATTACKS)}")
    parser.add_argument("--seed", type=int, default=20261118)
    parser.add_argument("--same-priority", action="store_true", help="let the attacker take processor time of Ben, too")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--world", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.attack:
        print(json.dumps(asyncio.run(run_attack(args.attack, json.loads(args.world)))))
        return
    rows = asyncio.run(run(args))
    if args.json:
        print(json.dumps({"seed": args.seed, "rows": rows}))
        return
    print(
        f"seed {args.seed}\n\n| attack | request | requests | median | p99 | of quiet | failed | the attacker's requests |\n|---|---|---|---|---|---|---|---|"
    )
    for row in rows:
        attacker = ", ".join(f"{count} × {what}" for what, count in sorted(row["attacker"].items()))
        print(
            f"| {row['attack']} | {row['request']} | {row['requests']} | {row['median_ms']} ms | {row['p99_ms']} ms |"
            f" {row['ratio']}× | {row['failures']} | {attacker} |"
        )


if __name__ == "__main__":
    main()

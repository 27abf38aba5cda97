"""Attacks and faults against a real server, in random order and number: what was acknowledged is kept, and no more.

Every test prints its seed and what it has counted.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from drivers.openai_server import OpenAIServer, reply_slowly
from palaver.sessions.turn import MAX_TURN_CRASHES
from platforms.webhook.receiver import sign
from soak.attacked_server import QUESTIONS, AttackedServer, print_counts
from web.test_command_scopes import SCOPE_SETS, TABLE
from web.test_odd_addresses import TEXTS, list_addresses

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from support.warm_process import WarmLauncher

pytestmark = pytest.mark.soak

FOLDER = Path(__file__).parents[2]
CODE = re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b")


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)


async def test_a_flood_of_webhooks_is_stored_as_it_was_acknowledged(
    request: pytest.FixtureRequest, launcher: WarmLauncher, tmp_path: Path, chance: random.Random
) -> None:
    limit = chance.randint(40, 90)
    counts = Counter[str]()
    people = {"messages_per_minute": {"guest": limit}}
    async with AttackedServer(launcher, tmp_path / "home", people=people) as server:
        client = await server.open_client()
        lanes = asyncio.Semaphore(chance.randint(2, 12))

        async def send(number: int) -> None:
            body = json.dumps({"text": f"word {number}", "conversation": f"c{number % 20}"}).encode()
            for _ in range(100):
                async with lanes:
                    headers = sign(f"m{number}", int(time.time()), body)
                    response = await client.post("/hooks/webhook", content=body, headers=headers)
                counts[str(response.status_code)] += 1
                if response.is_success:
                    return
                assert response.status_code == 429, response.text
                await asyncio.sleep(min(5, int(response.headers["Retry-After"])))
            pytest.fail(f"message {number} was never acknowledged")

        numbers = range(int(limit * chance.uniform(1.3, 1.9)))
        tries = [number for number in numbers for _ in range(chance.randint(1, 3))]  # the same id, at the same time
        chance.shuffle(tries)
        await asyncio.gather(*(send(number) for number in tries))
        stored = Counter(server.fetch(QUESTIONS))
        counts |= {"acknowledged ids": len(numbers), "stored messages": stored.total()}
    print_counts(request, counts)
    assert counts["429"] > 0
    assert stored == Counter(f"word {number}" for number in numbers)


async def test_actions_repeated_with_their_key_are_done_once_and_never_only_reported(
    request: pytest.FixtureRequest, launcher: WarmLauncher, tmp_path: Path, chance: random.Random
) -> None:
    counts = Counter[str]()
    async with AttackedServer(launcher, tmp_path / "home") as server:
        job = (await server.owner.post("/api/jobs", json={"prompt": "tea", "schedule": "every 12h"})).json()["id"]
        for number in range(24):
            session = f"/api/sessions/{await server.create_session()}"
            sent = await server.owner.post(f"{session}/messages", json={"content": "hello there", "key": f"m{number}"})
            assert sent.status_code == 202
            seq = server.fetch("SELECT seq FROM event WHERE role = 'user' ORDER BY session_no DESC, seq DESC LIMIT 1")[
                0
            ]
            actions: dict[str, tuple[str, dict[str, Any], str, tuple[Any, ...]]] = {
                "undo": (f"{session}/undo", {}, "SELECT COUNT(*) FROM event WHERE kind = 'undone'", ()),
                "retry": (f"{session}/retry", {}, "SELECT COUNT(*) FROM event WHERE kind = 'version_started'", ()),
                "edit": (
                    f"{session}/edit",
                    {"seq": seq, "content": f"edited {number}"},
                    "SELECT COUNT(*) FROM event WHERE content = ?",
                    (f"edited {number}",),
                ),
                "run": (f"/api/jobs/{job}/run", {}, "SELECT COUNT(*) FROM job_run WHERE kind = 'manual'", ()),
            }
            name = chance.choice(sorted(actions))
            path, body, count_done, values = actions[name]
            before = server.fetch(count_done, *values)[0]
            body |= {"key": f"action-{number}"}
            at_once = await asyncio.gather(
                *(server.owner.post(path, json=body) for _ in range(chance.randint(1, 4)))
            )  # the agent may be answering still
            if not any(response.is_success for response in at_once):
                assert server.fetch(count_done, *values)[0] == before
                await server.wait_until_answered()
            later = [await server.owner.post(path, json=body) for _ in range(chance.randint(2, 4))]
            statuses = [response.status_code for response in (*at_once, *later)]
            counts.update(f"{name}: {status}" for status in statuses)
            assert set(statuses) <= {200, 202, 409}, [response.text for response in later]
            assert len({response.status_code for response in later}) == 1
            assert later[0].is_success
            assert server.fetch(count_done, *values)[0] == before + 1, (name, statuses)
            await server.wait_until_answered()
    print_counts(request, counts)


LOSSES = {
    "removed": ["palaver.db"],
    "all removed": ["palaver.db", "palaver.db-wal", "palaver.db-shm"],
    "log removed": ["palaver.db-wal"],
    "renamed": [],
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_what_was_acknowledged_before_the_database_file_was_lost_is_found_again(
    request: pytest.FixtureRequest, launcher: WarmLauncher, tmp_path: Path, chance: random.Random, loss: str
) -> None:
    acknowledged: list[str] = []
    counts = Counter[str]()
    async with AttackedServer(launcher, tmp_path / "home") as server:
        sessions = [await server.create_session() for _ in range(6)]

        async def send(lane: int) -> None:
            for number in range(40):
                text = f"word-{lane}-{number}"
                path = f"/api/sessions/{sessions[lane]}/messages"
                response = await server.owner.post(path, json={"content": text, "key": text})
                counts[str(response.status_code)] += 1
                if response.is_success:
                    acknowledged.append(text)
                    if len(acknowledged) == enough:
                        is_enough.set()

        enough, is_enough = chance.randint(5, 60), asyncio.Event()
        traffic = [asyncio.create_task(send(lane)) for lane in range(len(sessions))]
        await asyncio.wait_for(is_enough.wait(), 60)
        for name in LOSSES[loss]:
            (server.home / name).unlink()
        if loss == "renamed":
            (server.home / "palaver.db").rename(server.home / "elsewhere.db")
        known = len(acknowledged)
        await asyncio.gather(*traffic)
        assert counts["503"] > 0
        for path in ("/readyz", "/api/sessions"):
            response = await server.owner.get(path)
            assert (path, response.status_code) == (path, 503)
        await server.stop()
        rescued = list(server.home.glob("palaver-rescued-*.db"))
        if loss != "log removed":
            assert len(rescued) == 1
            rescued[0].rename(server.home / "palaver.db")
        await server.start()
        stored = Counter(server.fetch(QUESTIONS))
    counts |= {"acknowledged": len(acknowledged), "found": sum(stored[text] for text in acknowledged)}
    counts["acknowledged in the moment of the loss"] = len(acknowledged) - known
    print_counts(request, counts)
    assert [text for text in acknowledged if stored[text] != 1] == []


async def test_a_crash_loop_gives_up_only_messages_that_the_model_was_asked_about(
    request: pytest.FixtureRequest, launcher: WarmLauncher, tmp_path: Path, chance: random.Random
) -> None:
    counts = Counter[str]()
    with OpenAIServer() as model:
        model.add_replies(*(reply_slowly(["Noted. "] * 10, 0.05) for _ in range(2000)))
        config = {"model": "lab:test-model", "providers": {"lab": {"base_url": model.url, "api_key": "sk-none"}}}
        async with AttackedServer(launcher, tmp_path / "home", **config) as server:
            for number in range(30):
                path = f"/api/sessions/{await server.create_session()}/messages"
                body = {"content": f"word-{number}-end", "key": f"m{number}"}
                assert (await server.owner.post(path, json=body)).status_code == 202
            for _ in range(chance.randint(4, 10)):
                await asyncio.sleep(chance.uniform(0, 0.6))
                await server.kill()
                counts["kills"] += 1
                await server.start()
            await server.wait_until_answered()
            turns = server.fetch(
                "SELECT e.content, t.state, t.error FROM turn t"
                " JOIN event e ON e.session_no = t.session_no AND e.seq = t.input_seq"
            )
        calls = "".join(body.decode() for body in model.bodies)
    never_asked = [(text, state) for text, state, _ in turns if text not in calls]
    counts.update(state for _, state, _ in turns)
    counts |= {"model calls": len(model.bodies), "ended without a model call": len(never_asked)}
    print_counts(request, counts)
    assert len(turns) == 30
    for text, state, error in turns:
        assert state == "done" or f"crashed {MAX_TURN_CRASHES} times" in error, (text, state, error)
    assert [text for text, state in never_asked if state == "done"] == []
    assert never_asked == []


async def test_no_token_gets_a_code_and_only_an_admin_token_changes_the_server(
    request: pytest.FixtureRequest, launcher: WarmLauncher, tmp_path: Path, chance: random.Random
) -> None:
    counts = Counter[str]()
    async with AttackedServer(launcher, tmp_path / "home") as server:
        session = await server.create_session()
        me = (await server.owner.get("/api/me")).json()["person"]["id"]

        async def attack(scopes: frozenset[str]) -> None:
            program = await server.open_token_client(*sorted(scopes))
            texts = [(text, way) for text in TABLE for way in chance.sample(range(4), 2)]
            texts += [(text, way) for text in ("/link", "/pair", "/budget set everyone day $1") for way in range(4)]
            chance.shuffle(texts)
            responses = []
            for number, (text, way) in enumerate(texts):
                chat = {"model": "palaver", "messages": [{"role": "user", "content": text}], "stream": way == 1}
                key = f"{'+'.join(sorted(scopes))}-{number}"
                path, body = [
                    ("/v1/chat/completions", chat),
                    ("/v1/chat/completions", chat),
                    ("/api/commands", {"text": text, "key": key}),
                    (f"/api/sessions/{session}/messages", {"content": text, "key": key}),
                ][way]
                responses.append(await program.post(path, json=body))
            responses.append(await program.post("/api/people", json={"name": "Mallory", "role": "owner"}))
            responses.append(await program.post(f"/api/people/{me}/link"))
            for response in responses:
                counts[str(response.status_code)] += 1
                assert response.status_code < 500, response.text
                assert set(CODE.findall(response.text)) <= {"ABCD-EFGH"}, response.text  # that one is in the texts
                assert "sign-in#" not in response.text

        powerless = [scopes for scopes in SCOPE_SETS if "admin" not in scopes]
        for scopes in chance.sample(powerless, len(powerless)):
            await attack(scopes)
        tables = ("budget_limit", "home_channel", "link_code", "sign_in_link")
        for table in tables:
            counts[f"rows in {table} without admin"] = server.fetch(f"SELECT COUNT(*) FROM {table}")[0]
        others = [scopes for scopes in SCOPE_SETS if "admin" in scopes]
        for scopes in chance.sample(others, len(others)):
            await attack(scopes)
        # The last one of the attacks may have been to clear it.
        program = await server.open_token_client(*sorted({scope for scopes in SCOPE_SETS for scope in scopes}))
        await program.post("/api/commands", json={"text": "/budget set everyone day $1", "key": "last"})
        for table in tables:
            counts[f"rows in {table} with admin"] = server.fetch(f"SELECT COUNT(*) FROM {table}")[0]
    print_counts(request, counts)
    assert [counts[f"rows in {table} without admin"] for table in tables] == [0, 0, 0, 0]
    assert counts["rows in budget_limit with admin"] > 0  # so the others would have had an effect
    assert [counts[f"rows in {table} with admin"] for table in ("link_code", "sign_in_link")] == [0, 0]


def test_one_person_does_not_take_the_server_from_another(
    request: pytest.FixtureRequest, seed: int, tmp_path: Path
) -> None:
    sizes = ("--seconds", "5", "--megabytes", "60", "--messages", "100000", "--import-messages", "10000")
    command = [sys.executable, "-m", "benchmarks.availability", "--json", *sizes, "--seed", str(seed)]
    with (tmp_path / "errors").open("w+") as errors:
        # In a session of its own, so that every process that it leaves is found.
        process = subprocess.Popen(
            command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        output, _ = process.communicate(timeout=1500)
        errors.seek(0)
        assert process.returncode == 0, errors.read()
    left = subprocess.run(["ps", "-o", "args=", "-s", str(process.pid)], capture_output=True, text=True, check=False)
    assert left.stdout == ""
    rows = json.loads(output)["rows"]
    counts = Counter[str]()
    for row in rows:
        counts[f"requests of Ben during {row['attack']}"] += row["requests"]
        counts["failures of Ben"] += row["failures"]
    attackers = {row["attack"]: row["attacker"] for row in rows}
    print_counts(request, counts)
    assert [row for row in rows if row["failures"]] == []
    # The attacks were real: the server has taken what it was sent, up to its limits.
    assert {attackers[name].keys() >= {"201"} for name in ("uploads", "documents", "import")} == {True}
    assert {attackers[name].keys() >= {"200"} for name in ("streams", "export")} == {True}
    assert attackers["webhooks"].keys() == {"202"}
    assert attackers["passwords"].keys() == {"401", "429"}


async def test_hostile_requests_are_refused_and_never_break_the_server(
    request: pytest.FixtureRequest, launcher: WarmLauncher, tmp_path: Path, chance: random.Random
) -> None:
    counts = Counter[str]()
    async with AttackedServer(launcher, tmp_path / "home") as server:
        host = server.url.removeprefix("http://")
        addresses = [(method, path) for text in TEXTS for _, method, path in list_addresses(text)]
        headers = [
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Content-Length: 3\r\nContent-Length: 4",
            "Content-Length: -1",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            f"Cookie: {'x' * 20_000}",
            "Host: elsewhere.example\r\nX-Forwarded-For: 127.0.0.1",
            "Range: bytes=5-1",
            "Accept-Language: \xff\xfe",
        ]

        async def send_raw(method: str, path: str, header: str) -> str:
            reader, writer = await asyncio.open_connection(*host.split(":"))
            head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{header}\r\n\r\n"
            try:
                writer.write(head.encode("latin-1") + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n")
                answer = await asyncio.wait_for(reader.read(), 60)
            except ConnectionError:
                answer = b""
            finally:
                writer.close()
            assert answer.count(b"HTTP/1.1 ") <= 1, answer  # the second request is none
            return answer[9:12].decode() or "closed"

        async def send(method: str, path: str) -> str:
            body: dict[str, object] | None = {} if method in {"POST", "PUT", "PATCH"} else None
            return str((await server.owner.request(method, path, json=body)).status_code)

        for method, path in chance.sample(addresses, 400):
            is_raw = chance.random() < 0.5
            attempt: Awaitable[str] = send_raw(method, path, chance.choice(headers)) if is_raw else send(method, path)
            try:
                status = await attempt
            except httpx2.InvalidURL:
                continue
            counts[status] += 1
            assert status < "500" or status == "closed", (method, path[:80])
        assert await send_raw("POST", "/api/sessions", headers[0]) == "400"
        assert (await server.owner.get("/readyz")).status_code == 200
    print_counts(request, counts)

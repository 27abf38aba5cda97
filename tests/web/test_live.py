"""The live stream: everything once and in order, through every cut, to those it belongs to and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx2
import psycopg
import pytest

from palaver import Principal, Role, SessionSource, SessionStore
from palaver.agent.base import Notice, TextDelta
from palaver.domain.errors import StoreBusy
from palaver.services.live import clients as service
from palaver.services.live.channels import Placed
from palaver.storage import live_queries
from palaver.testing import ScriptedAgent
from palaver.web import sse
from support.gateway import PATIENCE, until
from support.sse import Page, listening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
    from pathlib import Path

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.storage.engines.base import Transaction
    from support.web import StartWeb, Web

BOTH = pytest.mark.parametrize("web_store", ["sqlite", "postgres"], indirect=True)


class Slowly:
    """Says what it was asked, word by word, as slowly as a test wants."""

    def __init__(self, pace: float = 0.0, times: int = 1) -> None:
        self.pace = pace
        self.times = times
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield Notice("thinking")
        for word in (str(request.messages[-1]["content"]) + " ").split(" ")[:-1] * self.times:
            yield TextDelta(f"{word} ")
            await asyncio.sleep(self.pace)
            await self.go_on.wait()


def slow(agent: Slowly) -> ScriptedAgent:
    return ScriptedAgent(agent)


def answered(session: str, messages: int) -> Callable[[Page], bool]:
    return lambda page: len(page.messages(session)) == messages and page.settled()


def counted(session: str, messages: int) -> Callable[[Page], bool]:
    return lambda page: page.sessions.get(session, {}).get("message_count") == messages


# ---- what is told ------------------------------------------------------------------------------------------


@BOTH
async def test_a_page_is_told_of_the_message_the_growing_answer_and_its_end(start_web: StartWeb) -> None:
    agent = Slowly()
    agent.go_on.clear()
    web = await start_web(slow(agent))
    owner = await web.client()
    session = await web.session(owner)
    page = Page(owner, (session,))
    task = await listening(page, lambda page: page.settled("one two three "))
    await owner.post(f"/api/sessions/{session}/messages", json={"content": "one two three", "key": "k"})
    await until(lambda: page.drafts)
    assert list(page.drafts.values()) == ["one "]
    agent.go_on.set()
    await task
    assert page.messages(session) == [("user", "one two three"), ("assistant", "one two three ")]
    assert page.drafts == {}
    names = [told.name for told in page.told if told.data.get("session_id") == session]
    assert names.index("event") < names.index("draft") < len(names) - 1 - names[::-1].index("event")
    assert names[-1] == "turn", "the messages of a turn come before its end"
    notices = [told.data["text"] for told in page.told if told.name == "notice"]
    assert notices == ["thinking"]


async def test_lists_are_told_of_sessions_that_begin_run_and_change(web: Web) -> None:
    owner = await web.client()
    task = await listening(Page(owner), lambda page: any(each["title"] == "Named" for each in page.sessions.values()))
    session = await web.session(owner)
    await web.say(owner, session, "hello")
    await owner.patch(f"/api/sessions/{session}", json={"title": "Named"})
    page = await task
    assert page.sessions[session] == (await owner.get(f"/api/sessions/{session}")).json()
    assert {told.name for told in page.told if told.name} == {"session"}, "what is not followed is not told"


async def test_a_session_says_whether_it_is_busy(start_web: StartWeb) -> None:
    agent = Slowly()
    agent.go_on.clear()
    web = await start_web(slow(agent))
    owner = await web.client()
    session = await web.session(owner)
    page = Page(owner)
    task = await listening(page, lambda page: page.sessions.get(session, {}).get("running"))
    await owner.post(f"/api/sessions/{session}/messages", json={"content": "hello", "key": "k"})
    await task
    task = await listening(page, lambda page: not page.sessions[session]["running"])
    agent.go_on.set()
    assert (await task).sessions[session]["message_count"] == 2


async def test_what_is_read_in_one_tab_is_read_in_the_other(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    receipt = await web.say(owner, session, "hello")
    task = await listening(Page(owner), lambda page: page.sessions.get(session, {}).get("read_seq") == receipt["seq"])
    await owner.put(f"/api/sessions/{session}/read", json={"seq": receipt["seq"]})
    await task


async def test_whoever_has_renamed_themselves_speaks_under_the_new_name(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    page = Page(owner, (session,))
    task = await listening(page, answered(session, 4))
    await web.say(owner, session, "hello")
    await owner.patch("/api/me", json={"name": "Grace"})
    await web.say(owner, session, "it is me")
    await task
    asked = [event for event in page.events[session] if event["message"] and event["message"]["role"] == "user"]
    assert [event["person"]["name"] for event in asked] == ["owner", "Grace"]


@BOTH
async def test_a_session_that_is_deleted_is_gone_whoever_deletes_it(web: Web, web_store: str) -> None:
    owner = await web.client()
    session, other = await web.session(owner), await web.session(owner)
    await web.say(owner, session, "hello")
    await web.say(owner, other, "hello")
    page = Page(owner, (session,))
    task = await listening(page, lambda page: {session, other} <= set(page.gone))
    await until(lambda: page.last)  # it follows
    await owner.delete(f"/api/sessions/{session}")
    with SessionStore.open(web_store) as elsewhere:  # as the terminal does
        await asyncio.to_thread(elsewhere.delete_session, other)
    await task
    assert sorted(page.gone) == sorted([session, other]), "once each"


async def test_a_stream_that_is_silent_says_so(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    page = await Page(await web.client()).until(lambda page: sum(told.name == "comment" for told in page.told) == 3)
    assert {told.data["text"] for told in page.told if told.name == "comment"} == {"still here"}


@pytest.mark.parametrize(
    ("query", "cursor"),
    [
        ("follow=nothing", None),
        ("follow=20260101_000000_00000000:-1", None),
        ("follow=20260101_000000_00000000:" + "9" * 30, None),
        ("&".join(f"follow=20260101_000000_{n:08d}" for n in range(21)), None),
        ("", "made up"),
        ("", "20260101_000000_00000000:1+t_wrong"),
    ],
)
async def test_what_is_no_place_is_refused(web: Web, query: str, cursor: str | None) -> None:
    headers = {} if cursor is None else {"Last-Event-ID": cursor}
    answer = await (await web.client()).get(f"/api/live?{query}", headers=headers)
    assert answer.status_code == 422


async def test_a_place_with_as_many_turns_as_may_wait_is_taken(web: Web) -> None:
    owner = await web.client()
    session = await web.talk(owner, "hello")
    waiting = "".join(f"+t_{number:016x}" for number in range(1001))
    page = Page(owner, (session,), last=f"{session}:0{waiting}")
    assert (await page.until(answered(session, 2))).lists == 1


@pytest.mark.parametrize("trouble", [StoreBusy("the disk is slow"), RuntimeError("a mistake of ours")])
async def test_what_could_not_be_told_at_once_is_told_later(
    web: Web, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    owner = await web.client()
    session = await web.talk(owner, "hello")
    monkeypatch.setattr(service, "ANYWAY", 0.05)
    read, troubles = live_queries.changed, [trouble]

    def changed(tx: Transaction, numbers: Iterable[int], ids: Iterable[str] = ()) -> list[live_queries.Changed]:
        wanted = list(numbers)
        if wanted and troubles:
            raise troubles.pop()
        return read(tx, wanted, ids)

    monkeypatch.setattr(live_queries, "changed", changed)
    task = await listening(Page(owner), lambda page: page.sessions.get(session, {}).get("title") == "Named")
    await owner.patch(f"/api/sessions/{session}", json={"title": "Named"})
    await task
    assert not troubles


@pytest.mark.parametrize("web_store", ["postgres"], indirect=True)  # a file is looked at, nobody has to be listened to
async def test_a_page_fetches_its_lists_when_the_server_was_deaf_for_a_while(web: Web, web_store: str) -> None:
    task = await listening(Page(await web.client()), lambda page: page.lists)
    with psycopg.connect(web_store, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN palaver'")
    await task


# ---- cuts --------------------------------------------------------------------------------------------------


@BOTH
async def test_a_page_that_is_cut_again_and_again_misses_nothing_and_sees_nothing_twice(start_web: StartWeb) -> None:
    web = await start_web(slow(Slowly(0.002)), rules={"per_person": 8})
    owner = await web.client()
    one, two = await web.session(owner), await web.session(owner)
    chance = random.Random(20261115)
    stayed, cut = Page(owner, (f"{one}:0", f"{two}:0")), Page(owner, (f"{one}:0", f"{two}:0"))

    def over(page: Page) -> bool:
        return page.settled("the sixth message ") and len(page.messages(one)) == len(page.messages(two)) == 12

    staying = await listening(stayed, over)

    async def speak(session: str) -> None:
        for number in ("first", "second", "third", "fourth", "fifth", "sixth"):
            await web.say(owner, session, f"the {number} message")

    speaking = asyncio.gather(speak(one), speak(two))
    cuts = 0
    while not over(cut):
        await cut.until(over, most=chance.randint(1, 12))
        cuts += 1
    await speaking
    assert over(await staying)
    assert cuts > 5
    for session in (one, two):
        assert cut.events[session] == stayed.events[session]
    assert cut.turns.items() <= stayed.turns.items(), "what began and ended meanwhile is known by its messages"
    assert cut.lists == cuts - 1
    assert cut.drafts == stayed.drafts == {}


async def test_a_turn_that_ended_while_nobody_looked_is_told_after_its_messages(start_web: StartWeb) -> None:
    agent = Slowly()
    agent.go_on.clear()
    web = await start_web(slow(agent))
    owner = await web.client()
    session = await web.session(owner)
    page = Page(owner, (session,))
    task = await listening(page, lambda page: page.drafts)
    sent = await owner.post(f"/api/sessions/{session}/messages", json={"content": "hello there", "key": "k"})
    await task
    turn = sent.json()["turn_id"]
    assert page.turns == {turn: "running"}

    agent.go_on.set()
    await until(lambda: web.gateway.turns.running == 0)
    seen = len(page.told)
    await page.until(lambda page: page.turns[turn] == "done")
    names = [told.name for told in page.told[seen:] if told.name in {"event", "turn"}]
    assert names == ["event", "turn"]
    assert page.messages(session)[-1] == ("assistant", "hello there ")


async def test_a_page_that_comes_in_the_middle_of_an_answer_is_given_all_of_it_so_far(start_web: StartWeb) -> None:
    agent = Slowly()
    agent.go_on.clear()
    web = await start_web(slow(agent))
    owner = await web.client()
    session = await web.session(owner)
    early, late = Page(owner, (session,)), Page(owner, (f"{session}:0",))
    task = await listening(early, lambda page: page.drafts)
    await owner.post(f"/api/sessions/{session}/messages", json={"content": "hello there", "key": "k"})
    await task
    await late.until(lambda page: page.drafts)
    assert late.drafts == early.drafts
    assert [told.data["afresh"] for told in late.told if told.name == "draft"] == [True]
    agent.go_on.set()


async def test_a_page_sees_the_answer_that_runs_though_a_later_message_was_dropped(start_web: StartWeb) -> None:
    agent = Slowly()
    agent.go_on.clear()
    web = await start_web(slow(agent))
    owner = await web.client()
    session = await web.session(owner)
    for number in range(2):
        body = {"content": f"message {number}", "key": f"key-{number}"}
        await owner.post(f"/api/sessions/{session}/messages", json=body)
    await until(lambda: web.gateway.turns.running == 1)
    clear = {"text": "/queue clear", "key": "clear", "session_id": session}
    assert (await owner.post("/api/commands", json=clear)).json()["facts"] == {"dropped": 1}
    page = await Page(owner, (session,)).until(lambda page: page.drafts)
    assert list(page.drafts.values()) == ["message "]
    assert page.events == {}, "nothing that it has"
    agent.go_on.set()


async def test_a_long_history_comes_whole_and_in_order(web: Web) -> None:
    owner = await web.client()
    session = await web.session(owner)
    await web.gateway.store.aio.append_to_transcript(session, [f"message {n}" for n in range(3000)])
    last = (await owner.get(f"/api/sessions/{session}")).json()["last_seq"]
    page = await Page(owner, (f"{session}:0",)).until(lambda page: f"{session}:{last}" == page.last)
    assert [content for _, content in page.messages(session)] == [f"message {n}" for n in range(3000)]


class Served:
    """`palaver serve` as a process of its own, always at the same port."""

    def __init__(self, home: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._env = {"PATH": os.environ["PATH"], "PALAVER_HOME": str(home), "PALAVER_MODEL": "demo"}
        self._process: subprocess.Popen[str] | None = None

    async def start(self) -> str | None:
        """Start it; the secret of the sign-in link it shows, if it does."""
        arguments = [sys.executable, "-m", "palaver", "serve", "--no-open", "--port", str(self.port)]
        self._process = await asyncio.to_thread(
            subprocess.Popen, arguments, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        output = self._process.stdout
        assert output is not None
        link = None
        while not link:
            said = await asyncio.to_thread(output.readline)
            assert said, "the server has ended"
            link = re.search(r"/sign-in#(\S+)", said)
        return link[1]

    async def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    server = Served(tmp_path)
    try:
        yield server
    finally:
        with contextlib.suppress(AssertionError):
            await server.kill()


@pytest.mark.slow
async def test_a_page_comes_back_after_the_server_was_killed_in_the_middle_of_an_answer(served: Served) -> None:
    secret = await served.start()
    async with (
        httpx2.AsyncClient(base_url=served.url, headers={"Origin": served.url}, timeout=PATIENCE) as owner,
        asyncio.timeout(120),
    ):
        assert (await owner.post("/api/sign-in/link", json={"token": secret})).is_success
        session = (await owner.post("/api/sessions", json={})).json()["id"]
        staying, leaving = Page(owner, (f"{session}:0",)), Page(owner, (f"{session}:0",))

        always = asyncio.create_task(staying.until_whatever_happens(answered(session, 4)))
        for number in range(2):
            growing = asyncio.create_task(leaving.until_whatever_happens(lambda page: page.drafts))
            body = {"content": "show me markdown", "key": f"key-{number}"}
            assert (await owner.post(f"/api/sessions/{session}/messages", json=body)).status_code == 202
            await growing  # and hangs up
            await served.kill()
            await served.start()
            await leaving.until_whatever_happens(answered(session, 2 * (number + 1)))
        await always
        log = (await owner.get(f"/api/sessions/{session}/events?limit=100")).json()["events"]

    assert leaving.events[session] == staying.events[session] == log
    assert [role for role, _ in leaving.messages(session)] == ["user", "assistant"] * 2
    assert leaving.drafts == staying.drafts == {}
    assert leaving.turns == staying.turns
    assert set(leaving.turns.values()) == {"done"}


# ---- who is told -------------------------------------------------------------------------------------------


@BOTH
async def test_nothing_of_somebody_else_is_in_a_stream(web: Web) -> None:
    owner, ada, ben = await web.client(), await web.client("Ada"), await web.client("Ben")
    hers, his = await web.session(ada, title="Hers"), await web.session(ben, title="His")
    await web.say(ada, hers, "the first secret")
    pages = [Page(ben, (f"{hers}:0", f"{his}:0")), Page(owner, (f"{hers}:0",))]
    last = {ben: his, owner: await web.session(owner)}
    tasks = [await listening(page, counted(last[page.client], 2)) for page in pages]
    await web.say(ada, hers, "the second secret")
    await ada.patch(f"/api/sessions/{hers}", json={"title": "A secret too", "pinned": True})
    for client, session in last.items():
        await web.say(client, session, "my own")
    for page, task in zip(pages, tasks, strict=True):
        await task
        assert page.gone == [hers], "as if it had never been there"
        assert hers not in page.sessions
        assert hers not in page.events
        assert not any("secret" in str(told.data) for told in page.told)
        missing = await Page(page.client, ("20200101_000000_00000000:0",)).until(lambda page: page.gone)
        assert [told.data.keys() for told in missing.told if told.name == "gone"] == [{"id"}]


async def test_an_owner_who_asks_for_everything_is_told_of_everything(web: Web) -> None:
    owner, ada = await web.client(), await web.client("Ada")
    session = await web.session(ada)
    page = Page(owner, (f"{session}:0",), everything=True)
    task = await listening(page, lambda page: page.settled("Done.") and session in page.sessions)
    await web.say(ada, session, "hello")
    await task
    assert page.sessions[session]["owner"] == "Ada"
    assert (await ada.get("/api/live?all=true")).status_code == 403
    assert (await (await web.stranger()).get("/api/live")).status_code == 401


async def test_whoever_is_signed_out_hears_nothing_more(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    ada = await web.client("Ada")
    task = await listening(Page(ada), lambda _page: False)
    await ada.post("/api/sign-out")
    with pytest.raises(AssertionError, match="the stream ended"):
        await task
    await until(lambda: web.state.live.clients == 0)


# ---- many, and slow ----------------------------------------------------------------------------------------


async def test_fifty_pages_on_one_busy_conversation_see_the_same(start_web: StartWeb) -> None:
    web = await start_web(slow(Slowly(0.001, times=20)))
    owner = await web.client()
    limits = httpx2.Limits(max_connections=None)
    many = await web.stack.enter_async_context(
        httpx2.AsyncClient(base_url=web.url, cookies=owner.cookies, limits=limits, timeout=PATIENCE)
    )
    session = await web.session(owner)
    text = "one two three four five"
    pages = [Page(many, (f"{session}:0",)) for _ in range(50)]
    tasks = [await listening(page, lambda page: page.settled(f"{text} " * 20)) for page in pages]
    assert web.state.live.clients == 50
    await web.say(owner, session, text)
    await asyncio.gather(*tasks)
    assert all(page.events == pages[0].events for page in pages)
    assert all(set(page.turns.values()) == {"done"} for page in pages)
    await until(lambda: web.state.live.clients == 0)


async def test_a_page_that_takes_nothing_is_cut_and_holds_nobody_up(
    start_web: StartWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "STALLED", 2.0)
    web = await start_web(ScriptedAgent(lambda _request: [TextDelta("x" * 10_000)] * 600))
    owner = await web.client()
    session = await web.session(owner)
    host, port = web.url.removeprefix("http://").split(":")
    cookies = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    request = f"GET /api/live?follow={session}:0 HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookies}\r\n\r\n"
    with socket.socket() as asleep:
        asleep.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.to_thread(asleep.connect, (host, int(port)))
        asleep.sendall(request.encode())
        await until(lambda: web.state.live.clients == 1)
        awake = await listening(Page(owner, (f"{session}:0",)), lambda page: page.settled("x" * 6_000_000))
        await web.say(owner, session, "go on")
        await awake
        await until(lambda: web.state.live.clients == 0)


async def test_a_slow_page_that_missed_much_in_many_conversations_is_given_all_of_it(web: Web) -> None:
    store, owner = web.gateway.store, web.gateway.store.owner()
    places = []
    for number in range(12):
        source = SessionSource("web", f"tab {number}", user_id=owner.id)
        session_id = store.get_or_create_session(source).session_id
        store.append_to_transcript(session_id, [f"line {line}" for line in range(190)])
        places.append(service.Place(session_id, 0))
    principal = Principal(owner.id, Role.OWNER)
    async with web.state.live.client(principal, places, everything=True) as client:
        await asyncio.sleep(0.5)  # in which it takes nothing, and could be cut for that
        placed = 0
        async for item in client.items():
            placed += isinstance(item, Placed)
            if placed == len(places):
                break
    assert placed == len(places)


async def test_a_stop_of_the_server_ends_every_stream(web: Web) -> None:
    task = await listening(Page(await web.client()), lambda _page: False)
    await web.state.live.stop()
    with pytest.raises(AssertionError, match="the stream ended"):
        await task

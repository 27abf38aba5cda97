"""The live stream: everything exactly once and in order, also after reconnects, and only to people with access."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from typing import TYPE_CHECKING

import httpx2
import psycopg
import pytest

from palaver import Principal, Role, SessionSource, SessionStore
from palaver.agent.base import Notice, TextDelta
from palaver.core import background as poll_loop
from palaver.core.errors import StoreBusy
from palaver.live import channels, clients as live_clients, follower as live_queries
from palaver.live.channels import FollowCursor
from palaver.testing import ScriptedAgent
from palaver.web.http_protocol import Timeouts
from palaver.web.routes import live as sse
from support.gateway import TIMEOUT_SECONDS, wait_until
from support.process import find_free_port, run_server
from support.sse import LivePage, start_listening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
    from pathlib import Path

    from palaver.agent.base import AgentEvent, AgentRequest
    from palaver.core.engines.base import Transaction
    from support.warm_process import WarmLauncher
    from support.web import StartWebServer, WebServer


class WordByWord:
    """Repeats the question word by word; a test can slow it down or pause it."""

    def __init__(self, delay: float = 0.0, times: int = 1) -> None:
        self.delay = delay
        self.times = times
        self.can_continue = asyncio.Event()
        self.can_continue.set()

    async def __call__(self, request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        yield Notice("thinking")
        for word in (str(request.messages[-1]["content"]) + " ").split(" ")[:-1] * self.times:
            yield TextDelta(f"{word} ")
            await asyncio.sleep(self.delay)
            await self.can_continue.wait()


def make_agent(agent: WordByWord) -> ScriptedAgent:
    return ScriptedAgent(agent)


def has_answers(session: str, messages: int) -> Callable[[LivePage], bool]:
    return lambda page: len(page.list_messages(session)) == messages and page.is_settled()


def has_message_count(session: str, messages: int) -> Callable[[LivePage], bool]:
    return lambda page: page.sessions.get(session, {}).get("message_count") == messages


# ---- content --------------------------------------------------------------------------------------------


async def test_a_page_receives_the_message_the_growing_answer_and_its_end(start_web: StartWebServer) -> None:
    agent = WordByWord()
    agent.can_continue.clear()
    web = await start_web(make_agent(agent))
    owner = await web.sign_in()
    session = await web.create_session(owner)
    page = LivePage(owner, (session,))
    task = await start_listening(page, lambda page: page.is_settled("one two three "))
    await owner.post(f"/api/sessions/{session}/messages", json={"content": "one two three", "key": "k"})
    await wait_until(lambda: page.drafts)
    assert list(page.drafts.values()) == ["one "]
    agent.can_continue.set()
    await task
    assert page.list_messages(session) == [("user", "one two three"), ("assistant", "one two three ")]
    assert page.drafts == {}
    names = [event.name for event in page.received if event.data.get("session_id") == session]
    assert names.index("event") < names.index("draft") < len(names) - 1 - names[::-1].index("event")
    assert names[-1] == "turn", "a turn's messages arrive before its end"
    notices = [event.data["text"] for event in page.received if event.name == "notice"]
    assert notices == ["thinking"]


async def test_a_page_receives_new_and_changed_sessions(web: WebServer) -> None:
    owner = await web.sign_in()
    task = await start_listening(
        LivePage(owner), lambda page: any(each["title"] == "Named" for each in page.sessions.values())
    )
    session = await web.create_session(owner)
    await web.send_message(owner, session, "hello")
    await owner.patch(f"/api/sessions/{session}", json={"title": "Named"})
    page = await task
    assert page.sessions[session] == (await owner.get(f"/api/sessions/{session}")).json()
    assert {event.name for event in page.received if event.name} == {"session"}, (
        "only followed conversations send other events"
    )


async def test_a_session_update_says_whether_it_is_running(start_web: StartWebServer) -> None:
    agent = WordByWord()
    agent.can_continue.clear()
    web = await start_web(make_agent(agent))
    owner = await web.sign_in()
    session = await web.create_session(owner)
    page = LivePage(owner)
    task = await start_listening(page, lambda page: page.sessions.get(session, {}).get("running"))
    await owner.post(f"/api/sessions/{session}/messages", json={"content": "hello", "key": "k"})
    await task
    task = await start_listening(page, lambda page: not page.sessions[session]["running"])
    agent.can_continue.set()
    assert (await task).sessions[session]["message_count"] == 2


async def test_marking_as_read_reaches_other_tabs(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    receipt = await web.send_message(owner, session, "hello")
    task = await start_listening(
        LivePage(owner), lambda page: page.sessions.get(session, {}).get("read_seq") == receipt["seq"]
    )
    await owner.put(f"/api/sessions/{session}/read", json={"seq": receipt["seq"]})
    await task


async def test_messages_after_a_rename_have_the_new_name(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    page = LivePage(owner, (session,))
    task = await start_listening(page, has_answers(session, 4))
    await web.send_message(owner, session, "hello")
    await owner.patch("/api/me", json={"name": "Grace"})
    await web.send_message(owner, session, "it is me")
    await task
    questions = [event for event in page.events[session] if event["message"] and event["message"]["role"] == "user"]
    assert [event["person"]["name"] for event in questions] == ["owner", "Grace"]


async def test_a_page_receives_each_deletion_once(web: WebServer, store_url: str) -> None:
    owner = await web.sign_in()
    session, other = await web.create_session(owner), await web.create_session(owner)
    await web.send_message(owner, session, "hello")
    await web.send_message(owner, other, "hello")
    page = LivePage(owner, (session,))
    task = await start_listening(page, lambda page: {session, other} <= set(page.removed_ids))
    await wait_until(lambda: page.last_event_id)  # it follows the session
    await owner.delete(f"/api/sessions/{session}")
    with SessionStore.open(store_url) as other_store:  # another process, like the terminal
        await asyncio.to_thread(other_store.delete_session, other)
    await task
    assert sorted(page.removed_ids) == sorted([session, other]), "each once"


async def test_an_idle_stream_sends_heartbeats(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.05)
    page = await LivePage(await web.sign_in()).read_until(
        lambda page: sum(event.name == "comment" for event in page.received) == 3
    )
    assert {event.data["text"] for event in page.received if event.name == "comment"} == {"heartbeat"}


@pytest.mark.parametrize(
    ("query", "cursor"),
    [
        ("follow=nothing", None),
        ("follow=20260101_000000_00000000:-1", None),
        ("follow=20260101_000000_00000000:" + "9" * 30, None),
        ("&".join(f"follow=20260101_000000_{n:08d}" for n in range(21)), None),
        ("", "invented"),
        ("", "20260101_000000_00000000:1+t_wrong"),
    ],
)
async def test_invalid_follows_and_cursors_are_rejected(web: WebServer, query: str, cursor: str | None) -> None:
    headers = {} if cursor is None else {"Last-Event-ID": cursor}
    response = await (await web.sign_in()).get(f"/api/live?{query}", headers=headers)
    assert response.status_code == 422


async def test_a_cursor_with_the_maximum_of_open_turns_is_accepted(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")
    waiting = "".join(f"+t_{number:016x}" for number in range(1001))
    page = LivePage(owner, (session,), last_event_id=f"{session}:0{waiting}")
    assert (await page.read_until(has_answers(session, 2))).lists_event_count == 1


def test_a_cursor_names_no_more_open_turns_than_are_accepted() -> None:
    session = "20260101_000000_00000000"
    turns = tuple(f"t_{number:016x}" for number in range(1500))
    cursor = str(sse._Cursor([live_clients.FollowRequest(session, 7, turns)]))
    [follow] = sse._parse_follows([session], cursor)
    assert (follow.after, follow.open_turn_ids) == (7, turns[:1001])


async def test_an_empty_cursor_asks_to_load_the_lists_again(web: WebServer) -> None:
    page = LivePage(await web.sign_in(), (), last_event_id="")
    await page.read_until(lambda page: page.lists_event_count == 1)


@pytest.mark.parametrize("error", [StoreBusy("the disk is slow"), RuntimeError("a bug")])
async def test_an_update_that_failed_is_sent_later(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(poll_loop, "RETRY_SECONDS", 0.05)
    owner = await web.sign_in()
    session = await web.create_conversation(owner, "hello")
    load, errors = live_queries.load_changed_sessions, [error]

    def load_or_fail(
        tx: Transaction, numbers: Iterable[int], ids: Iterable[str] = ()
    ) -> list[live_queries.ChangedSession]:
        session_numbers = list(numbers)
        if session_numbers and errors:
            raise errors.pop()
        return load(tx, session_numbers, ids)

    monkeypatch.setattr(live_queries, "load_changed_sessions", load_or_fail)
    task = await start_listening(LivePage(owner), lambda page: page.sessions.get(session, {}).get("title") == "Named")
    await owner.patch(f"/api/sessions/{session}", json={"title": "Named"})
    await task
    assert not errors


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)  # SQLite is polled and has no connection to lose
async def test_a_page_reloads_lists_after_the_server_lost_its_database_connection(
    web: WebServer, store_url: str
) -> None:
    task = await start_listening(LivePage(await web.sign_in()), lambda page: page.lists_event_count)
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE '%pg_current_snapshot%' AND pid <> pg_backend_pid()"
        )
    await task


# ---- reconnects -----------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_a_page_that_reconnects_often_receives_everything_exactly_once(start_web: StartWebServer) -> None:
    web = await start_web(make_agent(WordByWord(0.002)), rules={"max_running_per_person": 8})
    owner = await web.sign_in()
    one, two = await web.create_session(owner), await web.create_session(owner)
    rng = random.Random(20261115)
    connected, reconnecting = LivePage(owner, (f"{one}:0", f"{two}:0")), LivePage(owner, (f"{one}:0", f"{two}:0"))

    def is_done(page: LivePage) -> bool:
        return (
            page.is_settled("the sixth message ") and len(page.list_messages(one)) == len(page.list_messages(two)) == 12
        )

    listening = await start_listening(connected, is_done)

    async def send_messages(session: str) -> None:
        for number in ("first", "second", "third", "fourth", "fifth", "sixth"):
            await web.send_message(owner, session, f"the {number} message")

    sending = asyncio.gather(send_messages(one), send_messages(two))
    connection_count = 0
    while not is_done(reconnecting):
        await reconnecting.read_until(is_done, max_events=rng.randint(1, 12))
        connection_count += 1
    await sending
    assert is_done(await listening)
    assert connection_count > 5
    for session in (one, two):
        assert reconnecting.events[session] == connected.events[session]
    # A turn that started and ended between two looks at the database is known by its messages alone.
    assert {*reconnecting.turns.values(), *connected.turns.values()} == {"done"}
    assert reconnecting.lists_event_count == connection_count - 1
    assert reconnecting.drafts == connected.drafts == {}


async def test_a_turn_that_ended_while_disconnected_arrives_after_its_messages(start_web: StartWebServer) -> None:
    agent = WordByWord()
    agent.can_continue.clear()
    web = await start_web(make_agent(agent))
    owner = await web.sign_in()
    session = await web.create_session(owner)
    page = LivePage(owner, (session,))
    task = await start_listening(page, lambda page: page.drafts)
    response = await owner.post(f"/api/sessions/{session}/messages", json={"content": "hello there", "key": "k"})
    await task
    turn = response.json()["turn_id"]
    assert page.turns == {turn: "running"}

    agent.can_continue.set()
    await wait_until(lambda: web.gateway.turn_worker.running_count == 0)
    count = len(page.received)
    await page.read_until(lambda page: page.turns[turn] == "done")
    names = [event.name for event in page.received[count:] if event.name in {"event", "turn"}]
    assert names == ["event", "turn"]
    assert page.list_messages(session)[-1] == ("assistant", "hello there ")


async def test_a_page_that_connects_during_an_answer_receives_the_whole_draft(start_web: StartWebServer) -> None:
    agent = WordByWord()
    agent.can_continue.clear()
    web = await start_web(make_agent(agent))
    owner = await web.sign_in()
    session = await web.create_session(owner)
    early, late = LivePage(owner, (session,)), LivePage(owner, (f"{session}:0",))
    task = await start_listening(early, lambda page: page.drafts)
    await owner.post(f"/api/sessions/{session}/messages", json={"content": "hello there", "key": "k"})
    await task
    await late.read_until(lambda page: page.drafts)
    assert late.drafts == early.drafts
    assert [event.data["replaces_draft"] for event in late.received if event.name == "draft"] == [True]
    agent.can_continue.set()


async def test_a_page_receives_the_running_draft_after_a_queued_message_was_dropped(start_web: StartWebServer) -> None:
    agent = WordByWord()
    agent.can_continue.clear()
    web = await start_web(make_agent(agent))
    owner = await web.sign_in()
    session = await web.create_session(owner)
    for number in range(2):
        body = {"content": f"message {number}", "key": f"key-{number}"}
        await owner.post(f"/api/sessions/{session}/messages", json=body)
    await wait_until(lambda: web.gateway.turn_worker.running_count == 1)
    clear = {"text": "/queue clear", "key": "clear", "session_id": session}
    assert (await owner.post("/api/commands", json=clear)).json()["facts"] == {"cleared": 1}
    page = await LivePage(owner, (session,)).read_until(lambda page: page.drafts)
    assert list(page.drafts.values()) == ["message "]
    assert page.events == {}, "no events that it already has"
    agent.can_continue.set()


async def test_a_long_history_arrives_completely_and_in_order(web: WebServer) -> None:
    owner = await web.sign_in()
    session = await web.create_session(owner)
    await web.gateway.store.aio.append_to_transcript(session, [f"message {n}" for n in range(3000)])
    last = (await owner.get(f"/api/sessions/{session}")).json()["last_seq"]
    page = await LivePage(owner, (f"{session}:0",)).read_until(lambda page: f"{session}:{last}" == page.last_event_id)
    assert [content for _, content in page.list_messages(session)] == [f"message {n}" for n in range(3000)]


class ServerProcess:
    """`palaver serve` in its own process, always on the same port."""

    def __init__(self, launcher: WarmLauncher, home: Path) -> None:
        self._launcher = launcher
        self._home = home
        self._port = find_free_port()
        self._running = contextlib.AsyncExitStack()
        self.url = f"http://127.0.0.1:{self._port}"

    async def start(self) -> str:
        """Start the server, and return the secret of the sign-in link it prints."""
        server = run_server(self._launcher, self._home, self._port)
        return (await self._running.enter_async_context(server)).partition("#")[2]

    async def kill(self) -> None:
        await self._running.aclose()


@pytest.fixture
async def server_process(launcher: WarmLauncher, tmp_path: Path) -> AsyncIterator[ServerProcess]:
    server = ServerProcess(launcher, tmp_path)
    yield server
    await server.kill()


@pytest.mark.slow
async def test_a_page_catches_up_after_the_server_was_killed_during_an_answer(server_process: ServerProcess) -> None:
    secret = await server_process.start()
    async with (
        httpx2.AsyncClient(
            base_url=server_process.url, headers={"Origin": server_process.url}, timeout=TIMEOUT_SECONDS
        ) as owner,
        asyncio.timeout(120),
    ):
        assert (await owner.post("/api/sign-in/link", json={"token": secret})).is_success
        session = (await owner.post("/api/sessions", json={})).json()["id"]
        stable, reconnecting = LivePage(owner, (f"{session}:0",)), LivePage(owner, (f"{session}:0",))

        stable_task = asyncio.create_task(stable.read_until_with_reconnects(has_answers(session, 4)))
        for number in range(2):
            draft_task = asyncio.create_task(reconnecting.read_until_with_reconnects(lambda page: page.drafts))
            body = {"content": "show me markdown", "key": f"key-{number}"}
            assert (await owner.post(f"/api/sessions/{session}/messages", json=body)).status_code == 202
            await draft_task  # then disconnects
            await server_process.kill()
            await server_process.start()
            await reconnecting.read_until_with_reconnects(has_answers(session, 2 * (number + 1)))
        await stable_task
        log = (await owner.get(f"/api/sessions/{session}/events?limit=100")).json()["events"]

    assert reconnecting.events[session] == stable.events[session] == log
    assert [role for role, _ in reconnecting.list_messages(session)] == ["user", "assistant"] * 2
    assert reconnecting.drafts == stable.drafts == {}
    assert {*reconnecting.turns.values(), *stable.turns.values()} == {"done"}


# ---- access ---------------------------------------------------------------------------------------------


async def test_a_stream_contains_nothing_of_other_people(web: WebServer) -> None:
    owner, ada, ben = await web.sign_in(), await web.sign_in("Ada"), await web.sign_in("Ben")
    ada_session, ben_session = await web.create_session(ada, title="Hers"), await web.create_session(ben, title="His")
    await web.send_message(ada, ada_session, "the first secret")
    pages = [LivePage(ben, (f"{ada_session}:0", f"{ben_session}:0")), LivePage(owner, (f"{ada_session}:0",))]
    last = {ben: ben_session, owner: await web.create_session(owner)}
    tasks = [await start_listening(page, has_message_count(last[page.client], 2)) for page in pages]
    await web.send_message(ada, ada_session, "the second secret")
    await ada.patch(f"/api/sessions/{ada_session}", json={"title": "A secret too", "pinned": True})
    for client, session in last.items():
        await web.send_message(client, session, "my own")
    for page, task in zip(pages, tasks, strict=True):
        await task
        assert page.removed_ids == [ada_session], "like a session that does not exist"
        assert ada_session not in page.sessions
        assert ada_session not in page.events
        assert not any("secret" in str(event.data) for event in page.received)
        missing = await LivePage(page.client, ("20200101_000000_00000000:0",)).read_until(lambda page: page.removed_ids)
        assert [event.data.keys() for event in missing.received if event.name == "session_removed"] == [{"id"}]


async def test_an_owner_can_stream_everyones_conversations(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("Ada")
    session = await web.create_session(ada)
    page = LivePage(owner, (f"{session}:0",), include_all=True)
    task = await start_listening(page, lambda page: page.is_settled("Done.") and session in page.sessions)
    await web.send_message(ada, session, "hello")
    await task
    assert page.sessions[session]["owner_name"] == "Ada"
    assert (await ada.get("/api/live?all=true")).status_code == 403
    assert (await (await web.open_anonymous_client()).get("/api/live")).status_code == 401


async def test_two_people_who_follow_a_conversation_share_its_events_and_nothing_of_their_own(web: WebServer) -> None:
    owner, ada = await web.sign_in(), await web.sign_in("Ada")
    session, private = await web.create_session(ada), await web.create_session(owner)
    pages = [
        LivePage(owner, (f"{private}:0", f"{session}:0"), include_all=True),
        LivePage(ada, (f"{session}:0",)),
    ]
    tasks = [
        await start_listening(
            page, lambda page: page.is_settled("Done.") and page.sessions.get(session, {}).get("preview")
        )
        for page in pages
    ]
    await web.send_message(ada, session, "hello")
    of_owner, of_ada = await asyncio.gather(*tasks)
    assert of_owner.events[session] == of_ada.events[session]
    assert (of_owner.sessions[session]["owner_name"], of_ada.sessions[session]["owner_name"]) == ("Ada", None)
    assert private in (of_owner.last_event_id or "")
    assert not any(private in (event.id or "") for event in of_ada.received), "a cursor names only what is followed"


async def test_signing_out_ends_the_stream(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.05)
    ada = await web.sign_in("Ada")
    task = await start_listening(LivePage(ada), lambda _page: False)
    await ada.post("/api/sign-out")
    with pytest.raises(AssertionError, match="the stream ended"):
        await task
    await wait_until(lambda: web.state.live.client_count == 0)


# ---- many and slow clients ------------------------------------------------------------------------------


async def test_fifty_pages_on_one_busy_conversation_receive_the_same(start_web: StartWebServer) -> None:
    web = await start_web(make_agent(WordByWord(0.001, times=20)))
    owner = await web.sign_in()
    limits = httpx2.Limits(max_connections=None)
    many = await web.exit_stack.enter_async_context(
        httpx2.AsyncClient(base_url=web.url, cookies=owner.cookies, limits=limits, timeout=TIMEOUT_SECONDS)
    )
    session = await web.create_session(owner)
    text = "one two three four five"
    pages = [LivePage(many, (f"{session}:0",)) for _ in range(50)]
    tasks = [await start_listening(page, lambda page: page.is_settled(f"{text} " * 20)) for page in pages]
    assert web.state.live.client_count == 50
    await web.send_message(owner, session, text)
    await asyncio.gather(*tasks)
    assert all(page.events == pages[0].events for page in pages)
    assert all(set(page.turns.values()) == {"done"} for page in pages)
    await wait_until(lambda: web.state.live.client_count == 0)


async def test_a_message_does_not_wait_for_the_pause_between_two_pieces_of_a_draft(
    start_web: StartWebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "DRAFT_PAUSE_PER_CLIENT_SECONDS", 2 * TIMEOUT_SECONDS)
    monkeypatch.setattr(channels, "MAX_DRAFT_PAUSE_SECONDS", 2 * TIMEOUT_SECONDS)
    may_end = asyncio.Event()

    async def answer(_request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        while not may_end.is_set():
            yield TextDelta("and so on ")
            await asyncio.sleep(0.01)

    web = await start_web(ScriptedAgent(answer))
    owner = await web.sign_in()
    session = await web.create_session(owner)
    page = LivePage(owner, (f"{session}:0",))
    task = await start_listening(page, lambda page: "done" in page.turns.values())
    for text in ("go on", "meanwhile"):
        response = await owner.post(
            f"/api/sessions/{session}/messages", json={"content": text, "key": text.replace(" ", "-")}
        )
        assert response.status_code == 202
        await wait_until(lambda: page.drafts)
    await wait_until(lambda: ("user", "meanwhile") in page.list_messages(session))
    may_end.set()
    await task


async def test_a_client_that_stops_reading_is_disconnected_and_blocks_no_one(start_web: StartWebServer) -> None:
    agent = ScriptedAgent(lambda _request: [TextDelta("x" * 10_000)] * 600)
    web = await start_web(agent, timeouts=Timeouts(send_seconds=2.0))
    owner = await web.sign_in()
    session = await web.create_session(owner)
    host, port = web.url.removeprefix("http://").split(":")
    cookies = "; ".join(f"{name}={value}" for name, value in owner.cookies.items())
    request = f"GET /api/live?follow={session}:0 HTTP/1.1\r\nHost: {host}:{port}\r\nCookie: {cookies}\r\n\r\n"
    with socket.socket() as socket_without_reads:
        socket_without_reads.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.to_thread(socket_without_reads.connect, (host, int(port)))
        socket_without_reads.sendall(request.encode())
        await wait_until(lambda: web.state.live.client_count == 1)
        reading = await start_listening(
            LivePage(owner, (f"{session}:0",)), lambda page: page.is_settled("x" * 6_000_000)
        )
        await web.send_message(owner, session, "go on")
        await reading
        await wait_until(lambda: web.state.live.client_count == 0)


async def test_a_slow_client_receives_everything_it_missed_in_many_conversations(web: WebServer) -> None:
    store, owner = web.gateway.store, web.gateway.store.get_owner()
    follows = []
    for number in range(12):
        source = SessionSource("web", f"tab {number}", user_id=owner.id)
        session_id = store.get_or_create_session(source).session_id
        store.append_to_transcript(session_id, [f"line {line}" for line in range(190)])
        follows.append(live_clients.FollowRequest(session_id, 0))
    principal = Principal(owner.id, Role.OWNER)
    async with web.state.live.connect(principal, follows, everything=True) as client:
        await asyncio.sleep(0.5)  # it reads nothing meanwhile, which must not disconnect it
        cursor_count = 0
        while cursor_count < len(follows) and (items := await client.take_items()):
            cursor_count += sum(isinstance(item, FollowCursor) for item in items)
    assert cursor_count == len(follows)


async def test_stopping_the_server_ends_every_stream(web: WebServer) -> None:
    task = await start_listening(LivePage(await web.sign_in()), lambda _page: False)
    await web.state.live.stop()
    with pytest.raises(AssertionError, match="the stream ended"):
        await task

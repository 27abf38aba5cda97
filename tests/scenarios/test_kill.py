"""`kill -9` at any moment: what was acknowledged is there, once and in order, and everything still adds up."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from palaver import SessionSource, SessionStore
from palaver.domain.errors import StoreUnavailable

sys.path.insert(0, str(Path(__file__).parent))

from harness import Worker, disorder, rows, wait_for_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("PALAVER_KILL_SEED", "20261115"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as started:
        yield started


@dataclass
class Ledger:
    """What the writers were told has happened, and what was under way when they died."""

    said: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))  # session → seq → text
    turns: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))  # session → turn → tokens
    hidden: set[str] = field(default_factory=set)
    lanes: dict[str, str] = field(default_factory=dict)  # key → session
    titles: dict[str, str] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)  # texts, turns, lanes and titles that may be there or not
    maybe_hidden: set[str] = field(default_factory=set)

    def read(self, notes: Path) -> set[str]:
        """Take in the notes of one round; the sessions it touched."""
        keys: dict[str, str] = {}
        under_way: dict[str, dict[str, Any]] = {}
        touched = set()
        for line in notes.read_text().splitlines() if notes.exists() else []:
            note = json.loads(line)
            talker = note["talker"]
            if note["what"] == "began":
                keys[talker] = note["key"]
                self.lanes[note["key"]] = note["session"]
                self.doubtful.discard(note["key"])
                touched |= {note["session"], note["common"]}
            elif note["what"] == "will":
                under_way[talker] = note
            else:
                touched |= self._did(under_way.pop(talker), note, keys[talker])
        for talker, will in under_way.items():
            self._died(will, keys[talker])
            touched.add(will["session"])
        return touched

    def _did(self, will: dict[str, Any], did: dict[str, Any], key: str) -> set[str]:
        session = will["session"]
        if "texts" in will:
            assert did.get("in", session) == session
            first = did["seq"] - len(will["texts"]) + 1
            numbers = range(first, did["seq"] + 1)
            assert not self.said[session].keys() & set(numbers), "one number was given twice"
            self.said[session].update(zip(numbers, will["texts"], strict=True))
        if "turn" in will:
            self.turns[session][will["turn"]] = will["tokens"]
        if will["kind"] == "undo":
            assert did["prompt"] == will["prompt"]
            self.hidden |= self._from(session, will["prompt"])
        if will["kind"] == "reset":
            self.lanes[key] = did["in"]
        if will["kind"] == "rename":
            self.titles[session] = will["title"]
        return {session, self.lanes[key]}

    def _died(self, will: dict[str, Any], key: str) -> None:
        self.doubtful.update(will.get("texts", []))
        self.doubtful.update([will["turn"]] if "turn" in will else [])
        if will["kind"] == "undo":
            self.maybe_hidden |= self._from(will["session"], will["prompt"])
        if will["kind"] == "reset":
            self.doubtful.add(key)
        if will["kind"] == "rename":
            self.doubtful.add(will["session"])

    def _from(self, session: str, prompt: str) -> set[str]:
        said = self.said[session]
        first = next(seq for seq, text in said.items() if text == prompt)
        return {text for seq, text in said.items() if seq >= first}

    # -- against the store -----------------------------------------------------------------------------------

    def check(self, store: SessionStore, session: str) -> None:
        log = store.events(session, limit=1_000_000)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        stored = {event.seq: event.message.text for event in log if event.message is not None}
        hidden = {event.message.text for event in log if event.message is not None and event.hidden}
        said = self.said[session]
        assert {seq: stored.get(seq) for seq in said} == said, "every acknowledged message stands at its number"
        assert {text for seq, text in stored.items() if seq not in said} <= self.doubtful
        known = set(said.values()) - self.maybe_hidden
        assert hidden & known == self.hidden & known

        visible = [text for text in stored.values() if text not in hidden]
        assert [message["content"] for message in store.load_transcript(session)] == visible
        assert store.get_session(session).message_count == len(visible)
        if session not in self.doubtful:
            assert store.get_session(session).title == self.titles.get(session)

    def check_all(self, url: str, store: SessionStore, chance: random.Random) -> None:
        assert disorder(url) == []
        twice = "SELECT content FROM event WHERE kind = 'message' GROUP BY content HAVING COUNT(*) > 1"
        assert rows(url, twice) == []
        for key, session in self.lanes.items():
            entry = store.get_entry(key)
            assert entry is not None
            assert entry.session_id == session or key in self.doubtful
        counted = rows(url, "SELECT s.id, u.turn_id, u.input_tokens FROM usage u JOIN session s ON s.no = u.session_no")
        stored: dict[str, dict[str, int]] = defaultdict(dict)
        for session, turn, tokens in counted:
            stored[session][turn] = tokens
        for session, turns in self.turns.items():
            assert {turn: stored[session].get(turn) for turn in turns} == turns
            assert stored[session].keys() - turns.keys() <= self.doubtful
        self.check_search(store, chance)

    def check_search(self, store: SessionStore, chance: random.Random, most: int = 5) -> None:
        spoken = [(session, seq, text) for session, said in self.said.items() for seq, text in said.items()]
        for session, seq, text in chance.sample(spoken, min(most, len(spoken))):
            if text not in self.maybe_hidden:
                found = [(hit.session_id, hit.seq) for hit in store.search(text)]
                assert found == ([] if text in self.hidden else [(session, seq)])


def test_nothing_acknowledged_is_lost_by_kill_9(worker: Worker, store_url: str, tmp_path: Path) -> None:
    rounds = 50 if store_url.startswith("sqlite:") else 10
    chance, ledger = random.Random(SEED), Ledger()
    for number in range(rounds):
        print(f"seed {SEED}, round {number}")  # noqa: T201  (shown when the test fails)
        notes = tmp_path / f"notes{number}"
        with ExitStack() as stack:
            # Every other time somebody else has the database open all the while, and sees the same.
            watcher = stack.enter_context(SessionStore.open(store_url)) if number % 2 else None
            pid = worker.call("write_until_killed", url=store_url, number=number, seed=SEED, notes=str(notes))
            time.sleep(chance.uniform(0.02, 0.2))
            os.kill(pid, signal.SIGKILL)
            assert worker.call("reap", pid=pid) == -signal.SIGKILL, "the writers work until they are killed"
            wait_for_clients(store_url, but=0 if watcher is None else 1)
            store = watcher or stack.enter_context(SessionStore.open(store_url))
            for session in sorted(ledger.read(notes)):
                ledger.check(store, session)
            ledger.check_all(store_url, store, chance)
    with SessionStore.open(store_url) as store:
        for session in ledger.said:
            ledger.check(store, session)
        ledger.check_search(store, chance, most=200)
    assert sum(map(len, ledger.said.values())) > 10 * rounds
    assert ledger.hidden


def test_a_database_whose_creation_was_killed_opens(worker: Worker, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    for number in range(12):
        url = f"sqlite:///{tmp_path}/{number}.db"
        pid = worker.call("open_and_end", url=url)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        assert worker.call("reap", pid=pid) in {0, -signal.SIGKILL}
        with SessionStore.open(url) as store:
            store.record_user_message(SessionSource("telegram", "bob", user_id="bob"), "after all")
            assert [session.message_count for session in store.list_sessions()] in ([1], [1, 1])
        assert disorder(url) == []


class Persistent:
    """Threads that write on and on, whatever the server does, and remember what was acknowledged."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.said: dict[int, list[str]] = defaultdict(list)
        self.errors: list[StoreUnavailable] = []
        self._store = store
        self._session_id = session_id
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(3)]

    def _write(self, thread: int) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            try:
                self._store.append_to_transcript(self._session_id, f"t{thread}n{number}")
            except StoreUnavailable as error:  # anything else ends the thread, which fails the test
                self.errors.append(error)
            else:
                self.said[thread].append(f"t{thread}n{number}")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_server_that_drops_its_connections_loses_nothing(store_url: str) -> None:
    drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dropped'"
    with SessionStore.open(f"{store_url}&application_name=dropped") as store:
        session_id = store.get_or_create_session(SessionSource("telegram", "ada", user_id="ada")).session_id
        with Persistent(store, session_id) as writers:
            dropped = 0
            while dropped < 10:
                time.sleep(0.03)
                dropped += len(rows(store_url, drop))
        assert writers.errors
        assert {type(error) for error in writers.errors} == {StoreUnavailable}

        for _ in range(20):  # every connection may have been dropped and say so once
            with contextlib.suppress(StoreUnavailable):
                store.append_to_transcript(session_id, "back again")
                break
        stored: list[object] = []
        for _ in range(20):
            with contextlib.suppress(StoreUnavailable):
                stored = [message["content"] for message in store.load_transcript(session_id)]
                break
        assert stored[-1] == "back again"
        assert len(stored) == len(set(stored))
        for texts in writers.said.values():
            places = [stored.index(text) for text in texts]
            assert places == sorted(places)
    assert disorder(store_url) == []

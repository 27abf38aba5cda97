"""`kill -9` at any moment: what was acknowledged is stored once and in order, and the database is consistent."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pytest
from hypothesis import settings

from palaver import SessionSource, SessionStore
from palaver.core.errors import StoreUnavailable
from scenarios.store_harness import TIMEOUT_SECONDS, StoreProcess, fetch_rows, find_inconsistencies, wait_for_disconnect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.warm_process import WarmLauncher

pytestmark = [pytest.mark.slow, pytest.mark.both_engines]


@pytest.fixture(scope="module")
def process(launcher: WarmLauncher) -> Iterator[StoreProcess]:
    with StoreProcess(launcher) as started:
        yield started


@dataclass
class Ledger:
    """What the store has acknowledged to the writers, and what they were doing when they were killed."""

    texts: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))  # session → seq → text
    turns: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))  # session → turn → tokens
    hidden: set[str] = field(default_factory=set)
    lanes: dict[str, str] = field(default_factory=dict)  # key → session
    titles: dict[str, str] = field(default_factory=dict)
    uncertain: set[str] = field(default_factory=set)  # texts, turns, lanes and titles that may be stored or not
    maybe_hidden: set[str] = field(default_factory=set)

    def add_journal(self, journal: Path) -> set[str]:
        """Add the journal of one round; return the sessions that were changed in it."""
        keys: dict[str, str] = {}
        unfinished: dict[str, dict[str, Any]] = {}
        changed = set()
        for line in journal.read_text().splitlines() if journal.exists() else []:
            entry = json.loads(line)
            writer = entry["writer"]
            if entry["phase"] == "started":
                keys[writer] = entry["key"]
                self.lanes[entry["key"]] = entry["session"]
                self.uncertain.discard(entry["key"])
                changed |= {entry["session"], entry["common_session"]}
            elif entry["phase"] == "before":
                unfinished[writer] = entry
            else:
                changed |= self._add_finished(unfinished.pop(writer), entry, keys[writer])
        for writer, before in unfinished.items():
            self._add_unfinished(before, keys[writer])
            changed.add(before["session"])
        return changed

    def _add_finished(self, before: dict[str, Any], after: dict[str, Any], key: str) -> set[str]:
        session = before["session"]
        if "texts" in before:
            assert after.get("session", session) == session
            first = after["seq"] - len(before["texts"]) + 1
            numbers = range(first, after["seq"] + 1)
            assert not self.texts[session].keys() & set(numbers), "each number is used once"
            self.texts[session].update(zip(numbers, before["texts"], strict=True))
        if "turn" in before:
            self.turns[session][before["turn"]] = before["tokens"]
        if before["kind"] == "undo":
            assert after["prompt"] == before["prompt"]
            self.hidden |= self._list_texts_from(session, before["prompt"])
        if before["kind"] == "reset":
            self.lanes[key] = after["session"]
        if before["kind"] == "rename":
            self.titles[session] = before["title"]
        return {session, self.lanes[key]}

    def _add_unfinished(self, before: dict[str, Any], key: str) -> None:
        self.uncertain.update(before.get("texts", []))
        self.uncertain.update([before["turn"]] if "turn" in before else [])
        if before["kind"] == "undo":
            self.maybe_hidden |= self._list_texts_from(before["session"], before["prompt"])
        if before["kind"] == "reset":
            self.uncertain.add(key)
        if before["kind"] == "rename":
            self.uncertain.add(before["session"])

    def _list_texts_from(self, session: str, prompt: str) -> set[str]:
        texts = self.texts[session]
        first = next(seq for seq, text in texts.items() if text == prompt)
        return {text for seq, text in texts.items() if seq >= first}

    # -- comparing with the store -----------------------------------------------------------------------------------

    def check(self, store: SessionStore, session: str) -> None:
        log = store.load_events(session, limit=1_000_000)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        stored = {event.seq: event.message.text for event in log if event.message is not None}
        hidden = {event.message.text for event in log if event.message is not None and event.hidden}
        texts = self.texts[session]
        assert {seq: stored.get(seq) for seq in texts} == texts, "every acknowledged message has its number"
        assert {text for seq, text in stored.items() if seq not in texts} <= self.uncertain
        known = set(texts.values()) - self.maybe_hidden
        assert hidden & known == self.hidden & known

        visible = [text for text in stored.values() if text not in hidden]
        assert [message["content"] for message in store.load_transcript(session)] == visible
        assert store.get_session(session).message_count == len(visible)
        if session not in self.uncertain:
            assert store.get_session(session).title == self.titles.get(session)

    def check_all(self, url: str, store: SessionStore, chance: random.Random) -> None:
        assert find_inconsistencies(url) == []
        duplicates = "SELECT content FROM event WHERE kind = 'message' GROUP BY content HAVING COUNT(*) > 1"
        assert fetch_rows(url, duplicates) == []
        for key, session in self.lanes.items():
            entry = store.find_entry(key)
            assert entry is not None
            assert entry.session_id == session or key in self.uncertain
        usage = "SELECT s.id, u.turn_id, u.input_tokens FROM usage u JOIN session s ON s.no = u.session_no"
        stored: dict[str, dict[str, int]] = defaultdict(dict)
        for session, turn, tokens in fetch_rows(url, usage):
            stored[session][turn] = tokens
        for session, turns in self.turns.items():
            assert {turn: stored[session].get(turn) for turn in turns} == turns
            assert stored[session].keys() - turns.keys() <= self.uncertain
        self.check_search(store, chance)

    def count_texts(self) -> int:
        return sum(map(len, self.texts.values()))

    def check_search(self, store: SessionStore, chance: random.Random, max_texts: int = 5) -> None:
        known = [(session, seq, text) for session, texts in self.texts.items() for seq, text in texts.items()]
        for session, seq, text in chance.sample(known, min(max_texts, len(known))):
            if text not in self.maybe_hidden:
                found = [(hit.session_id, hit.seq) for hit in store.search(text)]
                assert found == ([] if text in self.hidden else [(session, seq)])


def wait_for_journal(journal: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not journal.exists() or not journal.read_bytes():
        assert time.monotonic() < deadline, "the writers do not start"
        time.sleep(0.005)


def test_kill_9_loses_nothing_that_was_acknowledged(
    process: StoreProcess, store_url: str, tmp_path: Path, seed: int
) -> None:
    rounds = settings().max_examples // (2 if store_url.startswith("sqlite:") else 4)
    chance, ledger = random.Random(seed), Ledger()
    for number in range(10 * rounds):
        if number >= rounds and ledger.hidden and ledger.count_texts() > 10 * rounds:
            break  # later than planned only on a machine so busy that the writers did little before they were killed
        print(f"round {number}")  # noqa: T201  (shown when the test fails)
        journal = tmp_path / f"journal{number}"
        with ExitStack() as stack:
            # In every other round this process has the store open all the time, and must see the same.
            observer = stack.enter_context(SessionStore.open(store_url)) if number % 2 else None
            pid = process.call(
                "write_until_killed", url=store_url, round_number=number, seed=seed, journal=str(journal)
            )
            if number % 4:  # in every fourth round the kill may come before the first write
                wait_for_journal(journal)
            time.sleep(chance.uniform(0.02, 0.2))
            os.kill(pid, signal.SIGKILL)
            assert process.call("wait_for_exit", pid=pid) == -signal.SIGKILL, "the writers run until they are killed"
            wait_for_disconnect(store_url, remaining=0 if observer is None else 1)
            store = observer or stack.enter_context(SessionStore.open(store_url))
            for session in sorted(ledger.add_journal(journal)):
                ledger.check(store, session)
            ledger.check_all(store_url, store, chance)
    with SessionStore.open(store_url) as store:
        for session in ledger.texts:
            ledger.check(store, session)
        ledger.check_search(store, chance, max_texts=200)
    assert ledger.count_texts() > 10 * rounds
    assert ledger.hidden


def test_a_database_can_be_opened_after_its_creation_was_killed(
    process: StoreProcess, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for number in range(12):
        url = f"sqlite:///{tmp_path}/{number}.db"
        pid = process.call("open_and_exit", url=url)
        time.sleep(chance.uniform(0, 0.03))
        os.kill(pid, signal.SIGKILL)
        assert process.call("wait_for_exit", pid=pid) in {0, -signal.SIGKILL}
        with SessionStore.open(url) as store:
            store.record_user_message(SessionSource("telegram", "bob", user_id="bob"), "after the kill")
            assert [session.message_count for session in store.list_sessions()] in ([1], [1, 1])
        assert find_inconsistencies(url) == []


class PersistentWriters:
    """Threads that write without pause, whatever the server does, and remember what was acknowledged."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.texts: dict[int, list[str]] = defaultdict(list)
        self.errors: list[StoreUnavailable] = []
        self._store = store
        self._session_id = session_id
        self._stop_requested = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(3)]

    def _write(self, thread: int) -> None:
        number = 0
        while not self._stop_requested.is_set():
            number += 1
            try:
                self._store.append_to_transcript(self._session_id, f"t{thread}n{number}")
            except StoreUnavailable as error:  # anything else ends the thread, which fails the test
                self.errors.append(error)
            else:
                self.texts[thread].append(f"t{thread}n{number}")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_requested.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_dropped_server_connections_lose_nothing(store_url: str) -> None:
    drop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'dropped %'"
    with SessionStore.open(f"{store_url}&application_name=dropped") as store:
        session_id = store.get_or_create_session(SessionSource("telegram", "ada", user_id="ada")).session_id
        with PersistentWriters(store, session_id) as writers:
            dropped = 0
            while dropped < 10:
                time.sleep(0.03)
                dropped += len(fetch_rows(store_url, drop))
        assert writers.errors
        assert {type(error) for error in writers.errors} == {StoreUnavailable}

        for _ in range(20):  # each dropped connection fails once
            with contextlib.suppress(StoreUnavailable):
                store.append_to_transcript(session_id, "connected again")
                break
        stored: list[object] = []
        for _ in range(20):
            with contextlib.suppress(StoreUnavailable):
                stored = [message["content"] for message in store.load_transcript(session_id)]
                break
        assert stored[-1] == "connected again"
        assert len(stored) == len(set(stored))
        for texts in writers.texts.values():
            positions = [stored.index(text) for text in texts]
            assert positions == sorted(positions)
    assert find_inconsistencies(store_url) == []

"""A process of its own for a test: does what it is told by JSON lines, and answers by JSON lines.

Run as a script. `harness.Worker` is its other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from palaver import PalaverError, SessionSource, SessionStore, TurnUsage
from palaver.domain.errors import StoreError

COMMANDS: dict[str, Callable[..., Any]] = {}
STORE: dict[str, SessionStore] = {}

F = TypeVar("F", bound=Callable[..., Any])


def command(function: F) -> F:
    COMMANDS[function.__name__] = function
    return function


def source(lane: str) -> SessionSource:
    """`name` is a person's direct messages, `name@place` is that person in a thread which several share."""
    user, _, place = lane.partition("@")
    if place:
        return SessionSource("discord", place, chat_type="group", thread_id="1", user_id=user, user_name=user)
    return SessionSource("telegram", user, user_id=user, user_name=user)


def store() -> SessionStore:
    return STORE["open"]


def wait_until(at: float | None) -> None:
    """Start at the same moment as other processes: the monotonic clock is the machine's."""
    if at is not None:
        time.sleep(max(0.0, at - time.monotonic() - 0.002))
        while time.monotonic() < at:
            pass


# -- a store -------------------------------------------------------------------------------------------------


@command
def open_store(url: str, at: float | None = None) -> None:
    wait_until(at)
    STORE["open"] = SessionStore.open(url)


@command
def close_store() -> None:
    STORE.pop("open").close()


@command
def enter(lane: str, at: float | None = None) -> list[Any]:
    wait_until(at)
    entry = store().get_or_create_session(source(lane))
    return [entry.session_id, entry.is_new]


@command
def owner(at: float | None = None) -> str:
    wait_until(at)
    return store().owner().id


@command
def say(lane: str, text: str) -> list[Any]:
    said = store().record_user_message(source(lane), text)
    return [said.session_id, said.seq]


@command
def load(session_id: str) -> list[str]:
    return [message["content"] for message in store().load_transcript(session_id)]


@command
def reset(lane: str, count: int, at: float | None = None) -> list[str]:
    """Reset a lane again and again; the ids of the sessions that began."""
    wait_until(at)
    key = store().get_or_create_session(source(lane)).session_key
    begun: list[str] = []
    for _ in range(count):
        begun.append(store().reset_session(key).session_id)
        time.sleep(0.001)
    return begun


@command
def delete(lane: str, count: int, at: float | None = None) -> int:
    """Delete the session of a lane again and again."""
    wait_until(at)
    for _ in range(count):
        store().delete_session(store().get_or_create_session(source(lane)).session_id)
        time.sleep(0.001)
    return count


@command
def talk(writer: str, lanes: list[str], count: int, threads: int, at: float | None = None) -> list[list[Any]]:
    """Say and answer in these lanes from several threads; for each thread its [lane, session, seq, text] in order."""
    wait_until(at)
    done: list[list[Any]] = [[] for _ in range(threads)]
    failed: list[BaseException] = []

    def run(thread: int) -> None:
        try:
            for number in range(count):
                lane = lanes[number % len(lanes)]
                text = f"{writer}t{thread}n{number}"
                said = store().record_user_message(source(lane), text)
                done[thread].append([lane, said.session_id, said.seq, text])
                if number % 3 == 0:
                    used = TurnUsage(turn_id=text, input_tokens=number + 1, output_tokens=1, model="m")
                    seq = store().append_to_transcript(said.session_id, f"re{text}", usage=used)
                    done[thread].append([lane, said.session_id, seq, f"re{text}"])
        except BaseException as error:  # noqa: BLE001  (reported by the process)
            failed.append(error)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]
    return done


@command
def chaos(lanes: list[str], count: int, seed: int, at: float | None = None) -> dict[str, int]:
    """Do anything to anything; how often each named error was the answer. A `StoreError` is not forgiven."""
    wait_until(at)
    chance = random.Random(seed)
    answers: dict[str, int] = {}
    for number in range(count):
        act = chance.choice(ACTS)
        try:
            act(chance, chance.choice(lanes), f"c{seed}n{number}")
        except StoreError:
            raise
        except PalaverError as error:
            name = f"{act.__name__}:{type(error).__name__}"
            answers[name] = answers.get(name, 0) + 1
    return answers


def _anyone(chance: random.Random) -> str:
    """A session, the newest more often."""
    found = store().list_sessions(limit=8)
    return chance.choice(found).id if found else "nobody"


def _talks(_chance: random.Random, lane: str, text: str) -> None:
    said = store().record_user_message(source(lane), text)
    store().append_to_transcript(said.session_id, ["one", "two"], usage=TurnUsage(turn_id=text, input_tokens=3))


def _undoes(chance: random.Random, _lane: str, _text: str) -> None:
    store().undo(_anyone(chance), chance.randint(1, 3))


def _redoes(chance: random.Random, _lane: str, _text: str) -> None:
    store().redo(_anyone(chance))


def _rewrites(chance: random.Random, _lane: str, text: str) -> None:
    session_id = _anyone(chance)
    store().rewrite_transcript(session_id, [*store().load_transcript(session_id)[:2], text])


def _renames(chance: random.Random, _lane: str, _text: str) -> None:
    store().rename_session(_anyone(chance), chance.choice(["one", "two", "three", None]))


def _marks(chance: random.Random, _lane: str, _text: str) -> None:
    store().pin(_anyone(chance), chance.random() < 0.5)
    store().archive(_anyone(chance), chance.random() < 0.3)


def _resets(_chance: random.Random, lane: str, _text: str) -> None:
    store().reset_session(store().get_or_create_session(source(lane)).session_key)


def _restores(_chance: random.Random, lane: str, _text: str) -> None:
    store().restore(store().get_or_create_session(source(lane)).session_key)


def _switches(chance: random.Random, lane: str, _text: str) -> None:
    store().switch_session(store().get_or_create_session(source(lane)).session_key, _anyone(chance))


def _forks(chance: random.Random, _lane: str, _text: str) -> None:
    store().fork(_anyone(chance))


def _counts(chance: random.Random, _lane: str, _text: str) -> None:
    store().update_session(_anyone(chance), turn_id=f"t{chance.randint(1, 9)}", input_tokens=5, cost="0.01")


def _deletes(chance: random.Random, _lane: str, _text: str) -> None:
    if chance.random() < 0.3:
        store().delete_session(_anyone(chance))


def _searches(_chance: random.Random, _lane: str, text: str) -> None:
    store().search(f"one -{text}", limit=5)


ACTS = (
    _talks,
    _talks,
    _talks,
    _undoes,
    _redoes,
    _rewrites,
    _renames,
    _marks,
    _resets,
    _restores,
    _switches,
    _forks,
    _counts,
    _deletes,
    _searches,
)


# -- writing until the end -----------------------------------------------------------------------------------


class Talker:
    """Does one thing after another in a lane of its own, and writes down what it will do and what it has done."""

    def __init__(self, name: str, number: int, seed: int, notes: int) -> None:
        self.name = name
        self.number = number  # of the round
        self.chance = random.Random(f"{seed}/{number}/{name}")
        self.notes = notes
        self.done = 0
        self.session = ""
        self.key = ""
        self.common = ""
        self.prompts: list[str] = []  # what can be undone

    def begin(self, entry: Any, common: Any) -> None:
        self.session, self.key, self.common = entry.session_id, entry.session_key, common.session_id
        self.note("began", session=self.session, key=self.key, common=self.common)

    def note(self, what: str, **facts: Any) -> None:
        line = json.dumps({"talker": self.name, "what": what, **facts}) + "\n"
        os.write(self.notes, line.encode())

    def next(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """A method of the store and its arguments."""
        self.done += 1
        word = f"{self.name}r{self.number}n{self.done}"
        kind = self.chance.choices(
            ["say", "answer", "common", "undo", "reset", "rename"], [30, 30, 20, 10 if self.prompts else 0, 2, 3]
        )[0]
        if kind == "say":
            self.note("will", kind=kind, texts=[word], session=self.session)
            return "record_user_message", (source(self.name), word), {}
        if kind == "undo":
            self.note("will", kind=kind, prompt=self.prompts[-1], session=self.session)
            return "undo", (self.session,), {}
        if kind == "reset":
            self.note("will", kind=kind, session=self.session)
            return "reset_session", (self.key,), {}
        if kind == "rename":
            self.note("will", kind=kind, title=word, session=self.session)
            return "rename_session", (self.session, word), {}
        into = self.common if kind == "common" else self.session
        texts = [f"{word}{letter}" for letter in "abc"[: self.chance.randint(1, 3)]]
        tokens = self.chance.randint(1, 1000)
        used = TurnUsage(turn_id=word, input_tokens=tokens, output_tokens=1, model="m", cost="0.001")
        self.note("will", kind=kind, texts=texts, session=into, turn=word, tokens=tokens)
        return "append_to_transcript", (into, texts), {"usage": used}

    def heard(self, method: str, result: Any) -> None:
        """What the store has acknowledged."""
        facts: dict[str, Any] = {}
        if method == "record_user_message":
            facts = {"seq": result.seq, "in": result.session_id}
        elif method == "append_to_transcript":
            facts = {"seq": result}
        elif method == "undo":
            facts = {"prompt": result.prompt}
        elif method == "reset_session":
            facts = {"in": result.session_id}
        self.note("did", **facts)
        if method == "record_user_message":
            self.prompts.append(f"{self.name}r{self.number}n{self.done}")
        elif method == "undo":
            self.prompts.pop()
        elif method == "reset_session":
            self.prompts.clear()
            self.session = result.session_id

    def run(self, store: SessionStore) -> None:
        self.begin(store.get_or_create_session(source(self.name)), store.get_or_create_session(source("common")))
        while True:
            method, args, options = self.next()
            self.heard(method, getattr(store, method)(*args, **options))

    async def arun(self, store: SessionStore) -> None:
        self.begin(
            await store.aio.get_or_create_session(source(self.name)),
            await store.aio.get_or_create_session(source("common")),
        )
        while True:
            method, args, options = self.next()
            self.heard(method, await getattr(store.aio, method)(*args, **options))


@command
def write_until_killed(url: str, number: int, seed: int, notes: str) -> int:
    """Fork a process that opens the store and writes from several threads and tasks; its id."""
    preload()
    pid = os.fork()
    if pid:
        return pid
    try:
        file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        opened = SessionStore.open(url)
        for name in ("blocking1", "blocking2"):
            talker = Talker(name, number, seed, file)
            threading.Thread(target=_or_end, args=(talker.run, opened), daemon=True).start()
        asyncio.run(_tasks([Talker(f"awaiting{n}", number, seed, file) for n in range(3)], opened))
    except BaseException as error:  # noqa: BLE001  (the one who reads the notes must know)
        os.write(2, f"child of round {number}: {error!r}\n".encode())
    os._exit(1)


async def _tasks(talkers: list[Talker], opened: SessionStore) -> None:
    await asyncio.gather(*(talker.arun(opened) for talker in talkers))


def _or_end(run: Callable[[SessionStore], None], opened: SessionStore) -> None:
    """A thread that fails ends the process, so that the one who waits for the kill sees it gone."""
    try:
        run(opened)
    except BaseException as error:  # noqa: BLE001
        os.write(2, f"thread of a child: {error!r}\n".encode())
        os._exit(1)


def preload() -> None:
    """Import what opening a store imports, so that a fork is killed at its work and not at its imports."""
    for name in ("palaver.storage.engines.sqlite", "palaver.storage.engines.postgres"):
        import_module(name)


@command
def open_and_end(url: str) -> int:
    """Fork a process that opens a database, says something and ends by itself; its id."""
    preload()
    pid = os.fork()
    if pid:
        return pid
    SessionStore.open(url).record_user_message(source("ada"), "created")
    os._exit(0)


@command
def reap(pid: int) -> int:
    """How the forked process ended: the signal as a negative number, or its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# -- trouble -------------------------------------------------------------------------------------------------


@command
def limit_file_size(most: int | None) -> None:
    """No file may grow beyond this from now on; None: no limit."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if most is None else most, hard))


@command
def fill(lane: str, most: int) -> int:
    """Say long things until it no longer works, at most so many; how many were acknowledged."""
    for number in range(most):
        try:
            store().record_user_message(source(lane), f"{number} " + "x" * 20_000)
        except StoreError:
            return number
    return most


@command
def write_back_every(pages: int) -> None:
    """Let stores that are opened from now on write their log back into the database so often."""
    import_module("palaver.storage.engines.sqlite").CHECKPOINT_PAGES = pages  # type: ignore[attr-defined]


@command
def interrupt(times: int, seed: int) -> int:
    """Press Ctrl-C at any moment of a write, again and again; after each the store must go on working."""
    chance = random.Random(seed)
    session_id = store().get_or_create_session(source("ada")).session_id
    for number in range(times):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        with contextlib.suppress(BaseException):  # whatever the interrupt has become on its way here
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00005, 0.002))
            while True:
                store().append_to_transcript(session_id, "before")
        done: list[int] = []
        after = threading.Thread(
            target=lambda heard: heard.append(store().append_to_transcript(session_id, "after")),
            args=(done,),
            daemon=True,
        )
        after.start()
        after.join(10)
        if not done:
            raise RuntimeError(f"the store no longer works after Ctrl-C number {number + 1}")
    return times


@command
def become_nobody() -> None:
    """Give up being root; what is still to be imported may be out of reach then."""
    preload()
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"answer": COMMANDS[order.pop("do")](**order)}
        except Exception as error:  # noqa: BLE001  (told to the other end)
            answer = {"error": type(error).__name__, "text": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

"""A process with a store: reads commands as JSON lines, and answers with their results as JSON lines.

Run as a script. `store_harness.StoreProcess` is its other end.
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
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, TypeVar, cast

from palaver import GatewayConfig, PalaverError, SessionSource, SessionStore, TurnUsage
from palaver.agent.profiles import CurrentSettings
from palaver.core.errors import StoreError
from palaver.testing import ScriptedAgent

COMMANDS: dict[str, Callable[..., Any]] = {}
STORE: dict[str, SessionStore] = {}

F = TypeVar("F", bound=Callable[..., Any])


def command(function: F) -> F:
    COMMANDS[function.__name__] = function
    return function


def build_source(lane: str) -> SessionSource:
    """`name` stands for the direct messages of a person, `name@chat` for that person in a shared thread."""
    user, _, chat = lane.partition("@")
    if chat:
        return SessionSource("discord", chat, chat_type="group", thread_id="1", user_id=user, user_name=user)
    return SessionSource("telegram", user, user_id=user, user_name=user)


def get_store() -> SessionStore:
    return STORE["open"]


def wait_until(at: float | None) -> None:
    """Wait for a moment that other processes wait for too: all processes share the monotonic clock."""
    if at is not None:
        time.sleep(max(0.0, at - time.monotonic() - 0.002))
        while time.monotonic() < at:
            pass


# -- using a store -------------------------------------------------------------------------------------------


@command
def open_store(url: str, at: float | None = None) -> None:
    if url.startswith("postgres"):
        from palaver.core.engines import postgres_connection

        # Four processes change the same rows in any order: on a busy machine, one waits behind several that the server
        # first has to find in a deadlock, a second each, for longer than a lock may take.
        cast("dict[str, int]", postgres_connection.TIME_LIMITS)["lock_timeout"] = 60_000
    wait_until(at)
    STORE["open"] = SessionStore.open(url)


@command
def close_store() -> None:
    STORE.pop("open").close()


@command
def get_or_create_session(lane: str, at: float | None = None) -> list[Any]:
    wait_until(at)
    entry = get_store().get_or_create_session(build_source(lane))
    return [entry.session_id, entry.is_new]


@command
def get_owner(at: float | None = None) -> str:
    wait_until(at)
    return get_store().get_owner().id


@command
def record_message(lane: str, text: str) -> list[Any]:
    recorded = get_store().record_user_message(build_source(lane), text)
    return [recorded.session_id, recorded.seq]


@command
def load_texts(session_id: str) -> list[str]:
    return [message["content"] for message in get_store().load_transcript(session_id)]


@command
def reset_repeatedly(lane: str, count: int, at: float | None = None) -> list[str]:
    """Reset a lane `count` times; return the ids of the new sessions."""
    wait_until(at)
    key = get_store().get_or_create_session(build_source(lane)).session_key
    session_ids: list[str] = []
    for _ in range(count):
        session_ids.append(get_store().reset_session(key).session_id)
        time.sleep(0.001)
    return session_ids


@command
def delete_repeatedly(lane: str, count: int, at: float | None = None) -> int:
    """Delete the current session of a lane `count` times."""
    wait_until(at)
    for _ in range(count):
        get_store().delete_session(get_store().get_or_create_session(build_source(lane)).session_id)
        time.sleep(0.001)
    return count


@command
def write_messages(writer: str, lanes: list[str], count: int, threads: int, at: float | None = None) -> list[list[Any]]:
    """Write messages and answers from several threads; return for each its [lane, session, seq, text] in order."""
    wait_until(at)
    written: list[list[Any]] = [[] for _ in range(threads)]
    errors: list[BaseException] = []

    def run(thread: int) -> None:
        try:
            for number in range(count):
                lane = lanes[number % len(lanes)]
                text = f"{writer}t{thread}n{number}"
                recorded = get_store().record_user_message(build_source(lane), text)
                written[thread].append([lane, recorded.session_id, recorded.seq, text])
                if number % 3 == 0:
                    usage = TurnUsage(turn_id=text, input_tokens=number + 1, output_tokens=1, model="m")
                    seq = get_store().append_to_transcript(recorded.session_id, f"re{text}", usage=usage)
                    written[thread].append([lane, recorded.session_id, seq, f"re{text}"])
        except BaseException as error:  # noqa: BLE001  (raised below, in the main thread)
            errors.append(error)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
    return written


@command
def run_random_operations(lanes: list[str], count: int, seed: int, at: float | None = None) -> dict[str, int]:
    """Run random operations on random sessions; count the expected errors by name. A `StoreError` is not expected."""
    wait_until(at)
    chance = random.Random(seed)
    errors: dict[str, int] = {}
    for number in range(count):
        operation = chance.choice(OPERATIONS)
        try:
            operation(chance, chance.choice(lanes), f"c{seed}n{number}")
        except StoreError:
            raise
        except PalaverError as error:
            name = f"{operation.__name__}:{type(error).__name__}"
            errors[name] = errors.get(name, 0) + 1
    return errors


def _choose_session(chance: random.Random) -> str:
    """Choose one of the newest sessions."""
    sessions = get_store().list_sessions(limit=8)
    return chance.choice(sessions).id if sessions else "none"


def _get_key(lane: str) -> str:
    return get_store().get_or_create_session(build_source(lane)).session_key


def _write(_chance: random.Random, lane: str, text: str) -> None:
    recorded = get_store().record_user_message(build_source(lane), text)
    usage = TurnUsage(turn_id=text, input_tokens=3)
    get_store().append_to_transcript(recorded.session_id, ["one", "two"], usage=usage)


def _undo(chance: random.Random, _lane: str, _text: str) -> None:
    get_store().undo(_choose_session(chance), chance.randint(1, 3))


def _redo(chance: random.Random, _lane: str, _text: str) -> None:
    get_store().redo(_choose_session(chance))


def _rewrite(chance: random.Random, _lane: str, text: str) -> None:
    session_id = _choose_session(chance)
    get_store().rewrite_transcript(session_id, [*get_store().load_transcript(session_id)[:2], text])


def _rename(chance: random.Random, _lane: str, _text: str) -> None:
    get_store().rename_session(_choose_session(chance), chance.choice(["one", "two", "three", None]))


def _pin_and_archive(chance: random.Random, _lane: str, _text: str) -> None:
    get_store().pin(_choose_session(chance), chance.random() < 0.5)
    get_store().archive(_choose_session(chance), chance.random() < 0.3)


def _reset(_chance: random.Random, lane: str, _text: str) -> None:
    get_store().reset_session(_get_key(lane))


def _restore(_chance: random.Random, lane: str, _text: str) -> None:
    get_store().restore(_get_key(lane))


def _switch(chance: random.Random, lane: str, _text: str) -> None:
    get_store().switch_session(_get_key(lane), _choose_session(chance))


def _fork(chance: random.Random, _lane: str, _text: str) -> None:
    get_store().fork(_choose_session(chance))


def _record_usage(chance: random.Random, _lane: str, _text: str) -> None:
    turn_id = f"t{chance.randint(1, 9)}"
    get_store().update_session(_choose_session(chance), turn_id=turn_id, input_tokens=5, cost="0.01")


def _delete(chance: random.Random, _lane: str, _text: str) -> None:
    if chance.random() < 0.3:
        get_store().delete_session(_choose_session(chance))


def _search(_chance: random.Random, _lane: str, text: str) -> None:
    get_store().search(f"one -{text}", limit=5)


OPERATIONS = (
    *(_write, _write, _write),  # more often than the others
    *(_undo, _redo, _rewrite, _rename, _pin_and_archive, _reset, _restore, _switch),
    *(_fork, _record_usage, _delete, _search),
)


# -- writing until the process is killed ---------------------------------------------------------------------


class JournalingWriter:
    """Runs one operation after another in a lane of its own; journals each before it starts and after it has ended."""

    def __init__(self, name: str, round_number: int, seed: int, journal: int) -> None:
        self.name = name
        self.round_number = round_number
        self.chance = random.Random(f"{seed}/{round_number}/{name}")
        self.journal = journal  # a file descriptor
        self.count = 0
        self.session = ""
        self.key = ""
        self.common_session = ""
        self.prompts: list[str] = []  # that can be undone

    @property
    def word(self) -> str:
        """The text of the current operation: unique in the whole test."""
        return f"{self.name}r{self.round_number}n{self.count}"

    def start(self, entry: Any, common_entry: Any) -> None:
        self.session, self.key, self.common_session = entry.session_id, entry.session_key, common_entry.session_id
        self.write_entry("started", session=self.session, key=self.key, common_session=self.common_session)

    def write_entry(self, phase: str, **facts: Any) -> None:
        line = json.dumps({"writer": self.name, "phase": phase, **facts}) + "\n"
        os.write(self.journal, line.encode())

    def choose_operation(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        """Choose a method of the store and its arguments, and journal them."""
        self.count += 1
        word = self.word
        kind = self.chance.choices(
            ["record", "answer", "answer_common", "undo", "reset", "rename"],
            [30, 30, 20, 10 if self.prompts else 0, 2, 3],
        )[0]
        if kind == "record":
            self.write_entry("before", kind=kind, texts=[word], session=self.session)
            return "record_user_message", (build_source(self.name), word), {}
        if kind == "undo":
            self.write_entry("before", kind=kind, prompt=self.prompts[-1], session=self.session)
            return "undo", (self.session,), {}
        if kind == "reset":
            self.write_entry("before", kind=kind, session=self.session)
            return "reset_session", (self.key,), {}
        if kind == "rename":
            self.write_entry("before", kind=kind, title=word, session=self.session)
            return "rename_session", (self.session, word), {}
        session = self.common_session if kind == "answer_common" else self.session
        texts = [f"{word}{letter}" for letter in "abc"[: self.chance.randint(1, 3)]]
        tokens = self.chance.randint(1, 1000)
        usage = TurnUsage(turn_id=word, input_tokens=tokens, output_tokens=1, model="m", cost="0.001")
        self.write_entry("before", kind=kind, texts=texts, session=session, turn=word, tokens=tokens)
        return "append_to_transcript", (session, texts), {"usage": usage}

    def record_result(self, method: str, result: Any) -> None:
        """Journal what the store has acknowledged."""
        facts: dict[str, Any] = {}
        if method == "record_user_message":
            facts = {"seq": result.seq, "session": result.session_id}
        elif method == "append_to_transcript":
            facts = {"seq": result}
        elif method == "undo":
            facts = {"prompt": result.prompt}
        elif method == "reset_session":
            facts = {"session": result.session_id}
        self.write_entry("after", **facts)
        if method == "record_user_message":
            self.prompts.append(self.word)
        elif method == "undo":
            self.prompts.pop()
        elif method == "reset_session":
            self.prompts.clear()
            self.session = result.session_id

    def run(self, store: SessionStore) -> None:
        entries = [store.get_or_create_session(build_source(lane)) for lane in (self.name, "common")]
        self.start(*entries)
        while True:
            method, args, options = self.choose_operation()
            self.record_result(method, getattr(store, method)(*args, **options))

    async def arun(self, store: SessionStore) -> None:
        entries = [await store.aio.get_or_create_session(build_source(lane)) for lane in (self.name, "common")]
        self.start(*entries)
        while True:
            method, args, options = self.choose_operation()
            self.record_result(method, await getattr(store.aio, method)(*args, **options))


@command
def write_until_killed(url: str, round_number: int, seed: int, journal: str) -> int:
    """Fork a process that opens the store and writes from several threads and tasks; return its id."""
    preload()
    pid = os.fork()
    if pid:
        return pid
    try:
        file = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        store = SessionStore.open(url)
        for name in ("blocking1", "blocking2"):
            writer = JournalingWriter(name, round_number, seed, file)
            threading.Thread(target=_run_or_exit, args=(writer.run, store), daemon=True).start()
        asyncio.run(_run_tasks([JournalingWriter(f"async{n}", round_number, seed, file) for n in range(3)], store))
    except BaseException as error:  # noqa: BLE001  (whatever it is, the exit code below must tell the test)
        os.write(2, f"store process, round {round_number}: {error!r}\n".encode())
    os._exit(1)


async def _run_tasks(writers: list[JournalingWriter], store: SessionStore) -> None:
    await asyncio.gather(*(writer.arun(store) for writer in writers))


def _run_or_exit(run: Callable[[SessionStore], None], store: SessionStore) -> None:
    """Run a thread; if it fails, exit, so that the test sees that the process has ended before it was killed."""
    try:
        run(store)
    except BaseException as error:  # noqa: BLE001
        os.write(2, f"thread of a store process: {error!r}\n".encode())
        os._exit(1)


def preload() -> None:
    """Import what opening a store imports, so that a fork is killed at its work and not during its imports."""
    for name in ("palaver.core.engines.sqlite", "palaver.core.engines.postgres"):
        import_module(name)


@command
def open_and_exit(url: str) -> int:
    """Fork a process that opens a database, records a message and exits; return its id."""
    preload()
    pid = os.fork()
    if pid:
        return pid
    SessionStore.open(url).record_user_message(build_source("ada"), "created")
    os._exit(0)


@command
def wait_for_exit(pid: int) -> int:
    """Wait for the end of a forked process; return its exit code, or the signal that killed it as a negative number."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# -- faults --------------------------------------------------------------------------------------------------


@command
def limit_file_size(max_bytes: int | None) -> None:
    """Let no file grow beyond `max_bytes` from now on; None: no limit."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if max_bytes is None else max_bytes, hard))


@command
def record_until_full(lane: str, max_messages: int) -> int:
    """Record long messages until that fails, at most `max_messages`; return how many were acknowledged."""
    for number in range(max_messages):
        try:
            get_store().record_user_message(build_source(lane), f"{number} " + "x" * 20_000)
        except StoreError:
            return number
    return max_messages


@command
def set_checkpoint_pages(pages: int) -> None:
    """Let stores that are opened from now on checkpoint after this many pages of the WAL."""
    import_module("palaver.core.engines.sqlite").CHECKPOINT_PAGES = pages  # type: ignore[attr-defined]


@command
def interrupt_writes(times: int, seed: int) -> int:
    """Interrupt writes with Ctrl-C at random moments; check after each that the store still works."""
    sys.settrace(None)  # under coverage, an interrupt can come inside the tracer, between taking a lock and guarding it
    chance = random.Random(seed)
    session_id = get_store().get_or_create_session(build_source("ada")).session_id
    for number in range(times):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        end = time.monotonic() + 1  # an interrupt is lost if it comes while Python runs a destructor
        with contextlib.suppress(BaseException):  # whatever error the interrupt has become on its way here
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00005, 0.002))
            while time.monotonic() < end:
                get_store().append_to_transcript(session_id, "before")
        results: list[int] = []
        after = threading.Thread(
            target=lambda seqs: seqs.append(get_store().append_to_transcript(session_id, "after")),
            args=(results,),
            daemon=True,
        )
        after.start()
        after.join(10)
        if not results:
            raise RuntimeError(f"the store no longer works after Ctrl-C number {number + 1}")
    return times


@command
def record_message_later(url: str, lane: str, text: str, hours: float, at: float | None = None) -> list[Any]:
    """Record a message by a clock that is ahead, where conversations end after an hour; return its session and why."""
    with _open_later_store(url, hours) as store:
        wait_until(at)
        recorded = store.record_user_message(build_source(lane), text)
        return [recorded.session_id, recorded.start_reason]


@command
def run_expiry_watcher(url: str, hours: float, crash_at: list[Any] | None = None, at: float | None = None) -> list[str]:
    """Run an expiry watcher once, by a clock that is ahead; the process kills itself at a crash point."""
    from palaver.config.agent_rules import TurnRules
    from palaver.core.crash_points import set_crash_hook
    from palaver.turns.expiry import ExpiryWatcher

    passed: list[str] = []

    def pass_crash_point(name: str) -> None:
        passed.append(name)
        if [name, passed.count(name)] == crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with _open_later_store(url, hours) as store:
        watcher = ExpiryWatcher(store, CurrentSettings(ScriptedAgent(), TurnRules()))
        set_crash_hook(pass_crash_point)
        wait_until(at)
        asyncio.run(watcher.run_once())
    return passed


def _open_later_store(url: str, hours: float) -> SessionStore:
    from palaver.sessions.policy import ResetMode, ResetPolicy
    from palaver.testing import FakeClock

    config = GatewayConfig(default_reset_policy=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60))
    return SessionStore.open(url, config=config, clock=FakeClock(datetime.now(UTC) + timedelta(hours=hours)))


@command
def change_settings(
    url: str, home: str, values: dict[str, Any] | None = None, rotate: bool = False, crash_at: str | None = None
) -> list[str]:
    """Change settings, or rotate their key; the process kills itself at a crash point. Return those that it passed."""
    from pathlib import Path

    from palaver.app import make_editor
    from palaver.config import load_settings
    from palaver.core.crash_points import set_crash_hook
    from palaver.settings.editor import SettingsEdit, rotate_key
    from palaver.settings.reader import SettingsReader

    passed: list[str] = []

    def pass_crash_point(name: str) -> None:
        passed.append(name)
        if name == crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with SessionStore.open(url) as store:
        base = load_settings({"HOME": home}, Path(home))
        owner = store.get_owner().principal
        set_crash_hook(pass_crash_point)
        if rotate:
            rotate_key(SettingsReader(store.engine, base))
        else:
            make_editor(store, base).change(owner, SettingsEdit(values=values or {}, origin="terminal"))
        set_crash_hook(None)
    return passed


@command
def drop_root() -> None:
    """Continue as the user `nobody`; import everything first, because that user may not be able to."""
    preload()
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def main() -> None:
    os.setsid()  # so that the harness can kill it with everything that it has started
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": COMMANDS[request.pop("command")](**request)}
        except Exception as error:  # noqa: BLE001  (sent to the harness, which raises it)
            text = str(error) if isinstance(error, PalaverError) else traceback.format_exc()  # else it is a fault
            answer = {"error": type(error).__name__, "text": text}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

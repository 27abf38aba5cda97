"""Measures how long other writers wait while something large is deleted.

    python -m benchmarks.deletion [--messages 10000,100000] [--rows 10000] [--postgres] [--src PATH]

A conversation gets messages of about 400 characters, which are indexed for search; a job gets runs, a project
conversations, and a person files that no message uses. Then each is deleted while another person writes a message every few
milliseconds. The benchmark prints the longest transaction of the deletion, the longest wait of the other person before and
during it, and how long it took until the last row was gone. `--src` measures the `src` folder of another checkout.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import make_text
from benchmarks.empty_store import open_empty_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction

    Delete = Callable[[], object]

MESSAGES_PER_WRITE = 500
WRITE_PAUSE_SECONDS = 0.002
CALM_SECONDS = 0.5  # in which the other person writes undisturbed
MILLIS = 1e3


def fill_session(store: SessionStore, count: int, chat: str = "long") -> str:
    """Make a conversation with many messages, and index them."""
    from palaver import SessionSource
    from palaver.core.engines.base import Read, Write
    from palaver.sessions import message_table as message_log, search_table as search
    from palaver.sessions.indexer import BATCH_EVENTS
    from palaver.sessions.message import Message

    session_id = store.get_or_create_session(SessionSource("api", f"{chat}-{count}", user_id=chat)).session_id
    for start in range(0, count, MESSAGES_PER_WRITE):
        messages = [
            Message(role="user" if number % 2 == 0 else "assistant", content=make_text(number))
            for number in range(start, min(start + MESSAGES_PER_WRITE, count))
        ]
        append = partial(message_log.append_messages, session_id=session_id, messages=messages, now=start + 1)
        store.engine.run(Write(append))
    while (batch := store.engine.run(Read(lambda tx: search.collect_unindexed(tx, BATCH_EVENTS)))) is not None:
        store.engine.run(Write(partial(search.index_batch, batch=batch)))
    return session_id


def make_sessions(store: SessionStore, name: str, count: int) -> None:
    """Make short conversations of the owner: copies of the row of one."""
    from palaver import SessionSource
    from palaver.core.engines.base import Write

    source = SessionSource("local", f"{name}-{count}", user_id="1")
    first_id = store.record_user_message(source, make_text(count)).session_id
    columns = "key, platform, chat_type, source, audience_no, shared, preview, created_at, active_at, start_reason"
    copy = f"INSERT INTO session (id, {columns}) SELECT $1, {columns} FROM session WHERE id = $2"
    rows = [(f"{name}-{count}-{number}", first_id) for number in range(count)]
    store.engine.run(Write(lambda tx: tx.execute_many(copy, rows)))


def fill_project(store: SessionStore, count: int) -> Delete:
    from palaver.core.engines.base import Write

    view = store.seen_by(store.get_owner().principal)
    project_id = view.projects.create(f"Project of {count}").id
    make_sessions(store, "project", count)
    move = (
        "UPDATE session SET project_no = (SELECT no FROM project WHERE id = $1) WHERE project_no IS NULL AND"
        " platform = 'local'"
    )
    store.engine.run(Write(lambda tx: tx.execute(move, project_id)))
    delete = getattr(view.projects, "delete_completely", view.projects.delete)  # the second one in older checkouts
    return partial(delete, project_id)


def fill_job(store: SessionStore, count: int) -> Delete:
    from palaver import SessionSource
    from palaver.core.engines.base import Write
    from palaver.jobs import table as jobs
    from palaver.jobs.model import JobState

    make_sessions(store, "job", count)
    new_job = jobs.NewJob(
        person_id=store.get_owner().id,
        name=f"Job of {count}",
        prompt="What is new?",
        schedule="every 5m",
        timezone="UTC",
        anchor=store.clock.now(),
        targets=("local",),
        origin=SessionSource("local", "1"),
        toolsets=(),
        state=JobState.PAUSED,
        next_slot=None,
    )

    def fill(tx: Transaction) -> int:
        job_no = jobs.insert(tx, new_job, 1).no
        tx.execute(
            "INSERT INTO job_run (id, job_no, slot, kind, state, result, start_after, session_no, created_at, started_at,"
            " ended_at) SELECT 'run-' || s.no, $1, s.no, 'scheduled', 'done', 'answer', 0, s.no, 1, 1, 1 FROM session s"
            " WHERE s.platform = 'local' AND s.preview <> '' AND NOT EXISTS"
            " (SELECT 1 FROM job_run r WHERE r.session_no = s.no)",
            job_no,
        )
        return job_no

    return partial(_delete_job, store, store.engine.run(Write(fill)))


def _delete_job(store: SessionStore, job_no: int) -> None:
    from palaver.core.engines.base import Write

    try:
        from palaver.core.operation import BlockingRunner
        from palaver.jobs.table import delete
        from palaver.sessions.deletions import build_deletion
    except ImportError:  # an older checkout
        from palaver.jobs.table import delete  # type: ignore[attr-defined,no-redef]

        store.engine.run(Write(lambda tx: delete(tx, job_no)))
        return
    BlockingRunner(store.engine).run(build_deletion(lambda tx: delete(tx, job_no)))


def fill_files(store: SessionStore, count: int) -> Delete:
    from palaver.core.engines.base import Write
    from palaver.media.attachments import Attachments

    insert = (
        "INSERT INTO attachment (id, name, media_type, size, sha256, person_id, created_at)"
        " VALUES ($1, $2, 'text/plain', 5, $3, $4, 1)"
    )
    person_id = store.get_owner().id
    rows = [(f"a_{number:024x}", f"{number}.txt", f"{number:064x}", person_id) for number in range(count)]
    store.engine.run(Write(lambda tx: tx.execute_many(insert, rows)))

    def clean_up() -> int:
        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(Attachments(store, Path(folder)).clean_up())

    return clean_up


class WriteTimer:
    """Times the writes of one engine that delete something, however they are started."""

    def __init__(self, store: SessionStore, other_thread: threading.Thread) -> None:
        self.longest_seconds = 0.0
        self._run, self._arun = store.engine.run, store.engine.arun
        self._other_thread = other_thread
        store.engine.run = self.run  # type: ignore[method-assign]
        store.engine.arun = self.arun  # type: ignore[method-assign]

    def run(self, work: Any) -> Any:
        start = time.perf_counter()
        result = self._run(work)
        if threading.current_thread() is not self._other_thread:
            self._record(start)
        return result

    async def arun(self, work: Any) -> Any:
        start = time.perf_counter()
        result = await self._arun(work)
        self._record(start)
        return result

    def _record(self, start: float) -> None:
        self.longest_seconds = max(self.longest_seconds, time.perf_counter() - start)


def measure(store: SessionStore, what: str, delete: Delete) -> None:
    """Delete something while another person writes."""
    other = fill_session(store, 2, "other")
    waits: list[tuple[float, float]] = []
    stopped = threading.Event()

    def write() -> None:
        while not stopped.wait(WRITE_PAUSE_SECONDS):
            start = time.perf_counter()
            store.append_to_transcript(other, {"role": "user", "content": "still here"})
            waits.append((start, time.perf_counter() - start))

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(CALM_SECONDS)
    timer = WriteTimer(store, writer)
    start = time.perf_counter()
    delete()
    end = time.perf_counter()
    stopped.set()
    writer.join()
    calm = max(wait for moment, wait in waits if moment + wait < start)
    during = max(wait for moment, wait in waits if moment + wait >= start)
    print(
        f"{what:>22}: longest transaction {timer.longest_seconds * MILLIS:8.1f} ms, longest wait of another person"
        f" {calm * MILLIS:6.1f} ms before and {during * MILLIS:8.1f} ms meanwhile,"
        f" all gone after {(end - start) * MILLIS:8.0f} ms",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", default="10000,100000", help="how many messages the conversations have")
    parser.add_argument("--rows", default="1000,10000", help="how many runs, conversations and files the others have")
    parser.add_argument("--postgres", action="store_true", help="measure PostgreSQL instead of SQLite")
    parser.add_argument("--src", metavar="PATH", help="the src folder to measure instead of this checkout's")
    options = parser.parse_args()
    if options.src:
        sys.path.insert(0, options.src)
    with open_empty_store(on_postgres=options.postgres) as store:
        for count in map(int, filter(None, options.rows.split(","))):
            measure(store, f"job, {count:,} runs", fill_job(store, count))
            measure(store, f"project, {count:,}", fill_project(store, count))
            measure(store, f"unused files, {count:,}", fill_files(store, count))
        for count in map(int, filter(None, options.messages.split(","))):
            measure(store, f"{count:,} messages", partial(store.delete_session, fill_session(store, count)))


if __name__ == "__main__":
    main()

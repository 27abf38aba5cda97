"""Measures how long other writers wait while a conversation is deleted.

    python -m benchmarks.deletion [--messages 10000,100000] [--postgres] [--src PATH]

A conversation gets messages of about 400 characters, which are indexed for search. Then it is deleted while another person
writes a message every few milliseconds. The benchmark prints the longest transaction of the deletion, the longest wait of
the other person, and how long it took until the last row was gone. `--src` measures the `src` folder of another checkout.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import make_text
from benchmarks.empty_store import open_empty_store

if TYPE_CHECKING:
    from palaver import SessionStore

MESSAGES_PER_WRITE = 500
WRITE_PAUSE_SECONDS = 0.002
MILLIS = 1e3


def fill(store: SessionStore, chat: str, count: int) -> str:
    """Make a conversation with many messages, and index them."""
    from palaver import SessionSource
    from palaver.domain.message import Message
    from palaver.services.indexer import BATCH_EVENTS
    from palaver.storage import message_log, search
    from palaver.storage.engines.base import Read, Write

    session_id = store.get_or_create_session(SessionSource("api", chat, user_id=chat)).session_id
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


class WriteTimer:
    """Times the writes of one engine on the thread that deletes."""

    def __init__(self, store: SessionStore) -> None:
        self.longest_seconds = 0.0
        self._run = store.engine.run
        self._thread = threading.get_ident()
        store.engine.run = self.run  # type: ignore[method-assign]

    def run(self, work: Any) -> Any:
        start = time.perf_counter()
        result = self._run(work)
        if threading.get_ident() == self._thread:
            self.longest_seconds = max(self.longest_seconds, time.perf_counter() - start)
        return result


def measure(store: SessionStore, count: int) -> None:
    doomed, other = fill(store, f"doomed-{count}", count), fill(store, f"other-{count}", 2)
    waits: list[float] = []
    stopped = threading.Event()

    def write() -> None:
        while not stopped.wait(WRITE_PAUSE_SECONDS):
            start = time.perf_counter()
            store.append_to_transcript(other, {"role": "user", "content": "still here"})
            waits.append(time.perf_counter() - start)

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.2)
    timer = WriteTimer(store)
    start = time.perf_counter()
    store.delete_session(doomed)
    total = time.perf_counter() - start
    stopped.set()
    writer.join()
    print(
        f"{count:>8,} messages: longest transaction {timer.longest_seconds * MILLIS:8.1f} ms,"
        f" longest wait of another person {max(waits) * MILLIS:8.1f} ms, all gone after {total * MILLIS:8.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", default="10000,100000", help="how many messages the conversations have")
    parser.add_argument("--postgres", action="store_true", help="measure PostgreSQL instead of SQLite")
    parser.add_argument("--src", metavar="PATH", help="the src folder to measure instead of this checkout's")
    options = parser.parse_args()
    if options.src:
        sys.path.insert(0, options.src)
    with open_empty_store(on_postgres=options.postgres) as store:
        for count in options.messages.split(","):
            measure(store, int(count))


if __name__ == "__main__":
    main()

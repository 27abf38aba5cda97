"""Measures what reading a conversation costs when many versions stand at its end.

    python -m benchmarks.versions [--versions 1,190,2000] [--rounds 7] [--postgres] [--src PATH]

A conversation of 40 messages gets versions: the last message is asked again, and if that is more often than a message can
have versions, the messages before it as well. Every version has an answer of about 400 characters. Then the last one is
gone through from the first to the last version and back. The benchmark times four reads of what is shown. Conversations
with few and many versions alternate in one run, and the fastest round counts: of processor time on SQLite, which runs in
this process, of time on PostgreSQL. `--src` measures the `src` folder of another checkout.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.corpus import make_text
from benchmarks.empty_store import open_empty_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionStore

MESSAGES = 40
MAX_VERSIONS_OF_MESSAGE = 200
READS_PER_ROUND = 50
MICROS_PER_SECOND = 1e6


@dataclass(frozen=True)
class Conversation:
    """One session with its number in the database."""

    store: SessionStore
    session_id: str
    no: int

    def ask(self, number: int) -> int:
        """Append a question and its answer; return the number of the question."""
        seq = self.store.append_to_transcript(self.session_id, {"role": "user", "content": f"question {number}"})
        answer = {"role": "assistant", "content": make_text(number), "answers": seq}
        self.store.append_to_transcript(self.session_id, answer)
        return seq

    def ask_again(self, seq: int, number: int) -> int:
        from palaver.core.engines.base import Write
        from palaver.sessions import versions_table as versions

        self.store.engine.run(Write(lambda tx: versions.start_version(tx, self.no, seq, 0)))
        return self.ask(number)

    def choose(self, group: int, number: int) -> None:
        from palaver.core.engines.base import Write
        from palaver.sessions import versions_table as versions

        self.store.engine.run(Write(lambda tx: versions.choose_version(tx, self.no, group, number, 0)))


def build_conversation(store: SessionStore, version_count: int) -> Conversation:
    """Make a conversation in which `version_count` versions stand at the end."""
    from palaver import SessionSource
    from palaver.core.engines.base import Read
    from palaver.sessions import table as sessions

    source = SessionSource("api", f"versions-{version_count}", user_id="ada")
    session_id = store.get_or_create_session(source).session_id
    no = store.engine.run(Read(lambda tx: sessions.get(tx, session_id).no))
    conversation = Conversation(store, session_id, no)
    left, last_count = version_count, 1
    counts: list[int] = []
    while left > 0:
        counts.insert(0, min(left, MAX_VERSIONS_OF_MESSAGE))
        left -= counts[0]
    group = 0
    for number in range(MESSAGES // 2):
        group = seq = conversation.ask(number)
        index = number - (MESSAGES // 2 - len(counts))
        last_count = counts[index] if index >= 0 else 1
        for again in range(1, last_count):
            seq = conversation.ask_again(seq, again)
    if last_count > 1:
        for number in [*range(1, last_count), *range(last_count, 0, -1)]:
            conversation.choose(group, number)
    return conversation


def list_reads(conversation: Conversation) -> dict[str, Callable[[], object]]:
    from palaver.core.engines.base import Read
    from palaver.sessions import transcript_table as transcript_pages, versions_table as versions
    from palaver.sessions.log_table import END_OF_LOG

    store, no = conversation.store, conversation.no
    page = transcript_pages.load_page
    first_seq = store.engine.run(Read(lambda tx: page(tx, no, limit=MESSAGES))).events[0].seq
    return {
        "last 20 messages": lambda: store.load_transcript(conversation.session_id, limit=20),
        "the end of the page": lambda: store.engine.run(Read(lambda tx: page(tx, no, limit=30))),
        "a page, forwards": lambda: store.engine.run(Read(lambda tx: page(tx, no, after=first_seq, limit=30))),
        "what the model sees": lambda: store.engine.run(Read(lambda tx: versions.load_view(tx, no, None, END_OF_LOG))),
    }


def measure(read: Callable[[], object], now: Callable[[], float]) -> float:
    """Return the microseconds of one read."""
    start = now()
    for _ in range(READS_PER_ROUND):
        read()
    return (now() - start) / READS_PER_ROUND * MICROS_PER_SECOND


def run(store: SessionStore, counts: list[int], rounds: int) -> None:
    reads = {count: list_reads(build_conversation(store, count)) for count in counts}
    names = list(reads[counts[0]])
    now = time.process_time if store.engine.name == "sqlite" else time.perf_counter
    times: dict[tuple[str, int], list[float]] = {(name, count): [] for name in names for count in counts}
    for _ in range(rounds):
        for name in names:
            for count in counts:
                times[name, count].append(measure(reads[count][name], now))
    print(f"| {store.engine.name} | {' | '.join(f'{count:,}' for count in counts)} |")
    print(f"|---|{'---:|' * len(counts)}")
    for name in names:
        print(f"| {name} | {' | '.join(f'{min(times[name, count]):,.0f} µs' for count in counts)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--versions", default="1,190,2000", help="how many versions stand at the end, separated by commas"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--postgres", action="store_true", help="measure PostgreSQL instead of SQLite")
    parser.add_argument("--src", metavar="PATH", help="the src folder to measure instead of this checkout's")
    options = parser.parse_args()
    if options.src:
        sys.path.insert(0, options.src)
    with open_empty_store(on_postgres=options.postgres) as store:
        run(store, [int(count) for count in options.versions.split(",")], options.rounds)


if __name__ == "__main__":
    main()

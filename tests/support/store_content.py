"""Fills a store with conversations, forks, people, files, turns, deliveries and jobs, by chance but repeatably.

Every table that can have rows gets some, so that a test that copies a store copies rows of every kind.
"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

from palaver import SessionSource, TurnUsage
from palaver.core.engines.base import Read, Write
from palaver.core.errors import PalaverError

if TYPE_CHECKING:
    from pathlib import Path

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction

WORDS = (
    "zebrafish",
    "quokka",
    "straße",
    "мир",
    "你好",
    "🦊",
    "it's",
    'a "quote"',
    "back\\slash",
    "tab\there",
    "line\nbreak",
)
SKIPPED_TABLES = frozenset({"migration", "access_change", "search", "sqlite_sequence"})


def fill_store(store: SessionStore, folder: Path | None = None, seed: int = 1, count: int = 60) -> None:
    """Run `count` random operations, then add rows to the tables that those do not reach."""
    chance = random.Random(seed)
    sources = [
        *(SessionSource("telegram", user, user_id=user, user_name=user.title()) for user in ("ada", "bob", "eve")),
        SessionSource("discord", "club", chat_type="group", thread_id="1", user_id="ada", user_name="Ada"),
        SessionSource.local_cli(),
    ]
    owner = store.get_owner()
    store.seen_by(owner.principal).projects.create("Plans", "#3b82f6")
    for number in range(count):
        source = chance.choice(sources)
        text = f"{number} " + " ".join(chance.choices(WORDS, k=chance.randint(1, 8)))
        session_id = store.record_user_message(source, text).session_id
        usage = TurnUsage(
            turn_id=f"t{number}", input_tokens=chance.randint(1, 99), output_tokens=3, model="m", cost="0.01"
        )
        answer: list[str | dict[str, Any]] = [text[::-1].strip() or "x"]
        if chance.random() < 0.5:
            answer.append({"role": "tool", "content": "1", "tool_call_id": "c"})
        store.append_to_transcript(session_id, answer, usage=usage)
        try:
            _change(store, chance, session_id, source, number)
        except PalaverError:  # nothing to undo, a title that is taken: the next number
            continue
    store.search("quokka")
    store.engine.run(Write(lambda tx: _add_other_rows(tx, folder)))


def _change(store: SessionStore, chance: random.Random, session_id: str, source: SessionSource, number: int) -> None:
    match chance.randint(0, 7):
        case 0:
            store.undo(session_id)
        case 1:
            store.fork(session_id)
        case 2:
            store.reset_session(store.get_or_create_session(source).session_key)
        case 3:
            store.rename_session(session_id, f"Title {number % 7} 你好")
        case 4:
            store.delete_session(store.fork(session_id).id)
        case 5:
            store.pin(session_id, True)
        case 6:
            store.rewrite_transcript(session_id, [*store.load_transcript(session_id)[:1], f"rewritten {number}"])
        case _:
            store.restore(store.get_or_create_session(source).session_key)


def _add_other_rows(tx: Transaction, folder: Path | None) -> None:
    [(first,), (second,)] = tx.fetch_all("SELECT no FROM session ORDER BY no LIMIT 2")
    [(person_id, audience_no)] = tx.fetch_all("SELECT id, audience_no FROM person ORDER BY created_at LIMIT 1")
    tx.execute(
        "INSERT INTO person (id, name, role, audience_no, merged_into, created_at)"
        " VALUES ('0', 'Old', 'guest', $2, $1, 1)",
        person_id,
        audience_no,
    )
    data = b"bytes of a file"
    sha256 = hashlib.sha256(data).hexdigest()
    if folder is not None:
        (folder / sha256[:2]).mkdir(parents=True)
        (folder / sha256[:2] / sha256).write_bytes(data)
    tx.execute(
        "INSERT INTO attachment (id, person_id, name, media_type, size, sha256, created_at)"
        " VALUES ('a1', $1, 'notes.txt', 'text/plain', $2, $3, 5)",
        person_id,
        len(data),
        sha256,
    )
    [(file_no,)] = tx.fetch_all("SELECT no FROM attachment")
    tx.execute("INSERT INTO attachment_use (session_no, attachment_no) VALUES ($1, $2)", first, file_no)
    for name, session_no, state in (
        ("queued1", first, "queued"),
        ("running1", second, "running"),
        ("done1", first, "done"),
    ):
        tx.execute(
            "INSERT INTO turn (id, session_no, kind, input_seq, state, queue_round, due_at, created_at, lease_owner,"
            " lease_until, ended_at) VALUES ($1, $2, 'answer', 2, $3, 0, 0, 0, $4, $5, $6)",
            name,
            session_no,
            state,
            "h/1/2/w" if state == "running" else None,
            0 if state == "running" else None,
            7 if state == "done" else None,
        )
    [(turn_no,)] = tx.fetch_all("SELECT no FROM turn WHERE id = 'done1'")
    tx.execute("INSERT INTO draft (turn_no, session_no, attempt, body) VALUES ($1, $2, 1, '[]')", turn_no, first)
    tx.execute(
        "INSERT INTO delivery (id, kind, session_no, turn_no, platform, account, address, content, state, created_at)"
        " VALUES ('d1', 'answer', $1, $2, 'telegram', '', 'telegram:1', 'hi 你好', 'pending', 9)",
        first,
        turn_no,
    )
    [(delivery_no,)] = tx.fetch_all("SELECT no FROM delivery WHERE id = 'd1'")
    tx.execute(
        "INSERT INTO delivery_part (delivery_no, part_no, body, state) VALUES ($1, 1, 'hi', 'pending')", delivery_no
    )
    tx.execute(
        "INSERT INTO inbound_message (platform, account, chat, sender, message_id, receipt, received_at)"
        " VALUES ('telegram', '', '1', '', '7', '{}', 3)"
    )
    tx.execute(
        "INSERT INTO memory (id, audience_no, person_id, text, text_key, created_at)"
        " VALUES ('m1', $1, $2, 'Likes tea', 'likes tea', 4)",
        audience_no,
        person_id,
    )
    tx.execute("INSERT INTO platform_cursor VALUES ('telegram', '', 'updates', '12', 3)")
    tx.execute("INSERT INTO named_lease VALUES ('jobs', 'h/1/2/w', 5)")
    tx.execute(
        "INSERT INTO job (id, person_id, name, name_key, prompt, schedule, timezone, anchor, targets, origin, toolsets,"
        " state, next_slot, created_at, updated_at) VALUES ('j1', $1, 'News', 'news', 'What is new?', '0 9 * * *',"
        " 'UTC', 0, '[]', '{}', '[]', 'active', 99, 1, 1)",
        person_id,
    )
    [(job_no,)] = tx.fetch_all("SELECT no FROM job")
    tx.execute(
        "INSERT INTO job_run (id, job_no, slot, kind, state, start_after, session_no, turn_no, created_at, ended_at)"
        " VALUES ('r1', $1, 5, 'scheduled', 'done', 0, $2, $3, 1, 2)",
        job_no,
        first,
        turn_no,
    )
    tx.execute(
        "INSERT INTO group_message (platform, account, chat_id, thread_id, sender, author, content, sent_at)"
        " VALUES ('discord', '', 'club', '', 'ada', 'Ada', 'not for the agent', 3)"
    )
    tx.execute("UPDATE session SET project_no = (SELECT no FROM project) WHERE no = $1", first)
    tx.execute("DELETE FROM group_message")  # its number is used all the same


def dump_tables(store: SessionStore, *names: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of some tables, or else of all, without how far the search index has come: it comes later."""

    def dump(tx: Transaction) -> dict[str, list[tuple[Any, ...]]]:
        from palaver.core.engines import table_copy

        tables = {table.name: table for table in table_copy.list_tables(tx)}
        return {
            name: sorted(table_copy.read_rows_to_compare(tx, tables[name], None, 1_000_000), key=repr)
            for name in names or tables
        }

    return store.engine.run(Read(dump))


def export_all(store: SessionStore) -> dict[str, Any]:
    """Return the export of every session."""
    ids = store.engine.run(Read(lambda tx: [row[0] for row in tx.fetch_all("SELECT id FROM session")]))
    return {session_id: store.export(session_id) for session_id in ids}
